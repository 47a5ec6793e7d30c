"""Any table of pairs, from `headcount train --data ... --input ...` through the verbs that read a run."""

import json
import os
import random
import shutil
import subprocess
import sys

import pytest
from command_line import run

from headcount.data_builders.registry import TASKS


FEW = ("--set", "training.steps=6", "--set", "training.evaluate_every=6", "--set", "training.batch_size=16")
SMALL = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
SETTINGS = (*FEW, *(word for name, value in SMALL.items() for word in ("--set", f"model.{name}={value}")))


def write_table(path, count=400):
    """Words, the same in capitals, and how many vowels they have."""
    rng = random.Random(0)
    words = ["".join(rng.choices("abcdef", k=rng.randint(2, 6))) for _ in range(count)]
    rows = [f"{word},{word.upper()},{sum(letter in 'ae' for letter in word) % 3}" for word in words]
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(["word,shout,vowels", *rows]) + "\n")
    return path


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write_table(tmp_path_factory.mktemp("table") / "words.csv")


@pytest.fixture(scope="module")
def shouting(table):
    folder = table.parent / "shouting"
    answer = run("train", "--data", table, "--input", "word", "--target", "shout", "--output", folder, *SETTINGS)
    assert "word to shout, of words.csv: train" in answer.stderr and "12 different characters" in answer.stderr
    return folder


@pytest.fixture(scope="module")
def counting(table):
    folder = table.parent / "counting"
    run("train", "--data", table, "--input", "word", "--label", "vowels", "--output", folder, *SETTINGS)
    return folder


@pytest.fixture(params=["shouting", "counting"])
def trained(request):
    TASKS.pop("words-word-to-shout", None)
    return request.getfixturevalue(request.param)


def test_the_run_knows_its_table_and_its_tokens(shouting, table):
    kept = json.loads((shouting / "own_table.json").read_text())
    assert kept["place"] == str(table) and kept["input"] == "word" and kept["answer"] == "shout"
    assert json.loads((shouting / "provenance.json").read_text())["task_origin"]["path"] == str(table)
    assert "A" in json.loads((shouting / "model" / "tokenizer.json").read_text())["model"]["vocab"]


def test_a_run_is_evaluated_on_rows_that_it_has_not_seen(trained):
    rows = json.loads(run("evaluate", trained, "--json").stdout)
    metric = "accuracy" if trained.name == "counting" else "exact_match"
    whole = next(row for row in rows if row["metric"] == metric and row["scope"] == {})
    assert whole["split"] == "test" and 20 < whole["n"] < 60
    if metric == "accuracy":
        assert whole["true_positive_rate"] is None and 0 < whole["majority_class_rate"] < 1
    else:
        assert {row["scope"]["length"] for row in rows if "length" in row["scope"]} <= {2, 3, 4, 5, 6}


def test_its_heads_are_studied_and_pruned_and_it_is_reported(trained, tmp_path):
    run("heads", trained, "--output", tmp_path / "heads", "--rows", 20, "--mode", "zero")
    assert (tmp_path / "heads" / "figures" / "ablation.png").exists()
    run("prune", trained, "--output", tmp_path / "small", "--keep", 1, "--rows", 20)
    assert "test" in run("evaluate", tmp_path / "small").stdout
    run("report", trained)
    assert "of words.csv" in (trained / "report.html").read_text()


def test_it_is_published_with_a_card_whose_examples_run(trained, tmp_path):
    run("push", trained, "--repo-id", "alice/words", "--local", tmp_path / "repository")
    card = (tmp_path / "repository" / "README.md").read_text()
    assert "A small transformer that was trained on a table: word to" in card
    assert f"--input word --{'label' if trained.name == 'counting' else 'target'}" in card
    assert str(trained.parent) not in card  # where the table lies is nobody's business
    run("evaluate", tmp_path / "repository")


def test_the_same_command_resumes_and_another_table_does_not(shouting, table, tmp_path):
    words = ("--input", "word", "--target", "shout", "--output", tmp_path / "run", *SETTINGS, "--resume")
    shutil.copytree(shouting, tmp_path / "run")
    assert "finished already" in run("train", "--data", table, *words).stderr
    other = write_table(tmp_path / "words.csv", 300)
    answer = run_with_notes("train", "--data", other, *words)
    assert "was begun with another version of" in answer


