"""Head masks on transformers' own models, against a hook on the input of the output projection."""

import re
import threading

import pytest
import torch
from small_models import make_inputs, make_model
from stock_models import ARCHITECTURES, MASKED, close_by_hook, float_outputs, make_stock, output_projection
from transformers import ResNetConfig, ResNetModel

import headcount
from headcount.modeling.stock.finding import attention_layers


def outputs_of(model, inputs):
    with torch.no_grad():
        return float_outputs(model(**inputs))


@pytest.mark.parametrize("name", MASKED)
def test_a_masked_head_is_one_closed_at_the_input_of_the_output_projection(name):
    model, inputs = make_stock(name), ARCHITECTURES[name].inputs(3)
    layers = attention_layers(model)
    assert {layer.split(".")[0] for layer in layers} == set(ARCHITECTURES[name].stacks.split(", "))
    plain = outputs_of(model, inputs)
    for layer in layers.values():
        head = f"{layer.name}.{layer.heads[-1]}"
        with headcount.mask_heads(model, [head]):
            masked = outputs_of(model, inputs)
        hook = close_by_hook(output_projection(model, layer.path), layer.heads[-1], len(layer.heads))
        hooked = outputs_of(model, inputs)
        hook.remove()
        assert any((a - b).abs().max() > 1e-4 for a, b in zip(masked, plain, strict=True)), head
        for a, b in zip(masked, hooked, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)
    for a, b in zip(outputs_of(model, inputs), plain, strict=True):
        assert torch.equal(a, b)


def test_heads_know_their_parts():
    heads = headcount.list_heads(make_stock("T5"))
    assert len(heads) == 6 * 4 and heads[0] == "encoder.0.self.0" and heads[-1] == "decoder.1.cross.3"
    assert (heads[-1].stack, heads[-1].layer, heads[-1].kind, heads[-1].number) == ("decoder", 1, "cross", 3)
    assert headcount.list_heads(make_stock("CLIP"))[0].stack == "text"
    decoder = make_stock("BERT", is_decoder=True, add_cross_attention=True)
    assert {(head.stack, head.kind) for head in headcount.list_heads(decoder)} == {
        ("decoder", "self"),
        ("decoder", "cross"),
    }


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("name", ["BERT", "Llama", "T5"])
def test_every_implementation_is_gated_and_open_gates_change_nothing(name, attention):
    model, inputs = make_stock(name, attention), ARCHITECTURES[name].inputs(3)
    plain = outputs_of(model, inputs)[0]
    heads = headcount.list_heads(model)
    with headcount.mask_heads(model, []):
        assert torch.equal(outputs_of(model, inputs)[0], plain)
    with headcount.mask_heads(model, torch.ones(len(heads))):
        assert torch.equal(outputs_of(model, inputs)[0], plain)
    with headcount.mask_heads(model, heads[1:2]):
        masked = outputs_of(model, inputs)[0]
    reference = make_stock(name, "eager")
    with headcount.mask_heads(reference, heads[1:2]):
        wanted = outputs_of(reference, inputs)[0]
    real = inputs["attention_mask"].bool() if plain.shape[1] == inputs["attention_mask"].shape[1] else slice(None)
    torch.testing.assert_close(masked[real], wanted[real], rtol=1e-4, atol=1e-4)
    assert (masked - plain).abs().max() > 1e-3


@pytest.mark.slow
def test_flex_attention_is_gated():
    model, inputs = make_stock("BERT", "flex_attention", num_hidden_layers=1), ARCHITECTURES["BERT"].inputs(2)
    reference = make_stock("BERT", "eager", num_hidden_layers=1)
    found = []
    for each in (model, reference):
        with headcount.mask_heads(each, ["encoder.0.self.2"]):
            found.append(outputs_of(each, inputs)[0][inputs["attention_mask"].bool()])
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-4)


