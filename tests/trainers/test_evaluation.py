"""The one-pass evaluator against `generate()`, example by example, on models that are right only sometimes."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import binomtest

from headcount.trainers.evaluation import (
    evaluate_addition,
    evaluate_sortedness,
    exactly_right,
    generate_answers,
    predict_sorted,
    rate,
    sortedness_rates,
)
from headcount.trainers.loop import RunOptions, train
from headcount.trainers.model_building import make_model, make_tokenizer
from headcount.trainers.recipe import load_recipe
from headcount.trainers.training_data import encode_problems, make_corpus


def half_trained(folder, *settings: str):
    recipe = load_recipe("addition-tiny", ["training.steps=170", "training.evaluate_every=1000", *settings])
    train(recipe, RunOptions(Path(folder), evaluate=False), say=lambda text: None)
    model = make_model(recipe)
    return recipe, type(model).from_pretrained(Path(folder) / "model"), make_corpus(recipe)


@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder"])
@pytest.mark.parametrize("zero_pad", ["true", "false"])
def test_one_parallel_pass_decides_what_generation_gets_right(architecture, zero_pad, tmp_path):
    recipe, model, corpus = half_trained(tmp_path, f"model.architecture={architecture}", f"data.zero_pad={zero_pad}")
    problems = corpus.problems("test")
    fast = exactly_right(model, encode_problems(problems, recipe)).numpy()
    texts = generate_answers(model, problems, recipe)
    rows = next(corpus.tables("default", "test"))
    slow = np.array([text == target for text, target in zip(texts, rows["target"].to_pylist(), strict=True)])
    assert np.array_equal(fast, slow)
    assert fast.any() and not fast.all()

    evaluation = evaluate_addition(model, problems, recipe, "test")
    headline = evaluation[0]
    assert headline["decoding"] == "free-running" and headline["value"] == slow.mean() and headline["n"] == 500
    low, high = binomtest(int(slow.sum()), 500).proportion_ci(method="wilson")
    assert headline["interval"] == [low, high]
    by_chain = [row for row in evaluation if row["metric"] == "exact_match" and "longest_chain" in row]
    assert sum(row["n"] for row in by_chain) == 500
    assert sum(row["value"] * row["n"] for row in by_chain) == pytest.approx(slow.sum())
    wrong = [row for row in evaluation if row["metric"] == "wrong_answer"]
    assert wrong and all(row["generated"] != row["target"] for row in wrong)
    for row in wrong:
        a, b = row["input"].split("+")
        assert int(a) + int(b) == int(row["target"][::-1])


def test_digit_accuracy_by_place_is_that_of_the_generated_text(tmp_path):
    recipe, model, corpus = half_trained(tmp_path)
    problems = corpus.problems("test")
    texts = generate_answers(model, problems, recipe)
    targets = next(corpus.tables("default", "test"))["target"].to_pylist()
    rows = [row for row in evaluate_addition(model, problems, recipe, "test") if row["metric"] == "digit_accuracy"]
    for row in rows:
        hits = [
            text[row["place"] : row["place"] + 1] == target[row["place"]]
            for text, target in zip(texts, targets, strict=True)
        ]
        assert row["value"] == np.mean(hits)


def test_sortedness_rates_unmask_a_model_that_always_says_the_same():
    label = np.array([0, 1] * 50)
    rates = sortedness_rates(np.zeros(100, int), label)
    assert rates["value"] == 0.5 and rates["true_positive_rate"] == 0 and rates["true_negative_rate"] == 1
    assert rates["one_class_only"] and rates["majority_class_rate"] == 0.5
    assert not sortedness_rates(label, label)["one_class_only"]


def test_sortedness_is_tested_for_every_length_and_kind():
    recipe = load_recipe("sortedness-tiny")
    torch.manual_seed(0)
    rows = evaluate_sortedness(make_model(recipe), make_corpus(recipe))
    assert {(row["length"], row["kind"]) for row in rows} == {
        (length, kind) for length in (8, 16, 32) for kind in ("shuffle", "swap", "move")
    }
    assert all(row["n"] == 100 for row in rows)


def test_prediction_does_not_depend_on_how_it_is_batched(monkeypatch):
    from headcount.trainers import evaluation

    torch.manual_seed(0)
    model = make_model(load_recipe("sortedness-tiny"))
    values = np.random.default_rng(0).integers(0, 100, (50, 12))
    whole = predict_sorted(model, values)
    monkeypatch.setattr(evaluation, "TOKENS_PER_BATCH", 60)
    assert np.array_equal(predict_sorted(model, values), whole)


def test_a_perfect_score_still_has_an_interval():
    assert rate(2000, 2000)["interval"][0] < 0.9985 and rate(2000, 2000)["interval"][1] == 1.0


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
    everything = [row for row in rows if row["split"] == "exhaustive" and row["metric"] == "exact_match"]
    assert everything[0]["n"] == 10_000
    bad = subprocess.run([*base, str(tmp_path)], capture_output=True, text=True, timeout=120)
    assert bad.returncode == 2 and "holds no finished run" in bad.stderr


def test_the_saved_tokenizer_reads_the_model(tmp_path):
    from transformers import AutoTokenizer

    recipe = load_recipe("addition-tiny")
    make_tokenizer(recipe).save_pretrained(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    corpus = make_corpus(recipe)
    rows = next(corpus.tables("default", "test"))
    encoded = encode_problems(corpus.problems("test"), recipe)
    assert tokenizer(rows["input"].to_pylist()[:50])["input_ids"] == encoded["input_ids"][:50].tolist()


def test_a_run_is_tested_on_other_data_unless_it_has_seen_it(tmp_path):
    from headcount import AdditionOptions, write_folder
    from headcount.trainers.trained_run import load_run

    half_trained(tmp_path / "run", "training.steps=5")
    own = load_recipe("addition-tiny").data
    for name, options in {
        "same": own,
        "seen": {**own, "seed": 3},
        "plain": {**own, "answer_order": "plain"},
    }.items():
        write_folder("addition", AdditionOptions(**options), tmp_path / name)
    _, recipe, corpus = load_run(tmp_path / "run", tmp_path / "same")
    assert corpus.splits()["default"]["test"] == 500 and recipe.data["answer_order"] == "reversed"
    with pytest.raises(ValueError, match=r"\d+ of 500 problems of the split 'test' were in the training data"):
        load_run(tmp_path / "run", tmp_path / "seen")
    with pytest.raises(ValueError, match="answer_order='plain', but the run was trained with 'reversed'"):
        load_run(tmp_path / "run", tmp_path / "plain")
    with pytest.raises(ValueError, match="is not a folder"):
        load_run(tmp_path / "run", tmp_path / "nowhere")
