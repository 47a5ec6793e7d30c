"""The exact edge engine: against the model itself, against `sweep` node by node, and against hooks edge by edge."""

import numpy as np
import pytest
import torch
from small_models import make_inputs, make_model, serves, ungrouped

from headcount.analysis.circuits.edge_runs import EdgeRuns
from headcount.analysis.circuits.graph import graph_of
from headcount.analysis.interventions.intervention import Intervention
from headcount.analysis.interventions.sweep import sweep
from headcount.modeling.pooling import POOLERS
from headcount.modeling.position_encodings import POSITION_ENCODINGS


def logits_of(outputs, batch):
    """Something of all logits, and of each by another weight."""
    flat = outputs.logits.flatten(1)
    return (flat * torch.linspace(-1, 1, flat.shape[1], device=flat.device)).sum(-1)


def cut_out_of(model, node):
    return [edge for edge in graph_of(model).edges if edge[0] == node]


def compare_logits(model, batch):
    """With nothing cut, all logits are those of the model."""
    found = []
    runs = EdgeRuns(
        model, batch, "mean", lambda outputs, batch: found.append(outputs.logits) or outputs.logits.flatten(1)[:, 0]
    )
    runs.outcomes([[]])
    with torch.no_grad():
        torch.testing.assert_close(found[0], model(**batch).logits, atol=1e-4, rtol=0)


@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder", "encoder"])
@pytest.mark.parametrize("encoding", POSITION_ENCODINGS)
def test_nothing_cut_is_the_model_with_every_position_encoding(encoding, architecture):
    if not serves(encoding, architecture):
        pytest.skip("the encoding does not serve this architecture")
    model, batch = make_model(architecture, position_embedding_type=encoding), make_inputs(architecture)
    compare_logits(model, batch)


@pytest.mark.parametrize("pooling", POOLERS)
def test_nothing_cut_is_the_classifier_with_every_pooler(pooling):
    model, batch = make_model("encoder", pooling_type=pooling), make_inputs("encoder")
    compare_logits(model, batch)


@pytest.mark.parametrize("ablation", ["zero", "mean", "resample", "source"])
@pytest.mark.parametrize(
    "architecture, options",
    [
        ("encoder-decoder", {}),
        ("encoder-decoder", {"position_embedding_type": "rotary", "cross_attention_positions": True}),
        ("decoder", {"position_embedding_type": "relative_key"}),
        ("encoder", {"pooling_type": "violation"}),
        ("encoder-decoder", {"pruned_heads": {"encoder.0.self": [1], "decoder.1.cross": [0, 1, 2, 3]}}),
        ("encoder-decoder", {"num_key_value_heads": 2, "feed_forward_type": "gated", "norm_type": "rms"}),
    ],
    ids=["encoder-decoder", "cross positions", "decoder", "classifier", "pruned", "shared keys and values"],
)
def test_all_edges_out_of_a_node_cut_are_the_node_ablated(architecture, options, ablation):
    model = make_model(architecture, **options)
    batches = [make_inputs(architecture, 4, seed=seed) for seed in (1, 2)]
    sources = [make_inputs(architecture, 4, seed=seed) for seed in (3, 4)] if ablation == "source" else None
    nodes = graph_of(model).nodes
    wanted = [Intervention((node,), replacement=ablation) for node in nodes]
    expected = sweep(model, batches, wanted, sources=sources, seed=5)
    runs = EdgeRuns(model, batches, ablation, sources=sources, seed=5)
    found = runs.outcomes([[], *(cut_out_of(model, node) for node in nodes)])
    np.testing.assert_allclose(found.loss, expected.loss, atol=2e-4)
    np.testing.assert_array_equal(found.tokens, expected.tokens)
    np.testing.assert_array_equal(found.labels, expected.labels)
    assert len(np.unique(found.loss[:, 0].round(5))) == 1 + len(nodes), "every node does something"


