"""The one-pass evaluator against `generate()`, example by example, on models that are right only sometimes."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import binomtest

from headcount.data_builders.addition.options import AdditionOptions
from headcount.data_builders.examples import make_examples
from headcount.data_builders.folder import write_folder
from headcount.data_builders.registry import TASKS
from headcount.data_builders.tasks import SplitTest
from headcount.records.rows import only, parts, select
from headcount.trainers.evaluation import (
    evaluate_answers,
    evaluate_model,
    generate_answers,
    outcomes,
    predicted_labels,
    split_examples,
)
from headcount.trainers.loop import RunOptions, train_recipe
from headcount.trainers.model_building import make_model, tokenizer_of
from headcount.trainers.recipe import load_recipe
from headcount.trainers.trained_run import load_run
from headcount.trainers.training_data import make_corpus


def half_trained(folder, *settings: str):
    recipe = load_recipe("addition-tiny", ["training.steps=170", "training.evaluate_every=1000", *settings])
    train_recipe(recipe, RunOptions(Path(folder), evaluate=False), say=lambda text: None)
    model = make_model(recipe)
    return recipe, type(model).from_pretrained(Path(folder) / "model"), make_corpus(recipe)


@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder"])
@pytest.mark.parametrize("zero_pad", ["true", "false"])
def test_one_parallel_pass_decides_what_generation_gets_right(architecture, zero_pad, tmp_path):
    recipe, model, corpus = half_trained(tmp_path, f"model.architecture={architecture}", f"data.zero_pad={zero_pad}")
    examples = split_examples(recipe, corpus, corpus.problems("test"))
    fast = outcomes(model, examples)
    texts = generate_answers(model, examples)
    rows = next(corpus.tables("default", "test"))
    slow = np.array([text == target for text, target in zip(texts, rows["target"].to_pylist(), strict=True)])
    assert np.array_equal(fast, slow)
    assert fast.any() and not fast.all()

    evaluation = evaluate_answers(model, examples, SplitTest("default", "test"))
    headline = evaluation[0]
    assert headline["decoding"] == "free-running" and headline["value"] == slow.mean() and headline["n"] == 500
    low, high = binomtest(int(slow.sum()), 500).proportion_ci(method="wilson")
    assert headline["interval"] == [low, high]
    by_chain = parts(evaluation, "longest_chain", metric="exact_match")
    assert sum(row["n"] for row in by_chain) == 500
    assert sum(row["value"] * row["n"] for row in by_chain) == pytest.approx(slow.sum())
    wrong = select(evaluation, metric="wrong_answer")
    assert wrong and all(row["generated"] != row["target"] for row in wrong)
    for row in wrong:
        a, b = row["input"].split("+")
        assert int(a) + int(b) == int(row["target"][::-1])


@pytest.mark.parametrize("order", ["reversed", "plain"])
def test_accuracy_by_place_is_that_of_the_generated_text_units_first(tmp_path, order):
    recipe, model, corpus = half_trained(tmp_path, f"data.answer_order={order}")
    examples = split_examples(recipe, corpus, corpus.problems("test"))
    texts = generate_answers(model, examples)
    targets = next(corpus.tables("default", "test"))["target"].to_pylist()
    rows = select(evaluate_answers(model, examples, SplitTest("default", "test")), metric="place_accuracy")
    assert len(rows) == 3
    step = 1 if order == "reversed" else -1
    for row in rows:
        place = row["scope"]["place"]
        hits = [a[::step][place : place + 1] == b[::step][place] for a, b in zip(texts, targets, strict=True)]
        assert row["value"] == np.mean(hits)


def test_sortedness_is_tested_for_every_length_and_kind():
    recipe = load_recipe("sortedness-tiny")
    torch.manual_seed(0)
    rows = evaluate_model(make_model(recipe), recipe, make_corpus(recipe))
    assert {(row["length"], row["kind"]) for row in rows} == {
        (length, kind) for length in (8, 16, 32) for kind in ("shuffle", "swap", "move")
    }
    assert all(row["n"] == 100 for row in rows)


def test_prediction_does_not_depend_on_how_it_is_batched(monkeypatch):
    from headcount.trainers import evaluation

    torch.manual_seed(0)
    model = make_model(load_recipe("sortedness-tiny"))
    task = TASKS["sortedness"]
    problems = task.splits(task.options(train=60, validation=2, test=2)).problems("train")
    rows = make_examples(task, task.options(), problems, "encoder").rows
    whole = predicted_labels(model, rows)
    monkeypatch.setattr(evaluation, "TOKENS_PER_BATCH", 60)
    assert torch.equal(predicted_labels(model, rows), whole)
    assert torch.equal(
        model(**{name: rows[name] for name in ("input_ids", "attention_mask")}).logits.argmax(-1), whole
    )


def test_evaluate_prints_a_table_and_json(tmp_path):
    half_trained(tmp_path / "run")
    base = [sys.executable, "-m", "headcount", "evaluate"]
    answer = subprocess.run([*base, str(tmp_path / "run")], capture_output=True, text=True, timeout=300)
    assert answer.returncode == 0, answer.stderr
    assert "test exact_match (free-running)" in answer.stdout and "token_accuracy (teacher-forced)" in answer.stdout
    rows = json.loads(
        subprocess.run(
            [*base, str(tmp_path / "run"), "--json", "--exhaustive"], capture_output=True, text=True, timeout=300
        ).stdout
    )
    assert only(rows, split="exhaustive", metric="exact_match", scope={})["n"] == 10_000
    bad = subprocess.run([*base, str(tmp_path)], capture_output=True, text=True, timeout=120)
    assert bad.returncode == 2 and "holds no finished run" in bad.stderr


def test_the_saved_tokenizer_reads_the_model(tmp_path):
    from transformers import AutoTokenizer

    recipe = load_recipe("addition-tiny")
    tokenizer_of(recipe).save_pretrained(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    corpus = make_corpus(recipe)
    rows = next(corpus.tables("default", "test"))
    encoded = split_examples(recipe, corpus, corpus.problems("test")).rows
    assert tokenizer(rows["input"].to_pylist()[:50])["input_ids"] == encoded["input_ids"][:50].tolist()


def test_a_run_is_tested_on_other_data_unless_it_has_seen_it(tmp_path):
    half_trained(tmp_path / "run", "training.steps=5")
    own = load_recipe("addition-tiny").data
    for name, options in {
        "same": own,
        "seen": {**own, "seed": 3},
        "plain": {**own, "answer_order": "plain"},
    }.items():
        write_folder("addition", AdditionOptions(**options), tmp_path / name)
    run = load_run(tmp_path / "run", tmp_path / "same")
    assert run.corpus.sizes()["default"]["test"] == 500 and run.recipe.data["answer_order"] == "reversed"
    with pytest.raises(ValueError, match=r"\d+ of 500 problems of the split 'test' were in the training data"):
        load_run(tmp_path / "run", tmp_path / "seen")
    with pytest.raises(ValueError, match="answer_order='plain', but the run was trained with 'reversed'"):
        load_run(tmp_path / "run", tmp_path / "plain")
    with pytest.raises(ValueError, match="is not a folder"):
        load_run(tmp_path / "run", tmp_path / "nowhere")


def test_a_model_is_found_by_its_run_by_its_folder_and_in_a_copy_with_its_recipe(tmp_path):
    half_trained(tmp_path / "run", "training.steps=5")
    published = tmp_path / "published"
    shutil.copytree(tmp_path / "run" / "model", published)
    weights = load_run(tmp_path / "run").model.state_dict()
    with pytest.raises(ValueError, match="does not say what its model was trained on"):
        load_run(published)
    shutil.copy(tmp_path / "run" / "recipe.yaml", published)
    for place in (tmp_path / "run" / "model", published, str(published)):
        run = load_run(place)
        assert run.recipe.name == "addition-tiny"
        assert all(torch.equal(value, weights[name]) for name, value in run.model.state_dict().items())
    with pytest.raises(ValueError, match="is no folder here, and the Hub does not give it"):
        load_run("nobody/nothing")
