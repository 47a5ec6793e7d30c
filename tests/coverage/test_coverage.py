"""A sample of the architectures that `make coverage` tries one and all."""

from contextlib import contextmanager
from pathlib import Path

import checks
import pytest
import transformers
from checks import USES, check
from zoo import model_classes, tiny_model
from zoo_inputs import tiny_inputs

import headcount
from headcount.analysis.interventions import sweep
from headcount.analysis.interventions.intervention import Intervention
from headcount.modeling.stock.own_code import PLACES


# What is expected of list_heads; every other verdict must be right, or a sentence.
SAMPLE = {
    **dict.fromkeys(("BertForMaskedLM", "GPT2LMHeadModel", "LlamaForCausalLM", "T5ForConditionalGeneration"), "right"),
    **dict.fromkeys(("WhisperForConditionalGeneration", "CLIPModel", "ViTForImageClassification"), "right"),
    **dict.fromkeys(
        ("SwinForImageClassification", "DebertaV2ForMaskedLM", "BloomForCausalLM", "GPTJForCausalLM"), "right"
    ),
    **dict.fromkeys(
        ("FalconForCausalLM", "MptForCausalLM", "LongformerForMaskedLM", "SamModel", "SiglipModel"), "right"
    ),
    **dict.fromkeys(("DetrForObjectDetection", "Qwen2VLForConditionalGeneration", "MixtralForCausalLM"), "right"),
    **dict.fromkeys(("AlbertForMaskedLM", "OPTForCausalLM", "ViTMAEForPreTraining"), "right"),
    **dict.fromkeys(("DiffLlamaForCausalLM", "Qwen3NextForCausalLM"), "right"),
    **dict.fromkeys(("ResNetModel", "MambaForCausalLM"), "none"),
    "XLNetLMHeadModel": "refused",
    "GroundingDinoForObjectDetection": "partial",
}


@pytest.fixture(scope="module", autouse=True)
def quiet():
    before = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    yield
    transformers.logging.set_verbosity(before)


@pytest.mark.parametrize("name", SAMPLE)
def test_what_is_done_with_a_model_is_right_or_a_sentence(name):
    found = check(name)
    assert found["heads"].split(":")[0] == SAMPLE[name], found
    if SAMPLE[name] in ("right", "partial"):
        assert found["masks"].startswith("right") and found["ablation"].startswith("right"), found
        assert all(found[use].split(":")[0] in ("right", "refused") for use in USES), found


# A bias for every head from outside, torch's attention, deformable attention, windows, convolutions beside attention.
PRUNED = (
    *("EomtForUniversalSegmentation", "ZoeDepthForDepthEstimation", "Phi4MultimodalAudioModel", "SiglipModel"),
    *("RTDetrForObjectDetection", "Swinv2ForImageClassification", "NystromformerForMaskedLM", "LukeForMaskedLM"),
    *("CanineForMultipleChoice", "BigBirdForMaskedLM", "FlavaTextModel", "GitForCausalLM", "BrosModel"),
)


@pytest.mark.parametrize("name", PRUNED)
def test_heads_are_removed(name):
    assert check(name, ("pruning",))["pruning"].startswith("right")


@pytest.mark.parametrize(
    "name", ["LukeForMaskedLM", "LiltModel", "IBertForMaskedLM", "ConvBertForMaskedLM", "FSMTModel"]
)
def test_heads_of_layers_that_put_them_out_in_their_own_way(name):
    """By values: a head whose values are zero is a head that is masked."""
    found = check(name, ("masks", "patching"))
    assert found["heads"].startswith("right") and found["masks"] == "right: 1 of 1 by values", found
    # Of ConvBERT's projection a half is a convolution's, so that no oracle sees its heads alone.
    assert found["patching"].startswith("unverified" if name == "ConvBertForMaskedLM" else "right"), found


def test_every_class_of_the_table_is_one_of_transformers():
    models = Path(transformers.__file__).parent / "models"
    sources = "".join(path.read_text() for path in models.glob("*/modeling_*.py"))
    assert not [
        name for names in PLACES.values() for name in names if f"class {name.rpartition('.')[2]}(" not in sources
    ]


def test_new_architectures_show_up_by_themselves():
    found = model_classes()
    assert len(found) > 600 and "LlamaForCausalLM" in found["llama"]


