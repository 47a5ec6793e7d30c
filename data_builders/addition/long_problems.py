"""Addition problems of one given width, by the class of what makes them hard: what a model is tested on at any length.

Every class is a function `(rng, count, digits) -> AdditionProblems`.
"""

from collections.abc import Callable

import numpy as np

from .carry_groups import sample_addition
from .columns import AdditionProblems


def random_problems(rng: np.random.Generator, count: int, digits: int) -> AdditionProblems:
    """Uniform digits; the first digit of each operand is not zero, so that both have the full length."""
    problems = sample_addition(rng, count, digits)
    for operand in (problems.a, problems.b):
        operand[:, -1] = rng.integers(1, 10, count)
    return problems


def carry_dense(rng: np.random.Generator, count: int, digits: int) -> AdditionProblems:
    """Nine columns of ten sum to nine: long chains, half of which a carry runs through."""
    return sample_addition(rng, count, digits, nine_share=0.9)


def full_chain(rng: np.random.Generator, count: int, digits: int) -> AdditionProblems:
    """A carry is made in the units and runs through every other column."""
    problems = sample_addition(rng, count, digits, nine_share=1.0)
    units = rng.integers(1, 10, count)
    problems.a[:, 0] = units
    problems.b[:, 0] = rng.integers(10 - units, 10)
    return problems


def all_nines(rng: np.random.Generator, count: int, digits: int) -> AdditionProblems:
    """Every column sums to nine and no carry is made: one carry too many would change every digit."""
    return sample_addition(rng, count, digits, nine_share=1.0)


def unequal(rng: np.random.Generator, count: int, digits: int) -> AdditionProblems:
    """One operand has the full length, the other any shorter one, down to the number 0."""
    problems = random_problems(rng, count, digits)
    short = rng.integers(0, digits, count)
    beyond = np.arange(digits) >= short[:, None]
    first = rng.random(count) < 0.5
    problems.a[beyond & first[:, None]] = 0
    problems.b[beyond & ~first[:, None]] = 0
    return problems


def leading_zeros(rng: np.random.Generator, count: int, digits: int) -> AdditionProblems:
    """Both operands are shorter than the width in which they are written; the first row is 0 + 0."""
    problems = sample_addition(rng, count, digits)
    for operand in (problems.a, problems.b):
        operand[np.arange(digits) >= rng.integers(0, digits, count)[:, None]] = 0
    problems.a[:1], problems.b[:1] = 0, 0
    return problems


PROBLEM_CLASSES: dict[str, Callable[[np.random.Generator, int, int], AdditionProblems]] = {
    "random": random_problems,
    "carry_dense": carry_dense,
    "full_chain": full_chain,
    "all_nines": all_nines,
    "unequal": unequal,
    "leading_zeros": leading_zeros,
}
