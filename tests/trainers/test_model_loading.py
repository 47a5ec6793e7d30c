"""A model is what its files say, weight by weight; anything else is one sentence."""

import json
import shutil

import pytest
import torch
from command_line import run as headcount
from safetensors.torch import load_file, save_file
from small_models import tiny_config
from small_runs import small_run
from transformers import AutoModel

from headcount import load_run, prune
from headcount.modeling.modeling_headcount import HeadcountForConditionalGeneration, HeadcountModel
from headcount.records.files import read_json, write_json


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return small_run(tmp_path_factory.mktemp("loading") / "run")


@pytest.fixture
def run(trained, tmp_path):
    return shutil.copytree(trained, tmp_path / "run")


def forget_hashes(run):
    """As a run from before they were kept, so that what comes after them is tested."""
    path = run / "provenance.json"
    write_json(path, {name: value for name, value in read_json(path).items() if name != "model"})


def refused(run, *verb):
    return headcount(*(verb or ("evaluate", run)), code=2).stderr


def test_a_weight_that_is_missing_or_too_many_is_an_error(run):
    forget_hashes(run)
    path = run / "model" / "model.safetensors"
    weights = load_file(path)
    lost = {name: tensor for name, tensor in weights.items() if ".layers.0." not in name}
    save_file(lost, path, {"format": "pt"})
    assert "lacks 'model." in refused(run)
    assert "lacks" in refused(run, "heads", run, "--output", run.parent / "heads")
    with pytest.raises(ValueError, match="lacks"):  # transformers alone would fill them with random numbers
        HeadcountForConditionalGeneration.from_pretrained(run / "model")
    save_file({**weights, "more": torch.zeros(1)}, path, {"format": "pt"})
    assert "has beyond the model 'more'" in refused(run)
    name = next(name for name, tensor in weights.items() if tensor.ndim == 2)
    save_file({**weights, name: torch.zeros(3, 5)}, path, {"format": "pt"})
    assert "does not fit its config.json" in refused(run)


@pytest.mark.parametrize("content", ["cut", "empty", "garbage", "missing", "header", "folder"])
def test_broken_weights_are_one_sentence(content, run):
    forget_hashes(run)
    path = run / "model" / "model.safetensors"
    whole = path.read_bytes()
    path.unlink()
    if content == "folder":
        path.mkdir()
    elif content != "missing":
        made = {"cut": whole[:-100], "empty": b"", "garbage": b"\x80" * 5000, "header": b"\xff" * 8 + whole[8:]}
        path.write_bytes(made[content])
    assert "model.safetensors" in refused(run)


def test_pickles_are_not_looked_at(run):
    forget_hashes(run)
    (run / "model" / "model.safetensors").unlink()
    torch.save({}, run / "model" / "pytorch_model.bin")
    assert "model.safetensors is missing" in refused(run)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
def test_a_changed_byte_is_found(name, run, tmp_path):
    prune(run, tmp_path / "pruned", keep=3, rows=20)
    headcount("push", run, "--repo-id", "a/b", "--local", tmp_path / "published")
    for folder in (run, run / "model", tmp_path / "pruned", tmp_path / "published"):
        load_run(folder)
        path = next(path for path in (folder / "model" / name, folder / name) if path.is_file())
        content = bytearray(path.read_bytes())
        content[-5] ^= 1
        path.write_bytes(content)
        assert "is not what was written: the model is broken" in refused(folder, "evaluate", folder)
        content[-5] ^= 1
        path.write_bytes(content)


def test_a_file_that_is_gone_is_named_and_runs_without_hashes_load(run):
    (run / "model" / "tokenizer.json").unlink()
    assert "tokenizer.json is missing" in refused(run)
    forget_hashes(run)
    assert load_run(run).recipe.task == "addition"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"num_hidden_layers": 10_000_000},
            "num_hidden_layers=10000000 is not allowed; expected a whole number from 1",
        ),
        ({"hidden_size": 65_536, "num_hidden_layers": 1000}, "parameters; expected at most"),
        ({"hidden_size": "64"}, "hidden_size='64' is not allowed"),
        ({"id2label": 8}, "id2label=8 is not allowed"),
        ({"pruned_heads": [1]}, "pruned_heads"),
        ({"surprise": 1}, "'surprise' is not a field"),
        ({"model_type": "bert"}, "model_type='bert'; expected a model of headcount"),
        (
            {
                "architecture": "decoder",
                **dict.fromkeys(("decoder_layers", "decoder_start_token_id", "is_encoder_decoder")),
            },
            "but the recipe has 'encoder-decoder'",
        ),
        ({"vocab_size": None}, "vocab_size=None is not allowed"),
    ],
)
def test_broken_configs_are_one_sentence(change, said, run):
    forget_hashes(run)
    path = run / "model" / "config.json"
    content = {**json.loads(path.read_text()), **change}
    content = {
        name: value for name, value in content.items() if change.get(name, 0) is not None or name == "vocab_size"
    }
    write_json(path, content)
    assert said in refused(run)


def test_a_base_model_still_takes_its_part_of_a_whole_one(run, tmp_path):
    model = AutoModel.from_pretrained(run / "model")
    assert isinstance(model, HeadcountModel)
    model.save_pretrained(tmp_path / "base")
    whole = HeadcountForConditionalGeneration.from_pretrained(tmp_path / "base")
    assert isinstance(whole.model, HeadcountModel)


@pytest.mark.parametrize("tied", [False, True])
def test_tied_weights_are_not_missing(tied, tmp_path):
    model = HeadcountForConditionalGeneration(tiny_config("encoder-decoder", tie_word_embeddings=tied))
    model.save_pretrained(tmp_path)
    assert HeadcountForConditionalGeneration.from_pretrained(tmp_path).config.tie_word_embeddings is tied
