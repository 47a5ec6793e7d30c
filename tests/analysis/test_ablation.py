"""The engine against the naive loop: hooks on the output projections, one gate at a time, and `generate()`."""

import numpy as np
import pytest
import torch
from small_models import make_inputs, make_model

from headcount.analysis.ablation import ablate, head_outputs, one_head_at_a_time


MODELS = {
    "encoder-decoder": {"architecture": "encoder-decoder"},
    "post-norm, cross positions": {
        "architecture": "encoder-decoder",
        "norm_position": "post",
        "position_embedding_type": "t5_bias",
        "cross_attention_positions": True,
    },
    "three decoder layers, sdpa": {"architecture": "encoder-decoder", "decoder_layers": 3, "attention": "sdpa"},
    "pruned": {"architecture": "encoder-decoder", "pruned_heads": {"encoder.0.self": [1], "decoder.1.cross": [0, 2]}},
    "a layer without heads": {"architecture": "encoder-decoder", "pruned_heads": {"encoder.1.self": [0, 1, 2, 3]}},
    "decoder, rotary": {"architecture": "decoder", "position_embedding_type": "rotary"},
    "decoder, log_n": {"architecture": "decoder", "attention_normalizer": "log_n"},
    "encoder, alibi": {"architecture": "encoder", "position_embedding_type": "alibi"},
    "encoder, window": {"architecture": "encoder", "position_embedding_type": "rotary", "attention_window": 2},
}


def build(name):
    options = dict(MODELS[name])
    return make_model(options.pop("architecture"), **options)


def naive_logits(model, rows, gate, outputs):
    """One pass with hooks that rewrite the input of the output projections; `outputs` replaces a closed head's."""
    handles = []
    for name, module in model.attention_modules().items():
        for place, number in enumerate(module.heads):
            value = gate.get(f"{name}.{number}", 1.0)
            if value == 1.0:
                continue

            def rewrite(projection, inputs, place=place, value=value, name=name, size=module.head_dim):
                merged = inputs[0].clone()
                own = slice(place * size, (place + 1) * size)
                other = 0.0 if outputs is None else outputs[name][:, place]
                merged[..., own] = value * merged[..., own] + (1 - value) * other
                return (merged,)

            handles.append(module.out_proj.register_forward_pre_hook(rewrite))
    with torch.no_grad():
        logits = model(**rows).logits
    for handle in handles:
        handle.remove()
    return logits


def gates_of(model):
    heads = model.list_heads()
    return [*one_head_at_a_time(model), {heads[0]: 0.0, heads[-1]: 0.0}, {heads[2]: 0.3, heads[3]: 1.7}]


@pytest.mark.parametrize("mode", ["zero", "mean", "resample"])
@pytest.mark.parametrize("name", MODELS)
def test_engine_equals_the_naive_loop_of_hooks(name, mode):
    model = build(name)
    architecture = model.config.architecture
    rows = make_inputs(architecture, batch=5)
    donors = make_inputs(architecture, batch=5, seed=7) if mode == "resample" else None
    outputs = None
    if mode == "mean":
        outputs = {layer: output.mean(0, keepdim=True) for layer, output in head_outputs(model, rows).items()}
    elif mode == "resample":
        outputs = head_outputs(model, donors)
    gates = gates_of(model)
    outcomes = ablate(model, rows, gates, mode, donors)

    assert outcomes.gates == gates
    shift = architecture == "decoder"
    labels = rows["labels"][:, 1:] if shift else rows["labels"].reshape(5, -1)
    for version, gate in enumerate(gates):
        logits = naive_logits(model, rows, gate, outputs)
        logits = logits[:, :-1] if shift else logits.reshape(5, labels.shape[1], -1)
        assert np.array_equal(outcomes.tokens[version], logits.argmax(-1)), gate
        loss = torch.nn.functional.cross_entropy(logits.transpose(1, 2), labels, reduction="none").sum(-1)
        assert outcomes.loss[version] == pytest.approx(loss.numpy(), rel=1e-4, abs=1e-4), gate
    assert (outcomes.loss[1:] != outcomes.loss[0]).any(-1).all(), "a gate had no effect"


def test_exact_match_is_what_generation_with_the_head_masked_gives_example_by_example():
    model = make_model("encoder-decoder")
    model.generation_config.eos_token_id = None  # random models end anywhere; compare six tokens
    inputs = make_inputs("encoder-decoder", batch=40)["input_ids"]

    def written(**masks):
        return model.generate(inputs, max_new_tokens=6, do_sample=False, **masks)[:, 1:]

    rows = {"input_ids": inputs, "labels": written()}
    outcomes = ablate(model, rows, one_head_at_a_time(model))
    assert outcomes.right[0].all()
    rates = []
    for head, right in zip(model.list_heads(), outcomes.right[1:], strict=True):
        expected = (written(**model.head_mask_for([head])) == rows["labels"]).all(-1)
        assert np.array_equal(right, expected.numpy()), head
        rates.append(right.mean())
    assert 0 < np.mean(rates) < 1, "the heads of this model make no difference, so the test says nothing"


