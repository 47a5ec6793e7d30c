"""A Llama of transformers, copied weight by weight into a model of headcount's own: the same numbers everywhere."""

import numpy as np
import pytest
import torch
from small_models import make_inputs, tiny_config
from transformers import LlamaConfig, LlamaForCausalLM

import headcount
from headcount.analysis.interventions.intervention import Intervention
from headcount.analysis.interventions.sweep import sweep
from headcount.modeling.attention import ATTENTION_FUNCTIONS


HEADS = [f"decoder.{layer}.self.{number}" for layer in range(2) for number in range(4)]
NAMES = {
    "model.embed_tokens": "model.decoder.embed_tokens",
    "model.norm": "model.decoder.final_norm",
    "model.layers": "model.decoder.layers",
    "self_attn.o_proj": "self_attn.out_proj",
    "input_layernorm": "self_attn_norm",
    "post_attention_layernorm": "feed_forward_norm",
    "mlp.": "feed_forward.",
}


def llama_and_ours(key_value_heads: int = 2, attention: str = "eager"):
    torch.manual_seed(0)
    sizes = {"vocab_size": 20, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    sizes |= {"num_key_value_heads": key_value_heads, "intermediate_size": 48}
    theirs = LlamaForCausalLM(
        LlamaConfig(
            **sizes,
            rms_norm_eps=1e-4,
            rope_parameters={"rope_type": "default", "rope_theta": 500.0},
            initializer_range=0.3,
            pad_token_id=0,
        )
    )
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))  # gains other than 1
    options = {"norm_type": "rms", "layer_norm_eps": 1e-4, "feed_forward_type": "gated", "hidden_act": "silu"}
    options |= {"position_embedding_type": "rotary", "rope_theta": 500.0}
    ours = headcount.HeadcountForCausalLM(tiny_config("decoder", **sizes, **options))
    weights = {}
    for name, value in theirs.state_dict().items():
        for old, new in NAMES.items():
            name = name.replace(old, new)
        weights[name] = value
    missing, unexpected = ours.load_state_dict(weights, strict=False)
    # Llama has no biases in attention; ours start at zero.
    assert not unexpected and all("_attn." in name and name.endswith("_proj.bias") for name in missing)
    assert not any(ours.get_parameter(name).any() for name in missing)
    for model in (theirs, ours):
        model.set_attn_implementation(attention)
    return theirs.eval(), ours.eval()


def logits_of(model, **inputs):
    with torch.no_grad():
        return model(**inputs).logits


@pytest.mark.parametrize("attention", ATTENTION_FUNCTIONS)
@pytest.mark.parametrize("key_value_heads", [1, 2, 4])
def test_logits_and_maps_are_those_of_llama(key_value_heads, attention):
    theirs, ours = llama_and_ours(key_value_heads, attention)
    inputs = {"input_ids": make_inputs("decoder")["input_ids"]}
    expected = logits_of(theirs, **inputs)
    assert expected.std() > 0.5
    torch.testing.assert_close(logits_of(ours, **inputs), expected, atol=1e-5, rtol=1e-5)
    maps = [headcount.attention_maps(model, inputs) for model in (theirs, ours)]
    for name in ("decoder.0.self", "decoder.1.self"):
        torch.testing.assert_close(maps[1][name], maps[0][name], atol=1e-5, rtol=1e-5)


