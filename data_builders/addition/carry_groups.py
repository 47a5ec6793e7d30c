"""AdditionProblems of a given longest carry chain, drawn uniformly and counted exactly, for any number of digits.

A problem's group depends only on the class of each column (kill, propagate, generate), and columns are independent: 45
of the 100 digit pairs kill, 10 propagate, 45 generate. So a small automaton that reads columns from the units up and
keeps (length of the running chain, was the wanted length reached) counts and draws a group exactly.

Groups: `nines` (every column sums to nine, no carry: the class that uniform test sets hide) and `chain_c` (the longest
chain has c columns; `chain_0` without `nines`). With D columns `chain_D` is the other half of the all-nines class:
nine everywhere above units that generate a carry.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from .columns import GENERATE, KILL, PROPAGATE, AdditionProblems, is_all_nines, solve


NINES = "nines"
EVERY_CHAIN_UP_TO = 32  # wider problems have the groups chain_0, 1, 2, 4, 8, ... and the full width

# Number of digit pairs by class, all of them and those with two equal digits.
PAIR_COUNTS = (45, 10, 45)
DOUBLE_COUNTS = (5, 0, 5)


def group_names(columns: int) -> list[str]:
    """The groups of problems that are `columns` wide: `['nines', 'chain_0', ..., 'chain_3']` for three."""
    if columns <= EVERY_CHAIN_UP_TO:
        chains = list(range(columns + 1))
    else:
        chains = [0, *(1 << power for power in range(columns.bit_length()) if 1 << power < columns), columns]
    return [NINES, *(f"chain_{chain}" for chain in chains)]


def chain_of(group: str) -> int:
    return 0 if group == NINES else int(group.removeprefix("chain_"))


def name_groups(problems: AdditionProblems) -> NDArray[np.str_]:
    """(N,): the group of each problem."""
    solution = solve(problems.a, problems.b)
    names = np.array([f"chain_{chain}" for chain in range(problems.columns + 1)], dtype=object)
    return np.where(is_all_nines(solution.column_class, problems.width), NINES, names[solution.longest_chain])


def group_size(group: str, columns: int, ordered: bool) -> int:
    """How many problems the group has; a+b and b+a count once unless `ordered`.

    Exact up to 32 columns; beyond, where no corpus comes near it, the size of the smallest group.
    """
    if columns > EVERY_CHAIN_UP_TO:
        group = NINES
    everything, doubles = (_count(group, columns, counts) for counts in (PAIR_COUNTS, DOUBLE_COUNTS))
    return everything if ordered else (everything + doubles) // 2


@lru_cache(maxsize=4096)
def _count(group: str, columns: int, counts: tuple[int, int, int]) -> int:
    nines = counts[PROPAGATE] ** columns
    if group == NINES:
        return nines
    chain = chain_of(group)
    up_to = _count_up_to(chain, columns, counts)
    return up_to - (_count_up_to(chain - 1, columns, counts) if chain else nines)


def _count_up_to(chain: int, columns: int, counts: tuple[int, int, int]) -> int:
    """Problems whose longest chain is `chain` or shorter: a list over running lengths, updated column by column."""
    running = [1] + [0] * chain
    for _ in range(columns):
        total = sum(running)
        after = [counts[KILL] * total + counts[PROPAGATE] * running[0]] + [0] * chain
        for length in range(1, chain + 1):
            after[length] = counts[PROPAGATE] * running[length - 1] if length > 1 else counts[GENERATE] * total
        running = after
    return sum(running)


def draw_group(rng: np.random.Generator, count: int, group: str, columns: int) -> AdditionProblems:
    """`count` problems, each drawn uniformly from the group; the same one may come more than once."""
    if group != NINES and not 0 <= chain_of(group) <= columns:
        raise ValueError(
            f"group {group!r} does not exist with {columns} columns; expected nines or chain_0..{columns}."
        )
    if group == NINES:
        return draw_columns(rng, np.full((count, columns), PROPAGATE, np.uint8))
    problems = draw_columns(rng, _draw_classes(rng, count, chain_of(group), columns))
    while group == "chain_0":
        nines = np.flatnonzero(is_all_nines(solve(problems.a, problems.b).column_class, problems.width))
        if not len(nines):
            break
        fresh = draw_columns(rng, _draw_classes(rng, len(nines), 0, columns))
        problems.a[nines], problems.b[nines] = fresh.a, fresh.b
    return problems


def _draw_classes(rng: np.random.Generator, count: int, chain: int, columns: int) -> NDArray[np.uint8]:
    """(count, columns) classes whose longest chain is exactly `chain`, uniform over problems."""
    weights = _completions(chain, columns)
    states = np.arange(2 * (chain + 1))
    running, reached = states % (chain + 1), states // (chain + 1)
    state = np.full(count, (chain + 1) * (chain == 0))
    classes = np.empty((columns, count), np.uint8)
    for column in range(columns):
        after = [_next_state(running, reached, chain, column_class) for column_class in (KILL, PROPAGATE, GENERATE)]
        share = np.stack(
            [
                np.where(state_after >= 0, pairs * weights[column + 1][state_after], 0.0)
                for state_after, pairs in zip(after, PAIR_COUNTS, strict=True)
            ]
        )
        total = share.sum(0)
        bounds = np.divide(np.cumsum(share, 0)[:2], total, out=np.zeros((2, len(states))), where=total > 0)
        drawn = rng.random(count)
        classes[column] = (drawn >= bounds[0][state]).view(np.uint8) + (drawn >= bounds[1][state]).view(np.uint8)
        state = np.stack(after)[classes[column], state]
    return classes.T


def _next_state(running: NDArray, reached: NDArray, chain: int, column_class: int) -> NDArray:
    """The automaton's step for every state at once; -1 where the chain would grow beyond the wanted length."""
    if column_class == KILL:
        length = np.zeros_like(running)
    elif column_class == GENERATE:
        length = np.ones_like(running)
    else:
        length = np.where(running > 0, running + 1, 0)
    now_reached = reached | (length == chain)
    return np.where(length <= chain, now_reached * (chain + 1) + length, -1)


