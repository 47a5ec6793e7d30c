"""The gradient estimate is the slope of each example's loss, of own models and of transformers' own."""

import numpy as np
import pytest
import torch
from small_models import make_inputs, make_model
from stock_models import ARCHITECTURES, make_stock

import headcount
from headcount.analysis.heads.importance import agreement
from headcount.records.rows import row


@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder", "encoder"])
def test_gradient_importance_is_the_slope_of_the_loss(architecture):
    """Against differences: the loss of each example alone, with the gate moved a little by the model's own masks."""
    model, rows = make_model(architecture).double(), make_inputs(architecture, batch=4)
    batches = [{name: values[part] for name, values in rows.items()} for part in (slice(0, 3), slice(3, 4))]
    rows_found = headcount.gradient_importance(model, batches)
    step = 1e-5
    for found in rows_found[:: max(1, len(rows_found) // 5)]:
        slopes = []
        for index in range(4):
            alone = {name: values[index : index + 1] for name, values in rows.items()}
            losses = []
            for value in (1 + step, 1 - step):
                gate = {found["head"]: torch.tensor(value, dtype=torch.float64)}
                with torch.no_grad(), headcount.mask_heads(model, gate, allow_any_gate=True):
                    losses.append(model(**alone, num_items_in_batch=1).loss.item())
            slopes.append(abs(losses[0] - losses[1]) / (2 * step))
        assert found["value"] == pytest.approx(np.mean(slopes), rel=1e-4), found["head"]
    assert [found["head"] for found in rows_found] == model.list_heads()


@pytest.mark.parametrize("name", ["BERT", "T5", "GPT-2"])
def test_gradient_importance_of_stock_models_is_the_derivative_of_each_examples_loss(name):
    model, batch = make_stock(name), ARCHITECTURES[name].inputs(3)
    labels = batch.get("decoder_input_ids", batch["input_ids"]).clone()
    rows = headcount.gradient_importance(model, {**batch, "labels": labels})
    heads = headcount.list_heads(model)
    assert [found["head"] for found in rows] == heads and all(found["n"] == 3 for found in rows)
    found, step = rows[5], 1e-3
    costs = []
    for gate in (1 + step, 1 - step):
        with torch.inference_mode(), headcount.mask_heads(model.double(), {found["head"]: gate}, allow_any_gate=True):
            logits = model(**batch).logits
            logits = logits[:, :-1] if name == "GPT-2" else logits
            wanted = labels[:, 1:] if name == "GPT-2" else labels
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), wanted.flatten(), reduction="none")
            costs.append(loss.view(wanted.shape).sum(-1))
    assert found["value"] == pytest.approx(float(((costs[0] - costs[1]) / (2 * step)).abs().mean()), rel=1e-3)


def test_agreement_is_over_heads_and_all_of_the_data():
    def ablation(head, value, **more):
        return row("ablation", "loss_rise", {"value": value, "n": 9}, head=head, mode="zero", **more)

    rows = [ablation(head, value) for head, value in (("a", 1), ("b", 2), ("c", 3))]
    rows += [ablation("a", 9, scope={"carry": "with"})]
    slopes = (("a", 5), ("b", 4), ("c", 3))
    gradient = [row("gradient", "gradient_importance", {"value": value, "n": 9}, head=head) for head, value in slopes]
    (found,) = agreement(rows, gradient)
    assert found["value"] == pytest.approx(-1) and found["n"] == 3 and found["compared_with"] == "loss_rise"
