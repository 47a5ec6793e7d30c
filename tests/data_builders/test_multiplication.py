"""Multiplication: products of Python's whole numbers, the steps as on paper, carries that can be moved."""

import numpy as np
import pytest

from headcount.data_builders.multiplication import CLASSES, Products, carries, has_carry_and_digit, multiply
from headcount.data_builders.registry import TASKS


TASK = TASKS["multiplication"]
DIGIT, LONG = TASK.options(), TASK.options(form="long", max_length=4)


def integers(digits) -> list[int]:
    return [int("".join(map(str, row[::-1]))) for row in digits]


def by_digit(number: int, digit: int, columns: int) -> Products:
    digits = [int(sign) for sign in reversed(str(number).zfill(columns))]
    return Products(np.array([digits], np.uint8), np.array([[digit]], np.uint8), np.array([columns]))


@pytest.mark.parametrize("options", [DIGIT, LONG], ids=["digit", "long"])
@pytest.mark.parametrize("kind", [None, *CLASSES])
def test_products_are_those_of_python(options, kind):
    for length in (None, 1, 30):
        problems = TASK.problems(options, np.random.default_rng(0), 100, length, kind)
        expected = [a * b for a, b in zip(integers(problems.a), integers(problems.b), strict=True)]
        assert integers(TASK.solve(problems)) == expected


def test_classes_are_what_they_say():
    drawn = {kind: TASK.problems(DIGIT, np.random.default_rng(0), 200, 12, kind) for kind in CLASSES}
    assert (multiply(drawn["carries"].a, drawn["carries"].b)[1][:, :12] > 0).all()
    assert (drawn["nines"].a == 9).all()
    chain = drawn["chain"]
    assert ((chain.a[:, 1:] * chain.b) == 9).all()
    answers = TASK.solve(chain)
    carried = chain.a[:, 0] * chain.b[:, 0] >= 10
    assert 0 < carried.sum() < 200
    assert (answers[~carried][:, 1:12] == 9).all() and (answers[carried][:, 12] == 1).all()


def test_the_steps_are_written_out_as_on_paper():
    problems = Products(np.array([[2, 1], [7, 0]], np.uint8), np.array([[4, 3], [8, 0]], np.uint8), np.array([2, 1]))
    (ids, lengths), (answers, written) = TASK.write(problems, LONG)
    text = TASK.vocabulary.text
    assert [text(row[:n].tolist()) for row, n in zip(ids, lengths, strict=True)] == ["12*34", "7*8"]
    assert [text(row[:n].tolist()) for row, n in zip(answers, written, strict=True)] == ["840,630:8040", "65:65"]
    encoded = TASK.encode(problems, "decoder", LONG)
    roles = TASK.roles(encoded["labels"], "answer", LONG)
    assert roles.index[0][roles.where("answer")[0]].tolist() == [0, 1, 2, 3]
    assert roles.index[0][roles.where("step")[0]].tolist() == [0, 1, 2, 0, 1, 2]
    whole = TASK.roles(encoded["input_ids"], "input", LONG)
    assert whole.index[0][whole.where("second")[0]].tolist() == [1, 0]
    assert whole.where("answer").sum() == 6 and whole.where("step").sum() == 8


def test_a_carry_can_be_moved():
    problems, column = by_digit(374, 8, 3), np.array([1])  # 8 * 4 = 32, 56 + 3 = 59, 24 + 5 = 29
    assert carries(problems).tolist() == [[3, 5, 2]]
    answers = TASK.variables["carry"].answers(problems, column, np.array([0]))
    assert answers.tolist() == [[2, 9, 4, 2]]
    # 8 times 2 and 8 times 7 end alike, and with the carry 3 the first sends 1 and the second 5.
    assert has_carry_and_digit(problems, column, np.array([1])).tolist() == [True]
    assert has_carry_and_digit(problems, column, np.array([2])).tolist() == [False]
    long = TASK.problems(LONG, np.random.default_rng(0), 5)
    assert (carries(long) == -1).all(), "a column of two numbers has more than one sum"


def test_rows_are_read_back_from_a_table():
    corpus = TASK.splits(TASK.options(train=50, validation=0, test=0, form="long", max_length=3))
    problems = corpus.problems("train")
    again = corpus.read_table(corpus.table(problems, "default"))
    assert integers(again.a) == integers(problems.a) and again.width.tolist() == problems.width.tolist()
    assert np.array_equal(TASK.solve(again), TASK.solve(problems))


def test_unknown_forms_are_explained():
    with pytest.raises(ValueError, match=r"form='lang' is not allowed; expected one of digit, long. Did you mean"):
        TASK.options(form="lang")