@lru_cache(maxsize=256)
def _completions(chain: int, columns: int) -> list[NDArray[np.float64]]:
    """[column][state]: in how many ways the columns from `column` on can be filled, scaled so as not to overflow."""
    states = np.arange(2 * (chain + 1))
    running, reached = states % (chain + 1), states // (chain + 1)
    weights = [reached.astype(np.float64)]
    for _ in range(columns):
        total = np.zeros(len(states))
        for column_class, pairs in enumerate(PAIR_COUNTS):
            after = _next_state(running, reached, chain, column_class)
            total += np.where(after >= 0, pairs * weights[-1][after], 0.0)
        weights.append(total / total.max())
    return weights[::-1]


# PAIRS[class, i] for i in 0..89 is a pair of digits of that class; 90 is a multiple of both 45 and 10.
_LISTS = [[(x, y) for x in range(10) for y in range(10) if (x + y >= 9) + (x + y >= 10) == kind] for kind in range(3)]
PAIRS = np.array([[pairs[i % len(pairs)] for i in range(90)] for pairs in _LISTS], np.uint8)  # (3, 90, 2)


def draw_columns(rng: np.random.Generator, classes: NDArray[np.uint8]) -> AdditionProblems:
    """AdditionProblems with the given column classes (N, C), the digits of each column drawn uniformly."""
    pairs = PAIRS[classes, rng.integers(0, 90, size=classes.shape, dtype=np.uint8)]
    rows, columns = classes.shape
    return AdditionProblems(pairs[..., 0].copy(), pairs[..., 1].copy(), np.full(rows, columns))


def sample_addition(
    rng: np.random.Generator,
    count: int,
    digits: int,
    *,
    nine_share: float | None = None,
    longest_chain: int | None = None,
) -> AdditionProblems:
    """AdditionProblems made on the fly, `digits` wide with leading zeros allowed; repetitions are possible.

    Uniform by default. `nine_share=p`: a column sums to nine with probability p and is uniform otherwise, which makes
    long carry chains (and long chains that no carry enters) common. `longest_chain=c`: exactly that; `digits` gives
    the full chain.

    >>> problems = sample_addition(np.random.default_rng(0), 128, 20, nine_share=0.5)
    >>> problems.a.shape
    (128, 20)
    """
    if digits < 1:
        raise ValueError(f"digits={digits} is not allowed; expected a whole number >= 1.")
    if nine_share is not None and longest_chain is not None:
        raise ValueError("nine_share and longest_chain exclude each other; expected one of them.")
    if longest_chain is not None:
        if not 0 <= longest_chain <= digits:
            raise ValueError(f"longest_chain={longest_chain} is not allowed; expected 0 to digits={digits}.")
        return draw_group(rng, count, f"chain_{longest_chain}", digits)
    a, b = rng.integers(0, 10, size=(2, count, digits), dtype=np.uint8)
    problems = AdditionProblems(a, b, np.full(count, digits))
    if nine_share is not None:
        if not 0 <= nine_share <= 1:
            raise ValueError(f"nine_share={nine_share} is not allowed; expected a number from 0 to 1.")
        np.copyto(problems.b, 9 - problems.a, where=rng.random((count, digits)) < nine_share)
    return problems


def shorten_one_operand(rng: np.random.Generator, problems: AdditionProblems) -> None:
    """In half of the problems, on average, one operand becomes shorter: any length from 0 digits (the number 0) on."""
    count, columns = problems.a.shape
    digits_left = np.asarray(rng.integers(0, columns, count))
    choice = np.asarray(rng.integers(0, 4, count))  # 0: the first operand, 1: the second, otherwise neither
    for number, digits in enumerate((problems.a, problems.b)):
        digits[(choice == number)[:, None] & (np.arange(columns) >= digits_left[:, None])] = 0
