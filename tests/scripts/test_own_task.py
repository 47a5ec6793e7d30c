"""A task of one's own, from `headcount new task` through every verb, with no other file touched."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import run
from huggingface_hub import constants

from headcount.data_builders import own_tasks, registry
from headcount.publishing.repository import stage_run


FEW = {"data.train": 300, "data.validation": 20, "data.test": 40, "data.long_test": 10, "training.steps": 6}
SMALL = {"model.hidden_size": 16, "model.intermediate_size": 16, "model.num_attention_heads": 2}
SETTINGS = [word for name, value in {**FEW, **SMALL}.items() for word in ("--set", f"{name}={value}")]


@pytest.fixture(scope="module")
def own(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("own") / "rising.py"
    assert run("new", "task", "rising", "--output", path).stdout.split() == [
        str(path),
        str(path.with_name("test_rising.py")),
    ]
    return path


@pytest.fixture(scope="module")
def trained(own) -> Path:
    folder = own.parent / "run"
    run("train", own, "--output", folder, *SETTINGS)
    own.write_text(own.read_text() + "\n# Edited after the training: the run has its own copy.\n")
    return folder


def test_the_file_passes_its_own_test(own):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"test_{own.name}"]
    answer = subprocess.run(command, cwd=own.parent, capture_output=True, text=True, timeout=300)
    assert answer.returncode == 0 and "10 passed" in answer.stdout, answer.stdout


def test_a_new_task_takes_nobodys_name_and_no_file_that_is_there(own, tmp_path):
    for arguments, message in (
        (("rising", "--output", own), "is there already; expected a new file"),
        (("addition", "--output", tmp_path / "x.py"), "there is a task 'addition' already"),
        (("Rising", "--output", tmp_path / "x.py"), "expected small letters, digits and _"),
        (("rising", "--output", tmp_path / "x.txt"), "expected the name of a Python file, such as rising.py"),
        (("rising", "--output", tmp_path / "test_rising.py"), "is the name of its test"),
    ):
        assert message in run("new", "task", *arguments, code=2).stderr
    assert list(tmp_path.iterdir()) == []


def test_the_run_remembers_its_file(own, trained):
    origin = json.loads((trained / "provenance.json").read_text())["task_origin"]
    assert origin["path"] == str(own) and own_tasks.is_named(origin["sha256"])
    assert own_tasks.read_task_file(trained / "own_task.py").sha256 == origin["sha256"]


def test_its_data_are_written_and_trained_on(own, tmp_path):
    data, sizes = tmp_path / "data", ["--train", 300, "--validation", 20, "--test", 40, "--long-test", 10]
    run("data", own, "--recipe", own, *sizes, "--output", data)
    assert "Running totals" in (data / "README.md").read_text()
    run("train", own, "--data", data, "--output", tmp_path / "run", *SETTINGS)
    assert (
        "expected the data of the recipe"
        in run("train", own, "--data", data, "--output", tmp_path / "other", code=2).stderr
    )
    assert "--letters is not an option of rising" in run("data", own, "--letters", 2, "--output", "x", code=2).stderr
    run("push", data, "--repo-id", "alice/rising-data", "--local", tmp_path / "repository")
    assert (tmp_path / "repository" / "own_task.py").is_file()


def test_a_run_is_evaluated_and_reported(trained):
    rows = json.loads(run("evaluate", trained, "--json").stdout)
    assert {row["metric"] for row in rows} >= {"exact_match", "token_accuracy", "place_accuracy"}
    assert any(row["kind"] == "large" and row["length"] == 8 for row in rows)
    assert run("evaluate", trained / "model", "--json").stdout
    run("report", trained)
    assert "Running totals" in (trained / "report.html").read_text()


def test_its_heads_are_studied_patched_and_pruned(trained, tmp_path):
    run("heads", trained, "--output", tmp_path / "heads", "--rows", 20)
    assert (tmp_path / "heads" / "figures" / "ablation.png").exists()
    run("report", tmp_path / "heads")
    assert "random pairs" in run("patch", trained, "--sites", "decoder.*.cross.*", "--rows", 20).stdout
    assert "removed 3 of 6 heads" in run("prune", trained, "--output", tmp_path / "small", "--keep", 3).stdout
    assert (tmp_path / "small" / "own_task.py").read_bytes() == (trained / "own_task.py").read_bytes()
    assert "exact_match" in run("evaluate", tmp_path / "small").stdout


@pytest.mark.slow
def test_trained_by_its_recipe_it_is_learned_and_can_be_explained(own, tmp_path):
    """On fewer test problems than usual, which is all that the explanation's time depends on."""
    run("train", own, "--output", tmp_path / "run", "--set", "data.test=100")
    rows = json.loads(run("evaluate", tmp_path / "run", "--json").stdout)
    assert next(row["value"] for row in rows if row["metric"] == "exact_match") > 0.9
    assert "total" in run("explain", tmp_path / "run", "--output", tmp_path / "account").stdout
    assert (tmp_path / "account" / "results" / "variables.json").exists()


