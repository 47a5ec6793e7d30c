"""AdditionProblems of any length: each class is what its sentence says, and all splits of a corpus are exact."""

import numpy as np
import pyarrow as pa
import pytest

from headcount.data_builders.addition.carry_groups import sample_addition, shorten_one_operand
from headcount.data_builders.addition.choices import PROBLEM_CLASSES as DESCRIBED
from headcount.data_builders.addition.columns import PROPAGATE, number_of_digits, solve
from headcount.data_builders.addition.long_problems import PROBLEM_CLASSES
from headcount.data_builders.addition.options import AdditionOptions
from headcount.data_builders.registry import TASKS


WIDTH, COUNT = 137, 60


def long_problems(kind: str, width: int, count: int, seed: int = 0):
    return TASKS["addition"].test_problems(AdditionOptions(seed=seed), kind, width, count)


def test_every_class_is_described():
    assert list(PROBLEM_CLASSES) == list(DESCRIBED)


@pytest.mark.parametrize("kind", PROBLEM_CLASSES)
def test_rows_are_of_the_width_and_the_same_every_time(kind):
    problems, again, other = (long_problems(kind, WIDTH, COUNT, seed) for seed in (0, 0, 1))
    assert problems.a.shape == problems.b.shape == (COUNT, WIDTH) and set(problems.width) == {WIDTH}
    assert max(problems.a.max(), problems.b.max()) <= 9
    assert np.array_equal(problems.a, again.a) and np.array_equal(problems.b, again.b)
    assert not np.array_equal(problems.a, other.a)


def test_classes_are_what_their_sentences_say():
    lengths, solutions = {}, {}
    for kind in PROBLEM_CLASSES:
        problems = long_problems(kind, WIDTH, COUNT)
        lengths[kind] = np.stack([number_of_digits(problems.a), number_of_digits(problems.b)])
        solutions[kind] = solve(problems.a, problems.b)
    assert (lengths["random"] == WIDTH).all()
    assert (solutions["full_chain"].longest_chain == WIDTH).all()
    assert (solutions["all_nines"].column_class == PROPAGATE).all() and not solutions["all_nines"].carries.any()
    assert 0.85 < (solutions["carry_dense"].column_class == PROPAGATE).mean() < 0.95
    assert (lengths["unequal"].max(0) == WIDTH).all() and (lengths["unequal"].min(0) < WIDTH).all()
    assert (lengths["leading_zeros"] < WIDTH).all()
    zero = long_problems("leading_zeros", WIDTH, COUNT)
    assert not zero.a[0].any() and not zero.b[0].any()


def test_a_corpus_has_them_as_configs_with_exact_sums():
    sizes = {"train": 100, "validation": 0, "test": 50, "hard": 0, "pairs": 0}
    options = AdditionOptions(digits=2, test_lengths=(3, 60), long_test=7, answer_order="reversed", **sizes)
    corpus = TASKS["addition"].splits(options)
    for kind in PROBLEM_CLASSES:
        assert corpus.sizes()[kind] == {"test_3": 7, "test_60": 7}
        for split, width in (("test_3", 3), ("test_60", 60)):
            for row in pa.concat_tables(corpus.tables(kind, split)).to_pylist():
                a, b = row["input"].split("+")
                assert len(a) == len(b) == width and len(row["target"]) == width + 1
                assert int(row["target"][::-1]) == int(a) + int(b) == int(row["sum"])


@pytest.mark.parametrize(
    "lengths, sentence",
    [((20,), "test_lengths=20 is not allowed; expected a whole number from 21"), ((30, 30), "has a length twice")],
)
def test_lengths_within_training_and_twice_are_refused(lengths, sentence):
    with pytest.raises(ValueError, match=sentence):
        AdditionOptions(digits=20, min_digits=1, test_lengths=lengths)


def test_one_operand_becomes_shorter_in_half_of_the_problems():
    rng = np.random.default_rng(0)
    problems = sample_addition(rng, 4000, 20)
    problems.a[:], problems.b[:] = 1, 1
    shorten_one_operand(rng, problems)
    lengths = np.stack([problems.a.sum(-1), problems.b.sum(-1)])
    shorter = lengths < 20
    assert not shorter.all(0).any() and 0.45 < shorter.any(0).mean() < 0.55
    assert set(lengths[shorter]) == set(range(20))
