"""Head masks and pruning: a mask is never ignored, and a pruned model is the masked model, smaller."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from small_models import MODEL_CLASSES, make_inputs, make_model, serves
from transformers import AutoModelForSeq2SeqLM

from headcount.modeling.attention import ATTENTION_FUNCTIONS
from headcount.modeling.heads import Head
from headcount.modeling.position_encodings import POSITION_ENCODINGS


HEAD_DIM, HIDDEN = 8, 32
PARAMETERS_PER_HEAD = 4 * HEAD_DIM * HIDDEN + 3 * HEAD_DIM  # rows of q, k, v with their biases; columns of the output
PARAMETERS_SHARED = 2 * HEAD_DIM * HIDDEN + 2 * HEAD_DIM  # of these, the keys and values, which heads may share
KEY_VALUE_HEADS = (None, 2)


def parameters_of(heads, group_size: int = 1) -> int:
    """Of whole groups among these heads the keys and values too."""
    groups = [(head.attention, head.number // group_size) for head in {*heads}]
    whole = sum(groups.count(group) == group_size for group in {*groups})
    return len(groups) * (PARAMETERS_PER_HEAD - PARAMETERS_SHARED) + whole * PARAMETERS_SHARED


def test_heads_are_named_by_stack_layer_kind_and_number():
    heads = make_model().list_heads()
    assert len(heads) == 24
    assert heads[0] == "encoder.0.self.0" and heads[-1] == "decoder.1.cross.3" and "decoder.0.self.2" in heads
    assert make_model("decoder").list_heads()[0] == "decoder.0.self.0"
    assert len(make_model("encoder").list_heads()) == 8


@pytest.mark.parametrize("shared", KEY_VALUE_HEADS)
@pytest.mark.parametrize("attention", ATTENTION_FUNCTIONS)
@pytest.mark.parametrize("architecture", MODEL_CLASSES)
def test_every_single_head_changes_the_logits_when_masked(architecture, attention, shared):
    model = make_model(architecture, attention=attention, num_key_value_heads=shared)
    inputs = make_inputs(architecture)
    plain = model(**inputs).logits
    for head in model.list_heads():
        assert (model(**inputs, **model.head_mask_for([head])).logits - plain).abs().max() > 1e-4, head
    assert torch.equal(model(**inputs, **model.head_mask_for([])).logits, plain)


@pytest.mark.parametrize("shared", KEY_VALUE_HEADS)
@pytest.mark.parametrize("attention", ATTENTION_FUNCTIONS)
@pytest.mark.parametrize("architecture", MODEL_CLASSES)
def test_masking_a_head_is_zeroing_its_slice_before_the_output_projection(architecture, attention, shared):
    model = make_model(architecture, attention=attention, num_key_value_heads=shared)
    inputs = make_inputs(architecture)
    for head in model.list_heads():
        name, number = head.rsplit(".", 1)
        start = int(number) * HEAD_DIM

        def zero(module, args, start=start):
            states = args[0].clone()
            states[..., start : start + HEAD_DIM] = 0
            return (states,)

        hook = model.attention_modules()[name].out_proj.register_forward_pre_hook(zero)
        expected = model(**inputs).logits
        hook.remove()
        torch.testing.assert_close(
            model(**inputs, **model.head_mask_for([head])).logits, expected, atol=1e-5, rtol=1e-5
        )


@pytest.mark.parametrize("architecture", MODEL_CLASSES)
def test_the_three_shapes_mean_the_same_and_examples_may_differ(architecture):
    model, inputs = make_model(architecture), make_inputs(architecture)
    for name, layers in model._masks().items():
        gate = torch.rand(4)
        by_head = model(**inputs, **{name: gate}).logits
        assert torch.allclose(by_head, model(**inputs, **{name: gate.expand(layers, 4)}).logits)
        assert torch.allclose(by_head, model(**inputs, **{name: gate.expand(3, layers, 4)}).logits)
        gates = torch.rand(3, layers, 4)
        mixed = model(**inputs, **{name: gates}).logits
        for row in range(3):
            alone = model(**inputs, **{name: gates[row]}).logits[row]
            torch.testing.assert_close(mixed[row], alone, atol=1e-5, rtol=1e-5)


@given(shape=st.lists(st.integers(0, 6), min_size=0, max_size=4))
@settings(max_examples=60, deadline=None)
def test_any_other_shape_is_an_error_that_names_the_shape_wanted(shape):
    model, inputs = make_model("encoder"), make_inputs("encoder")
    mask = torch.ones(shape)
    if tuple(shape) in {(4,), (2, 4), (3, 2, 4)}:
        model(**inputs, head_mask=mask)
    else:
        with pytest.raises(ValueError, match=r"head_mask has shape \(.*\), expected \(4,\), \(2, 4\) or \(3, 2, 4\)"):
            model(**inputs, head_mask=mask)


def test_masks_must_be_tensors_and_may_be_boolean():
    model, inputs = make_model("encoder"), make_inputs("encoder")
    with pytest.raises(TypeError, match=r"head_mask is a list, expected a torch\.Tensor"):
        model(**inputs, head_mask=[1, 1, 1, 0])
    keep = torch.tensor([True, True, False, True])
    assert torch.equal(model(**inputs, head_mask=keep).logits, model(**inputs, head_mask=keep.float()).logits)


@pytest.mark.parametrize("shared", KEY_VALUE_HEADS)
@pytest.mark.parametrize("attention", ATTENTION_FUNCTIONS)
@pytest.mark.parametrize("architecture", MODEL_CLASSES)
def test_gates_are_differentiable(architecture, attention, shared):
    model = make_model(architecture, attention=attention, num_key_value_heads=shared)
    inputs = make_inputs(architecture)
    gates = {name: torch.full((layers, 4), 0.9, requires_grad=True) for name, layers in model._masks().items()}
    model(**inputs, **gates).loss.backward()
    step = 2e-3
    for name, gate in gates.items():
        nudged = {n: g.detach().clone() for n, g in gates.items()}
        nudged[name][1, 2] += step
        higher = model(**inputs, **nudged).loss
        nudged[name][1, 2] -= 2 * step
        slope = (higher - model(**inputs, **nudged).loss) / (2 * step)
        assert gate.grad[1, 2].item() == pytest.approx(slope.item(), abs=2e-3)


def test_attention_maps_show_where_a_masked_head_looks():
    model, inputs = make_model("encoder"), make_inputs("encoder")
    plain = model(**inputs, output_attentions=True).attentions[0]
    masked = model(**inputs, output_attentions=True, head_mask=torch.zeros(4)).attentions[0]
    assert torch.equal(plain, masked)


def test_heads_know_their_parts_and_may_be_given_by_layer_and_number():
    model = make_model("encoder")
    head = model.list_heads()[-1]
    assert (head.stack, head.layer, head.kind, head.number, head.attention) == (
        "encoder",
        1,
        "self",
        3,
        "encoder.1.self",
    )
    inputs = make_inputs("encoder")
    by_name, by_place = (model(**inputs, **model.head_mask_for([one])).logits for one in (head, (1, 3)))
    assert torch.equal(by_name, by_place)
    model.prune_heads([(1, 3)])
    assert head not in model.list_heads()
    with pytest.raises(ValueError, match=r"\(1, 3\) does not say which head of this HeadcountForConditional"):
        make_model().head_mask_for([(1, 3)])


def test_unknown_heads_are_errors():
    model = make_model()
    with pytest.raises(ValueError, match=r"'encoder.0.slef.1' is not a head.*Did you mean 'encoder.0.self.1'"):
        model.head_mask_for(["encoder.0.slef.1"])
    with pytest.raises(ValueError, match=r"'decoder\.0\.cross\.4' is not a head"):
        model.prune_heads(["decoder.0.cross.4"])
    with pytest.raises(TypeError, match="expected a list of head names"):
        model.prune_heads("encoder.0.self.0")
    assert len(model.list_heads()) == 24


@pytest.mark.parametrize("shared", KEY_VALUE_HEADS)
@pytest.mark.parametrize("attention", ATTENTION_FUNCTIONS)
@pytest.mark.parametrize("architecture", MODEL_CLASSES)
@pytest.mark.parametrize("encoding", POSITION_ENCODINGS)
def test_a_pruned_model_is_the_masked_model(encoding, architecture, attention, shared):
    if not serves(encoding, architecture):
        pytest.skip("refused at construction; see the config's tests")
    model = make_model(architecture, attention=attention, position_embedding_type=encoding, num_key_value_heads=shared)
    inputs = make_inputs(architecture, padding="left")
    doomed = model.list_heads()[1::2] + model.list_heads()[:4]
    expected = model(**inputs, **model.head_mask_for(doomed)).logits
    before = model.num_parameters()
    model.prune_heads(doomed)
    torch.testing.assert_close(model(**inputs).logits, expected, atol=1e-5, rtol=1e-5)
    assert before - model.num_parameters() == parameters_of(doomed, 2 if shared else 1)
    assert not set(doomed) & set(model.list_heads())


@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_any_set_of_heads_may_go_in_any_number_of_steps(data):
    model, inputs = make_model(), make_inputs("encoder-decoder")
    heads = model.list_heads()
    doomed = data.draw(st.lists(st.sampled_from(heads), unique=True))
    expected = model(**inputs, **model.head_mask_for(doomed)).logits
    cut = data.draw(st.integers(0, len(doomed)))
    for part in (doomed[:cut], doomed[cut:], doomed):  # the last round asks for what has gone already
        model.prune_heads(part)
    torch.testing.assert_close(model(**inputs).logits, expected, atol=1e-5, rtol=1e-5)
    assert model.list_heads() == [head for head in heads if head not in doomed]


def test_names_keep_their_numbers_and_masks_their_shape_after_pruning():
    model, inputs = make_model(), make_inputs("encoder-decoder")
    both = model(**inputs, **model.head_mask_for(["encoder.0.self.0", "encoder.0.self.3"])).logits
    model.prune_heads(["encoder.0.self.0"])
    assert [head for head in model.list_heads() if head.startswith("encoder.0")] == [
        "encoder.0.self.1",
        "encoder.0.self.2",
        "encoder.0.self.3",
    ]
    after = model(**inputs, **model.head_mask_for(["encoder.0.self.3"])).logits
    torch.testing.assert_close(after, both, atol=1e-5, rtol=1e-5)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("shared", KEY_VALUE_HEADS)
@pytest.mark.parametrize("doomed", ["one", "layer", "all"])
def test_pruned_models_save_load_generate_and_train(doomed, shared, tmp_path):
    model, inputs = make_model(attention="sdpa", num_key_value_heads=shared), make_inputs("encoder-decoder")
    names = {
        "one": [Head("decoder.1.cross.2")],
        "layer": [Head(f"decoder.0.self.{i}") for i in range(4)],
        "all": model.list_heads(),
    }
    model.save_pretrained(tmp_path / "whole")
    model.prune_heads(names[doomed])
    model.save_pretrained(tmp_path / "pruned")
    loaded = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "pruned")
    assert loaded.list_heads() == model.list_heads()
    assert torch.equal(loaded(**inputs).logits, model(**inputs).logits)

    options = {"max_new_tokens": 6, "min_new_tokens": 6, "do_sample": False}
    for cache in ({"use_cache": True}, {"use_cache": False}, {"cache_implementation": "static"}, {"num_beams": 2}):
        generated = loaded.generate(inputs["input_ids"], **options, **cache)
        if "num_beams" not in cache:
            assert generated.tolist() == model.generate(inputs["input_ids"], **options, use_cache=False).tolist()

    def size(folder: str) -> int:
        with safe_open(tmp_path / folder / "model.safetensors", "pt") as file:
            return sum(file.get_tensor(name).numel() for name in file.keys())  # noqa: SIM118

    assert size("whole") - size("pruned") == parameters_of(names[doomed], 2 if shared else 1)

    loaded.train()
    optimizer = torch.optim.AdamW(loaded.parameters(), lr=1e-2)
    losses = []
    for _ in range(15):
        loss = loaded(**inputs).loss
        losses.append(loss.item())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert losses[-1] < 0.7 * losses[0]