def run_with_notes(*arguments):
    """The last line of a command that fails after it has said what it read."""
    with pytest.raises(AssertionError, match="headcount: ") as found:
        run(*arguments)
    return str(found.value)


@pytest.mark.parametrize(
    "words, message",
    [
        (("--input", "word"), "a table needs --input and one of --target and --label"),
        (("--input", "word", "--target", "shout", "--label", "vowels"), "one of --target and --label"),
        (("--target", "shout"), "a table needs --input"),
        (("--input", "wrod", "--target", "shout"), "has no column 'wrod'; expected one of word, shout, vowels"),
        (("--input", "word", "--target", "word"), "the column 'word' is named twice"),
        (("--input", "word", "--target", "shout", "--tokens", "letter"), "expected one of character, word"),
        (("--input", "word", "--target", "shout", "--config", "x"), "--config has no effect on"),
        (("--input", "word", "--target", "shout", "--split", "x"), "has no split 'x'; expected one of train"),
    ],
)
def test_what_is_wrong_with_the_columns_is_one_sentence(table, tmp_path, words, message):
    assert message in run("train", "--data", table, *words, "--output", tmp_path / "out", code=2).stderr
    assert not (tmp_path / "out").exists()


def test_options_of_a_table_have_no_effect_without_one(table, tmp_path):
    out = ("--output", tmp_path / "out")
    assert "RECIPE is missing; expected one, or --data" in run("train", *out, code=2).stderr
    assert "--input has no effect without --data" in run("train", "--input", "word", *out, code=2).stderr
    words = ("--data", table, "--input", "word", "--target", "shout")
    assert "'addition' has no effect beside --input" in run("train", "addition", *words, *out, code=2).stderr
    assert "is not a folder; expected one that `headcount data`" in (
        run("train", "addition", "--data", table, *out, code=2).stderr
    )


def test_a_table_that_is_gone_or_changed_is_a_sentence(shouting, table, tmp_path):
    place = write_table(tmp_path / "words.csv")
    run("train", "--data", place, "--input", "word", "--target", "shout", "--output", tmp_path / "run", *SETTINGS)
    text = place.read_text()
    place.write_text(text.replace("A", "B", 1))
    TASKS.pop("words-word-to-shout")
    assert "does not hold the rows any more that this run" in run("evaluate", tmp_path / "run", code=2).stderr
    place.unlink()
    TASKS.pop("words-word-to-shout", None)
    assert "words.csv is not there" in run("evaluate", tmp_path / "run", code=2).stderr


def test_lengths_and_fresh_problems_are_nothing_that_a_table_has(shouting, table, tmp_path):
    words = ("--data", table, "--input", "word", "--target", "shout", "--output", tmp_path / "run")
    answer = run_with_notes("train", *words, *SETTINGS, "--set", "training.fresh_data=true")
    assert "a table has none; expected false" in answer
    assert "names no variable" in run("patch", shouting, code=2).stderr
    task = json.loads((shouting / "own_table.json").read_text())["name"]
    refused = run("extrapolate", "--task", task, "--output", tmp_path / "x", code=2).stderr
    assert "names no recipe for a study of lengths" in refused


def test_a_table_of_the_hub(hub, table, tmp_path):
    """In processes of their own: `datasets` reads where the Hub is when it is imported."""
    environment = {**os.environ, **hub.environment, "HF_HOME": str(tmp_path / "home"), "HF_DATASETS_OFFLINE": "0"}

    def headcount(*arguments):
        command = [sys.executable, "-m", "headcount", *map(str, arguments)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)

    hub.add_repo("dataset", "alice/words", files={"train.csv": table.read_bytes()})
    columns = ("--input", "word", "--target", "shout", "--output", tmp_path / "run", *SETTINGS)
    answer = headcount("train", "--data", "alice/words", *columns)
    assert answer.returncode == 0 and "word to shout, of alice/words: train" in answer.stderr, answer.stderr
    assert "exact_match" in headcount("evaluate", tmp_path / "run").stdout
    changed = table.read_bytes().replace(b"A", b"B", 1)
    hub.add_repo("dataset", "alice/words", files={"train.csv": changed})
    answer = headcount("evaluate", tmp_path / "run")
    assert answer.returncode == 2 and "alice/words does not hold the rows any more" in answer.stderr, answer.stderr
