"""Gradient estimates of edges: exact where a step is small, and node by node those of attribution patching."""

import numpy as np
import pytest
import torch
from small_models import make_inputs, make_model

import headcount
from headcount.analysis.circuits.edge_estimates import edge_estimates, minus_loss, node_estimates
from headcount.analysis.circuits.edge_runs import EdgeRuns
from headcount.analysis.interventions.measures import answer_margin
from headcount.records.rows import only


def close_pair(model, batch):
    """A base and a source that differ in one embedding by little, so that the first order is all there is."""
    source = {name: values.clone() for name, values in batch.items()}
    batch["input_ids"][:, 1], source["input_ids"][:, 1] = 18, 19
    batch["labels"][:, 1], source["labels"][:, 1] = 18, 19
    with torch.no_grad():
        for stack in (model.model.encoder, model.model.decoder):
            weights = stack.embed_tokens.weight
            weights[19] = weights[18] + 1e-3 * torch.randn(weights.shape[1], dtype=weights.dtype)
    return batch, source


@pytest.mark.parametrize("steps", [1, 5])
def test_a_small_step_is_estimated_exactly_for_every_edge(steps):
    model = make_model(tie_word_embeddings=False).double()
    base, source = close_pair(model, make_inputs("encoder-decoder"))

    def metric(outputs, batch):
        return outputs.logits[:, :, 7].sum(-1)

    runs = EdgeRuns(model, base, "source", metric, sources=source)
    estimated = edge_estimates(runs, metric, steps)
    values = runs.outcomes([[], *([edge] for edge in runs.graph.edges)]).values.astype(float)
    exact = values[1:] - values[0]
    big = np.abs(exact) > 20 * 1e-6
    assert big.mean() > 0.1
    np.testing.assert_allclose(estimated[big], exact[big], rtol=0.1, atol=2e-6)


@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder", "encoder"])
def test_summed_over_the_edges_of_a_node_they_are_attribution_patching(architecture):
    model, base = make_model(architecture), make_inputs(architecture, 4)
    source = {**make_inputs(architecture, 4, seed=9), "labels": base["labels"]}
    answers = torch.tensor([[0, 1]] * 4)
    rows = headcount.attribution_patching(model, base, source, answers)
    metric = answer_margin(model)
    batch = {**base, "answers": answers}
    runs = EdgeRuns(model, batch, "source", metric, sources={**source, "answers": answers})
    found = node_estimates(runs, edge_estimates(runs, metric)).mean(-1)
    expected = [only(rows, metric="estimated_change", site=str(node))["value"] for node in runs.graph.nodes]
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_all_steps_of_one_edge_to_the_output_add_up_to_its_exact_effect():
    """Integrated gradients of a function add up to its change. With every reader cut off but the output, the model is
    the output layer on the embeddings, of which the only edge is the whole way."""
    model, batch = make_model("decoder", num_hidden_layers=1), make_inputs("decoder", 4)
    with torch.no_grad():
        layer = model.model.decoder.layers[0]
        layer.feed_forward.down_proj.weight.zero_()
        layer.feed_forward.down_proj.bias.zero_()
        layer.self_attn.out_proj.weight.zero_()
    runs = EdgeRuns(model, batch, "mean")
    edge = ("decoder.embed", "logits")
    place = runs.graph.edges.index(edge)
    loss = runs.outcomes([[], [edge]]).loss
    exact = (loss[0] - loss[1]).mean()
    errors = [abs(edge_estimates(runs, steps=steps)[place].mean() - exact) for steps in (1, 5, 80)]
    assert errors[2] < 0.02 * abs(exact) and errors[2] < errors[1] < errors[0]


def test_rows_come_back_in_their_places_and_bad_arguments_are_said():
    model, batch = make_model("decoder"), make_inputs("decoder", 4, padding="right")
    runs = EdgeRuns(model, batch, "zero")
    whole = edge_estimates(runs)
    assert len(runs.portions) == 4
    for row in range(4):
        alone = EdgeRuns(model, {name: values[row : row + 1] for name, values in batch.items()}, "zero")
        np.testing.assert_allclose(edge_estimates(alone)[:, 0], whole[:, row], atol=1e-4)
    with pytest.raises(ValueError, match="steps=0; expected at least 1"):
        edge_estimates(runs, steps=0)
    with pytest.raises(ValueError, match="the metric has no gradient"):
        edge_estimates(runs, lambda outputs, batch: outputs.logits[:, 0, 0].detach())
    outputs = model(**batch)
    assert minus_loss(model)(outputs, batch).sum().item() == pytest.approx(
        -outputs.loss.item() * (batch["labels"][:, 1:] != -100).sum().item(), rel=1e-4
    )
    assert all(values.grad is None for values in model.parameters())
