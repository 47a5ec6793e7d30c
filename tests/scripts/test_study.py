"""`headcount study`: its plan, and the runner on real commands."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from headcount.data_builders.registry import TASKS
from headcount.scripts import cli
from headcount.scripts.steps import Runner, State, Step
from headcount.scripts.study import plan


QUICK, FULL = {"quick": True}, {"quick": False}


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_plan_starts_from_nothing_and_ends_with_the_report(task, tmp_path, quick):
    steps = plan(task, task, tmp_path / "study", quick, 2)
    seen = set()
    for step in steps:
        assert set(step.needs) <= seen, f"{step.name} comes before what it needs"
        seen.add(step.name)
    verbs = [step.arguments[0] for step in steps]
    assert set(verbs) == {"data", "train", "heads", "prune", "extrapolate", "push", "report"} and verbs[-1] == "report"
    assert len(seen) == len(steps)
    for step in (step for step in steps if step.arguments[0] == "train"):
        written = {other.folder for other in steps if other.arguments[0] == "data"}
        assert Path(step.arguments[step.arguments.index("--data") + 1]) in written, "what is trained on is written"


@pytest.mark.parametrize("quick", [[], ["--quick"]])
def test_dry_run_lists_commands_that_the_command_line_knows(tmp_path, quick):
    answer = subprocess.run(
        [sys.executable, "-m", "headcount", "study", "--output", str(tmp_path / "s"), "--dry-run", *quick],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert answer.returncode == 0, answer.stderr
    known = {command.name for command in cli.app.registered_commands}
    for line in answer.stdout.splitlines():
        program, verb = line.split()[:2]
        assert program == "headcount" and verb in known
    assert not (tmp_path / "s").exists()


STEPS = [
    Step("first", ("ls", "tasks"), 1),
    Step("wrong", ("ls", "nonsense"), 1),
    Step("second", ("ls", "poolers"), 1, needs=("first",)),
    Step("lost", ("ls", "tasks"), 1, needs=("wrong",)),
    Step("report", ("ls", "schemes"), 1, needs=("first", "wrong", "second", "lost")),
]


def test_failures_are_told_the_rest_goes_on_and_nothing_is_done_twice(tmp_path, capfd):
    folder = tmp_path / "study"
    failed = Runner(STEPS, State(folder, QUICK), 2).run()
    assert set(failed) == {"wrong", "lost"} and "nonsense" in failed["wrong"] and failed["lost"] == "it needs wrong"
    content = json.loads((folder / "study.json").read_text())
    assert set(content["steps"]) == {"first", "second", "report"}
    assert content["steps"]["second"]["command"] == "headcount ls poolers"
    assert (folder / "logs" / "second.log").read_text().startswith("mean")
    said = capfd.readouterr().err
    assert said.index("first done") < said.index("second ...") < said.index("report ...")

    stamp = (folder / "logs" / "second.log").stat().st_mtime_ns
    Runner(STEPS, State(folder, QUICK), 2).run()
    assert (folder / "logs" / "second.log").stat().st_mtime_ns == stamp
    assert "2 of 5 steps were finished already" in capfd.readouterr().err, "the report builds on what failed"


def test_a_step_whose_command_changed_runs_again(tmp_path):
    state = State(tmp_path / "s", FULL)
    step = Step("one", ("ls", "tasks"), 1)
    state.finish(step, 1.0)
    assert state.is_done(step) and step.command == "headcount ls tasks"
    assert not state.is_done(Step("one", ("ls", "poolers"), 1))


def test_what_builds_on_a_step_that_runs_again_runs_again_too(tmp_path):
    state = State(tmp_path / "s", FULL)
    steps = [
        Step("data", ("data", "reverse", "--output", str(tmp_path / "data")), 1),
        Step("train", ("ls", "tasks"), 1, needs=("data",)),
        Step("heads", ("ls", "tasks"), 1, needs=("train",)),
        Step("other", ("ls", "tasks"), 1),
    ]
    (tmp_path / "data").mkdir()
    for step in steps:
        state.finish(step, 1.0)
    assert state.open_steps(steps) == []
    (tmp_path / "data").rmdir()
    assert [step.name for step in state.open_steps(steps)] == ["data", "train", "heads"]
    state.begin(steps[3])
    assert not State(tmp_path / "s", FULL).is_done(steps[3]), "a kill in the middle of it is noticed"


def test_folders_that_belong_to_something_else_are_refused(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(ValueError, match="is not empty and holds no study"):
        State(tmp_path / "mine", FULL)
    State(tmp_path / "quick", QUICK)
    with pytest.raises(ValueError, match="holds a study with quick=True, now asked for False"):
        State(tmp_path / "quick", FULL)


def test_a_repository_written_just_before_a_kill_is_written_again(tmp_path, data):
    """The step was not noted as done, so its folder is there already."""
    local = tmp_path / "study" / "published"
    state = State(tmp_path / "study", QUICK)
    local.mkdir()
    (local / "half.txt").write_text("torn")
    step = Step("publish", ("push", str(data), "--repo-id", "sums", "--local", str(local)), 1)
    assert Runner([step], state, 1).run() == {}
    assert (local / "README.md").exists() and not (local / "half.txt").exists()
