"""Counterfactual pairs of every task that names variables with values; those of addition also by hand."""

import numpy as np
import pytest

from headcount.data_builders.addition.columns import AdditionProblems
from headcount.data_builders.addition.variables import VARIABLES
from headcount.data_builders.counterfactuals import draw_counterfactuals
from headcount.data_builders.registry import TASKS
from headcount.data_builders.tasks import NOT_A_PLACE


WITH_VALUES = [
    (task, name) for task in TASKS.values() for name, about in task.variables.items() if about.values is not None
]
EVERY = pytest.mark.parametrize("task, name", WITH_VALUES, ids=[f"{task.name}-{name}" for task, name in WITH_VALUES])


def problems_of(task, n=300):
    return task.problems(task.options(), np.random.default_rng(0), n)


@EVERY
@pytest.mark.parametrize("kind", ["random", "equal"])
def test_pairs_differ_or_agree_in_the_variable_at_their_place(task, name, kind):
    about = task.variables[name]
    pairs = draw_counterfactuals(task, name, problems_of(task), np.random.default_rng(1), kind)
    rows = np.arange(len(pairs))
    base, source = (about.values(side)[rows, pairs.index] for side in (pairs.base, pairs.source))
    assert len(pairs) > 50
    assert (base != NOT_A_PLACE).all() and (source != NOT_A_PLACE).all()
    assert ((base == source) if kind == "equal" else (base != source)).all()
    if kind == "equal":
        assert np.array_equal(pairs.answers, task.solve(pairs.base))


@EVERY
def test_with_its_own_value_everything_stays_and_with_another_something_changes(task, name):
    about, problems = task.variables[name], problems_of(task)
    values = about.values(problems)
    rows = np.flatnonzero((values != NOT_A_PLACE).any(-1))
    place = (values[rows] != NOT_A_PLACE).argmax(-1)
    own = values[rows, place]
    assert np.array_equal(about.answers(problems[rows], place, own), task.solve(problems[rows]))
    others = (own + 1) % (int(values.max()) + 1)
    changed = about.answers(problems[rows], place, others)
    assert (changed != task.solve(problems[rows])).reshape(len(rows), -1).any(-1).any()


@pytest.mark.parametrize(
    "name, column, value, answer",
    [
        ("digit_sum", 0, 3, 1183),  # 374 + 814 = 1188: the units alone
        ("digit_sum", 2, 5, 1588),  # the hundreds alone: the carry out of them stays
        ("tri_state", 0, 2, 1198),
        ("tri_state", 0, 1, 1188),  # nothing to propagate
        ("tri_state", 2, 0, 188),
        ("carry", 1, 1, 1288),
        ("column_sum", 0, 13, 1193),
        ("column_sum", 2, 3, 388),
    ],
)
def test_answers_of_addition_by_hand(name, column, value, answer):
    problem = AdditionProblems.from_integers([374], [814])
    digits = VARIABLES[name].answers(problem, np.array([column]), np.array([value]))
    assert "".join(map(str, digits[0, ::-1])) == f"{answer:04d}"


def test_a_carry_ripples_through_columns_that_propagate():
    problem = AdditionProblems.from_integers([395], [602])  # the columns above the units sum to nine
    for name, value in (("carry", 1), ("tri_state", 2)):
        digits = VARIABLES[name].answers(problem, np.array([0]), np.array([value]))
        assert digits[0].tolist() == [7, 0, 0, 1]


def test_values_of_addition_by_hand():
    problem = AdditionProblems.from_integers([374], [894])
    found = {name: about.values(problem)[0].tolist() for name, about in VARIABLES.items()}
    assert found == {
        "carry": [0, 1, 1],
        "tri_state": [0, 2, 2],
        "digit_sum": [8, 6, 1],
        "column_sum": [8, 16, 11],
    }


def test_unknown_kinds_and_variables_are_explained():
    task = TASKS["addition"]
    corpus = task.splits(task.options(train=10, validation=10, test=20, hard=0, pairs=0))
    with pytest.raises(ValueError, match="has no minimal pairs for 'digit_sum'"):
        task.pairs("digit_sum", corpus)
    assert len(task.pairs("digit_sum", corpus, "equal")) > 0
