"""Pairs of problems in which one carry differs: the data of causal carry studies.

The two problems of a pair are equal in every digit except one column; there the digit sums are s and s + 10 (2+3 and
7+8). So the column's own answer digit stays, the carry out of it flips, and nothing else changes unless the column
above sums to nine and passes the carry on: a ripple. `test` has pairs without ripple, `ripple` has pairs with one.

    base 221 + 436 = 0657      source 271 + 486 = 0757      column 1: 2+3 = 5 and 7+8 = 15
"""

from typing import TYPE_CHECKING

import numpy as np

from ..key_sets import KeySet
from .columns import AdditionProblems, problem_keys, solve


if TYPE_CHECKING:  # which count the pairs that there are
    from .options import AdditionOptions


# Digit pairs by their sum s = 0..8, next to those of sum s + 10: all 165 combinations, as (x, y, x', y').
LOW_AND_HIGH = np.array(
    [
        (x, y, high, s + 10 - high)
        for s in range(9)
        for x in range(s + 1)
        for y in [s - x]
        for high in range(s + 1, 10)
    ],
    np.uint8,
)


def count_pairs(digits: int, ripple: bool, zero_pad: bool) -> int:
    """How many (no-carry, carry) pairs there are, both orders of operands counted."""
    total = 0
    for column in range(digits):
        ways = 1
        for other in range(digits):
            leading = not zero_pad and other == digits - 1 and digits > 1
            if other == column:
                ways *= int((LOW_AND_HIGH > 0).all(1).sum()) if leading else len(LOW_AND_HIGH)
                continue
            every, nines = (81, 8) if leading else (100, 10)
            ways *= (nines if ripple else every - nines) if other == column + 1 else every
        total += 0 if ripple and column == digits - 1 else ways
    return total


def draw_pairs(
    rng: np.random.Generator, options: "AdditionOptions", ripple: bool, taken: KeySet
) -> tuple[AdditionProblems, AdditionProblems]:
    """`options.pairs` pairs (base, source) whose problems are in no other split; their keys join `taken`.

    The changed column is uniform over those that can serve, and either problem of a pair may be the one with the
    carry. Without zero padding no operand starts with a zero, so that both problems of a pair have their digits in
    the same places.
    """
    digits, missing = options.digits, options.pairs
    pairs: list[tuple[AdditionProblems, AdditionProblems]] = []
    avoid, drawn_pairs = taken.copy(), KeySet()
    rounds = 0
    while missing:
        rounds += 1
        if rounds > 1_000:
            raise ValueError(
                f"pairs={options.pairs:,} is not allowed: only {options.pairs - missing:,} were found beside the "
                "other splits; expected fewer pairs or more digits."
            )
        count = missing + missing // 2 + 16
        low, high = _draw_candidates(rng, count, digits, ripple)
        keys = [problem_keys(problems, options.ordered) for problems in (low, high)]
        pair_keys = problem_keys(low, True) * np.uint64(0x9E3779B97F4A7C15) + problem_keys(high, True)
        first = np.zeros(count, bool)
        first[np.unique(pair_keys, return_index=True)[1]] = True
        good = first & ~avoid.contains(keys[0]) & ~avoid.contains(keys[1]) & ~drawn_pairs.contains(pair_keys)
        if not options.zero_pad and digits > 1:
            leading = np.stack([low.a, low.b, high.a, high.b])[..., -1]
            good &= (leading > 0).all(0)
        rows = np.flatnonzero(good)[:missing]
        drawn_pairs.add(pair_keys[rows])
        for side in keys:
            taken.add(np.unique(side[rows]))
        flip = rng.random(len(rows)) < 0.5
        pairs.append((_choose(flip, low[rows], high[rows]), _choose(~flip, low[rows], high[rows])))
        missing -= len(rows)
    base, source = (AdditionProblems.concatenate([pair[side] for pair in pairs]) for side in (0, 1))
    return base, source


def _draw_candidates(
    rng: np.random.Generator, count: int, digits: int, ripple: bool
) -> tuple[AdditionProblems, AdditionProblems]:
    a, b = rng.integers(0, 10, size=(2, count, digits), dtype=np.uint8)
    rows = np.arange(count)
    column = rng.integers(0, digits - 1 if ripple else digits, size=count)
    above = np.minimum(column + 1, digits - 1)
    is_above = column + 1 < digits
    if ripple:
        b[rows, above] = 9 - a[rows, above]
    else:
        nine = np.flatnonzero(is_above & (a[rows, above] + b[rows, above] == 9))
        while len(nine):
            b[nine, above[nine]] = rng.integers(0, 10, size=len(nine), dtype=np.uint8)
            nine = nine[a[nine, above[nine]] + b[nine, above[nine]] == 9]
    choice = LOW_AND_HIGH[rng.integers(0, len(LOW_AND_HIGH), size=count)]
    sides = []
    for first in (0, 2):
        own_a, own_b = a.copy(), b.copy()
        own_a[rows, column], own_b[rows, column] = choice[:, first], choice[:, first + 1]
        sides.append(AdditionProblems(own_a, own_b, np.full(count, digits)))
    low, high = sides
    return low, high


def _choose(is_high: np.ndarray, low: AdditionProblems, high: AdditionProblems) -> AdditionProblems:
    take_high = is_high[:, None]
    return AdditionProblems(np.where(take_high, high.a, low.a), np.where(take_high, high.b, low.b), low.width)


def describe_pairs(base: AdditionProblems, source: AdditionProblems) -> dict[str, np.ndarray]:
    """What differs: the column (0 = units), the base's carry out of it, its answer digit, how far it ripples."""
    solutions = solve(base.a, base.b), solve(source.a, source.b)
    changed = (base.a != source.a) | (base.b != source.b)
    column = changed.argmax(-1)
    rows = np.arange(len(base))
    differing = solutions[0].carry_into != solutions[1].carry_into
    return {
        "column": column,
        "base_carry_out": solutions[0].carry_into[rows, column + 1],
        "own_digit": solutions[0].sum[rows, column],
        "ripple": differing.sum(-1) - 1,
    }
