"""The family of norms, in every place where a model has one."""

import json

import pytest
import torch
from small_models import MODEL_CLASSES, make_inputs, make_model, tiny_config

from headcount import HeadcountConfig
from headcount.modeling.norms import NORMS


def reference(norm_type: str, states: torch.Tensor, eps: float) -> torch.Tensor:
    """The formula of each, with gain 1 and bias 0."""
    centred = states - states.mean(-1, keepdim=True)
    return {
        "layer": centred / (centred.square().mean(-1, keepdim=True) + eps).sqrt(),
        "rms": states / (states.square().mean(-1, keepdim=True) + eps).sqrt(),
        "none": states,
    }[norm_type]


@pytest.mark.parametrize("norm_type", NORMS)
def test_each_norm_is_its_formula(norm_type):
    config = tiny_config(norm_type=norm_type, **({} if norm_type == "none" else {"layer_norm_eps": 0.1}))
    states = torch.randn(2, 5, 32, generator=torch.Generator().manual_seed(0)) + 1
    torch.testing.assert_close(NORMS[norm_type](config)(states), reference(norm_type, states, config.layer_norm_eps))


@pytest.mark.parametrize("norm_type", NORMS)
@pytest.mark.parametrize("architecture", MODEL_CLASSES)
def test_all_norms_of_a_model_are_of_the_family_and_come_back_from_a_file(norm_type, architecture, tmp_path):
    model, inputs = make_model(architecture, attention="sdpa", norm_type=norm_type), make_inputs(architecture)
    layers = 4 if architecture == "encoder-decoder" else 2
    places = [type(module) for name, module in model.named_modules() if name.endswith("_norm")]
    cross = 2 if architecture == "encoder-decoder" else 0
    stacks = 2 if architecture == "encoder-decoder" else 1
    assert places == [NORMS[norm_type]] * (2 * layers + cross + stacks)
    model.save_pretrained(tmp_path)
    loaded = MODEL_CLASSES[architecture].from_pretrained(tmp_path).eval()
    assert loaded.config.norm_type == norm_type
    assert torch.equal(loaded(**inputs).logits, model(**inputs).logits)


@pytest.mark.parametrize("norm_type", NORMS)
def test_new_norms_start_as_their_formula_and_learn(norm_type):
    model = MODEL_CLASSES["encoder"](tiny_config("encoder", norm_type=norm_type))
    norm = model.model.encoder.final_norm
    states = torch.randn(1, 3, 32)
    torch.testing.assert_close(norm(states), reference(norm_type, states, 1e-5))
    model(**make_inputs("encoder")).loss.backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in norm.parameters())


def test_a_config_that_was_saved_without_the_field_has_layer_norms(tmp_path):
    model = make_model(attention="sdpa")
    model.save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    content = json.loads(path.read_text())
    content.pop("norm_type")
    path.write_text(json.dumps(content))
    loaded = MODEL_CLASSES["encoder-decoder"].from_pretrained(tmp_path)
    assert loaded.config.norm_type == "layer"
    inputs = make_inputs("encoder-decoder")
    assert torch.equal(loaded.eval()(**inputs).logits, model(**inputs).logits)


@pytest.mark.parametrize("option", [{"layer_norm_eps": 1e-3}, {"norm_position": "post"}])
def test_without_norms_their_options_are_refused(option):
    with pytest.raises(ValueError, match="has no effect with norm_type='none'; it needs norm_type=layer/rms"):
        HeadcountConfig(norm_type="none", **option)
