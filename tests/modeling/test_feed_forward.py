"""The family of feed-forward networks, in every layer of a model."""

import pytest
import torch
from small_models import MODEL_CLASSES, make_inputs, make_model, tiny_config
from torch.nn.functional import linear
from transformers import T5Config
from transformers.activations import ACT2FN
from transformers.models.llama.modeling_llama import LlamaConfig, LlamaMLP
from transformers.models.t5.modeling_t5 import T5DenseGatedActDense

from headcount.modeling.feed_forward import FEED_FORWARDS


def reference(kind, network, states, activation):
    """The formula of each, written with its weights."""
    up = linear(states, network.up_proj.weight, network.up_proj.bias)
    inner = {
        "plain": lambda: activation(up),
        "gated": lambda: activation(linear(states, network.gate_proj.weight)) * up,
    }[kind]()
    return linear(inner, network.down_proj.weight, network.down_proj.bias)


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
@pytest.mark.parametrize("kind", FEED_FORWARDS)
def test_each_network_is_its_formula(kind, activation):
    torch.manual_seed(0)
    network = FEED_FORWARDS[kind](tiny_config(feed_forward_type=kind, hidden_act=activation))
    states = torch.randn(2, 5, 32)
    torch.testing.assert_close(network(states), reference(kind, network, states, ACT2FN[activation]))


def test_gated_is_that_of_llama_and_of_t5():
    torch.manual_seed(0)
    states = torch.randn(2, 5, 32)
    for activation, theirs, names in (
        ("silu", LlamaMLP(LlamaConfig(hidden_size=32, intermediate_size=48)), ("gate_proj", "up_proj", "down_proj")),
        (
            "gelu_new",
            T5DenseGatedActDense(T5Config(d_model=32, d_ff=48, feed_forward_proj="gated-gelu", dropout_rate=0.0)),
            ("wi_0", "wi_1", "wo"),
        ),
    ):
        ours = FEED_FORWARDS["gated"](tiny_config(feed_forward_type="gated", hidden_act=activation))
        for own, name in zip(("gate_proj", "up_proj", "down_proj"), names, strict=True):
            getattr(ours, own).load_state_dict(getattr(theirs, name).state_dict())
        torch.testing.assert_close(ours(states), theirs(states), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("kind", FEED_FORWARDS)
@pytest.mark.parametrize("architecture", MODEL_CLASSES)
def test_all_layers_have_it_learn_it_and_bring_it_back_from_a_file(kind, architecture, tmp_path):
    model, inputs = make_model(architecture, attention="sdpa", feed_forward_type=kind), make_inputs(architecture)
    networks = [module for name, module in model.named_modules() if name.endswith(".feed_forward")]
    assert [type(module) for module in networks] == [FEED_FORWARDS[kind]] * (4 if model.config.decoder_layers else 2)
    model.save_pretrained(tmp_path)
    loaded = MODEL_CLASSES[architecture].from_pretrained(tmp_path).eval()
    assert loaded.config.feed_forward_type == kind
    assert torch.equal(loaded(**inputs).logits, model(**inputs).logits)
    model(**inputs).loss.backward()
    assert all(weight.grad.abs().sum() > 0 for module in networks for weight in module.parameters())


@pytest.mark.parametrize("kind", FEED_FORWARDS)
def test_without_gradients_the_network_takes_tokens_in_parts(kind, monkeypatch):
    network = FEED_FORWARDS[kind](tiny_config(feed_forward_type=kind))
    network.rows_at_once = 40
    states, parts, feed = torch.randn(3, 30, 32), [], network._feed
    monkeypatch.setattr(network, "_feed", lambda part: parts.append(len(part)) or feed(part))
    whole = network(states)
    assert parts == [3]
    with torch.no_grad():
        divided = network(states)
        assert parts == [3, 40, 40, 10]
        seen = []
        network.up_proj.register_forward_hook(lambda module, inputs, output: seen.append(output.shape))
        network(states)
    torch.testing.assert_close(divided, whole.detach())
    assert seen == [(3, 30, network.up_proj.out_features)]  # whoever looks sees it whole