def test_gates_for_every_example_and_fractions_and_nesting():
    model, inputs = make_stock("BERT"), ARCHITECTURES["BERT"].inputs(3)
    heads = headcount.list_heads(model)
    with headcount.mask_heads(model, [heads[2]]):
        closed = outputs_of(model, inputs)[0]
    plain = outputs_of(model, inputs)[0]
    gates = torch.ones(3, len(heads))
    gates[1, 2] = 0.0
    with headcount.mask_heads(model, gates):
        mixed = outputs_of(model, inputs)[0]
    torch.testing.assert_close(mixed, torch.stack([plain[0], closed[1], plain[2]]), rtol=1e-5, atol=1e-5)
    with headcount.mask_heads(model, {heads[2]: torch.tensor([1.0, 0.0, 1.0])}):
        torch.testing.assert_close(outputs_of(model, inputs)[0], mixed, rtol=1e-6, atol=1e-6)
    with headcount.mask_heads(model, {heads[2]: 0.25}):
        quarter = outputs_of(model, inputs)[0]
    with headcount.mask_heads(model, {heads[2]: 0.5}):
        half = outputs_of(model, inputs)[0]
        with headcount.mask_heads(model, {heads[2]: 0.5}):
            torch.testing.assert_close(outputs_of(model, inputs)[0], quarter)
        assert torch.equal(outputs_of(model, inputs)[0], half)
    assert torch.equal(outputs_of(model, inputs)[0], plain)


def test_the_model_is_restored_after_an_exception():
    model, inputs = make_stock("CLIP"), ARCHITECTURES["CLIP"].inputs(2)
    plain = outputs_of(model, inputs)
    configs = [model.config, model.config.text_config, model.config.vision_config]
    with pytest.raises(KeyError), headcount.mask_heads(model, ["text.0.self.1"]):
        assert configs[1]._attn_implementation == "headcount_sdpa"
        raise KeyError
    assert {config._attn_implementation for config in configs} == {"sdpa"}
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert all(torch.equal(a, b) for a, b in zip(outputs_of(model, inputs), plain, strict=True))


def test_threads_do_not_see_each_others_masks():
    model, inputs = make_stock("GPT-2"), ARCHITECTURES["GPT-2"].inputs(2)
    plain = outputs_of(model, inputs)[0]
    wanted = {}
    for head in headcount.list_heads(model)[:2]:
        with headcount.mask_heads(model, [head]):
            wanted[head] = outputs_of(model, inputs)[0]
    inside, seen, failed = threading.Barrier(3), {}, []

    def run(head):
        try:
            if head is None:
                inside.wait(120)
                seen[head] = [outputs_of(model, inputs)[0] for _ in range(20)]
                return
            with headcount.mask_heads(model, [head]):
                inside.wait(120)
                seen[head] = [outputs_of(model, inputs)[0] for _ in range(20)]
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(head,)) for head in (None, *wanted)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    for head, found in seen.items():
        assert all(torch.equal(output, plain if head is None else wanted[head]) for output in found)
    assert model.config._attn_implementation == "sdpa"


@pytest.mark.parametrize("name", ["T5", "BART", "GPT-2", "Llama"])
def test_generation_with_cache_and_beams_is_generation_of_the_masked_model(name):
    model, inputs = make_stock(name), ARCHITECTURES[name].inputs(3)
    inputs = {"input_ids": inputs["input_ids"]}
    heads = headcount.list_heads(model)
    options = {"max_new_tokens": 6, "do_sample": False}
    plain = model.generate(**inputs, **options)
    for more in ({}, {"num_beams": 3}, {"use_cache": False}):
        with headcount.mask_heads(model, heads[-4:-1]):
            masked = model.generate(**inputs, **options, **more)
        gates = torch.ones(3, len(heads))
        gates[:, -4:-1] = 0.0
        with headcount.mask_heads(model, gates):
            assert torch.equal(model.generate(**inputs, **options, **more), masked)
        hooks = []
        for layer in attention_layers(model).values():
            for place in layer.heads:
                if f"{layer.name}.{place}" in heads[-4:-1]:
                    hooks.append(close_by_hook(output_projection(model, layer.path), place, 4))
        assert torch.equal(model.generate(**inputs, **options, **more), masked)
        for hook in hooks:
            hook.remove()
    assert torch.equal(model.generate(**inputs, **options), plain)


