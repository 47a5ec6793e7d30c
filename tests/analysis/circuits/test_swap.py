"""Swaps on pairs: what counts as moved, worked out by hand; and what a swapped model really does."""

import numpy as np
import pytest
import torch
from small_models import make_model
from task_examples import carry_pairs

from headcount.analysis.circuits.swap import of_same_length, recovered, swap, swap_rows, swap_sets, what_happened
from headcount.analysis.interventions.intervention import Intervention
from headcount.analysis.interventions.plan import Outcomes
from headcount.analysis.interventions.sets import find_set, find_sets
from headcount.analysis.interventions.sweep import sweep
from headcount.data_builders.addition.columns import AdditionProblems
from headcount.data_builders.addition.options import AdditionOptions
from headcount.data_builders.addition.pair_kinds import with_carry
from headcount.data_builders.examples import make_pairs
from headcount.data_builders.registry import TASKS
from headcount.data_builders.tasks import Pairs
from headcount.records.rows import check_row, only, select


STYLES = pytest.mark.parametrize("style, order", [("encoder-decoder", "plain"), ("decoder", "reversed")])


def outcomes_of(pairs, model, tokens):
    labels = pairs.expected.rows["labels"].numpy()
    labels = labels[:, 1:] if pairs.base.options is None or model.config.architecture == "decoder" else labels
    wanted = [Intervention(), *(Intervention([head], replacement="source") for head in model.list_heads())]
    loss = np.zeros(tokens.shape[:2], np.float32)
    return Outcomes(wanted[: len(tokens)], "loop", "free-running", tokens, labels, loss)


def places(pairs, model, rows="expected"):
    """Labels (N, T) and the column of each, where the model predicts them."""
    side = getattr(pairs, rows)
    cut = slice(1, None) if model.config.architecture == "decoder" else slice(None)
    return side.rows["labels"][:, cut].numpy(), side.roles("answer").index[:, cut]


@STYLES
def test_flips_are_counted_as_worked_out_by_hand(style, order):
    pairs, model = carry_pairs(style, order), make_model(style)
    (labels, columns), (before, _) = places(pairs, model), places(pairs, model, "base")
    tokens = np.repeat(labels[None], 4, 0).copy()  # every swap moves the carry ...
    tokens[0] = before  # ... nothing: as in the base
    tokens[1, 0, columns[0] == 1] = 12  # the first one breaks the changed column's own digit of the first pair
    tokens[2, 0, columns[0] == 0] = 12  # the second one another digit
    tokens[3, 1, columns[1] == 3] = before[1, columns[1] == 3]  # the third one does not move it in the second pair
    found = {
        name: own.tolist() for name, own in what_happened(model, pairs, outcomes_of(pairs, model, tokens)).items()
    }
    no, yes = [False, False], [True, True]
    assert found["carry_flip"] == [no, [False, True], yes, [True, False]]
    assert found["carry_moved"] == [no, yes, yes, [True, False]]
    assert found["carry_kept_own"] == [yes, [False, True], yes, yes]
    assert found["whole_answer_flip"] == [no, [False, True], [False, True], [True, False]]


@STYLES
def test_control_pairs_ask_for_false_flips_and_for_the_digits(style, order):
    """221 + 436 and 231 + 446: other digits in the tens, no carry in either."""
    base, source = (AdditionProblems.from_integers([a], [b], columns=3) for a, b in ((221, 436), (231, 446)))
    task, column = TASKS["addition"], np.array([1])
    answers = with_carry(base, column, np.zeros(1, np.uint8))
    assert np.array_equal(answers, task.solve(base)), "the carry is the same, and so is the answer"
    options = AdditionOptions(digits=3, answer_order=order)
    pairs = make_pairs(task, options, "carry", Pairs(base, source, column, answers), style, "control")
    model = make_model(style)
    (labels, columns), (after, _) = places(pairs, model), places(pairs, model, "source")
    tokens = np.repeat(labels[None], 3, 0).copy()
    tokens[1, 0, columns[0] == 2] = 12
    tokens[2, 0, columns[0] == 1] = after[0, columns[0] == 1]
    found = what_happened(model, pairs, outcomes_of(pairs, model, tokens))
    assert found["carry_false_flip"].tolist() == [[False], [True], [False]]
    assert found["own_place_moved"].tolist() == [[False], [False], [True]]


