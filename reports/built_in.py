"""What a person put into a model, instead of training: (field of the config, value) -> its name and a sentence."""

BUILT_IN = {
    ("position_scheme", "coupled"): (
        "coupled position ids",
        "digits of equal significance share a position id (`coupled`), so that their alignment is not learned.",
    ),
    ("position_scheme", "abacus"): (
        "abacus position ids",
        "every digit is told its place within its number (`abacus`), so that places are not learned.",
    ),
    ("position_embedding_type", "alibi_directional"): (
        "directional heads",
        "half of the heads can only look back, half only ahead (`alibi_directional`).",
    ),
    ("embedding_type", "ordinal"): (
        "ordinal embedding",
        "values are embedded as cumulative sums of trained steps (`ordinal`), so that their order is visible from the "
        "start.",
    ),
    ("pooling_type", "violation"): (
        "violation pooling",
        "the pooling computes neighbour differences (`violation`).",
    ),
}


def built_in(config: dict) -> list[tuple[str, str]]:
    """Name and sentence of everything that is built into a model with this config."""
    return [told for (field, value), told in BUILT_IN.items() if config.get(field) == value]
