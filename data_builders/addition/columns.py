"""Column addition on arrays of digits: sums, carries, carry chains and the texts, for any number of digits.

Shapes: N problems, C columns. Digits are uint8 arrays (N, C) with the units in column 0, so that a column's index is
the power of ten it stands for. A sum has C + 1 columns.

    374 + 814      column            0  1  2  3
                   a                 4  7  3
                   b                 4  1  8
                   sum               8  8  1  1
                   carry into        0  0  0  1
                   class             k  k  g
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..key_sets import scramble
from ..tasks import Problems


KILL, PROPAGATE, GENERATE = 0, 1, 2
INT64_DIGITS = 18  # operands of so many digits, and their sum, fit into 64-bit integers
EXACT_KEY_DIGITS = 9  # two operands of so many digits fit into one 64-bit key


@dataclass(frozen=True)
class AdditionProblems(Problems):
    """Addition problems as digits: `a` and `b` (N, C), and the columns in which each is written, `width` (N,)."""

    a: NDArray[np.uint8]
    b: NDArray[np.uint8]
    width: NDArray[np.int64]

    @property
    def columns(self) -> int:
        return self.a.shape[1]

    @staticmethod
    def from_integers(a: list[int], b: list[int], columns: int | None = None) -> "AdditionProblems":
        """From Python integers of any size: `AdditionProblems.from_integers([374], [814])`."""
        for number in (*a, *b):
            if number < 0:
                raise ValueError(f"{number} cannot be an operand; expected a whole number >= 0.")
        longest = max(len(str(number)) for number in (*a, *b))
        columns = longest if columns is None else columns
        if longest > columns:
            raise ValueError(f"an operand has {longest} digits; expected at most columns={columns}.")
        first, second = (
            np.array([[int(digit) for digit in reversed(str(number).zfill(columns))] for number in numbers], np.uint8)
            for numbers in (a, b)
        )
        return AdditionProblems(first, second, np.full(len(a), columns))


@dataclass(frozen=True)
class Solution:
    """What column addition makes of N problems."""

    sum: NDArray[np.uint8]  # (N, C + 1)
    carry_into: NDArray[np.uint8]  # (N, C + 1): into each answer digit; the last is the leading digit itself
    column_class: NDArray[np.uint8]  # (N, C): KILL, PROPAGATE or GENERATE
    carries: NDArray[np.int64]  # (N,): columns that a carry leaves
    longest_chain: NDArray[np.int64]  # (N,): columns that one carry leaves, up to where it is absorbed


def solve(a: NDArray[np.uint8], b: NDArray[np.uint8]) -> Solution:
    """Adds column by column, as on paper. Works a row of 1,000 digits as well as a million rows of three."""
    rows, columns = a.shape
    # One column of all problems is contiguous in the transposed arrays.
    totals = np.ascontiguousarray(a.T) + np.ascontiguousarray(b.T)  # (C, N), 0..18
    column_class = (totals >= 9).view(np.uint8) + (totals >= 10).view(np.uint8)
    digits, carry_into = np.zeros((2, columns + 1, rows), np.uint8)
    chain_type = np.uint8 if columns < 255 else np.uint16
    chain, longest = np.zeros((2, rows), chain_type)
    for column in range(columns):
        total = totals[column] + carry_into[column]
        carry_out = total >= 10
        carry_into[column + 1] = carry_out
        digits[column] = total - 10 * carry_into[column + 1]
        # A carry that is made here starts a chain of one; a carry that passes through makes its chain longer.
        chain *= column_class[column] == PROPAGATE
        chain += 1
        chain *= carry_out
        np.maximum(longest, chain, out=longest)
    digits[columns] = carry_into[columns]
    return Solution(
        sum=digits.T,
        carry_into=carry_into.T,
        column_class=column_class.T,
        carries=carry_into.sum(0, dtype=np.int64),
        longest_chain=longest.astype(np.int64),
    )


def is_all_nines(column_class: NDArray[np.uint8], width: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(N,): every written column sums to nine and no carry enters: one carry more would change every digit."""
    return (column_class == PROPAGATE).sum(-1) == width


def number_of_digits(digits: NDArray[np.uint8]) -> NDArray[np.int64]:
    """(N,): digits without leading zeros; zero has one."""
    columns = digits.shape[1]
    nonzero = digits[:, ::-1] != 0
    return np.where(nonzero.any(-1), columns - nonzero.argmax(-1), 1)


def to_integers(digits: NDArray[np.uint8]) -> NDArray[np.int64]:
    """(N,) from (N, C); exact up to 18 digits and for the sum of two such numbers."""
    value = np.zeros(len(digits), np.int64)
    for column in reversed(range(digits.shape[1])):
        value *= 10
        value += digits[:, column]
    return value


def from_integers(values: NDArray[np.integer], columns: int) -> NDArray[np.uint8]:
    """(N, C) from (N,); the inverse of `to_integers`."""
    digits = np.empty((columns, len(values)), np.uint8)
    rest = values.astype(np.uint64 if columns > EXACT_KEY_DIGITS else np.uint32)
    for column in range(columns):
        rest, digits[column] = np.divmod(rest, rest.dtype.type(10))
    return digits.T


def problem_keys(problems: AdditionProblems, ordered: bool) -> NDArray[np.uint64]:
    """(N,): equal for equal problems. Up to nine digits also different for different problems; beyond, a 64-bit hash.

    Where keys are used, an equal key means "do not take this row", so that a clash of hashes costs one fresh row and
    never lets a repeated one in. Unless `ordered`, a+b and b+a have the same key.
    """
    if problems.columns <= EXACT_KEY_DIGITS:
        a, b = (to_integers(digits).astype(np.uint64) for digits in (problems.a, problems.b))
        if not ordered:
            a, b = np.minimum(a, b), np.maximum(a, b)
        return a * np.uint64(10**EXACT_KEY_DIGITS) + b
    a, b = _hash_rows(problems.a), _hash_rows(problems.b)
    return scramble(a * np.uint64(3) + b) if ordered else scramble(a) + scramble(b)


def _hash_rows(digits: NDArray[np.uint8]) -> NDArray[np.uint64]:
    value = np.full(len(digits), 0x9E3779B97F4A7C15, np.uint64)
    for column in range(digits.shape[1]):
        value = (value ^ digits[:, column]) * np.uint64(0x100000001B3)  # FNV-1a
    return scramble(value)