def test_a_check_can_fail(monkeypatch):
    """A mask that does nothing, and one that closes the wrong head, are found out."""

    @contextmanager
    def wrong(model, heads):
        name = heads[0].rpartition(".")[0]
        with original(model, [f"{name}.0"] if len(heads) == 1 else heads):
            yield

    original = headcount.mask_heads
    model = tiny_model("BloomForCausalLM")
    ran = checks.which_ran(model, tiny_inputs(model), checks.attention_layers(model))
    assert checks.verdict(checks.masks, model, tiny_inputs(model), ran).startswith("right")
    monkeypatch.setattr(headcount, "mask_heads", wrong)
    assert checks.verdict(checks.masks, model, tiny_inputs(model), ran).startswith("WRONG")


def test_an_oracle_of_its_own_finds_wrong_means_partners_and_swaps(monkeypatch):
    """Values that are a little off, calls in the wrong order, and an example that is resampled by itself."""
    model = tiny_model("AlbertForMaskedLM")
    inputs = tiny_inputs(model)
    ran = checks.which_ran(model, inputs, checks.attention_layers(model))
    assert checks.verdict(checks.replacements, model, inputs, ran) == "right: 3 of 3"
    means, others = sweep.mean_outputs, sweep.resampled
    wrongs = {
        "mean": (
            "mean_outputs",
            lambda *given: {n: tuple(1.1 * each for each in c) for n, c in means(*given).items()},
        ),
        "resample": ("resampled", lambda subject, batch, record, seed: record),
    }
    backwards = {
        "mean": ("mean_outputs", lambda *given: {name: calls[::-1] for name, calls in means(*given).items()}),
        "resample": ("resampled", lambda *given: {name: calls[::-1] for name, calls in others(*given).items()}),
    }
    for mode, (function, wrong) in [*wrongs.items(), *backwards.items()]:
        with monkeypatch.context() as patched:
            patched.setattr(sweep, function, wrong)
            found = checks.verdict(checks.replacements, model, inputs, ran)
            assert found.startswith(f"WRONG: {mode} of encoder.0.self"), found
    read = sweep.Subject.read
    monkeypatch.setattr(
        sweep.Subject, "read", lambda *given: (read(*given)[0], {n: c[::-1] for n, c in read(*given)[1].items()})
    )
    assert checks.verdict(checks.patching, model, inputs, ran).startswith("WRONG: a swap of encoder.0.self.3")


def test_maps_that_are_not_the_models_own_are_found_out(monkeypatch):
    model = tiny_model("BertForMaskedLM")
    inputs = tiny_inputs(model)
    ran = checks.which_ran(model, inputs, checks.attention_layers(model))
    assert checks.verdict(checks.maps, model, inputs, ran) == "right: 2 of 2 compared"
    true = headcount.attention_maps(model, inputs, every_call=True)
    off = {name: [0.99 * weights for weights in calls] for name, calls in true.items()}
    turned = dict(zip(true, reversed([*true.values()]), strict=True))
    for wrong in (off, turned):
        monkeypatch.setattr(headcount, "attention_maps", lambda *given, wrong=wrong, **options: wrong)
        assert checks.verdict(checks.maps, model, inputs, ran).startswith("WRONG: attentions")


@pytest.mark.parametrize(
    "name", ["SiglipModel", "Idefics3ForConditionalGeneration", "LlavaNextForConditionalGeneration"]
)
def test_a_few_heads_of_the_first_and_the_last_layer_of_towers_are_right(name):
    """Groups of two and of one: every one of them that grows on its way is what a hook gives."""
    model = tiny_model(name)
    inputs = tiny_inputs(model)
    layers = [*checks.which_ran(model, inputs, checks.attention_layers(model)).values()]
    few = [(layers[0], 0), (layers[0], 1), (layers[-1], len(layers[-1].heads) - 1)]
    assert layers[0].name.split(".")[0] != layers[-1].name.split(".")[0]
    for mode in ("zero", "mean", "resample"):
        wanted = [Intervention((f"{own.name}.{own.heads[place]}",), replacement=mode) for own, place in few]
        found = checks.run_sweep(model, inputs, wanted, None).values[1:]
        for (own, place), values in zip(few, found, strict=True):
            taps = checks.fitting_taps(model, inputs, own, place)
            by_hooks = [checks.by_tap(model, inputs, tap, place, mode) for tap in taps]
            assert any(checks.close(values, one) for one in by_hooks if one is not None), (own.name, place, mode)
