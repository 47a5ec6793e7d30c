"""All constructions by name, on disk and on the command line."""

import json

import pytest
import torch
from command_line import run
from transformers import AutoModelForSeq2SeqLM, AutoModelForSequenceClassification, AutoTokenizer

from headcount.analysis.circuits.constructions.catalogue import CONSTRUCTIONS, find_construction, save


def test_there_are_thirty_with_a_sentence_each():
    assert len(CONSTRUCTIONS) >= 30
    assert len({each.says for each in CONSTRUCTIONS.values()}) == len(CONSTRUCTIONS)
    assert all(name == each.name for name, each in CONSTRUCTIONS.items())


def test_a_name_that_does_not_exist_is_a_sentence():
    with pytest.raises(ValueError, match=r"there is no construction 'ader'; .*Did you mean 'adder'"):
        find_construction("ader")


def test_what_is_saved_is_an_ordinary_model_folder(tmp_path):
    folder = save("adder-units-first", tmp_path / "adder")
    model, tokenizer = AutoModelForSeq2SeqLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    built = CONSTRUCTIONS["adder-units-first"].build()
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), built.parameters(), strict=True))
    answer = model.generate(**tokenizer("374+814", return_tensors="pt"), max_new_tokens=6)
    assert tokenizer.decode(answer[0], skip_special_tokens=True) == "8811"
    with pytest.raises(ValueError, match="exists; expected a folder that is not there yet"):
        save("adder", folder)


def test_a_classifier_is_saved_with_its_labels(tmp_path):
    folder = save("sorter-maximum", tmp_path / "sorter")
    model, tokenizer = (
        AutoModelForSequenceClassification.from_pretrained(folder),
        AutoTokenizer.from_pretrained(folder),
    )
    for text, label in (("3 5 5 9 20", "sorted"), ("3 5 4 9 20", "unsorted")):
        logits = model(**tokenizer(text, return_tensors="pt")).logits
        assert model.config.id2label[int(logits.argmax())] == label


@pytest.mark.parametrize("name", ["adder", "sorter", "reverser"])
def test_headcount_evaluate_takes_the_folder(name, tmp_path):
    folder = save(name, tmp_path / name)
    rows = json.loads(run("evaluate", folder, "--json").stdout)
    right = [each["value"] for each in rows if each["metric"] in ("exact_match", "accuracy")]
    assert right and set(right) == {1.0}
