"""Where different problems come from: streams that never repeat one."""

import numpy as np
from numpy.typing import NDArray

from ..key_sets import KeySet, scramble
from .carry_groups import draw_group, group_size
from .columns import EXACT_KEY_DIGITS, AdditionProblems, from_integers, problem_keys
from .permutation import Permutation


class OperandRange:
    """The numbers an operand may be: up to `digits` digits, or exactly so many unless `leading_zeros`."""

    def __init__(self, digits: int, leading_zeros: bool):
        self.digits = digits
        self.first = 0 if leading_zeros or digits == 1 else 10 ** (digits - 1)
        self.size = 10**digits - self.first
        self.is_long = digits > EXACT_KEY_DIGITS
        # Of a long operand, the low nine digits are what makes a row unique; the others are random.
        self.low_size = 10**EXACT_KEY_DIGITS if self.is_long else self.size

    def digits_of(self, low: NDArray[np.uint64], rng: np.random.Generator, columns: int) -> NDArray[np.uint8]:
        if not self.is_long:
            return from_integers(low + np.uint64(self.first), columns)
        digits = np.zeros((len(low), columns), np.uint8)
        digits[:, :EXACT_KEY_DIGITS] = from_integers(low, EXACT_KEY_DIGITS)
        digits[:, EXACT_KEY_DIGITS : self.digits] = rng.integers(
            0, 10, size=(len(low), self.digits - EXACT_KEY_DIGITS), dtype=np.uint8
        )
        if self.first:
            digits[:, self.digits - 1] = rng.integers(1, 10, size=len(low), dtype=np.uint8)
        return digits


class UniformSource:
    """All problems of two operand ranges in random order, none twice, without keeping any of them in memory.

    The i-th row is the i-th element of a seeded permutation of the index space, so 100 million rows need no more
    memory than one chunk. Unless `ordered`, an index stands for an unordered pair, and a coin decides which operand
    is first. Operands of more than nine digits: the low nine digits of both come from the permutation, the others
    are random, so that no two rows have the same low digits, let alone the same problem.
    """

    remember = False  # rows cannot repeat

    def __init__(self, a: OperandRange, b: OperandRange, width: int, columns: int, ordered: bool, seed: list[int]):
        self.a, self.b, self.width, self.columns, self.ordered = a, b, width, columns, ordered
        self.is_triangle = not ordered and a.digits == b.digits
        self.size = self.share_limit = a.size * (a.size + 1) // 2 if self.is_triangle else a.size * b.size
        count = a.low_size * (a.low_size + 1) // 2 if self.is_triangle else a.low_size * b.low_size
        self.permutation = Permutation(count, [*seed, a.digits, b.digits])
        self.rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([*seed, a.digits, b.digits, 1])))
        self.coin = self.rng.integers(0, 1 << 64, dtype=np.uint64)
        self.position = 0

    def draw(self, count: int) -> AdditionProblems:
        """The next `count` rows, or what is left."""
        end = min(self.position + count, self.permutation.size)
        index = self.permutation(np.arange(self.position, end, dtype=np.uint64))
        self.position = end
        if self.is_triangle:
            low_a, low_b = _unordered_pair(index)
        else:
            low_a, low_b = np.divmod(index, np.uint64(self.b.low_size))
        swap = (scramble(index + self.coin) & np.uint64(1)).astype(bool) & (not self.ordered)
        if self.is_triangle:
            low_a, low_b = np.where(swap, low_b, low_a), np.where(swap, low_a, low_b)
        a, b = self.a.digits_of(low_a, self.rng, self.columns), self.b.digits_of(low_b, self.rng, self.columns)
        if not self.is_triangle and not self.ordered:
            a, b = np.where(swap[:, None], b, a), np.where(swap[:, None], a, b)
        return AdditionProblems(a, b, np.full(len(a), self.width))


def _unordered_pair(index: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """0, 1, 2, 3, ... -> (0,0), (0,1), (1,1), (0,2), ...: the smaller and the larger number."""
    larger = ((np.sqrt(8.0 * index + 1) - 1) / 2).astype(np.uint64)
    one = np.uint64(1)
    larger -= larger * (larger + one) // np.uint64(2) > index  # the square root of a large number may be off by one
    larger += (larger + one) * (larger + np.uint64(2)) // np.uint64(2) <= index
    return index - larger * (larger + one) // np.uint64(2), larger


class GroupSource:
    """Random problems of one carry group; rows may repeat, so whoever takes them remembers their keys."""

    remember = True

    def __init__(self, group: str, width: int, columns: int, ordered: bool, seed: list[int]):
        self.group, self.width, self.columns = group, width, columns
        self.size = group_size(group, width, ordered)
        # The last ones of a group take long to find; others give the rest.
        self.share_limit = self.size - self.size // 8
        self.rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([*seed, width, *group.encode()])))
        # To see each of n problems takes about n ln n draws; after many more than that, nothing new is left.
        self.draws_left = self.size * (20 + 3 * self.size.bit_length())

    def draw(self, count: int) -> AdditionProblems:
        count = min(count, self.draws_left)
        self.draws_left -= count
        problems = draw_group(self.rng, count, self.group, self.width)
        beyond = ((0, 0), (0, self.columns - self.width))
        return AdditionProblems(np.pad(problems.a, beyond), np.pad(problems.b, beyond), problems.width)


def take_new(
    source: UniformSource | GroupSource, count: int, taken: KeySet, ordered: bool, keep_keys: bool
) -> AdditionProblems:
    """Up to `count` problems that are not in `taken`; fewer only when the source has no more.

    Their keys join `taken` if `keep_keys`, or if the source could bring them again.
    """
    parts = [source.draw(0)]
    missing, least = count, 1024
    while missing > 0:
        # A source that repeats itself brings fewer new rows the more are taken: draw more of it then.
        drawn = source.draw(max(missing + missing // 8, least) if source.remember else missing)
        least = min(2 * least, 1 << 17)
        if not len(drawn):
            break
        keys = problem_keys(drawn, ordered)
        new = ~taken.contains(keys)
        if source.remember:
            first = np.zeros(len(keys), bool)
            first[np.unique(keys, return_index=True)[1]] = True
            new &= first
        if not source.remember and not keep_keys and new.all():
            return AdditionProblems.concatenate([*parts, drawn])
        rows = np.flatnonzero(new)[:missing]
        if source.remember or keep_keys:
            taken.add(keys[rows])
        parts.append(drawn[rows])
        missing -= len(rows)
    return AdditionProblems.concatenate(parts)


def share_out(total: int, capacities: list[int]) -> list[int]:
    """Equal shares of `total`, none above its capacity; what does not fit is shared among the others.

    >>> share_out(10, [1, 100, 100])
    [1, 5, 4]
    """
    shares = [0] * len(capacities)
    open_shares = [number for number, capacity in enumerate(capacities) if capacity > 0]
    while total and open_shares:
        each, extra = divmod(total, len(open_shares))
        for place, number in enumerate(open_shares):
            added = min(each + (place < extra), capacities[number] - shares[number])
            shares[number] += added
            total -= added
        open_shares = [number for number in open_shares if shares[number] < capacities[number]]
    return shares
