"""Heads that share keys and values, against the same model with a copy of them for every head."""

import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import MODEL_CLASSES, make_inputs, make_model, serves, tiny_config, ungrouped

import headcount
from headcount.modeling.attention import ATTENTION_FUNCTIONS, HeadcountAttention
from headcount.modeling.normalizers import NORMALIZERS
from headcount.modeling.position_encodings import POSITION_ENCODINGS


GROUPS = (1, 2)  # of four heads


@pytest.mark.parametrize("attention", ATTENTION_FUNCTIONS)
@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("architecture", MODEL_CLASSES)
@pytest.mark.parametrize("encoding", POSITION_ENCODINGS)
def test_each_head_reads_the_keys_and_values_of_its_group(encoding, architecture, groups, attention):
    if not serves(encoding, architecture):
        pytest.skip("refused at construction; see the config's tests")
    options = {"position_embedding_type": encoding, "num_key_value_heads": groups}
    if architecture == "encoder-decoder" and encoding not in ("none", "sinusoidal", "learned"):
        options["cross_attention_positions"] = True
    model, inputs = make_model(architecture, attention=attention, **options), make_inputs(architecture, padding="left")
    gates = {name: torch.rand(3, layers, 4) for name, layers in model._masks().items()}
    expected = ungrouped(model)(**inputs, **gates, output_attentions=True)
    found = model(**inputs, **gates)
    torch.testing.assert_close(found.logits, expected.logits, atol=1e-5, rtol=1e-5)
    names = [name for name in expected if name.endswith("attentions")]
    maps = model(**inputs, **gates, output_attentions=True)
    assert names
    for name in names:
        for own, other in zip(maps[name], expected[name], strict=True):
            assert own.shape[1] == 4
            torch.testing.assert_close(own, other, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_normalizers_and_jitter_are_those_of_the_heads(normalizer):
    model = make_model(attention_normalizer=normalizer, num_key_value_heads=2, score_jitter=0.2)
    twin, inputs = ungrouped(model), make_inputs("encoder-decoder")
    for mode in (False, True):
        logits = []
        for each in (model, twin):
            torch.manual_seed(0)
            logits.append(each.train(mode)(**inputs).logits)
        torch.testing.assert_close(*logits, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("groups", GROUPS)
def test_the_gradient_of_shared_keys_and_values_is_the_sum_over_their_heads(groups):
    model, inputs = make_model(num_key_value_heads=groups), make_inputs("encoder-decoder")
    twin = ungrouped(model)
    for each in (model, twin):
        each(**inputs).loss.backward()
    for name, attention in model.attention_modules().items():
        for part in ("k_proj", "v_proj"):
            own, others = (getattr(each.attention_modules()[name], part).weight.grad for each in (model, twin))
            summed = others.view(groups, 4 // groups, attention.head_dim, -1).sum(1).flatten(0, 1)
            torch.testing.assert_close(own, summed, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder"])
def test_a_cache_holds_the_keys_and_values_of_the_groups_only(architecture):
    model, inputs = make_model(architecture, num_key_value_heads=2), make_inputs(architecture)
    inputs.pop("labels")
    if architecture == "encoder-decoder":
        inputs["decoder_input_ids"] = torch.full((3, 1), 1)
    cache = model(**inputs, use_cache=True).past_key_values
    own = cache.self_attention_cache if architecture == "encoder-decoder" else cache
    assert all(layer.keys.shape[1] == layer.values.shape[1] == 2 for layer in own.layers)
    if architecture == "encoder-decoder":
        assert all(layer.keys.shape == (3, 2, 9, 8) for layer in cache.cross_attention_cache.layers)


@pytest.mark.parametrize("how", [{}, {"num_beams": 3}, {"cache_implementation": "static"}, {"use_cache": False}])
@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder"])
def test_generation_with_masks_is_that_of_the_model_without_groups(architecture, how):
    model, tokens = make_model(architecture, num_key_value_heads=2), make_inputs(architecture)["input_ids"]
    torch.manual_seed(0)
    masks = {name: (torch.rand(3, layers, 4) > 0.5).float() for name, layers in model._masks().items()}
    options = {"max_new_tokens": 8, "min_new_tokens": 8, "do_sample": False, **how}
    written = [each.generate(tokens, **masks, **options).tolist() for each in (model, ungrouped(model))]
    assert written[0] == written[1]
    assert written[0] != model.generate(tokens, **options).tolist()


def test_keys_and_values_go_with_the_last_head_that_reads_them():
    model = make_model("encoder", num_key_value_heads=2)
    attention = model.attention_modules()["encoder.0.self"]
    shared = attention.k_proj.weight.clone(), attention.v_proj.weight.clone()
    model.prune_heads(["encoder.0.self.1"])
    assert attention.heads == [0, 2, 3] and attention.groups == [0, 1]
    assert torch.equal(attention.k_proj.weight, shared[0]) and torch.equal(attention.v_proj.weight, shared[1])
    model.prune_heads(["encoder.0.self.0"])
    assert attention.heads == [2, 3] and attention.groups == [1]
    assert torch.equal(attention.k_proj.weight, shared[0][8:]) and torch.equal(attention.v_proj.weight, shared[1][8:])
    assert attention.q_proj.weight.shape == (16, 32) and attention.out_proj.weight.shape == (32, 16)
    assert model.list_heads()[:3] == ["encoder.0.self.2", "encoder.0.self.3", "encoder.1.self.0"]
    model.prune_heads(["encoder.0.self.2", "encoder.0.self.3"])
    assert attention.groups == [] and attention.k_proj.weight.shape == (0, 32)


@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_any_set_of_heads_may_go_and_comes_back_from_a_file_as_it_is(data, tmp_path_factory):
    groups = data.draw(st.sampled_from(GROUPS))
    model, inputs = make_model(num_key_value_heads=groups, attention="sdpa"), make_inputs("encoder-decoder")
    heads = model.list_heads()
    doomed = data.draw(st.lists(st.sampled_from(heads), unique=True))
    expected = model(**inputs, **model.head_mask_for(doomed)).logits
    cut = data.draw(st.integers(0, len(doomed)))
    for part in (doomed[:cut], doomed[cut:], doomed):
        model.prune_heads(part)
    found = model(**inputs).logits
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    folder = tmp_path_factory.mktemp("pruned")
    model.save_pretrained(folder)
    loaded = type(model).from_pretrained(folder).eval()
    assert loaded.list_heads() == model.list_heads() == [head for head in heads if head not in doomed]
    assert torch.equal(loaded(**inputs).logits, found)
    assert loaded.num_parameters() == model.num_parameters()


@pytest.mark.parametrize("architecture", MODEL_CLASSES)
def test_gradient_importance_and_head_outputs_are_those_of_the_model_without_groups(architecture):
    model, batch = make_model(architecture, num_key_value_heads=2), make_inputs(architecture)
    twin = ungrouped(model)
    own, other = (headcount.gradient_importance(each, batch) for each in (model, twin))
    assert [row["head"] for row in own] == model.list_heads() == twin.list_heads()
    assert [row["value"] for row in own] == pytest.approx([row["value"] for row in other], rel=1e-3)
    own, other = (headcount.head_outputs(each, batch) for each in (model, twin))
    for head in model.list_heads():
        torch.testing.assert_close(own[head], other[head], atol=1e-5, rtol=1e-5)


def test_as_many_keys_and_values_as_heads_are_no_groups_at_all():
    models = []
    for count in (None, 4):
        torch.manual_seed(0)
        models.append(MODEL_CLASSES["decoder"](tiny_config("decoder", num_key_value_heads=count)))
    assert all(torch.equal(a, b) for a, b in zip(*(model.parameters() for model in models), strict=True))


def test_the_first_queries_and_keys_follow_their_gain_in_groups_too():
    models = {}
    for gain in (1.0, 0.5):
        torch.manual_seed(0)
        options = {"query_key_init_gain": gain, "num_key_value_heads": 2}
        models[gain] = MODEL_CLASSES["encoder-decoder"](tiny_config(**options))
    for (name, plain), other in zip(models[1.0].named_parameters(), models[0.5].parameters(), strict=True):
        factor = 0.5 if name.endswith(("q_proj.weight", "k_proj.weight")) else 1.0
        assert torch.equal(factor * plain, other), name


def test_a_config_that_was_saved_without_the_field_has_no_groups(tmp_path):
    model, inputs = make_model(attention="sdpa"), make_inputs("encoder-decoder")
    model.save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    content = json.loads(path.read_text())
    assert content.pop("num_key_value_heads") is None and content.pop("feed_forward_type") == "plain"
    path.write_text(json.dumps(content))
    loaded = type(model).from_pretrained(tmp_path).eval()
    assert torch.equal(loaded(**inputs).logits, model(**inputs).logits)
    attention = [module for module in loaded.modules() if isinstance(module, HeadcountAttention)]
    assert all(module.groups == module.heads == [0, 1, 2, 3] for module in attention)
