"""Stopped in the middle: by Ctrl-C, by a polite kill, by force; nobody stays behind, and the same command goes on."""

import json
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
import typer

from headcount.records.stopping import LIFELINE, stoppable
from headcount.scripts import cli, env
from headcount.trainers import checkpoints


ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
LONG = ["training.steps=400", "training.evaluate_every=5000", "training.checkpoint_every=50", "training.log_every=5"]
LONG_OPTIONS = [word for setting in LONG for word in ("--set", setting)]

# Two steps of a study side by side, one of them with a worker of its own.
STUDY = """
import sys
from pathlib import Path
from headcount.records.locks import alone_in
from headcount.records.stopping import LIFELINE, stoppable
from headcount.scripts.steps import Runner, State, Step

folder, settings = Path(sys.argv[1]), tuple(sys.argv[2:])
train = ("train", "addition-tiny", "--output", str(folder / "runs" / "a"), *settings)
cells = ("extrapolate", "--output", str(folder / "length"), "--encodings", "none", "--poolings", "mean", "--rows", "4")
cells += ("--seeds", "0", "--lengths", "16", "--workers", "1", "--set", "data.train=200", *settings)
steps = [Step("train", train, 1), Step("extrapolate", cells, 1), Step("report", ("ls", "tasks"), 1)]
with stoppable(), alone_in(folder):
    failed = Runner(steps, State(folder, {}), 2).run()
sys.exit(str(failed) if failed else 0)
"""


def start(*command):
    return subprocess.Popen(
        [sys.executable, *map(str, command)],
        env=ENVIRONMENT,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored in the background of a shell
    )


def wait_until(process, is_so, seconds=90):
    deadline = time.monotonic() + seconds
    while not is_so():
        assert process.poll() is None and time.monotonic() < deadline, process.stderr.read()
        time.sleep(0.02)


def lines(path):
    return path.read_text().count("\n") if path.exists() else 0


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_study_takes_its_steps_with_it_and_goes_on_at_once(number, tmp_path):
    folder = tmp_path / "study"
    logs = [folder / "runs" / "a" / "metrics.jsonl", folder / "length" / "cells" / "none-mean-0" / "metrics.jsonl"]
    process = start("-c", STUDY, folder, *LONG_OPTIONS)
    wait_until(process, lambda: all(lines(log) > 2 for log in logs))
    family = psutil.Process(process.pid).children(recursive=True)
    assert len(family) == 3, "two steps and a worker"
    process.send_signal(number)
    process.communicate(timeout=60)
    if number == signal.SIGKILL:
        again = start("-c", STUDY, folder, *LONG_OPTIONS)  # before they are gone
    _, alive = psutil.wait_procs(family, timeout=60)
    assert not alive
    if number == signal.SIGKILL:
        _, said = again.communicate(timeout=180)
        assert again.returncode == 0, said
        (summary,) = json.loads((folder / "runs" / "a" / "results" / "training.json").read_text())
        assert summary["resumed_at"] > 0, "what it wrote when its parent was gone"


def test_a_polite_kill_of_training_is_as_good_as_ctrl_c(tmp_path):
    run = tmp_path / "run"
    process = start("-m", "headcount", "train", "addition-tiny", "--output", run, *LONG_OPTIONS)
    wait_until(process, lambda: lines(run / "metrics.jsonl") > 2)
    process.terminate()
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130 and "Traceback" not in said
    assert "interrupted at step" in said and "--resume" in said
    assert checkpoints.newest_whole_checkpoint(run / "checkpoints") is not None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_verb_that_is_stopped_says_one_sentence(number, tmp_path):
    process = start(
        "-m", "headcount", "data", "addition", "--digits", "8", "--train", "9000000", "--output", tmp_path / "data"
    )
    wait_until(process, lambda: list(tmp_path.glob(".data.partial-*/*/*")))
    process.send_signal(number)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert said.strip() == "headcount: interrupted; nothing was written; the same command can be given again"
    assert list(tmp_path.iterdir()) == []


def test_two_at_a_time_in_one_run_are_one_sentence(tmp_path):
    run, longer = tmp_path / "run", [*LONG_OPTIONS, "--set", "training.steps=20000"]
    first = start("-m", "headcount", "train", "addition-tiny", "--output", run, *longer)
    wait_until(first, lambda: lines(run / "metrics.jsonl") > 2)
    second = start("-m", "headcount", "train", "addition-tiny", "--output", run, *longer, "--resume")
    _, said = second.communicate(timeout=60)
    first.kill()
    first.communicate()
    assert second.returncode == 2 and "Traceback" not in said
    assert said.strip().splitlines()[-1].startswith("headcount: another headcount process is at work in")


def test_a_command_waits_for_one_that_is_about_to_end(tmp_path):
    run = tmp_path / "run"
    arguments = ["-m", "headcount", "train", "addition-tiny", "--output", run, *LONG_OPTIONS]
    first = start(*arguments)
    wait_until(first, lambda: lines(run / "metrics.jsonl") > 2)
    first.terminate()
    second = start(*arguments, "--resume")
    assert first.wait(30) == 130
    _, said = second.communicate(timeout=120)
    assert second.returncode == 0, said


def test_a_worker_that_is_still_starting_ends_with_its_parent():
    """Torch takes seconds to import; whoever has given up the study does not wait for it."""
    command = [sys.executable, "-m", "headcount.analysis.lengths.worker"]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process = subprocess.Popen(command, env={**ENVIRONMENT, LIFELINE: "1"}, text=True, **pipes)
    out, said = process.communicate(timeout=60)  # closes its standard input at once, as the end of the parent does
    assert (process.returncode, out, said) == (0, "", "interrupted\n")


def test_an_interrupt_that_a_compiled_library_turns_into_another_error_is_one(monkeypatch, capsys):
    def main():
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt as interrupt:  # as matplotlib does
            raise ValueError("Invalid affine transformation matrix") from interrupt

    monkeypatch.setattr(env, "main", main)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background of a shell
    with stoppable(), pytest.raises(typer.Exit) as end:
        cli.saying_how_to_go_on(env)()
    assert end.value.exit_code == 130 and "interrupted; " in capsys.readouterr().err
    with stoppable(), pytest.raises(ValueError, match="its own"):
        monkeypatch.setattr(env, "main", lambda: float("its own"))
        cli.saying_how_to_go_on(env)()
    signal.signal(signal.SIGINT, before)
