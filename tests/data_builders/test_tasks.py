"""The contract of a task, for every task there is: exact answers, disjoint splits, tokens that mean what they say."""

from dataclasses import dataclass

import numpy as np
import pytest

from headcount.data_builders.examples import make_examples
from headcount.data_builders.registry import TASKS
from headcount.data_builders.tasks import ARCHITECTURES, Task, options_of
from headcount.data_builders.vocabulary import IGNORED


SMALL = {
    "addition": {"train": 200, "validation": 40, "test": 60, "hard": 40, "pairs": 20},
    "sortedness": {"train": 200, "validation": 40, "test": 40, "test_lengths": (8, 12, 24)},
}


def options(task: Task):
    sizes = {"train": 200, "validation": 40, "test": 60}
    return task.options(**SMALL.get(task.name, sizes))


EVERY = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)


@EVERY
def test_training_rows_are_in_no_test_and_held_out_rows_are_known(task):
    corpus = task.splits(options(task))
    held_out = [corpus.problems(split) for split in corpus.sizes()["default"] if split != "train"]
    train = corpus.keys(corpus.problems("train"))
    trained = range(*task.trained_lengths(corpus.options)) or [task.trained_lengths(corpus.options)[0]]
    for problems in held_out:
        inside = np.isin(task.facts(problems).get("length", trained[0]), [*trained, trained[-1] + 1])
        assert not np.isin(corpus.keys(problems), train).any()
        assert corpus.is_held_out(problems)[inside].all()
    assert not corpus.is_held_out(corpus.problems("train")).any()


@EVERY
def test_the_same_options_draw_the_same_problems(task):
    first, second = (task.splits(options(task)) for _ in range(2))
    for test in first.tests():
        ours, theirs = (task.encode(corpus.problems(test.split, test.config)) for corpus in (first, second))
        assert all(np.array_equal(ours[name], theirs[name]) for name in ours)


@EVERY
def test_every_class_can_be_drawn_at_any_length(task):
    for kind in task.classes:
        for length in (20, 75):
            problems = task.test_problems(options(task), kind, length, 10)
            style = ARCHITECTURES[task.kind][-1]
            encoded = task.encode(problems, style, options(task))
            assert len(problems) >= 10 and encoded["input_ids"].shape[1] == task.tokens_at(length, style)
    assert set(task.hardest) <= set(task.classes)


@EVERY
def test_fresh_problems_leave_held_out_ones_out(task):
    corpus = task.splits(options(task))
    for step in (0, 50, 99):
        problems = task.fresh_problems(np.random.default_rng(step), 32, corpus, task.stream(), step, 100)
        assert len(problems) == 32 and not corpus.is_held_out(problems).any()
        assert "attention_mask" not in task.encode(problems, options=corpus.options), "a batch has one length"


@EVERY
def test_answers_are_exact_and_written_as_solved(task):
    corpus = task.splits(options(task))
    problems = corpus.problems("train")
    encoded = task.encode(problems, options=corpus.options)
    if task.kind == "label":
        assert np.array_equal(encoded["labels"], task.solve(problems))
        return
    rows = next(corpus.tables("default", "train")).to_pylist()
    for labels, row in zip(encoded["labels"].tolist(), rows, strict=True):
        assert task.vocabulary.text([token for token in labels if token != IGNORED]) == row["target"]


@EVERY
def test_roles_number_the_answer_and_relations_name_roles(task):
    corpus = task.splits(options(task))
    for style in ARCHITECTURES[task.kind]:
        examples = make_examples(task, corpus.options, corpus.problems("validation"), style)
        roles = examples.roles("input")
        assert roles.role.shape == roles.index.shape == tuple(examples.rows["input_ids"].shape)
        for relation in task.relations.values():
            assert all(roles.where(name).any() for name in relation.keys)
        if task.kind != "label":
            answer = examples.roles("answer")
            places = answer.where("answer")
            assert (np.sort(answer.index[0][places[0]]) == np.arange(places[0].sum())).all()
    with pytest.raises(ValueError, match="there is no role 'colour'"):
        roles.where("colour")


@EVERY
def test_pairs_differ_where_they_say_and_nowhere_else(task):
    corpus = task.splits(options(task))
    for variable in (name for name, about in task.variables.items() if "minimal" in about.pair_kinds):
        pairs = task.pairs(variable, corpus)
        base, source = (task.roles(task.encode(side)["input_ids"]) for side in (pairs.base, pairs.source))
        ids = [task.encode(side)["input_ids"] for side in (pairs.base, pairs.source)]
        changed = ids[0] != ids[1]
        assert changed.any(-1).all() and np.array_equal(base.index, source.index)
        assert (base.index[changed] == np.broadcast_to(pairs.index[:, None], changed.shape)[changed]).all()
    with pytest.raises(ValueError, match="has no minimal pairs for 'mood'"):
        task.pairs("mood", corpus)


@EVERY
def test_unknown_options_and_styles_are_explained(task):
    with pytest.raises(ValueError, match=f"'sed' is not an option of {task.name}. Did you mean 'seed'"):
        options_of(task, {"sed": 1})
    with pytest.raises(ValueError, match=f"style='both' is not allowed for {task.name}"):
        task.encode(task.splits(options(task)).problems("validation"), "both")
    with pytest.raises(ValueError, match="there is no split default/nowhere"):
        task.splits(options(task)).problems("nowhere")


def test_built_in_by_hand_names_all_that_is():
    addition, sortedness = TASKS["addition"], TASKS["sortedness"]
    long = {"position_scheme": "coupled", "position_embedding_type": "relative_bias", "relative_position_range": 6}
    long |= {"relative_bias_first_token": True, "answer_order": "reversed", "align_operands": True}
    assert [found.name for found in addition.built_in(long)] == [
        "coupled position ids",
        "clipped differences",
        "bias for the first token",
        "reversed answers",
        "leading zeros",
    ]
    windowed = {"architecture": "encoder", "attention_window": 4, "attention_direction": "causal"}
    assert [found.name for found in sortedness.built_in(windowed)] == ["window", "causal mask"]
    assert "4 neighbours" in sortedness.built_in(windowed)[0].sentence
    assert sortedness.built_in({"architecture": "encoder", "answer_order": "reversed"}) == []


@pytest.mark.parametrize("value", ["reverse", [3], 2.5, True])
def test_options_of_a_plain_kind_are_checked_for_a_task_that_checks_nothing_itself(value):
    @dataclass(frozen=True)
    class Options:
        seed: int = 0
        longest: int = 9

    class Careless(Task):
        name, options = "careless", Options

    assert options_of(Careless(), {"longest": 4}).longest == 4
    with pytest.raises(ValueError, match=r"longest=.* is not allowed; expected a whole number"):
        options_of(Careless(), {"longest": value})