def test_rows_of_several_lengths_and_a_decoder_with_prompts():
    model, batch = make_model("decoder"), make_inputs("decoder", 4, padding="right")
    batch = {name: torch.cat([values, values.flip(0)]) for name, values in batch.items()}
    nodes = graph_of(model).nodes
    for ablation in ("mean", "resample"):
        expected = sweep(model, batch, [Intervention((node,), replacement=ablation) for node in nodes])
        found = EdgeRuns(model, batch, ablation).outcomes([[], *(cut_out_of(model, node) for node in nodes)])
        np.testing.assert_allclose(found.loss, expected.loss, atol=2e-4)


def by_hooks(model, batch, sender, reader, replacement):
    """One edge, by hand: the reader's input is that of the run, minus what the sender adds, plus its replacement.

    The sender and the readers are a decoder's: layer 0's head 1, the feed-forward sublayer of layer 0, head 2 of
    layer 1 and the output.
    """
    layers = model.model.decoder.layers
    width = model.config.hidden_size // model.config.num_attention_heads
    sent = {}

    def head(module, inputs):
        sent["own"] = inputs[0][..., width : 2 * width] @ module.weight[:, width : 2 * width].T

    def feed(module, inputs, output):
        sent["own"] = output

    hooks = [layers[0].self_attn.out_proj.register_forward_pre_hook(head)] if sender == "head" else []
    hooks += [layers[0].feed_forward.register_forward_hook(feed)] if sender == "mlp" else []

    def instead(module, inputs):
        return (inputs[0] - sent["own"] + replacement,)

    if reader == "logits":
        hooks.append(model.model.decoder.final_norm.register_forward_pre_hook(instead))
    elif reader == "mlp":
        hooks.append(layers[0].feed_forward_norm.register_forward_pre_hook(instead))
    else:
        attention, normed = layers[1].self_attn, {}
        norm = layers[1].self_attn_norm

        def keep(module, inputs):
            changed = inputs[0] - sent["own"] + replacement
            normed["changed"] = torch.nn.functional.layer_norm(changed, changed.shape[-1:], norm.weight, norm.bias)

        def one_head(module, inputs, output):
            own = slice(2 * width, 3 * width)
            changed = output.clone()
            changed[..., own] = (normed["changed"] @ module.weight.T + module.bias)[..., own]
            return changed

        hooks.append(norm.register_forward_pre_hook(keep))
        hooks += [
            part.register_forward_hook(one_head) for part in (attention.q_proj, attention.k_proj, attention.v_proj)
        ]
    with torch.no_grad():
        logits = model(**batch).logits
    for hook in hooks:
        hook.remove()
    return logits


@pytest.mark.parametrize(
    "edge, sender, reader",
    [
        (("decoder.0.self.1", "decoder.0.mlp"), "head", "mlp"),
        (("decoder.0.self.1", "decoder.1.self.2"), "head", "attention"),
        (("decoder.0.self.1", "logits"), "head", "logits"),
        (("decoder.0.mlp", "decoder.1.self.2"), "mlp", "attention"),
        (("decoder.0.mlp", "logits"), "mlp", "logits"),
    ],
)
@pytest.mark.parametrize("ablation", ["zero", "source"])
def test_one_edge_is_what_hooks_make_of_it(edge, sender, reader, ablation):
    model, batch, source = make_model("decoder"), make_inputs("decoder"), make_inputs("decoder", seed=7)
    replacement = torch.zeros(())
    if ablation == "source":
        runs = EdgeRuns(model, source, "zero")
        replacement = runs.put_out(runs.portions[0])[edge[0]]
    expected = by_hooks(model, batch, sender, reader, replacement)
    sources = source if ablation == "source" else None
    runs = EdgeRuns(model, batch, ablation, logits_of, sources=sources)
    found = runs.outcomes([[], [edge]]).values
    expected = logits_of(type("Outputs", (), {"logits": expected}), batch).numpy()
    np.testing.assert_allclose(found[1], expected, atol=1e-4)
    assert np.abs(found[1] - found[0]).min() > 1e-4, "the edge does something"


