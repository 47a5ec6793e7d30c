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
    assert found["patching"].startswith("right"), found


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
