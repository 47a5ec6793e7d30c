"""Layers that run several times in a forward, and layers that work on windows, against hooks written here."""

import numpy as np
import pytest
import torch
from stock_models import ARCHITECTURES, make_stock
from transformers import DiffLlamaConfig, DiffLlamaForCausalLM, SwinConfig, SwinForImageClassification

import headcount
from headcount.analysis.interventions.batches import partners
from headcount.analysis.interventions.intervention import Intervention
from headcount.analysis.interventions.replacements import check_rows, check_same_shapes
from headcount.analysis.interventions.subject import Subject
from headcount.analysis.interventions.sweep import RUNNERS, sweep
from headcount.modeling.stock.changes import Change
from headcount.modeling.stock.gates import change_heads


STOCK_RUNNERS = [name for name in RUNNERS if name != "shared_states"]


def size(outputs, batch):
    return outputs.logits.flatten(1).double().square().mean(-1)


def inputs_by_call(model, inputs, projection, put=None):
    """What goes into a projection at every call, and the outputs; `put(call, states)` takes its place."""
    calls = []

    def before(module, given):
        calls.append(given[0].clone())
        return None if put is None else (put(len(calls) - 1, given[0].clone()),)

    hook = projection.register_forward_pre_hook(before)
    with torch.no_grad():
        outputs = model(**inputs)
    hook.remove()
    return calls, outputs


def albert():
    """Four runs of one layer, and rows of two lengths."""
    model = make_stock("ALBERT")
    model.config.num_hidden_layers = model.albert.encoder.config.num_hidden_layers = 4
    ids = torch.randint(3, 40, (4, 9), generator=torch.Generator().manual_seed(0))
    mask = torch.tensor([[1] * 9, [1] * 6 + [0] * 3, [1] * 9, [1] * 6 + [0] * 3])
    return model, {"input_ids": ids, "attention_mask": mask}


@pytest.mark.parametrize("runner", STOCK_RUNNERS)
@pytest.mark.parametrize("mode", ["mean", "resample", "source"])
def test_every_run_of_a_shared_layer_is_replaced_by_its_own(mode, runner):
    model, batch = albert()
    source = {**batch, "input_ids": batch["input_ids"].flip(1)}
    projection = model.albert.encoder.albert_layer_groups[0].albert_layers[0].attention.dense
    calls, _ = inputs_by_call(model, source if mode == "source" else batch, projection)
    assert len(calls) == 4 and not torch.allclose(calls[0], calls[1], atol=1e-3)
    real = batch["attention_mask"][..., None]
    theirs = {
        "mean": [((own * real).sum(0) / real.sum(0)).expand_as(own) for own in calls],
        "resample": [own[[2, 3, 0, 1]] for own in calls],  # the other row of the same length
        "source": calls,
    }[mode]
    assert partners(batch, 0).tolist() == [2, 3, 0, 1]
    heads = headcount.list_heads(model)
    wanted = [Intervention([head], 0.0, mode) for head in heads]
    wanted.append(Intervention([heads[1], heads[3]], {heads[1]: 0.0, heads[3]: 0.4}, mode))
    options = {"sources": source} if mode == "source" else {}
    found = sweep(model, batch, wanted, size, runner=runner, **options)
    for number, each in enumerate(wanted, start=1):

        def put(call, states, each=each):
            width = states.shape[-1] // 4
            for site in each.sites:
                part, gate = slice(site.head.number * width, (site.head.number + 1) * width), each.gate_of(site)
                states[..., part] = gate * states[..., part] + (1 - gate) * theirs[call][..., part]
            return states

        _, outputs = inputs_by_call(model, batch, projection, put)
        assert found.values[number] == pytest.approx(size(outputs, batch).numpy(), rel=1e-4), each.name
        assert found.values[number] != pytest.approx(found.values[0], rel=1e-4)


def swin():
    torch.manual_seed(0)
    config = SwinConfig(
        image_size=16, patch_size=2, embed_dim=8, depths=[2], num_heads=[2], window_size=4, initializer_range=0.5
    )
    return SwinForImageClassification(config).eval(), {"pixel_values": torch.randn(3, 3, 16, 16)}


@pytest.mark.parametrize("runner", [None, *STOCK_RUNNERS])
@pytest.mark.parametrize("mode", ["mean", "resample", "source"])
def test_a_window_is_replaced_by_the_same_window_of_other_examples(mode, runner):
    model, batch = swin()
    source = {"pixel_values": batch["pixel_values"].flip(-1)}
    layer = next(iter(Subject.of(model).layers.values()))
    projection = model.get_submodule(layer.path).o_proj
    (own,), _ = inputs_by_call(model, source if mode == "source" else batch, projection)
    assert len(own) == 3 * 4
    partner = partners(batch, 0)
    windows = own.reshape(3, 4, *own.shape[1:])
    theirs = {"mean": windows.mean(0, keepdim=True).expand_as(windows), "resample": windows[partner]}
    values = own if mode == "source" else theirs[mode].reshape(own.shape)
    wanted = [Intervention([f"{layer.name}.{head}"], 0.0, mode) for head in (0, 1)]
    options = {"sources": source} if mode == "source" else {}
    found = sweep(model, batch, wanted, size, runner=runner, **options)
    for head in (0, 1):
        part = slice(4 * head, 4 * head + 4)

        def put(call, states, part=part):
            states[..., part] = values[..., part]
            return states

        _, outputs = inputs_by_call(model, batch, projection, put)
        assert found.values[head + 1] == pytest.approx(size(outputs, batch).numpy(), rel=1e-4)
        assert found.values[head + 1] != pytest.approx(found.values[0], rel=1e-6)