def test_the_two_sides_of_cross_attention_are_cut_alone():
    """All edges from the encoder to a cross head cut: its keys and values are the same whatever the question is."""
    model, batch = make_model(), make_inputs("encoder-decoder", 4)
    edges = graph_of(model).edges
    heads = [site for site in graph_of(model).nodes if site.kind == "cross"]
    memory = [edge for edge in edges if edge[1] in heads and edge[0].startswith("encoder")]
    queries = [edge for edge in edges if edge[1] in heads and edge[0].startswith("decoder")]
    assert len(memory) == 8 * 11 and len(queries) == 4 * 5 + 4 * 14
    runs = EdgeRuns(model, batch, "mean", logits_of)
    without_memory = runs.outcomes([memory]).values
    other = {**batch, "input_ids": batch["input_ids"].flip(0)}  # the mean is the same
    np.testing.assert_allclose(
        EdgeRuns(model, other, "mean", logits_of).outcomes([memory]).values, without_memory, atol=1e-4
    )
    assert np.abs(runs.outcomes([queries]).values - runs.outcomes([[]]).values).min() > 1e-4


@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder", "encoder"])
def test_an_edge_into_one_head_leaves_the_others_of_its_group_as_they_are(architecture):
    """As if every head had keys and values of its own: each edge alone, and all of them."""
    options = {"num_key_value_heads": 2, "num_hidden_layers": 2}
    model, batch = make_model(architecture, **options), make_inputs(architecture, 4)
    edges = graph_of(model).edges
    versions = [[], *([edge] for edge in edges), edges[::2], edges]
    own, other = (EdgeRuns(each, batch, "mean", logits_of).outcomes(versions) for each in (model, ungrouped(model)))
    np.testing.assert_allclose(own.values, other.values, atol=1e-4)
    assert np.ptp(own.values, axis=0).min() > 1e-2


def test_what_was_computed_before_does_not_change_what_comes_after():
    model, batch = make_model(), make_inputs("encoder-decoder", 5)
    edges = graph_of(model).edges
    rng = np.random.default_rng(0)
    versions = [[edges[i] for i in rng.permutation(len(edges))[: rng.integers(1, 40)]] for _ in range(12)]
    runs = EdgeRuns(model, batch, "resample")
    together = runs.outcomes(versions).loss
    for version, expected in zip(reversed(versions), together[::-1], strict=True):
        np.testing.assert_allclose(runs.outcomes([version]).loss[0], expected, atol=1e-4)


def test_what_has_no_edges_is_refused_in_a_sentence():
    with pytest.raises(ValueError, match="norm_position='post' the residual stream is not a sum"):
        EdgeRuns(make_model(norm_position="post"), make_inputs("encoder-decoder"))
    model = make_model()
    with pytest.raises(ValueError, match="HeadcountModel is not a model of headcount's own with an output layer"):
        EdgeRuns(model.model, make_inputs("encoder-decoder"))
    with pytest.raises(ValueError, match="ablation='noise' is not known"):
        EdgeRuns(model, make_inputs("encoder-decoder"), "noise")
    with pytest.raises(ValueError, match="padding on the right only"):
        EdgeRuns(model, make_inputs("encoder-decoder", padding="left"))
    with pytest.raises(ValueError, match=r"'decoder\.0\.mlp -> encoder\.0\.mlp' is not an edge"):
        EdgeRuns(model, make_inputs("encoder-decoder")).outcomes([[("decoder.0.mlp", "encoder.0.mlp")]])
    with pytest.raises(ValueError, match="there are no versions"):
        EdgeRuns(model, make_inputs("encoder-decoder")).outcomes([])
    with pytest.raises(ValueError, match="sources and replacement='source' belong together"):
        EdgeRuns(model, make_inputs("encoder-decoder"), "source")


def test_the_model_is_left_as_it_was():
    model, batch = make_model().train(), make_inputs("encoder-decoder")
    before = {name: values.clone() for name, values in model.state_dict().items()}
    EdgeRuns(model, batch, "mean").outcomes([[("encoder.embed", "encoder.0.mlp")]])
    assert model.training and all(values.requires_grad for values in model.parameters())
    assert all(torch.equal(values, before[name]) for name, values in model.state_dict().items())