def test_left_padding_is_read_alike():
    theirs, ours = llama_and_ours()
    padded = make_inputs("decoder", padding="left")
    inputs, real = {name: padded[name] for name in ("input_ids", "attention_mask")}, padded["attention_mask"].bool()
    expected = logits_of(theirs, **inputs)[real]
    torch.testing.assert_close(logits_of(ours, **inputs)[real], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("attention", ATTENTION_FUNCTIONS)
def test_a_cache_holds_as_much_and_gives_the_same(attention):
    theirs, ours = llama_and_ours(attention=attention)
    tokens = make_inputs("decoder")["input_ids"]
    whole, caches = logits_of(theirs, input_ids=tokens), {}
    for start, end in ((0, 4), (4, 5), (5, 9)):
        for model in (theirs, ours):
            with torch.no_grad():
                output = model(tokens[:, start:end], past_key_values=caches.get(model), use_cache=True)
            caches[model] = output.past_key_values
            torch.testing.assert_close(output.logits, whole[:, start:end], atol=1e-5, rtol=1e-5)
    for first, second in zip(caches[theirs].layers, caches[ours].layers, strict=True):
        assert first.keys.shape == (3, 2, 9, 8)
        torch.testing.assert_close(second.keys, first.keys, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(second.values, first.values, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("how", [{}, {"num_beams": 3}, {"cache_implementation": "static"}, {"use_cache": False}])
def test_both_write_the_same(how):
    theirs, ours = llama_and_ours(attention="sdpa")
    tokens = make_inputs("decoder")["input_ids"]
    options = {"max_new_tokens": 8, "min_new_tokens": 8, "do_sample": False, "eos_token_id": 2, "pad_token_id": 0}
    written = [
        model.generate(tokens, attention_mask=torch.ones_like(tokens), **options, **how) for model in (theirs, ours)
    ]
    assert written[0].tolist() == written[1].tolist()


@pytest.mark.parametrize("attention", ATTENTION_FUNCTIONS)
def test_gates_do_to_both_the_same(attention):
    theirs, ours = llama_and_ours(attention=attention)
    inputs = {"input_ids": make_inputs("decoder")["input_ids"]}
    assert headcount.list_heads(theirs) == ours.list_heads() == HEADS
    plain = logits_of(ours, **inputs)
    for head in HEADS:
        with headcount.mask_heads(theirs, [head]):
            expected = logits_of(theirs, **inputs)
        assert (expected - plain).abs().max() > 1e-2
        torch.testing.assert_close(
            logits_of(ours, **inputs, **ours.head_mask_for([head])), expected, atol=1e-5, rtol=1e-5
        )
    gates = torch.rand(3, 8)
    with headcount.mask_heads(theirs, gates):
        expected = logits_of(theirs, **inputs)
    torch.testing.assert_close(
        logits_of(ours, **inputs, head_mask=gates.view(3, 2, 4)), expected, atol=1e-5, rtol=1e-5
    )


@pytest.mark.parametrize("gone", [HEADS[:1], HEADS[2:4], [HEADS[0], HEADS[2], HEADS[7]], HEADS[:4]])
def test_pruned_both_are_as_large_and_give_the_same(gone):
    theirs, ours = llama_and_ours()
    inputs = {"input_ids": make_inputs("decoder")["input_ids"]}
    for model in (theirs, ours):
        headcount.prune_heads(model, gone)
    torch.testing.assert_close(logits_of(ours, **inputs), logits_of(theirs, **inputs), atol=1e-5, rtol=1e-5)
    assert headcount.list_heads(theirs) == ours.list_heads()
    for layer in range(2):
        attention, own = theirs.model.layers[layer].self_attn, ours.model.decoder.layers[layer].self_attn
        assert own.k_proj.weight.shape == (8 * len({head // 2 for head in own.heads}), 32)
        if own.heads:  # of a layer without heads, transformers' keeps a blank one
            assert attention.k_proj.weight.shape == own.k_proj.weight.shape


def test_analyses_find_the_same_in_both():
    theirs, ours = llama_and_ours()
    batch = make_inputs("decoder")
    found = [headcount.gradient_importance(model, batch) for model in (theirs, ours)]
    assert [row["head"] for row in found[0]] == [row["head"] for row in found[1]] == HEADS
    np.testing.assert_allclose([row["value"] for row in found[1]], [row["value"] for row in found[0]], rtol=1e-3)
    for replacement in ("zero", "mean", "resample"):
        wanted = [Intervention([site], 0.0, replacement) for site in headcount.sites(ours)]
        losses = [sweep(model, batch, wanted).loss for model in (theirs, ours)]
        np.testing.assert_allclose(losses[1], losses[0], rtol=1e-3, atol=1e-4)
    parts = [headcount.logit_attribution(model, batch["input_ids"], tokens=3) for model in (theirs, ours)]
    np.testing.assert_allclose(
        [row["value"] for row in parts[1]], [row["value"] for row in parts[0]], rtol=1e-3, atol=1e-4
    )
