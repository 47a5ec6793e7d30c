"""Pruning is joint, within its budget, and leaves the given model alone."""

import pytest
from small_models import make_model
from task_examples import random_addition, taught

from headcount.analysis.heads.pruning import (
    choose_prefix,
    compare,
    outcomes_of,
    prune_greedily,
    random_heads,
    without_each_head,
)
from headcount.records.rows import check_row, only, select


def test_pruning_is_joint_and_leaves_the_given_model_alone():
    model = make_model("encoder-decoder")
    examples = taught(model, random_addition(60))
    heads = model.list_heads()
    found = prune_greedily(model, examples, max_drop=0.6)
    assert model.list_heads() == heads and not model.config.pruned_heads
    assert found.removed and set(found.model.list_heads()) == set(heads) - set(found.removed)
    last = select(found.rows, kept=True)[-1]
    assert last["drop"]["value"] <= 0.6 and last["heads"] == found.removed
    assert last["value"] == outcomes_of(found.model, examples).mean(), "masked and really pruned agree"
    refused = found.rows[-1]
    assert refused["kept"] is False and refused["drop"]["value"] > 0.6
    # every other head would have cost at least as much
    sweep = without_each_head(found.model, examples)
    assert sweep.right[1:].sum(-1).max() == round(refused["value"] * 60)
    assert only(found.rows, metric="harmless_one_at_a_time")["n"] == 24
    for row in found.rows:
        check_row(row, "pruning")

    shorter = choose_prefix(model, found, 0.4)
    assert 0 < len(shorter.removed) < len(found.removed)
    assert shorter.removed == found.removed[: len(shorter.removed)]
    assert 1 - outcomes_of(shorter.model, examples).mean() <= 0.4 + 1e-9


def test_pruning_to_a_number_of_heads_and_fine_tuning_are_honoured():
    model, examples = make_model("encoder-decoder"), taught(make_model("encoder-decoder"), random_addition(20))
    seen = []
    found = prune_greedily(
        model, examples, max_drop=None, keep=21, finetune=lambda small: seen.append(len(small.list_heads()))
    )
    assert len(found.model.list_heads()) == 21 and seen == [23, 22, 21]
    assert all(row["fine_tuned"] for row in select(found.rows, metric="exact_match"))
    ruined = prune_greedily(model, examples, max_drop=0.01, finetune=lambda small: small.lm_head.weight.data.zero_())
    assert ruined.removed == [] and ruined.rows[-1]["kept"] is False
    assert choose_prefix(model, ruined, 0.01).removed == []
    with pytest.raises(ValueError, match="exactly one of max_drop and keep"):
        prune_greedily(model, examples, max_drop=0.1, keep=3)
    with pytest.raises(ValueError, match="keep=24 is not allowed; expected 0 to 23"):
        prune_greedily(model, examples, max_drop=None, keep=24)


def test_compare_tells_size_and_accuracy():
    model, examples = make_model("encoder-decoder"), taught(make_model("encoder-decoder"), random_addition(20))
    small = make_model("encoder-decoder")
    small.prune_heads(["encoder.0.self.0", "decoder.1.cross.3"])
    removed = ["encoder.0.self.0", "decoder.1.cross.3"]
    rows = {row["model"]: row for row in compare(model, {"pruned": small}, examples, removed)}
    assert rows["intact"]["drop"]["value"] == 0 and rows["intact"]["relative_speed"] == 1
    assert rows["pruned"]["parameters"] == small.num_parameters() < rows["intact"]["parameters"]
    assert rows["pruned"]["bytes"] < rows["intact"]["bytes"] and rows["pruned"]["removed"] == 2
    assert rows["pruned"]["value"] == outcomes_of(small, examples).mean()
    assert rows["the same heads, no training"]["value"] == rows["pruned"]["value"], "here nothing was trained"
    chance = rows["random heads, no training"]
    assert chance["removed"] == 2 and chance["parameters"] == small.num_parameters() and chance["random_sets"] == 20
    assert 0 <= chance["random_mean"]["value"] <= chance["random_best"]["value"] <= 1
    assert chance["value"] <= chance["random_best"]["value"]


def test_random_heads_are_others_for_every_seed_and_the_same_for_one():
    model = make_model("encoder-decoder")
    drawn = [tuple(random_heads(model, 6, seed)) for seed in range(5)]
    assert len(set(drawn)) == 5 and drawn[0] == tuple(random_heads(model, 6, 0))
    assert all(len(set(own)) == 6 and set(own) <= set(model.list_heads()) for own in drawn)
