"""Gradient estimates of swaps against gradients taken by hand, and exact values against `interchange`."""

from contextlib import ExitStack

import numpy as np
import pytest
import torch
from hook_loop import _hook, outputs_of
from small_models import make_inputs, make_model
from stock_models import ids, make_stock

import headcount
from headcount.records.rows import check_row, only, select


def by_hand(model, base, source, answers, site, at):
    """(source - base) . gradient at one site, one hook and one backward pass of its own."""
    there = outputs_of(model, source, [site.place])[site.place]
    kept = {}

    def keep(own):
        kept["own"] = own.detach().clone().requires_grad_()
        return kept["own"]

    with ExitStack() as stack:
        _hook(model, site, stack, keep)
        picked = model(**base).logits[:, at].gather(-1, answers)
        (slope,) = torch.autograd.grad((picked[:, 0] - picked[:, 1]).sum(), kept["own"])
    product = ((there - kept["own"]) * slope).sum(-1).detach()
    return (product if site.index is None else product[:, [site.index]]).sum(-1)


@pytest.mark.parametrize("name", ["GPT-2", "Llama", "BERT", "T5"])
def test_estimates_are_gradients_and_exact_values_those_of_interchange(name):
    model, at = make_stock(name), 3 if name == "BERT" else -1
    base, source = {"input_ids": ids(5, 6)}, {"input_ids": ids(5, 6, seed=5)}
    if name == "T5":
        base["decoder_input_ids"] = source["decoder_input_ids"] = ids(5, 3, seed=2)
    answers = ids(5, 2, seed=9)
    every = headcount.sites(model)
    wanted = [*every, *(site.at("position", -1) for site in every if site.layer == 0)]
    rows = headcount.attribution_patching(model, base, source, answers, wanted, at=at)
    swapped = headcount.interchange(model, base, source, wanted, answers=answers, at=at)
    intact = only(swapped, site="none", metric="logit_difference")["value"]
    for site in wanted:
        guess, real = (only(rows, site=site, metric=metric) for metric in ("estimated_change", "exact_change"))
        assert guess["value"] == pytest.approx(float(by_hand(model, base, source, answers, site, at).mean()), abs=1e-4)
        found = only(swapped, site=site, metric="logit_difference")["value"]
        assert real["value"] == pytest.approx(found - intact, abs=1e-4), site
        assert guess["n"] == real["n"] == 5 and guess["interval"] and real["interval"]
    estimated, exact = (
        [row["value"] for row in select(rows, metric=f"{kind}_change")] for kind in ("estimated", "exact")
    )
    correlation = only(rows, metric="correlation")
    assert correlation["value"] == pytest.approx(np.corrcoef(estimated, exact)[0, 1]) and correlation["n"] == len(
        wanted
    )
    assert only(rows, metric="rank_correlation")["value"] > 0.3
    for row in rows:
        check_row(row, "test")


def test_a_small_step_is_estimated_exactly_and_the_model_is_left_as_it_was():
    """Base and source differ in one embedding by little, so that the first order is all there is."""
    model = make_stock("GPT-2").double()
    base, source = ids(3, 5), ids(3, 5)
    source[:, 1] = 39
    base[:, 1] = 38
    with torch.no_grad():
        weights = model.transformer.wte.weight
        weights[39] = weights[38] + 1e-4 * torch.randn(32, dtype=torch.double)
    model.train()
    rows = headcount.attribution_patching(model, base, source, ([5] * 3, [6] * 3))
    for site in headcount.sites(model):
        if site.kind != "residual":
            guess, real = (only(rows, site=site, metric=f"{kind}_change")["value"] for kind in ("estimated", "exact"))
            assert guess == pytest.approx(real, rel=1e-2, abs=2e-6), site
    assert model.training and not any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())
    assert all(weights.grad is None for weights in model.parameters())


def test_own_models_several_batches_and_wrong_arguments():
    model, base, source = make_model("decoder"), make_inputs("decoder", 6), make_inputs("decoder", 6, seed=5)
    answers = torch.tensor([[5, 6]] * 6)
    halves = [
        [{n: v[part] for n, v in rows.items()} for part in (slice(0, 2), slice(2, 6))] for rows in (base, source)
    ]
    whole = headcount.attribution_patching(model, base, source, answers)
    parted = headcount.attribution_patching(model, *halves, answers)
    assert [row["value"] for row in whole] == pytest.approx([row["value"] for row in parted], abs=1e-4)
    with pytest.raises(TypeError, match="sites is the string"):
        headcount.attribution_patching(model, base, source, answers, "decoder.0.mlp")
    with pytest.raises(ValueError, match="there are no sites"):
        headcount.attribution_patching(model, base, source, answers, [])
    with pytest.raises(ValueError, match="a site names a role, but roles were not given"):
        headcount.attribution_patching(model, base, source, answers, ["decoder.0.mlp@digit"])
    same = headcount.attribution_patching(model, base, base, answers)
    assert only(same, metric="correlation")["value"] is None, "nothing changes"
