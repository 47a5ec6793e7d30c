"""Modular addition: every pair once, both orders of a held-out pair held out, residues that are told."""

import numpy as np
import pytest

from headcount.data_builders.registry import TASKS


TASK = TASKS["modular_addition"]


def test_sums_are_those_of_python_for_any_number_of_terms():
    for kind in (None, *TASK.classes):
        problems = TASK.problems(TASK.options(modulus=97), np.random.default_rng(0), 200, 7, kind)
        expected = [sum(map(int, row)) % 97 for row in problems.terms]
        assert TASK.solve(problems).tolist() == expected
        (ids, lengths), (answers, _) = TASK.write(problems, TASK.options(modulus=97))
        assert TASK.vocabulary.text(ids[0].tolist()) == " + ".join(map(str, problems.terms[0]))
        assert TASK.vocabulary.text(answers[0].tolist()) == str(expected[0]) and lengths[0] == 13
    zero = TASK.problems(TASK.options(), np.random.default_rng(0), 50, 5, "zero")
    assert not TASK.solve(zero).any()
    same = TASK.problems(TASK.options(), np.random.default_rng(0), 50, 5, "same").terms
    assert (same == same[:, :1]).all()


def test_training_has_no_pair_twice_and_none_that_is_held_out_in_either_order():
    corpus = TASK.splits(TASK.options())
    train = {tuple(pair) for pair in corpus.problems("train").terms.tolist()}
    held_out = corpus.problems("test").terms.tolist() + corpus.problems("validation").terms.tolist()
    assert len(train) == 9_000 and len(held_out) == 1_800
    assert not any((a, b) in train or (b, a) in train for a, b in held_out)
    assert len({tuple(sorted(pair)) for pair in held_out}) == 1_800
    with pytest.raises(ValueError, match=r"train=9,000 is not allowed: of 3,481 pairs, .* are left beside the other"):
        TASK.splits(TASK.options(modulus=59, test=200, validation=0)).problems("train")


def test_residues_are_the_tokens_of_the_numbers_below_the_modulus():
    tokens = TASK.residues(TASK.options(modulus=7)).tolist()
    assert TASK.vocabulary.names(tokens) == list("0123456")
    assert TASKS["addition"].residues(TASKS["addition"].options()) is None


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"modulus": 114}, "modulus=114"), ({"test_lengths": (2,)}, "test_lengths=2"), ({"train": -1}, "train=-1")],
)
def test_wrong_options_are_explained(wrong, message):
    with pytest.raises(ValueError, match=f"{message} is not allowed; expected a whole number"):
        TASK.options(**wrong)