def test_swapping_all_cross_attention_makes_the_base_write_what_the_source_writes():
    model, pairs = make_model(seed=3), carry_pairs()
    model.generation_config.eos_token_id = None
    target = model.generate(pairs.source.rows["input_ids"], max_new_tokens=5, do_sample=False)[:, 1:]
    rows = {"input_ids": pairs.base.rows["input_ids"], "labels": target}
    sources = {"input_ids": pairs.source.rows["input_ids"], "labels": target}
    cross = find_set(model, "decoder.*.cross.*").swapped("source")
    assert sweep(model, rows, [cross], sources=sources).right[1].all()


def test_rows_are_whole_and_by_column_with_the_control_beside_them():
    model, pairs = make_model(), carry_pairs()
    sets = swap_sets(model, pairs)
    assert {"encoder.0.self.0", "decoder.1.mlp", "decoder.*.cross.*", "encoder.1.residual@left"} <= {
        each.name for each in sets
    }
    rows = swap_rows(model, pairs, sets)
    for each in rows:
        check_row(each, "interchange")
    assert {each["pairs"] for each in rows} == {"minimal"} and {each["variable"] for each in rows} == {"carry"}
    assert only(rows, scope={}, site="none", metric="carry_recovered")["value"] == 0
    assert {each["n"] for each in select(rows, scope={})} == {2}
    assert {each["n"] for each in select(rows, scope={"column": 1})} == {1}


def test_logits_are_recovered_wholly_if_everything_comes_from_the_source():
    model, pairs = make_model(), carry_pairs()
    outcomes = swap(model, pairs, find_sets(model, ["decoder.*.cross.*", "encoder.1.residual"]))
    values = [each["value"] for each in recovered(model, pairs, outcomes)]
    assert values[0] == 0 and values[1:] == pytest.approx([1.0, 1.0], abs=1e-3)


def test_a_role_follows_each_pair_to_its_own_column():
    pairs = carry_pairs()
    model = make_model()
    roles = pairs.roles("input")
    own, left = roles.where("column"), roles.where("left")
    ids = pairs.expected.rows["input_ids"].numpy()
    assert own.sum(-1).tolist() == [2, 2] and left.sum(-1).tolist() == [2, 0], (
        "the hundreds have no column to the left"
    )
    assert (own == (ids != pairs.source.rows["input_ids"].numpy())).all(), "the pairs differ in their own column alone"
    assert pairs.roles("answer").where("left").sum(-1).tolist() == [1, 1]
    (one,) = find_sets(model, ["encoder.0.residual@left"])
    assert swap(model, pairs, [one]).loss[1][1] == swap(model, pairs, [one]).loss[0][1], "no token, no change"
    with pytest.raises(ValueError, match=r"@column follows each pair; expected it without \(1\)"):
        roles.where("column", 1)


def test_pairs_whose_answers_have_other_lengths_are_left_out():
    base = AdditionProblems.from_integers([221, 600], [436, 200], columns=3)
    source = AdditionProblems.from_integers([271, 600], [486, 700], columns=3)
    answers = TASKS["addition"].solve(source)
    options = AdditionOptions(digits=3, zero_pad=False)
    pairs = make_pairs(
        TASKS["addition"], options, "carry", Pairs(base, source, np.array([1, 2]), answers), "encoder-decoder"
    )
    kept = of_same_length(pairs)
    assert kept.index.tolist() == [1] and torch.equal(kept.base.rows["input_ids"], pairs.base.rows["input_ids"][:1])
