"""Is running_total the task that it says it is? python -m pytest test_running_total.py

Change the examples together with the task.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from headcount.data_builders.registry import load_task
from headcount.data_builders.tasks import options_of


TASK = load_task(Path(__file__).with_name("running_total.py"))
OPTIONS = options_of(TASK, {"train": 300, "validation": 20, "test": 50})


def texts(problems):
    """(question, answer) of every problem, as a reader sees them."""
    (ids, lengths), (answers, answer_lengths) = TASK.write(problems, OPTIONS)
    rows = zip(ids.tolist(), lengths, answers.tolist(), answer_lengths, strict=True)
    return [(TASK.vocabulary.text(q[:n]), TASK.vocabulary.text(a[:m])) for q, n, a, m in rows]


@pytest.mark.parametrize("question, answer", [("394", "326"), ("05", "05"), ("999", "987")])
def test_answers_that_were_worked_out_by_hand(question, answer):
    problems = TASK.splits(OPTIONS).read_table(pa.table({"input": [question]}))
    assert texts(problems) == [(question, answer)]


def test_no_training_problem_is_tested():
    corpus = TASK.splits(OPTIONS)
    train, validation, test = (
        {question for question, _ in texts(corpus.problems(split))} for split in ("train", "validation", "test")
    )
    assert not train & test and not train & validation and not validation & test


@pytest.mark.parametrize("kind", TASK.classes)
@pytest.mark.parametrize("length", [3, 40])
def test_every_class_can_be_made_at_any_length(kind, length):
    problems = TASK.test_problems(OPTIONS, kind, length, 10)
    assert [len(question) for question, _ in texts(problems)] == [length] * 10
    assert (TASK.facts(problems)["length"] == length).all()


def test_with_another_value_of_a_variable_the_answer_is_another_and_with_its_own_it_stays():
    problems = TASK.splits(OPTIONS).problems("test")
    for name, variable in TASK.variables.items():
        place, own = np.zeros(len(problems), int), variable.values(problems)[:, 0]
        assert np.array_equal(variable.answers(problems, place, own), TASK.solve(problems)), name
        assert (variable.answers(problems, place, own + 1) != TASK.solve(problems)).any(-1).all(), name


def test_tokens_are_those_of_the_vocabulary():
    encoded = TASK.encode(TASK.splits(OPTIONS).problems("train"), options=OPTIONS)
    assert encoded["input_ids"].max() < TASK.vocabulary.size
