"""The variables of column addition: what is known of a column before its answer digit is.

    374 + 814          column     0  1  2
    column_sum         8 8 11     the two digits of a column added
    digit_sum          8 8 1      the same modulo ten
    tri_state          k k g      kill, propagate (they sum to nine) or generate: what becomes of a carry there
    carry              0 0 1      the carry that leaves the column, all columns below it resolved

An answer digit is (digit_sum + carry into its column) mod 10; carries follow from the tri-states below. So a changed
digit sum changes one digit, a changed tri-state or carry whatever columns above make of it, and a changed column sum
both.

Shapes: N problems, C columns; places (N,) are columns.
"""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..counterfactuals import ANY_PAIRS
from ..tasks import NOT_A_PLACE, ErrorSignature, Variable
from .columns import GENERATE, PROPAGATE, AdditionProblems, solve
from .pair_kinds import PAIR_KINDS, with_carry


def column_sums(problems: AdditionProblems) -> NDArray[np.int64]:
    return _written(problems, problems.a + problems.b)


def digit_sums(problems: AdditionProblems) -> NDArray[np.int64]:
    return _written(problems, (problems.a + problems.b) % 10)


def tri_states(problems: AdditionProblems) -> NDArray[np.int64]:
    return _written(problems, solve(problems.a, problems.b).column_class)


def carries(problems: AdditionProblems) -> NDArray[np.int64]:
    return _written(problems, solve(problems.a, problems.b).carry_into[:, 1:])


def _written(problems: AdditionProblems, values: NDArray) -> NDArray[np.int64]:
    """Values (N, C) of the columns in which a problem is written."""
    return np.where(np.arange(problems.columns) < problems.width[:, None], values.astype(np.int64), NOT_A_PLACE)


def with_digit_sum(
    problems: AdditionProblems, column: NDArray[np.int64], value: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """One digit changes: the carry out of the column is another variable's."""
    found = solve(problems.a, problems.b)
    digits, rows = found.sum.copy(), np.arange(len(problems))
    digits[rows, column] = (value + found.carry_into[rows, column]) % 10
    return digits


def with_tri_state(
    problems: AdditionProblems, column: NDArray[np.int64], value: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """The column's own digit stays; what leaves it is what this tri-state makes of the carry that enters it."""
    incoming = solve(problems.a, problems.b).carry_into[np.arange(len(problems)), column]
    return with_carry(problems, column, np.where(value == PROPAGATE, incoming, value == GENERATE))


def with_column_sum(
    problems: AdditionProblems, column: NDArray[np.int64], value: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """The sums with other digits in a column, of which only their sum matters."""
    a, b, rows = problems.a.copy(), problems.b.copy(), np.arange(len(problems))
    a[rows, column] = np.minimum(value, 9)
    b[rows, column] = value - a[rows, column]
    return solve(a, b).sum


def has_carry_and_digit(
    problems: AdditionProblems, column: NDArray[np.int64], value: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Whether a column can have another carry with the digit sum it has: not where it propagates."""
    return tri_states(problems)[np.arange(len(problems)), column] != PROPAGATE


def has_state_and_digit(
    problems: AdditionProblems, column: NDArray[np.int64], value: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Whether it can have this tri-state: to propagate is to sum to nine."""
    return has_carry_and_digit(problems, column, value) & (value != PROPAGATE)


def has_digit_and_state(
    problems: AdditionProblems, column: NDArray[np.int64], value: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Whether it can have this digit sum with the tri-state it has."""
    return has_carry_and_digit(problems, column, value) & (value != 9)


of_a_column = partial(Variable, place="column", near={"left": 1, "right": -1}, pair_kinds=ANY_PAIRS)

VARIABLES = {
    "carry": of_a_column(
        "the carry out of a column",
        shows_at="left",
        pair_kinds=PAIR_KINDS,
        errors=ErrorSignature("off by exactly one, as with a carry too many or too few", (1, 9), 10, 1),
        values=carries,
        answers=with_carry,
        possible=has_carry_and_digit,
    ),
    "tri_state": of_a_column(
        "whether a column kills, propagates or generates a carry",
        shows_at="left",
        values=tri_states,
        answers=with_tri_state,
        possible=has_state_and_digit,
    ),
    "digit_sum": of_a_column(
        "the two digits of a column added, modulo ten",
        shows_at="column",
        values=digit_sums,
        answers=with_digit_sum,
        possible=has_digit_and_state,
    ),
    "column_sum": of_a_column(
        "the two digits of a column added", shows_at="column", values=column_sums, answers=with_column_sum
    ),
}
