"""Column addition against Python's integers, on every three-digit problem and on very long ones."""

import random

import numpy as np
import pytest

from headcount.data_builders.addition.columns import (
    GENERATE,
    KILL,
    PROPAGATE,
    AdditionProblems,
    from_integers,
    number_of_digits,
    problem_keys,
    solve,
    to_integers,
)
from headcount.data_builders.addition.options import AdditionOptions
from headcount.data_builders.addition.permutation import TABLE_LIMIT, Permutation
from headcount.data_builders.registry import TASKS


def carries_on_paper(a: int, b: int, columns: int) -> tuple[list[int], int]:
    """Carry into each answer digit, units first, and the longest chain, digit by digit in plain Python."""
    carry, carries, chain, longest = 0, [0], 0, 0
    for place in range(columns):
        total = a // 10**place % 10 + b // 10**place % 10
        if total >= 10:
            chain = 1
        elif total == 9 and carry:
            chain += 1
        else:
            chain = 0
        carry = (total + carry) // 10
        carries.append(carry)
        longest = max(longest, chain)
    return carries, longest


def test_all_million_three_digit_rows_agree_with_the_oracle():
    corpus = TASKS["addition"].splits(AdditionOptions(exhaustive=True))
    expected = 0
    for table in corpus.tables("exhaustive", "exhaustive"):
        columns = {name: table[name].to_pylist() for name in ("input", "target", "a", "b", "sum")}
        for text, target, a, b, total in zip(*columns.values(), strict=True):
            assert (a, b) == divmod(expected, 1000)
            assert total == int(a) + int(b)
            assert text == f"{a:03d}+{b:03d}"
            assert target == f"{total:04d}"
            expected += 1
    assert expected == 1_000_000


def test_carries_and_chains_agree_with_paper():
    rng = random.Random(0)
    problems = [(rng.randrange(10**6), rng.randrange(10**6)) for _ in range(3000)]
    problems += [(999_999, 1), (999_999, 0), (123_456, 876_543), (123_456, 876_544), (0, 0), (555_555, 555_555)]
    digits = AdditionProblems.from_integers(*map(list, zip(*problems, strict=True)), columns=6)
    solution = solve(digits.a, digits.b)
    for row, (a, b) in enumerate(problems):
        carries, longest = carries_on_paper(a, b, 6)
        assert solution.carry_into[row].tolist() == carries
        assert solution.longest_chain[row] == longest
        assert solution.carries[row] == sum(carries)
        kinds = [
            (KILL, PROPAGATE, GENERATE)[(total >= 9) + (total >= 10)]
            for total in (digits.a[row] + digits.b[row]).tolist()
        ]
        assert solution.column_class[row].tolist() == kinds


@pytest.mark.parametrize("columns", [1, 17, 18, 19, 300, 1000])
def test_long_sums_are_exact(columns):
    rng = random.Random(columns)
    a, b = ([rng.randrange(10**columns) for _ in range(20)] + [10**columns - 1] for _ in range(2))
    digits = AdditionProblems.from_integers(a, b, columns)
    solution = solve(digits.a, digits.b)
    sums = [int("".join(map(str, row[::-1]))) for row in solution.sum.tolist()]
    assert sums == [int(x) + int(y) for x, y in zip(a, b, strict=True)]
    assert solution.longest_chain.max() <= columns
    full_chain = solve(*(np.array([digits]) for digits in ([9] * columns, [1] + [0] * (columns - 1))))
    assert full_chain.longest_chain[0] == columns


def test_digits_and_integers_are_inverse():
    values = np.array([0, 7, 10, 999, 10**17, 10**18 - 1])
    assert to_integers(from_integers(values, 18)).tolist() == values.tolist()
    assert number_of_digits(from_integers(values, 18)).tolist() == [1, 1, 2, 3, 18, 18]


@pytest.mark.parametrize("columns", [3, 9, 12])
def test_keys_tell_problems_apart(columns):
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 10, size=(2, 5000, columns), dtype=np.uint8)
    there, back = AdditionProblems(a, b, np.full(5000, columns)), AdditionProblems(b, a, np.full(5000, columns))
    assert (problem_keys(there, ordered=False) == problem_keys(back, ordered=False)).all()
    differs = (a != b).any(-1)
    assert (problem_keys(there, ordered=True) != problem_keys(back, ordered=True))[differs].all()
    rows = {(tuple(min(x, y)), tuple(max(x, y))) for x, y in zip(a.tolist(), b.tolist(), strict=True)}
    assert len(np.unique(problem_keys(there, ordered=False))) == len(rows)


@pytest.mark.parametrize("size", [1, 2, 55, TABLE_LIMIT, TABLE_LIMIT + 1, 1_500_001])
def test_a_permutation_has_every_number_once(size):
    order = Permutation(size, [3])(np.arange(size, dtype=np.uint64))
    assert (np.sort(order) == np.arange(size)).all()


def test_a_large_permutation_looks_random_and_depends_on_the_seed():
    index = np.arange(200_000, dtype=np.uint64)
    first, second = (Permutation(10**18, [seed])(index) for seed in (0, 1))
    assert len(np.unique(first)) == len(index)
    assert (first < 10**18).all()
    assert not (first == second).any()
    shares = np.bincount((first // np.uint64(10**17)).astype(int), minlength=10) / len(first)
    assert abs(shares - 0.1).max() < 0.005
    assert abs(np.corrcoef(first[:-1].astype(float), first[1:].astype(float))[0, 1]) < 0.01


def test_operands_must_be_whole_and_fit():
    with pytest.raises(ValueError, match=r"-1 cannot be an operand; expected a whole number >= 0"):
        AdditionProblems.from_integers([-1], [2])
    with pytest.raises(ValueError, match=r"3 digits; expected at most columns=2"):
        AdditionProblems.from_integers([123], [2], columns=2)
