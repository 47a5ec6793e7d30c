"""Layers of transformers' models that compute their attention themselves: gates where their heads lie side by side."""

import copy

import pytest
import torch
from torch import nn
from transformers import BloomConfig, BloomForCausalLM, SiglipConfig, SiglipModel
from transformers.models.grounding_dino.modeling_grounding_dino import GroundingDinoBiMultiHeadAttention

import headcount
from headcount.modeling.stock.finding import attention_layers, unknown_layers
from headcount.modeling.stock.own_code import TorchGate, place_of


def bloom() -> BloomForCausalLM:
    torch.manual_seed(0)
    model = BloomForCausalLM(BloomConfig(vocab_size=40, hidden_size=32, n_layer=2, n_head=4)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


TOKENS = torch.tensor([[5, 6, 7, 8], [9, 4, 3, 11]])


def closed_by_hand(model, layer: int, head: int) -> torch.Tensor:
    def close(module, inputs):
        states = inputs[0].clone()
        states[..., 8 * head : 8 * (head + 1)] = 0.0
        return (states,)

    hook = model.transformer.h[layer].self_attention.dense.register_forward_pre_hook(close)
    logits = model(TOKENS).logits
    hook.remove()
    return logits


def test_heads_of_a_layer_with_its_own_code_are_masked_as_by_a_hook():
    model = bloom()
    assert headcount.list_heads(model)[-1] == "decoder.1.self.3"
    plain = model(TOKENS).logits
    for layer, head in ((0, 0), (1, 2)):
        with headcount.mask_heads(model, [f"decoder.{layer}.self.{head}"]):
            masked = model(TOKENS).logits
        torch.testing.assert_close(masked, closed_by_hand(model, layer, head))
        assert not torch.allclose(masked, plain, atol=1e-4)
    assert torch.equal(model(TOKENS).logits, plain)


def test_contexts_nest_and_gates_may_differ_from_example_to_example():
    model = bloom()
    with headcount.mask_heads(model, {"decoder.0.self.1": 0.25}):
        once = model(TOKENS).logits
    with (
        headcount.mask_heads(model, {"decoder.0.self.1": 0.5}),
        headcount.mask_heads(model, {"decoder.0.self.1": 0.5}),
    ):
        torch.testing.assert_close(model(TOKENS).logits, once)
    with headcount.mask_heads(model, {"decoder.0.self.1": torch.tensor([0.25, 1.0])}):
        each = model(TOKENS).logits
    torch.testing.assert_close(each[0], once[0])
    torch.testing.assert_close(each[1], model(TOKENS).logits[1])


def test_a_copy_that_is_made_inside_is_plain_and_generation_is_masked():
    model = bloom()
    plain = model(TOKENS).logits
    with headcount.mask_heads(model, ["decoder.0.self.1", "decoder.1.self.0"]):
        copied = copy.deepcopy(model)
        written = model.generate(TOKENS, max_new_tokens=4, do_sample=False)
        masked = model(written).logits
    torch.testing.assert_close(copied(TOKENS).logits, plain)
    assert torch.equal(masked[:, 3:-1].argmax(-1), written[:, 4:])


def test_torch_attention_is_masked_before_its_heads_are_mixed():
    torch.manual_seed(0)
    for options in ({"batch_first": True}, {"batch_first": False}, {"batch_first": True, "kdim": 12, "vdim": 20}):
        module = nn.MultiheadAttention(16, 4, **options).eval()
        query, key, value = torch.randn(2, 3, 16), *(torch.randn(2, 5, options.get(n, 16)) for n in ("kdim", "vdim"))
        hidden = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
        inputs = [query, key, value] if options["batch_first"] else [x.transpose(0, 1) for x in (query, key, value)]
        plain = module(*inputs, key_padding_mask=hidden)[0]
        hook = module.register_forward_hook(TorchGate(lambda module, heads: heads), with_kwargs=True)
        torch.testing.assert_close(module(*inputs, key_padding_mask=hidden)[0], plain)
        hook.remove()

        def last_closed(module, heads):
            assert heads.shape == (2, 3, 4, 4)
            return heads * torch.tensor([1.0, 1.0, 1.0, 0.0])[:, None]

        hook = module.register_forward_hook(TorchGate(last_closed), with_kwargs=True)
        closed = module(*inputs, key_padding_mask=hidden)[0]
        hook.remove()
        module.out_proj.weight.data[:, 12:] = 0.0
        torch.testing.assert_close(closed, module(*inputs, key_padding_mask=hidden)[0])


def test_a_pooling_head_of_torch_is_one_of_the_layers():
    small = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    vision = small | {"image_size": 8, "patch_size": 4}
    model = SiglipModel(SiglipConfig(text_config=small | {"vocab_size": 20}, vision_config=vision)).eval()
    layers = attention_layers(model)
    assert list(layers) == ["text.0.self", "vision.0.self", "vision.1.self"]
    assert isinstance(layers["vision.1.self"].module, nn.MultiheadAttention) and not unknown_layers(model)
    pixels = torch.randn(2, 3, 8, 8)
    plain = model.get_image_features(pixels).pooler_output
    with headcount.mask_heads(model, ["vision.1.self.0"]):
        masked = model.get_image_features(pixels).pooler_output
    assert not torch.allclose(masked, plain, atol=1e-4)
    with pytest.raises(
        ValueError, match=r"compute their maps by themselves .MultiheadAttention, such as vision.1.self"
    ):
        headcount.attention_maps(model, {"pixel_values": pixels, "input_ids": TOKENS})


def test_layers_that_are_not_known_are_named_and_the_others_can_be_had(monkeypatch):
    model = bloom()
    model.transformer.extra = GroundingDinoBiMultiHeadAttention.__new__(GroundingDinoBiMultiHeadAttention)
    nn.Module.__init__(model.transformer.extra)
    model.transformer.extra.num_heads, model.transformer.extra.weight = 2, nn.Parameter(torch.ones(1))
    assert place_of(model.transformer.extra) is None
    with pytest.raises(ValueError, match=r"1 attention layers of BloomForCausalLM .* such as transformer.extra"):
        headcount.list_heads(model)
    with pytest.raises(ValueError, match=r"expected list_heads\(model, allow_partial=True\)"):
        headcount.ablate(model, TOKENS, lambda outputs, batch: outputs.logits[:, -1, 0])
    heads = headcount.list_heads(model, allow_partial=True)
    rows = headcount.ablate(model, TOKENS, lambda outputs, batch: outputs.logits[:, -1, 0], heads=heads[:2])
    assert {row["head"] for row in rows} == set(heads[:2])
