"""Every way to save a pruned stock model saves which heads are gone, and every way to load it reads that."""

import copy
import json
import os
import pickle
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file
from stock_models import ARCHITECTURES, FURTHER, OWN_CODE, make_stock
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertModel,
    Trainer,
    TrainingArguments,
)

import headcount
from headcount.modeling.stock.pruned_model import read_note
from headcount.modeling.stock.pruning_notes import names_in, saved_without


EVERY = ARCHITECTURES | FURTHER | OWN_CODE
PRUNED = ["BERT", "ViT", "BART", "T5", "GPT-2", "Llama", "GPT-NeoX", "Phi-3", "gpt-oss", "Swin", "DeepSeek-V3"]


def logits(model, inputs):
    with torch.no_grad():
        return model.eval()(**inputs).logits


def pruned(name):
    """A model, its inputs, and what it puts out."""
    model, inputs = make_stock(name), EVERY[name].inputs(3)
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
    torch.testing.assert_close(logits(type(model).from_pretrained(tmp_path / "saved"), inputs), wanted)


@pytest.mark.parametrize("name", ["BERT", "T5", "GPT-2", "Llama", "BLOOM", "Falcon, ALiBi"])
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


def test_other_classes_read_what_they_share(tmp_path):
    model, inputs, _ = pruned("BERT")
    model.save_pretrained(tmp_path / "saved")
    base = BertModel.from_pretrained(tmp_path / "saved").eval()
    assert headcount.list_heads(base) == headcount.list_heads(model)
    wanted = model.bert(**inputs).last_hidden_state
    torch.testing.assert_close(base(**inputs).last_hidden_state, wanted)
    base.save_pretrained(tmp_path / "base")
    again = BertForSequenceClassification.from_pretrained(tmp_path / "base").eval()
    torch.testing.assert_close(again.bert(**inputs).last_hidden_state, wanted)
    assert AutoModel.from_pretrained(tmp_path / "base").num_parameters() == base.num_parameters()


def run(program, *arguments, **environment):
    """In a fresh process; what it says if it fails."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    answer = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    return answer.stderr if answer.returncode else ""


LOAD = """
from transformers import AutoModelForCausalLM as Auto
import sys, torch
inputs, wanted = torch.load(sys.argv[2])
model = Auto.from_pretrained(sys.argv[1], trust_remote_code=sys.argv[3] == "True").eval()
torch.testing.assert_close(model(**inputs).logits, wanted)
"""


@pytest.mark.parametrize("name", ["Llama", "BLOOM"])
def test_a_fresh_process_loads_it_with_headcount_or_with_the_code_it_carries(name, tmp_path):
    model, inputs, wanted = pruned(name)
    torch.save((inputs, wanted), tmp_path / "expected.pt")
    headcount.save_pruned(model, tmp_path / "small", with_code=True)
    expected, cache = tmp_path / "expected.pt", {"HF_HOME": str(tmp_path / "cache")}
    assert run("import headcount\n" + LOAD, tmp_path / "small", expected, False) == ""
    assert run(LOAD + "import headcount", tmp_path / "small", expected, True, **cache) == ""
    alone = "import sys\nsys.modules['headcount'] = None\n" + LOAD  # as where it is not installed
    assert "size" in run(alone, tmp_path / "small", expected, False)
    again = "model.save_pretrained(sys.argv[1] + '-again')"
    assert run(alone + again, tmp_path / "small", expected, True, **cache) == ""
    assert run(alone, tmp_path / "small-again", expected, True, **cache) == ""
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "small-again", trust_remote_code=False)
    assert headcount.list_heads(loaded) == headcount.list_heads(model)


@pytest.mark.parametrize("name", ["Llama", "BLOOM"])
def test_a_model_that_was_loaded_by_its_own_code_can_be_masked_and_pruned(name, tmp_path):
    model, _, _ = pruned(name)
    headcount.save_pruned(model, tmp_path / "small", with_code=True)
    program = """
import sys, torch, headcount
from transformers import AutoModelForCausalLM
load = AutoModelForCausalLM.from_pretrained
small, plain = (load(sys.argv[1], trust_remote_code=code).eval() for code in (True, False))
assert type(small) is not type(plain)
ids, heads = torch.tensor([[3, 4, 5, 6]]), headcount.list_heads(plain)[1:3]
with headcount.mask_heads(small, heads), headcount.mask_heads(plain, heads):
    wanted = plain(ids).logits
    torch.testing.assert_close(small(ids).logits, wanted)
