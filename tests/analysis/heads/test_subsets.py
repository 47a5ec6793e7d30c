"""Every subset of heads: Shapley values of a game worked out by hand, and rankings against the best."""

import pytest
import torch
from small_models import make_model
from task_examples import random_addition, sortedness, with_rows

from headcount.analysis.heads.subsets import evaluate_subsets, shapley_values, subset_rows
from headcount.analysis.interventions.sweep import sweep
from headcount.records.rows import select, values_of


def test_shapley_values_of_a_game_worked_out_by_hand():
    """Either of a and b is enough for 6 of 10; c adds 2 more with or without them."""

    def right(removed):
        present = {"a", "b", "c"} - set(removed)
        return 6 * bool(present & {"a", "b"}) + 2 * ("c" in present)

    game = {frozenset(s): right(s) for s in ((), "a", "b", "c", "ab", "ac", "bc", "abc")}
    assert shapley_values(game, ["a", "b", "c"], 10) == pytest.approx({"a": 0.3, "b": 0.3, "c": 0.2})


def test_every_subset_is_evaluated_and_no_ranking_beats_the_best():
    model = make_model("encoder", num_hidden_layers=2, num_attention_heads=2, vocab_size=103)
    generator = torch.Generator().manual_seed(0)
    examples = sortedness(torch.randint(0, 100, (60, 9), generator=generator).tolist())
    own = torch.from_numpy(sweep(model, examples.rows, []).tokens[0, :, 0])
    examples = with_rows(examples, labels=own)
    counts = evaluate_subsets(model, examples)
    assert len(counts) == 16 and counts[frozenset()] == 60
    assert len(set(counts.values())) > 2, "the heads of this model make no difference, so the test says nothing"
    found = subset_rows(model, examples, {"backwards": model.list_heads()[::-1]})
    values = [row["value"] for row in select(found, metric="shapley")]
    assert sum(values) == pytest.approx((60 - counts[frozenset(model.list_heads())]) / 60)  # nothing is lost
    assert all(row["regret"] >= 0 for row in select(found, metric="ranking_accuracy"))
    assert set(values_of(select(found, metric="mean_regret"), "ranking")) == {"backwards", "shapley", "greedy"}
    with pytest.raises(ValueError, match="24 heads, and so 2\\^24 subsets; expected at most 12"):
        evaluate_subsets(make_model("encoder-decoder"), random_addition(2))