def test_means_of_windows_are_over_all_batches():
    model, batch = swin()
    name = f"{next(iter(Subject.of(model).layers))}.0"
    both = [{"pixel_values": batch["pixel_values"][:2]}, {"pixel_values": batch["pixel_values"][2:]}]
    whole, parts = (sweep(model, each, [Intervention([name], 0.0, "mean")], size).values for each in (batch, both))
    assert parts == pytest.approx(whole, rel=1e-5)


def test_rows_that_do_not_lie_together_are_refused():
    model, batch = swin()
    subject = Subject.of(model)
    name = next(iter(subject.layers))
    with torch.no_grad():
        _, record = subject.read(batch, {name})
        check_rows(subject, batch, record)
        (own,) = record[name]
        by_window = own.reshape(3, 4, *own.shape[1:]).transpose(0, 1).reshape(own.shape)
        for wrong in (by_window, own[:-1]):
            with pytest.raises(
                ValueError, match=r"where the batch has 3 examples, and they do not belong to one exam"
            ):
                check_rows(subject, batch, {name: (wrong,)})
        with pytest.raises(ValueError, match="expected zero ablation for it"):  # patches of all images in one
            check_rows(subject, {**batch, "patches": torch.zeros(7, 2)}, record)


def test_calls_that_do_not_correspond_are_errors():
    model, batch = albert()
    subject = Subject.of(model)
    name = "encoder.0.self"
    with torch.no_grad():
        outputs, record = subject.read(batch, {name})
        calls, gate = record[name], torch.zeros(1, 4)
        with change_heads(model, {name: Change(gate, calls)}):
            torch.testing.assert_close(model(**batch).logits, outputs.logits)
        often = pytest.raises(ValueError, match="runs more often than the 3 times that it was recorded in a forward")
        with often, change_heads(model, {name: Change(gate, calls[:3])}):
            model(**batch)
        seldom = pytest.raises(ValueError, match=r"encoder\.0\.self ran 4 times and was recorded 5 times in a forward")
        with seldom, change_heads(model, {name: Change(gate, (*calls, calls[0]))}):
            model(**batch)
    with pytest.raises(ValueError, match="4x6x4x8 on the source and 4x9x4x8, 4x9x4x8 on the base; expected the same"):
        check_same_shapes({name: calls[:2]}, {name: (calls[0][:, :6],)})
    with pytest.raises(ValueError, match=r"vision.0.self of this CLIPModel does not run on these inputs"):
        clip = make_stock("CLIP")
        texts = {n: v for n, v in ARCHITECTURES["CLIP"].inputs(2).items() if n != "pixel_values"}
        Subject.of(clip, lambda model, inputs: model.get_text_features(**inputs)).read(texts, {"vision.0.self"})


def test_outputs_of_every_call_are_given():
    model, batch = albert()
    with pytest.raises(ValueError, match=r"encoder.0.self runs 4 times in a forward.*expected every_call=True"):
        headcount.head_outputs(model, batch)
    found = headcount.head_outputs(model, batch, ["encoder.0.self.1"], every_call=True)["encoder.0.self.1"]
    projection = model.albert.encoder.albert_layer_groups[0].albert_layers[0].attention.dense
    calls, _ = inputs_by_call(model, batch, projection)
    assert len(found) == len(calls) == 4
    for own, whole in zip(found, calls, strict=True):
        torch.testing.assert_close(own, whole[..., 8:16])


def test_both_halves_of_a_differential_head_together_are_that_head():
    """DiffLlama subtracts head h + H/2 from head h: without both, that part of the projection's input is zero."""
    torch.manual_seed(0)
    config = DiffLlamaConfig(
        vocab_size=40, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, initializer_range=0.3,
    )  # fmt: skip
    model = DiffLlamaForCausalLM(config).eval()
    batch = {"input_ids": torch.randint(3, 40, (2, 7))}
    for head in (0, 1):

        def close(call, states, head=head):
            states[..., 16 * head : 16 * head + 16] = 0.0
            return states

        _, wanted = inputs_by_call(model, batch, model.model.layers[1].self_attn.o_proj, close)
        with headcount.mask_heads(model, [f"decoder.1.self.{head}", f"decoder.1.self.{head + 2}"]), torch.no_grad():
            torch.testing.assert_close(model(**batch).logits, wanted.logits)
        with headcount.mask_heads(model, [f"decoder.1.self.{head}"]), torch.no_grad():
            half = model(**batch).logits
        assert not np.allclose(half, wanted.logits, atol=1e-3)
