"""Every way to save a pruned stock model saves which heads are gone, and `load_pruned` reads it."""

import copy
import pickle
import subprocess
import sys

import pytest
import torch
from stock_models import ARCHITECTURES, make_stock
from transformers import BertForMaskedLM, Trainer, TrainingArguments

import headcount
from headcount.modeling.stock.pruning_notes import read_note, saved_without


PRUNED = ["BERT", "RoBERTa", "DistilBERT", "ViT", "BART", "Marian", "T5", "GPT-2"]


def logits(model, inputs):
    with torch.no_grad():
        return model.eval()(**inputs).logits


def pruned(name):
    """A model, its inputs, and what it puts out."""
    model, inputs = make_stock(name), ARCHITECTURES[name].inputs(3)
    headcount.prune_heads(model, [head for head in headcount.list_heads(model) if (head.layer + head.number) % 3 == 0])
    return model, inputs, logits(model, inputs)


@pytest.mark.parametrize("name", PRUNED)
def test_save_pretrained_is_enough(name, tmp_path):
    model, inputs, wanted = pruned(name)
    model.save_pretrained(tmp_path / "saved")
    assert "headcount" not in (tmp_path / "saved" / "config.json").read_text()
    loaded = headcount.load_pruned(tmp_path / "saved")
    assert type(loaded) is type(model) and headcount.list_heads(loaded) == headcount.list_heads(model)
    torch.testing.assert_close(logits(loaded, inputs), wanted)
    loaded.save_pretrained(tmp_path / "again")
    torch.testing.assert_close(logits(headcount.load_pruned(tmp_path / "again"), inputs), wanted)
    with pytest.raises(RuntimeError, match=r"mismatch|size"):
        type(model).from_pretrained(tmp_path / "saved")


@pytest.mark.parametrize("name", ["BERT", "T5", "GPT-2"])
def test_checkpoints_of_trainer_load_and_go_on(name, tmp_path):
    model, inputs, _ = pruned(name)
    labels = inputs.get("decoder_input_ids", inputs["input_ids"])
    rows = [{**{key: value[i] for key, value in inputs.items()}, "labels": labels[i]} for i in range(3)]
    options = {"report_to": "none", "use_cpu": True, "disable_tqdm": True, "per_device_train_batch_size": 3}
    arguments = TrainingArguments(str(tmp_path), max_steps=2, save_strategy="steps", save_steps=1, **options)
    Trainer(model, arguments, train_dataset=rows).train()
    wanted = logits(model, inputs)
    loaded = headcount.load_pruned(tmp_path / "checkpoint-2")
    torch.testing.assert_close(logits(loaded, inputs), wanted)
    assert headcount.list_heads(loaded) == headcount.list_heads(model)
    again = headcount.load_pruned(tmp_path / "checkpoint-1")
    Trainer(again, arguments, train_dataset=rows).train(resume_from_checkpoint=str(tmp_path / "checkpoint-1"))
    torch.testing.assert_close(logits(again, inputs), wanted)


def test_the_heads_of_a_part_are_saved_with_the_whole(tmp_path):
    model, inputs = make_stock("BERT"), ARCHITECTURES["BERT"].inputs(3)
    headcount.prune_heads(model.bert, ["encoder.1.self.2"])
    model.save_pretrained(tmp_path / "whole")
    torch.testing.assert_close(logits(headcount.load_pruned(tmp_path / "whole"), inputs), logits(model, inputs))


def test_another_model_with_the_same_config_is_not_taken_for_pruned(tmp_path):
    model, _, _ = pruned("BERT")
    other = BertForMaskedLM(model.config)
    other.save_pretrained(tmp_path / "other")
    assert saved_without(tmp_path / "other") == []
    assert len(headcount.list_heads(headcount.load_pruned(tmp_path / "other"))) == 8


def test_weights_in_several_files_and_a_class_of_ones_own(tmp_path):
    class Mine(BertForMaskedLM):
        pass

    model, inputs, wanted = pruned("BERT")
    model.save_pretrained(tmp_path / "shards", max_shard_size="20KB")
    assert len(list((tmp_path / "shards").glob("*.safetensors"))) > 1
    torch.testing.assert_close(logits(headcount.load_pruned(tmp_path / "shards"), inputs), wanted)
    model.__class__ = Mine
    model.save_pretrained(tmp_path / "mine")
    with pytest.raises(ValueError, match=r"names the model class 'Mine'; expected one of .* or model_class="):
        headcount.load_pruned(tmp_path / "mine")
    assert type(headcount.load_pruned(tmp_path / "mine", Mine)) is Mine


def test_a_bare_state_dict_says_which_heads_are_gone():
    model, inputs, wanted = pruned("GPT-2")
    state = model.state_dict()
    gone = [head for key, note in state.items() if key.endswith(".removed_heads") for head in read_note(note)]
    fresh = make_stock("GPT-2")
    headcount.prune_heads(fresh, gone)
    fresh.load_state_dict(state)
    torch.testing.assert_close(logits(fresh, inputs), wanted)


@pytest.mark.parametrize("name", ["BERT", "T5"])
def test_copies_and_pickles_are_pruned_too(name, tmp_path):
    model, inputs, wanted = pruned(name)
    twin = copy.deepcopy(model)
    torch.testing.assert_close(logits(twin, inputs), wanted)
    (tmp_path / "model.pickle").write_bytes(pickle.dumps((model, inputs, wanted)))
    program = (
        "import pickle, sys, torch\n"
        "model, inputs, wanted = pickle.load(open(sys.argv[1], 'rb'))\n"
        "torch.testing.assert_close(model(**inputs).logits, wanted)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "model.pickle")]
    answer = subprocess.run(command, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr


def test_broken_weights_are_a_sentence(tmp_path):
    model, _, _ = pruned("BERT")
    model.save_pretrained(tmp_path / "saved")
    path = tmp_path / "saved" / "model.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"model\.safetensors cannot be read"):
        headcount.load_pruned(tmp_path / "saved")
    with pytest.raises(ValueError, match="holds no config"):
        headcount.load_pruned(tmp_path / "nowhere")
