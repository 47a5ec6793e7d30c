"""Counterfactual pairs of any problems: a base, a source, and the answer to the base with the source's value of one
variable, everything else as it was.

    random   374 + 814 and 266 + 155 differ in the carry out of column 0 (0 and 1), and in nearly everything else:
             with that carry 374 + 814 would be 1198
    equal    two problems that agree in the variable at a place: the answer must stay

A model that holds the variable somewhere must answer accordingly when just that is taken from the source. Random pairs
ask for more than pairs that differ in little: whatever else is moved along shows.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .tasks import NOT_A_PLACE, P, Pairs, Task


ANY_PAIRS = {
    "random": "two problems of the test split that differ in it at a place, like in everything else",
    "equal": "two problems of the test split that agree in it at a place, and differ in everything else",
}


def draw_counterfactuals(
    task: Task[P], variable: str, problems: P, rng: np.random.Generator, kind: str = "random", n: int | None = None
) -> Pairs[P]:
    """Problems side by side, and for each two a place at which the variable differs, or (`equal`) agrees.

    `n`: so many pairs at most; without it, at most as many as there are problems.
    """
    about = task.variables[variable]
    if about.values is None or about.answers is None:
        raise ValueError(f"the variable {variable!r} has no values; expected one whose task tells them.")
    rows = len(problems) if n is None else n
    first, second = (_shuffled(rng, len(problems), rows) for _ in range(2))
    base, source = problems[first], problems[second]
    own, others = about.values(base), about.values(source)
    place, found = _places(own, others, rng, kind == "equal")
    kept = np.flatnonzero(found & (first != second))
    base, source, place = base[kept], source[kept], place[kept]
    return Pairs(base, source, place, about.answers(base, place, others[kept, place]))


def is_possible(task: Task[P], variable: str, base: P, source: P, place: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(N,): whether there are problems in which everything is as in the base and the variable as in the source.

    A column whose digits sum to nine propagates, whatever else is true: there is no problem with such a column that
    makes a carry by itself, so that a model that was trained on problems has never met what such a pair asks for.
    """
    about = task.variables[variable]
    if about.possible is None or about.values is None:
        return np.ones(len(base), bool)
    return about.possible(base, place, about.values(source)[np.arange(len(source)), place])


def _shuffled(rng: np.random.Generator, there: int, wanted: int) -> NDArray[np.int64]:
    """(wanted,): every problem as often as any other."""
    return np.concatenate([rng.permutation(there) for _ in range(-(-wanted // there))])[:wanted]


def _places(
    base: NDArray[np.int64], source: NDArray[np.int64], rng: np.random.Generator, equal: bool
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """(N,): a place of every pair, each that fits equally likely, and whether one does."""
    fits = (base == source) if equal else (base != source)
    fits &= (base != NOT_A_PLACE) & (source != NOT_A_PLACE)
    return np.where(fits, rng.random(fits.shape), -1.0).argmax(-1), fits.any(-1)