@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder", "encoder"])
def test_padded_rows_give_what_they_give_alone(architecture):
    model = make_model(architecture, position_embedding_type="sinusoidal")
    rows = make_inputs(architecture, batch=4, padding="right")
    if architecture == "encoder-decoder":
        rows["labels"][1, 4:] = -100
    together = ablate(model, rows, one_head_at_a_time(model), "zero")
    for index in range(4):
        alone = {name: values[index : index + 1] for name, values in rows.items()}
        outcomes = ablate(model, alone, one_head_at_a_time(model), "zero")
        assert np.array_equal(outcomes.tokens[:, 0], together.tokens[:, index])
        assert outcomes.loss[:, 0] == pytest.approx(together.loss[:, index], rel=1e-4)


def test_small_portions_give_the_same(monkeypatch):
    model, rows = make_model("encoder-decoder"), make_inputs("encoder-decoder", batch=50)
    whole = ablate(model, rows, gates_of(model), "mean")
    monkeypatch.setattr("headcount.analysis.ablation.TOKENS_AT_ONCE", 100)
    monkeypatch.setattr("headcount.analysis.ablation.FEWEST_ROWS", 7)
    calls = []
    parts = ablate(model, rows, gates_of(model), "mean", progress=lambda done, total: calls.append((done, total)))
    assert np.array_equal(whole.tokens, parts.tokens)
    assert whole.loss == pytest.approx(parts.loss, rel=1e-4)
    assert calls[-1] == (50 * len(whole.gates), 50 * len(whole.gates)) and len(calls) > 20


def test_cross_attention_of_the_source_makes_the_decoder_see_the_source():
    """The encoder reaches the decoder through the cross-attention heads alone, so replacing all of them is exact."""
    model = make_model("encoder-decoder")
    base, source = make_inputs("encoder-decoder", seed=1), make_inputs("encoder-decoder", seed=2)
    base["labels"] = source["labels"]
    every = {head: 0.0 for head in model.list_heads() if ".cross." in head}
    patched = ablate(model, base, [{}, every], "resample", donors=source)
    expected = ablate(model, source, [{}])
    assert np.array_equal(patched.tokens[1], expected.tokens[0])
    assert patched.loss[1] == pytest.approx(expected.loss[0], rel=1e-4)
    assert not np.array_equal(patched.loss[0], patched.loss[1])


def test_resampling_takes_another_row_of_the_same_length():
    model = make_model("encoder")
    rows = make_inputs("encoder", batch=1)
    with pytest.raises(ValueError, match="only one row has its length"):
        ablate(model, rows, one_head_at_a_time(model), "resample")
    twice = {name: values.repeat(2, *[1] * (values.ndim - 1)) for name, values in rows.items()}
    outcomes = ablate(model, twice, one_head_at_a_time(model), "resample")  # the other row is the same one
    assert outcomes.loss == pytest.approx(np.repeat(outcomes.loss[:1], len(outcomes.loss), 0), rel=1e-4)


def test_wrong_arguments_are_named():
    model, rows = make_model("encoder-decoder"), make_inputs("encoder-decoder")
    with pytest.raises(ValueError, match="mode='zeros' is not known; expected one of zero, mean, resample"):
        ablate(model, rows, [{}], "zeros")
    with pytest.raises(ValueError, match=r"'encoder.9.self.0' is not a head of this model"):
        ablate(model, rows, [{"encoder.9.self.0": 0.0}])
    with pytest.raises(ValueError, match="donors have no effect with mode='zero'"):
        ablate(model, rows, [{}], "zero", donors=rows)
    with pytest.raises(ValueError, match="expected one of the same length for each"):
        ablate(model, rows, [{}], "resample", donors=make_inputs("encoder-decoder", length=7))
    model.prune_heads(["encoder.0.self.0"])
    with pytest.raises(ValueError, match=r"'encoder.0.self.0' has been pruned"):
        ablate(model, rows, [{"encoder.0.self.0": 0.0}])
    with pytest.raises(ValueError, match="expected padding on the right only"):
        ablate(model, make_inputs("encoder-decoder", padding="left"), [{}])


def test_the_model_is_left_as_it_was():
    model, rows = make_model("encoder-decoder"), make_inputs("encoder-decoder")
    model.train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    ablate(model, rows, one_head_at_a_time(model))
    assert model.training
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
