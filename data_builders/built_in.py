"""What a person put into a model instead of training it: one list, from which every table, card and figure reads.

This file imports nothing. A task adds what it knows of its own: `Task.built_in`.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class BuiltIn(NamedTuple):
    name: str
    sentence: str


def _is(field: str, value: Any) -> Callable[[Mapping], bool]:
    return lambda config: config.get(field) == value


def _is_causal_encoder(config: Mapping) -> bool:
    return config.get("architecture") != "decoder" and config.get("attention_direction") == "causal"


def _has_window(config: Mapping) -> bool:
    return config.get("attention_window") is not None


def _has_bias_of_first_token(config: Mapping) -> bool:
    return config.get("position_embedding_type") == "relative_bias" and bool(config.get("relative_bias_first_token"))


BUILT_IN: tuple[tuple[Callable[[Mapping], bool], str, str], ...] = (
    (
        _is("position_scheme", "coupled"),
        "coupled position ids",
        "digits of equal significance share a position id (`coupled`), so that their alignment is not learned.",
    ),
    (
        _is("position_scheme", "abacus"),
        "abacus position ids",
        "every digit is told its place within its number (`abacus`), so that places are not learned.",
    ),
    (
        _is("position_scheme", "nested"),
        "nested position ids",
        "a bracket and the one that closes it have neighbouring position ids (`nested`), so that the stack is not "
        "learned.",
    ),
    (
        _is("position_embedding_type", "alibi_directional"),
        "directional heads",
        "half of the heads can only look back, half only ahead (`alibi_directional`).",
    ),
    (
        _is("position_embedding_type", "relative_bias"),
        "clipped differences",
        "the bias tells differences of position ids apart only up to {relative_position_range} "
        "(`relative_position_range`), so that far ones look alike.",
    ),
    (
        _has_bias_of_first_token,
        "bias for the first token",
        "the first token has a bias of its own (`relative_bias_first_token`), a place to look at for nothing.",
    ),
    (
        _is("embedding_type", "ordinal"),
        "ordinal embedding",
        "values are embedded as cumulative sums of trained steps (`ordinal`), so that their order is visible from the "
        "start.",
    ),
    (
        _is("pooling_type", "violation"),
        "violation pooling",
        "the pooling computes neighbour differences (`violation`).",
    ),
    (
        _has_window,
        "window",
        "every token sees its {attention_window} neighbours on each side only (`attention_window`).",
    ),
    (
        _is_causal_encoder,
        "causal mask",
        "tokens of the encoder see only those before them (`attention_direction`), so that order shows without "
        "position ids.",
    ),
)


def built_in(config: Mapping[str, Any]) -> list[BuiltIn]:
    """Everything that is built into a model with this config, whatever its task."""
    return [BuiltIn(name, sentence.format_map(config)) for used, name, sentence in BUILT_IN if used(config)]