def test_gates_learn():
    model, inputs = make_stock("BART").train(), ARCHITECTURES["BART"].inputs(3)
    gates = torch.ones(len(headcount.list_heads(model)), requires_grad=True)
    with headcount.mask_heads(model, gates):
        model(**inputs).logits.square().mean().backward()
    assert (gates.grad != 0).all()
    assert model.model.encoder.layers[0].self_attn.q_proj.weight.grad is not None


@pytest.mark.slow
def test_a_compiled_model_obeys_the_mask():
    model, inputs = make_stock("BERT", num_hidden_layers=1), ARCHITECTURES["BERT"].inputs(2)
    compiled = torch.compile(model, backend="eager")
    plain = outputs_of(compiled, inputs)[0]
    for head in ("encoder.0.self.1", "encoder.0.self.3"):
        with headcount.mask_heads(model, [head]):
            torch.testing.assert_close(outputs_of(compiled, inputs)[0], outputs_of(model, inputs)[0])
            assert (outputs_of(compiled, inputs)[0] - plain).abs().max() > 1e-3
    assert torch.equal(outputs_of(compiled, inputs)[0], plain)


def test_own_models_are_masked_by_the_same_name():
    model, inputs = make_model("encoder-decoder"), make_inputs("encoder-decoder")
    assert headcount.list_heads(model) == model.list_heads()
    model.prune_heads(["decoder.0.cross.1"])
    with torch.no_grad():
        wanted = model(**inputs, **model.head_mask_for(["decoder.0.cross.3", "encoder.1.self.0"])).logits
        with headcount.mask_heads(model, ["decoder.0.cross.3", "encoder.1.self.0"]):
            torch.testing.assert_close(model(**inputs).logits, wanted)
        with headcount.mask_heads(model, {"encoder.1.self.0": 0.25}):
            quarter = model(**inputs).logits
        half = {"encoder.1.self.0": 0.5}
        with headcount.mask_heads(model, half), headcount.mask_heads(model, half):
            torch.testing.assert_close(model(**inputs).logits, quarter)
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_what_cannot_be_masked_is_an_error_that_names_the_model():
    with pytest.raises(
        ValueError, match="XLNetLMHeadModel computes its attention in a way that headcount does not know"
    ):
        headcount.list_heads(make_stock("XLNet", "eager"))
    with pytest.raises(ValueError, match="ResNetModel has no attention heads; expected a model with attention"):
        headcount.list_heads(ResNetModel(ResNetConfig(hidden_sizes=[8], depths=[1], embedding_size=8)))
    model, inputs = make_stock("BERT"), ARCHITECTURES["BERT"].inputs(3)
    for heads, message in (
        (["encoder.0.self.9"], "'encoder.0.self.9' is not a head of this BertForMaskedLM; expected names from"),
        (torch.ones(7), "gates have shape (7,), expected (8,) or (batch, 8)"),
        ({"encoder.0.self.0": torch.ones(2, 2)}, "expected () or one (batch,) for all"),
        (torch.ones(2, 8), "given for 2 examples, but the model runs on a batch of 3"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)), headcount.mask_heads(model, heads):
            model(**inputs)
    with (
        pytest.raises(TypeError, match="expected a list of head names"),
        headcount.mask_heads(model, "encoder.0.self.0"),
    ):
        pass
    model.train().gradient_checkpointing_enable()
    with pytest.raises(ValueError, match="gradient checkpointing"), headcount.mask_heads(model, []):
        pass


def test_a_layer_that_goes_round_the_interface_is_found_out():
    model, inputs = make_stock("BERT"), ARCHITECTURES["BERT"].inputs(2)
    layer = model.bert.encoder.layer[1].attention.self
    before = layer.forward

    def remembers_its_implementation(*arguments, **options):
        own, layer.config = layer.config, type("Config", (), {"_attn_implementation": "sdpa"})
        try:
            return before(*arguments, **options)
        finally:
            layer.config = own

    layer.forward = remembers_its_implementation
    with headcount.mask_heads(model, ["encoder.0.self.1"]):
        model(**inputs)
    with (
        pytest.raises(RuntimeError, match=r"BertForMaskedLM computed encoder.1.self .* the head mask had no effect"),
        headcount.mask_heads(model, ["encoder.1.self.1"]),
    ):
        model(**inputs)
