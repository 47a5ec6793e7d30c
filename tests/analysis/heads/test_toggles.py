"""Answers with one head switched off, against models from which that head was really removed."""

import copy

import pytest
from small_models import make_model
from task_examples import addition, sortedness

from headcount.analysis.heads.toggles import toggle_rows
from headcount.data_builders.registry import TASKS
from headcount.records.rows import check_row


@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder"])
def test_answers_are_those_of_the_pruned_model(architecture):
    model = make_model(architecture, vocab_size=15, num_hidden_layers=1, num_attention_heads=2)
    examples = addition([374, 5, 999], [814, 6, 1], architecture)
    rows = toggle_rows(model, examples)
    heads = [None, *model.list_heads()]
    assert [(row["example"], row["head"]) for row in rows] == [(i, head) for i in range(3) for head in heads]
    assert [row["input"] for row in rows[:: len(heads)]] == ["374+814", "005+006", "999+001"]
    assert [row["target"] for row in rows[:: len(heads)]] == ["1188", "0011", "1000"]
    assert len({row["answer"] for row in rows}) > 1, "no head changes any answer"
    names = TASKS["addition"].vocabulary.names
    for row in rows:
        check_row(row, "toggles")
        smaller = copy.deepcopy(model)
        smaller.prune_heads([row["head"]] if row["head"] else [])
        ids = examples.rows["input_ids"][row["example"]]
        if architecture == "decoder":
            ids = ids[: int((examples.rows["labels"][row["example"]] != -100).int().argmax())]
        written = smaller.generate(ids[None], max_new_tokens=5, do_sample=False)[0]
        text = "".join(name for name in names(written.tolist()) if not name.startswith("<")).rpartition("=")[2]
        assert row["answer"] == text and row["right"] == (text == row["target"]) == bool(row["value"])


def test_classes_and_probabilities_of_a_classifier():
    model = make_model("encoder", vocab_size=103, num_hidden_layers=1, num_attention_heads=2)
    model.config.id2label = {0: "unsorted", 1: "sorted"}
    examples = sortedness([[1, 2, 3], [9, 2, 3], [1, 2, 3, 4]])
    rows = toggle_rows(model, examples)
    assert [row["target"] for row in rows[::3]] == ["sorted", "unsorted", "sorted"]
    assert [row["input"] for row in rows[::3]] == ["1 2 3", "9 2 3", "1 2 3 4"]
    for row in rows:
        smaller = copy.deepcopy(model)
        smaller.prune_heads([row["head"]] if row["head"] else [])
        inputs = {name: examples.rows[name] for name in ("input_ids", "attention_mask")}
        logits = smaller(**inputs).logits[row["example"]].detach()
        assert row["answer"] == model.config.id2label[int(logits.argmax())]
        assert row["probability"] == pytest.approx(float(logits.softmax(-1).max()), abs=1e-5)
