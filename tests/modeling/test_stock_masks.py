"""Head masks on transformers' own models, against a hook on the input of the output projection."""

import threading

import pytest
import torch
from stock_models import ARCHITECTURES, MASKED, close_by_hook, float_outputs, make_stock, output_projection

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
