"""A third task, in a file that nothing of headcount knows, goes through every verb."""

import json
from pathlib import Path

import pytest
from command_line import run

from headcount.data_builders import registry


TASK = Path(__file__).parent.parent / "own_task" / "copying.py"
RECIPE = TASK.with_suffix(".yaml")


@pytest.fixture(scope="module", autouse=True)
def own_task():
    before = dict(registry.TASKS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADCOUNT_TASKS", str(TASK))
        yield
    registry.TASKS.clear()
    registry.TASKS.update(before)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own") / "run"
    run("train", RECIPE, "--output", folder)
    return folder


def test_it_is_listed_with_its_options():
    assert "copying" in run("ls", "tasks").stdout
    assert "copying --max-length" in run("ls", "options").stdout


def test_its_data_are_written_and_trained_on(tmp_path):
    data = tmp_path / "data"
    run("data", "copying", "--recipe", RECIPE, "--output", data)
    assert "Copy a string" in (data / "README.md").read_text()
    run("train", RECIPE, "--data", data, "--output", tmp_path / "run")
    assert (
        "expected the data of the recipe"
        in run(
            "train", RECIPE, "--data", data, "--output", tmp_path / "other", "--set", "data.train=200", code=2
        ).stderr
    )
    assert (
        "--letters is not an option of copying"
        in run("data", "copying", "--letters", "2", "--output", tmp_path / "x", code=2).stderr
    )


def test_a_run_is_evaluated_and_reported(trained):
    rows = json.loads(run("evaluate", trained, "--json").stdout)
    assert {row["metric"] for row in rows} >= {"exact_match", "token_accuracy", "place_accuracy"}
    assert any(row["kind"] == "random" and row["length"] == 10 for row in rows)
    run("report", trained)
    assert "Copying" in (trained / "report.html").read_text()


def test_its_heads_are_studied_and_pruned(trained, tmp_path):
    run("heads", trained, "--output", tmp_path / "heads", "--rows", 20)
    assert (tmp_path / "heads" / "figures" / "ablation.png").exists()
    run("prune", trained, "--output", tmp_path / "small", "--keep", 3)
    assert "removed 3 of 6 heads" in run("prune", trained, "--output", tmp_path / "again", "--keep", 3).stdout


def test_it_is_published_with_a_card_whose_examples_run(trained, tmp_path):
    run("push", trained, "--repo-id", "alice/copying", "--local", tmp_path / "repository")
    card = (tmp_path / "repository" / "README.md").read_text()
    assert "A small transformer that copies strings." in card and "model.generate" in card


@pytest.mark.slow
def test_its_lengths_and_the_whole_study(tmp_path):
    run("study", "copying", "--output", tmp_path / "study", "--quick", "--workers", "2")
    assert (tmp_path / "study" / "report.html").exists()
    assert (tmp_path / "study" / "length" / "results" / "summary.json").exists()
