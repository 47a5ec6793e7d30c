"""The cells of the addition study: the recipe whole, with one ingredient taken out or exchanged, and the baselines.

A variant is a name with the values that it sets in the recipe; with a seed it is a cell.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from .length_grid import Cell, check_name


ADDITION_RECIPE = "addition-long"
ADDITION_LENGTHS = (21, 30, 50, 100, 200, 500, 1000)
QUICK_ADDITION_LENGTHS = (30, 50, 100, 200)
QUICK_ADDITION_SETTINGS = ("training.steps=1000",)


@dataclass(frozen=True)
class AdditionVariant:
    says: str  # what it changes, in a table
    settings: tuple[str, ...] = ()
    baseline: bool = False  # another way to number or encode positions, in a larger model


# A table knows only the ids that it has seen: offsets in training show it those of numbers of 1,000 digits.
OFFSETS = "model.max_random_offset=1000"
TABLE = ("model.position_embedding_type=learned", "model.max_position_embeddings=1300")
# What belongs to relative_bias has no effect on other encodings, and is an error there.
NO_BIAS = ("model.relative_bias_first_token=false", "model.relative_position_range=6")
NO_SCALE = (*NO_BIAS, "model.position_bias_scale=10.0")
PLAIN_IDS = ("model.position_scheme=sequential",)
# Baselines have to find the digits of a column by themselves, which one layer cannot. With numbers of all lengths a
# column's place depends on the length, and they are far from fitting after thousands of steps (rotary: 11 % after
# 4,000), so their numbers are all written with 20 digits, leading zeros included. They stop as soon as they fit.
BASELINE = (
    *NO_SCALE,
    "data.min_digits=20",
    "model.score_jitter=null",
    "model.num_hidden_layers=3",
    "training.optimizer=muon",
    "training.target=0.998",
    "training.evaluate_every=250",
)

VARIANTS: dict[str, AdditionVariant] = {
    "whole": AdditionVariant("the recipe as it stands"),
    "no-coupling": AdditionVariant("ids 0, 1, 2, ... along the text", PLAIN_IDS),
    "no-jitter": AdditionVariant("scores as they are", ("model.score_jitter=null",)),
    "log_n": AdditionVariant(
        "scores times log n, no jitter", ("model.score_jitter=null", "model.attention_normalizer=log_n")
    ),
    "table": AdditionVariant("coupled ids in a learned table, with offsets", (*NO_SCALE, *TABLE, OFFSETS)),
    "rotary": AdditionVariant("coupled ids by rotation", (*NO_SCALE, "model.position_embedding_type=rotary")),
    "fire": AdditionVariant(
        "coupled ids by FIRE, with offsets", (*NO_BIAS, "model.position_embedding_type=fire", OFFSETS)
    ),
    "alibi": AdditionVariant("coupled ids by ALiBi", (*NO_SCALE, "model.position_embedding_type=alibi")),
    "no-reversal": AdditionVariant("answer most significant digit first", ("data.answer_order=plain",)),
    "no-carry-mixture": AdditionVariant("training problems uniform only", ("training.nine_shares=[0.0]",)),
    "no-zero-padding": AdditionVariant("numbers without leading zeros", ("data.zero_pad=false",)),
    "baseline-abacus": AdditionVariant(
        "digits numbered by significance in a learned table, offsets to 10, as abacus has it",
        (*BASELINE, *TABLE, "model.max_random_offset=10"),
        baseline=True,
    ),
    "baseline-randomized": AdditionVariant(
        "random ordered ids in a learned table",
        (*BASELINE, "model.position_embedding_type=learned", "model.position_scheme=randomized",
         "model.max_position_embeddings=3100"),
        baseline=True,
    ),
    "baseline-learned": AdditionVariant(
        "a learned table of places, clamped beyond training",
        (*BASELINE, *PLAIN_IDS, "model.position_embedding_type=learned", "model.max_position_embeddings=66",
         "model.position_overflow=clamp"),
        baseline=True,
    ),
    "baseline-sinusoidal": AdditionVariant(
        "sines and cosines of the place",
        (*BASELINE, *PLAIN_IDS, "model.position_embedding_type=sinusoidal"),
        baseline=True,
    ),
    "baseline-rotary": AdditionVariant(
        "rotation by the place",
        (*BASELINE, *PLAIN_IDS, "model.position_embedding_type=rotary"),
        baseline=True,
    ),
    "baseline-none": AdditionVariant(
        "no positions, the causal mask alone",
        (*BASELINE, *PLAIN_IDS, "model.position_embedding_type=none"),
        baseline=True,
    ),
}  # fmt: skip
QUICK_ADDITION_VARIANTS = ("whole", "no-jitter")


def addition_grid(
    variants: Iterable[str] = VARIANTS, seeds: Iterable[int] = (0, 1, 2), settings: Iterable[str] = ()
) -> list[Cell]:
    """Every variant with every seed; a study that was stopped early has all variants, with fewer seeds."""
    variants = list(dict.fromkeys(variants))
    for variant in variants:
        check_name("variant", variant, VARIANTS)
    return [
        Cell(ADDITION_RECIPE, seed, variant, settings=(*VARIANTS[variant].settings, *settings))
        for seed in seeds
        for variant in variants
    ]