def test_it_is_published_with_a_card_whose_examples_run(trained, tmp_path):
    run("push", trained, "--repo-id", "alice/rising", "--local", tmp_path / "repository")
    card = (tmp_path / "repository" / "README.md").read_text()
    assert "A small transformer for this task: write the total" in card and "model.generate" in card
    assert (tmp_path / "repository" / "own_task.py").is_file()


def test_lengths_by_its_file(own, tmp_path):
    few = ("--encodings", "learned", "--seeds", "0", "--lengths", "8", "--rows", "10", "--workers", "1")
    run("extrapolate", "--task", own, "--output", tmp_path / "lengths", *few, *SETTINGS)
    run("report", tmp_path / "lengths")
    assert "Running totals" in (tmp_path / "lengths" / "report.html").read_text()
    own_copy = own.with_name("changed.py")
    own_copy.write_text(own.read_text() + "# another version\n")
    refused = run("extrapolate", "--task", own_copy, "--output", tmp_path / "lengths", *few, *SETTINGS, code=2)
    assert "was begun with another version" in refused.stderr


def test_a_stopped_run_goes_on_with_the_same_file_only(own, trained, tmp_path):
    shutil.copytree(trained, tmp_path / "run")
    assert (
        "was begun with another version"
        in run("train", own, "--output", tmp_path / "run", *SETTINGS, "--resume", code=2).stderr
    )
    first = tmp_path / "rising.py"
    shutil.copy(trained / "own_task.py", first)
    assert "finished already" in run("train", first, "--output", tmp_path / "run", *SETTINGS, "--resume").stderr


@pytest.fixture
def stranger(trained, tmp_path, monkeypatch):
    """As if another user were here, who has named nothing yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(own_tasks, "_named_here", set())


def test_a_run_that_was_handed_over_has_nothing_run_until_its_reader_says_so(trained, tmp_path, stranger):
    shutil.copytree(trained, tmp_path / "bobs")
    bobs, out = tmp_path / "bobs", tmp_path / "out"
    for command in (
        ("evaluate", bobs),
        ("evaluate", bobs / "model"),
        ("heads", bobs, "--output", out),
        ("patch", bobs),
        ("explain", bobs, "--output", out),
        ("prune", bobs, "--output", out, "--keep", 3),
        ("report", bobs),
    ):
        answer = run(*command, code=2).stderr
        assert f"if you trust it: headcount trust {bobs / 'own_task.py'}" in answer, command
    with pytest.raises(ValueError, match="headcount trust"):
        stage_run(bobs, "alice/x", tmp_path)
    assert "rising, write the total" in run("trust", bobs / "own_task.py").stdout
    assert "exact_match" in run("evaluate", bobs).stdout


def test_a_model_from_the_hub_has_nothing_run_either(trained, tmp_path, hub, stranger, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    own_tasks.remember(own_tasks.read_task_file(trained / "own_task.py"))
    run("push", trained, "--repo-id", "alice/rising")
    assert "exact_match" in run("evaluate", "alice/rising").stdout  # who has named it
    registry.TASKS.pop("rising")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
    monkeypatch.setattr(own_tasks, "_named_here", set())
    assert "therefore not run" in run("evaluate", "alice/rising", code=2).stderr
    assert "rising" not in registry.TASKS


@pytest.mark.slow
def test_the_whole_study_of_a_task_of_ones_own(tmp_path):
    copying = Path(__file__).parent.parent / "own_task" / "copying.py"
    run("study", copying, "--output", tmp_path / "study", "--quick", "--workers", "2")
    assert (tmp_path / "study" / "report.html").exists()
    assert (tmp_path / "study" / "length" / "results" / "summary.json").exists()
