"""The cells of the length study: which model is trained with which seed, and the names by which users ask for them.

A variant is an encoding and what changes beside it: `rotary+window`, `none+causal+log_n`. With a pooling and a seed it
is a cell: a recipe, values set in it, and a folder name.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from ..configuration.choices import NORMALIZERS, POOLERS, POSITION_ENCODINGS, POSITION_SCHEMES
from ..configuration.rules import nearest
from .length_families import LENGTH_FAMILIES


STUDY_RECIPE = "length-study"
KINDS = LENGTH_FAMILIES["sortedness"].kinds

# What may follow an encoding's name after a plus sign, in the order in which names are written.
MODIFIERS = {
    "causal": {"attention_direction": "causal"},
    "window": {"attention_window": 4},
    "randomized": {"position_scheme": "randomized", "max_position_embeddings": 1024},
    "log_n": {"attention_normalizer": "log_n"},
    "untrained": {"max_position_embeddings": 4096, "position_overflow": "error"},
    "table": {"embedding_type": "table"},
}

# What an encoding needs to be itself: the course's learned positions end where training ends.
ENCODING_SETTINGS = {"learned": {"max_position_embeddings": 16, "position_overflow": "clamp"}}

COURSE = ("sinusoidal", "learned", "none")
DEFAULT_VARIANTS = (
    *COURSE,
    "rotary",
    "rotary+window",
    "alibi",
    "alibi_directional",
    "t5_bias",
    "fire",
    "none+causal",
    "none+causal+log_n",
    "sinusoidal+causal+randomized",
)
DEFAULT_POOLINGS = ("max", "mean", "violation")
DEFAULT_SEEDS = (0, 1, 2)
DEFAULT_LENGTHS = (*range(8, 17), 32, 64, 128, 256, 512, 1024, 4096)

QUICK_VARIANTS = ("sinusoidal", "learned", "none", "alibi_directional", "none+causal", "none+causal+log_n")
QUICK_POOLINGS = ("max",)
QUICK_SEEDS = (0,)
QUICK_LENGTHS = (8, 16, 32, 64, 128, 256)
QUICK_SETTINGS = ("training.steps=800",)


@dataclass(frozen=True)
class Cell:
    """One model of the study. `name` is its folder; `variant` and `pooling` are what its rows are grouped by."""

    recipe: str
    seed: int
    variant: str
    pooling: str | None = None  # None: the recipe's own
    settings: tuple[str, ...] = ()  # KEY=VALUE, as for headcount train --set

    @property
    def name(self) -> str:
        return "-".join(part for part in (self.variant, self.pooling, str(self.seed)) if part is not None)


def parse_variant(text: str) -> str:
    """The variant under its one name, modifiers in order; a wrong name raises with what is expected.

    >>> parse_variant("none+log_n+causal")
    'none+causal+log_n'
    """
    encoding, *modifiers = text.split("+")
    if encoding not in POSITION_ENCODINGS:
        raise ValueError(
            f"encoding {encoding!r} is not known; expected one of {', '.join(POSITION_ENCODINGS)}."
            f"{nearest(encoding, POSITION_ENCODINGS)}"
        )
    for modifier in modifiers:
        if modifier not in MODIFIERS:
            raise ValueError(
                f"{text!r} has the unknown part {modifier!r}; expected ENCODING+PART with parts from "
                f"{', '.join(MODIFIERS)}.{nearest(modifier, MODIFIERS)}"
            )
    return "+".join([encoding, *(name for name in MODIFIERS if name in modifiers)])


def variant_settings(variant: str) -> dict[str, object]:
    """Fields of HeadcountConfig, by name."""
    encoding, *modifiers = variant.split("+")
    settings = {"position_embedding_type": encoding, **ENCODING_SETTINGS.get(encoding, {})}
    for modifier in modifiers:
        settings |= MODIFIERS[modifier]
    return settings


def make_grid(
    variants: Iterable[str] = DEFAULT_VARIANTS,
    poolings: Iterable[str] = DEFAULT_POOLINGS,
    seeds: Iterable[int] = DEFAULT_SEEDS,
    schemes: Iterable[str] | None = None,
    normalizers: Iterable[str] | None = None,
    settings: Iterable[str] = (),
) -> list[Cell]:
    """Every variant with every pooling and seed; `schemes` and `normalizers`, where given, multiply the variants.

    A study that was stopped early has all variants, with fewer poolings and seeds: that is the order of work.
    """
    variants, poolings = [parse_variant(text) for text in variants], list(poolings)
    for pooling in poolings:
        check_name("pooling", pooling, POOLERS)
    for axis, names, plain in (("scheme", schemes, "sequential"), ("normalizer", normalizers, "softmax")):
        if names is not None:
            variants = cross(variants, axis, list(names), plain)
    variants = list(dict.fromkeys(variants))
    return [
        Cell(
            STUDY_RECIPE,
            seed,
            variant,
            pooling,
            (
                *(f"model.{name}={value}" for name, value in variant_settings(variant).items()),
                f"model.pooling_type={pooling}",
                *settings,
            ),
        )
        for seed in seeds
        for pooling in poolings
        for variant in variants
    ]


def cross(variants: list[str], axis: str, names: list[str], plain: str) -> list[str]:
    """Every variant under every one of the names; `plain` is the name that adds nothing."""
    known = {"scheme": POSITION_SCHEMES, "normalizer": NORMALIZERS}[axis]
    for name in names:
        check_name(axis, name, known)
        if name != plain and name not in MODIFIERS:
            allowed = [plain, *(modifier for modifier in MODIFIERS if modifier in known)]
            raise ValueError(f"{axis} {name!r} does not apply to sortedness; expected one of {', '.join(allowed)}.")
    return [variant if name == plain else parse_variant(f"{variant}+{name}") for variant in variants for name in names]


def check_name(what: str, name: str, known: Iterable[str]) -> None:
    if name not in known:
        raise ValueError(f"{what} {name!r} is not known; expected one of {', '.join(known)}.{nearest(name, known)}")


def recipe_cells(recipes: Iterable[str], seeds: Iterable[int], settings: Iterable[str] = ()) -> list[Cell]:
    """Recipes as they stand, with every seed."""
    return [Cell(recipe, seed, recipe, settings=tuple(settings)) for seed in seeds for recipe in recipes]