headcount.prune_heads(small, heads)
torch.testing.assert_close(small(ids).logits, wanted)
"""
    assert run(program, tmp_path / "small", HF_HOME=str(tmp_path / "cache")) == ""


def test_own_models_and_classes_without_an_auto_class_do_not_take_this_code_along(tmp_path):
    own = headcount.HeadcountModel(headcount.HeadcountConfig())
    with pytest.raises(ValueError, match="with_code is for models of transformers"):
        headcount.save_pruned(own, tmp_path / "own", with_code=True)
    assert not (tmp_path / "own").exists()


def test_a_model_that_was_never_pruned_is_loaded_as_ever(tmp_path):
    make_stock("BERT").save_pretrained(tmp_path / "whole")
    program = """
import sys, headcount
from transformers import AutoModel
AutoModel.from_pretrained(sys.argv[1])
assert "headcount.modeling.stock.saving" not in sys.modules
assert "headcount.modeling.stock.pruned_model" not in sys.modules
"""
    assert run(program, tmp_path / "whole") == ""


def test_weights_that_are_given_say_it_too(tmp_path):
    model, inputs, wanted = pruned("BERT")
    loaded = BertForMaskedLM.from_pretrained(None, config=model.config, state_dict=model.state_dict())
    torch.testing.assert_close(logits(loaded, inputs), wanted)


def rewrite_notes(folder, change):
    weights = load_file(folder / "model.safetensors")
    for key in weights:
        if key.endswith("removed_heads"):
            text = json.dumps(change(json.loads(bytes(weights[key].tolist()))))
            weights[key] = torch.tensor(list(text.encode()), dtype=torch.uint8)
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


CRAFTED = {
    "no note": 7,
    "no heads": {"layer": "encoder.0.self", "removed": ["0"]},
    "a layer that is not there": {"layer": "x", "path": "x", "removed": [0], "outputs": {}},
}
CRAFTED_PARTS = {
    "a projection that is not there": {"outputs": {"self.nothing": [[0, 8]]}},
    "a way out of the layer": {"outputs": {"self.__class__": [[0, 8]]}},
    "features beyond the last": {"outputs": {"self.query": [[0, 999999999]]}},
    "features backwards": {"outputs": {"self.query": [[8, 0]]}},
    "features twice": {"outputs": {"self.query": [[0, 8], [4, 12]]}},
    "ranges that are no numbers": {"outputs": {"self.query": [["0", "8"]]}},
    "booleans": {"kept": [True, 2, 3]},
    "an attribute of any name": {"numbers": {"forward": 1}},
    "an attribute of another kind": {"numbers": {"training": 1}},
    "more heads than before": {"numbers": {"num_attention_heads": 4096}},
    "no dictionary": {"inputs": [1]},
    "a parent of the parent": {"up": 2},
    "keys of other heads": {"key_value_of": [0, 1, 77]},
    "a huge blank": {"blank": {"self.query": 2**60}},
    "heads both gone and kept": {"kept": [0, 1, 2]},
}


@pytest.mark.parametrize("what", [*CRAFTED, *CRAFTED_PARTS])
def test_crafted_notes_are_refused(what, tmp_path):
    model = make_stock("BERT")
    headcount.prune_heads(model, ["encoder.0.self.0"])
    model.save_pretrained(tmp_path / "saved")
    rewrite_notes(tmp_path / "saved", lambda note: CRAFTED[what] if what in CRAFTED else note | CRAFTED_PARTS[what])
    if what == "a layer that is not there":
        weights = load_file(tmp_path / "saved" / "model.safetensors")
        weights = {
            key.replace("bert.encoder.layer.0.attention.self.removed", "y.removed"): weights[key] for key in weights
        }
        save_file(weights, tmp_path / "saved" / "model.safetensors", {"format": "pt"})
    with pytest.raises(ValueError, match=r"is not a note on removed heads|does not fit this|has no layer y"):
        BertForMaskedLM.from_pretrained(tmp_path / "saved")


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
    gone = [
        head for key, note in state.items() if key.endswith(".removed_heads") for head in names_in(read_note(note))
    ]
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
