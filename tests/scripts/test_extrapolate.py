"""`headcount extrapolate` as a user sees it: real cells, tiny and few."""

import contextlib
import io
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

import headcount
from headcount.records.locks import alone_in
from headcount.reports.board_rows import gather
from headcount.scripts.cli import run as run_command_line


TINY = [
    *("--set", "training.steps=30", "--set", "model.num_hidden_layers=1", "--set", "model.hidden_size=16"),
    *("--set", "model.intermediate_size=16", "--set", "data.test=20", "--set", "data.validation=20"),
    *("--set", "training.evaluate_every=10", "--set", "training.checkpoint_every=10"),
]
ASKED = ["--encodings", "learned,none+causal", "--poolings", "mean", "--seeds", "0", "--rows", "10"]


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "headcount", "extrapolate", *arguments]


@dataclass
class Answer:
    returncode: int
    stdout: str
    stderr: str


def run(*arguments: str) -> Answer:
    """The command in this process, which has torch loaded; its workers are processes of their own."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = run_command_line(["extrapolate", *arguments])
        except SystemExit as end:
            code = end.code
    return Answer(code, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("length") / "study"
    answer = run("--output", str(folder), *ASKED, "--lengths", "8,16,32", *TINY, "--workers", "1")
    assert answer.returncode == 0, answer.stderr
    return folder, answer


def rows(folder: Path, name: str) -> list[dict]:
    return json.loads((folder / "results" / f"{name}.json").read_text())


def test_rows_say_what_was_measured(study):
    folder, _ = study
    found = rows(folder, "lengths")
    assert len(found) == 2 * 3 * (9 + 1)  # training lengths are measured whether they are asked for or not
    needed = {"task", "study", "says"} | {
        "encoding",
        "pooling",
        "scheme",
        "seed",
        "length",
        "kind",
        "value",
        "n",
        "interval",
        "entropy_share",
    }
    needed |= {"true_positive_rate", "true_negative_rate", "majority_class_rate", "normalizer", "built_in"}
    assert all(needed <= row.keys() for row in found)
    assert {row["encoding"] for row in found} == {"learned", "none"}
    assert "causal mask" in next(row for row in found if row["variant"] == "none+causal")["built_in"]
    assert {row["n"] for row in found if row["length"] == 32} == {10}
    assert all(row["as_expected"] for row in rows(folder, "mathematics"))
    assert {row["metric"] for row in rows(folder, "dilution")} >= {"entropy_share", "neighbour_weight", "margin"}
    for name in ("lengths", "dilution", "shifts", "neighbour", "summary", "positions", "mathematics"):
        assert {(row["study"], row["task"]) for row in rows(folder, name)} == {(name, "sortedness")}
    note = json.loads((folder / "extrapolate.json").read_text())
    ((command, seconds),) = note["commands"].items()
    assert note["task"] == "sortedness" and seconds > 0
    assert command.startswith("headcount extrapolate --task sortedness --output study --set training.steps=30")
    assert "--encodings learned,none+causal --poolings mean --seeds 0 --lengths 8,16,32 --rows 10" in command


def test_the_board_reads_what_it_left(study):
    folder, _ = study
    found = gather([folder])
    assert [(row["task"], row["variant"], row["pooling"]) for row in found] == [
        ("sortedness", "learned", "mean"),
        ("sortedness", "none+causal", "mean"),
    ]
    assert all(row["tested_to"] == 32 and row["examples"] == 10 and row["seconds"]["0"] > 0 for row in found)
    assert found[0]["data"]["max_length"] == 16 and "--task sortedness" in found[0]["commands"][0]


def test_summary_and_figures_are_there(study):
    folder, answer = study
    assert "learned" in answer.stdout and "none+causal" in answer.stdout
    assert "2/2 none+causal-mean-0 done" in answer.stderr and "Traceback" not in answer.stderr
    drawn = {path.stem for path in (folder / "figures").glob("*.png")}
    assert drawn == {
        *("extrapolation_swap", "extrapolation_move", "extrapolation_shuffle", "dilution", "margins"),
        *("shifted_positions", "position_tables", "scores_by_distance", "neighbour_head"),
    }
    assert {path.stem for path in (folder / "figures").glob("*.svg")} == drawn


def test_finished_cells_are_not_run_again_new_ones_join_and_a_failed_one_is_reported(study):
    folder, _ = study
    models = {path: path.stat().st_mtime_ns for path in folder.glob("cells/*/model/model.safetensors")}
    (folder / "cells" / "none-mean-0").mkdir()
    (folder / "cells" / "none-mean-0" / "something").write_text("in the way")
    more = ["--encodings", "learned,none,alibi", *ASKED[2:], "--lengths", "16,24", "--json"]
    answer = run("--output", str(folder), *more, *TINY, "--workers", "1")
    assert answer.returncode == 1
    assert "cell none-mean-0 failed" in answer.stderr and "is not empty and holds no run" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in models.items())
    assert {row["variant"] for row in json.loads(answer.stdout)} == {"learned", "none+causal", "alibi"}
    lengths = {row["length"] for row in rows(folder, "lengths") if row["variant"] == "learned"}
    assert lengths == {*range(8, 17), 24, 32}
    asked = json.loads((folder / "cells" / "learned-mean-0" / "asked.json").read_text())
    assert asked["lengths"] == [8, 16, 24, 32] and asked["kinds"] == ["shuffle", "swap", "move"]


ADDING = [
    *("--set", "training.steps=20", "--set", "model.hidden_size=16", "--set", "model.intermediate_size=16"),
    *("--set", "data.digits=3", "--set", "data.test=30", "--set", "data.hard=20", "--set", "data.validation=10"),
    *("--set", "data.test_lengths=[4]", "--rows", "4", "--workers", "1", "--seeds", "0"),
]


@pytest.fixture(scope="module")
def adding(tmp_path_factory):
    folder = tmp_path_factory.mktemp("length") / "adding"
    asked = ["--task", "addition", "--variants", "whole,no-jitter", "--lengths", "5,8", "--kinds", "random,full_chain"]
    answer = run("--output", str(folder), *asked, *ADDING)
    assert answer.returncode == 0, answer.stderr
    return folder, answer


def test_addition_leaves_rows_summary_and_figures(adding):
    folder, answer = adding
    found = rows(folder, "lengths")
    assert {(row["variant"], row["jitter"]) for row in found} == {("whole", 0.15), ("no-jitter", None)}
    assert {row["kind"] for row in found} == {"test", "hard", "random", "full_chain"}
    assert all(row["trained"] == [1, 3] and row["built_in"][0] == "coupled position ids" for row in found)
    assert all(row["pooling"] is None and row["task"] == "addition" for row in found)
    assert all({"value", "n", "interval", "seed", "length"} <= row.keys() for row in found)
    assert all(row["disagree"] == 0 for row in rows(folder, "generated"))
    assert {row["metric"] for row in rows(folder, "columns")} == {"bias", "weight", "entropy_share"}
    assert all(row["seconds"]["0"] > 0 for row in rows(folder, "summary"))
    drawn = {path.stem for path in (folder / "figures").glob("*.png")}
    assert drawn == {"accuracy_by_length", "margin_and_entropy", "what_heads_read"}
    assert "never learned in distribution" in answer.stdout and "coupled position ids" in answer.stdout
    assert {row["says"] for row in rows(folder, "summary")} == {"the recipe as it stands", "scores as they are"}


def test_the_report_shows_a_study_of_addition_as_one(adding):
    folder, _ = adding
    assert run_command_line(["report", str(folder)]) == 0
    page, text = (folder / "report.html").read_text(), (folder / "report.md").read_text()
    assert '<section id="length-addition"' in page and page.count("<figure>") == 3
    assert "2 in none (whole and no-jitter: never fitted" in text and "0 of 1, never fitted" in text


def test_a_folder_holds_one_task_only(adding):
    folder, _ = adding
    answer = run("--output", str(folder), *ASKED, "--lengths", "16", *TINY, "--dry-run")
    assert answer.returncode == 2 and "holds the study of another task, addition; expected" in answer.stderr


def test_a_small_task_has_a_grid_of_encodings_too(tmp_path):
    """One command, for a task that this verb has never heard of: a decoder that pools nothing."""
    asked = ["--task", "reverse", "--encodings", "learned,rotary", "--seeds", "0", "--lengths", "20,24", "--rows", "4"]
    answer = run("--output", str(tmp_path / "s"), *asked, "--set", "training.steps=20", "--workers", "1")
    assert answer.returncode == 0, answer.stderr
    found = rows(tmp_path / "s", "lengths")
    assert {(row["variant"], row["pooling"], row["task"]) for row in found} == {
        ("learned", None, "reverse"),
        ("rotary", None, "reverse"),
    }
    assert {(row["kind"], row["length"]) for row in found} == {
        ("test", 16),
        *((kind, length) for kind in ("random", "repeated", "periodic") for length in (20, 24)),
    }
    assert {
        row["encoding"] for row in rows(tmp_path / "s", "positions") if row["source"].startswith("rotary")
    } == set()
    assert {row["name"] for row in rows(tmp_path / "s", "positions") if row["metric"] == "table"} == {
        "sinusoidal",
        "learned",
    }
    assert "exact match in % by letters" in answer.stdout
    assert list((tmp_path / "s" / "figures").glob("*.png"))


def test_the_public_function_gives_what_is_written_and_does_nothing_twice(study):
    folder, _ = study
    settings = [word for word in TINY if word != "--set"]
    asked = {"encodings": ["learned"], "poolings": ["mean"], "seeds": [0], "settings": settings}
    models = {path: path.stat().st_mtime_ns for path in folder.glob("cells/*/model/model.safetensors")}
    found = headcount.extrapolate("sortedness", folder, **asked, lengths=[32], kinds=["swap"], rows=10)
    assert found.failed == {} and found.rows["summary"] == rows(folder, "summary")
    assert found.rows["lengths"] == rows(folder, "lengths")
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in models.items())
    summary = next(row for row in found.rows["summary"] if row["variant"] == "learned" and row["kind"] == "swap")
    assert summary["in_distribution"]["n"] == 9 * 20
    with pytest.raises(ValueError, match="--rows 5 is odd"):
        headcount.extrapolate("sortedness", folder, rows=5)


def test_two_studies_in_one_folder_are_one_too_many(tmp_path):
    with alone_in(tmp_path):
        answer = run("--output", str(tmp_path), *ASKED, "--lengths", "16", *TINY)
        assert answer.returncode == 2 and "another headcount process is at work" in answer.stderr
        assert not list(tmp_path.iterdir())
    with alone_in(tmp_path):  # whoever held it before is gone
        pass


def test_a_study_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    answer = run("--output", str(tmp_path / "file" / "study"), *ASKED, "--lengths", "16", *TINY)
    assert answer.returncode == 2 and "cannot be written" in answer.stderr and "Traceback" not in answer.stderr


@pytest.mark.slow
def test_interrupted_study_leaves_no_process_and_goes_on(tmp_path):
    arguments = ["--output", str(tmp_path / "s"), "--encodings", "none", "--poolings", "mean", "--seeds", "0"]
    arguments += ["--rows", "4", "--lengths", "16", *TINY, "--set", "training.steps=1000", "--workers", "1"]
    cell = tmp_path / "s" / "cells" / "none-mean-0"
    process = subprocess.Popen(command(*arguments), stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not ((cell / "metrics.jsonl").exists() and (cell / "metrics.jsonl").read_text().count("\n") > 2):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    (worker,) = psutil.Process(process.pid).children()
    process.terminate()  # counts as Ctrl-C
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130 and "the same command goes on from there" in said, said
    assert "Traceback" not in said and not worker.is_running()
    assert list((cell / "checkpoints").iterdir())
    answer = run(*arguments)
    assert answer.returncode == 0, answer.stderr
    (summary,) = json.loads((cell / "results" / "training.json").read_text())
    assert summary["resumed_at"] > 0 and summary["steps"] == 1000


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (["--encodings", "rotery"], "encoding 'rotery' is not known"),
        (["--encodings", "none+casual"], "unknown part 'casual'"),
        (["--poolings", "maximum"], "pooling 'maximum' is not known"),
        (["--lengths", "16,long"], "--lengths: 'long' is not allowed; expected a whole number from 2"),
        (["--seeds", "9" * 5000], f"--seeds: '{'9' * 40}...' is not allowed; expected a whole number from 0"),
        (["--seeds", "0,,1"], "has an empty part"),
        (["--rows", "5"], "--rows 5 is odd"),
        (["--recipes", "addition"], "is of addition; expected one of sortedness"),
        (["--recipes", "sortedness", "--quick"], "--quick has no effect with --recipes"),
        (["--schemes", "abacus"], "scheme 'abacus' does not apply to the grid of sortedness"),
        (["--encodings", "none+randomized"], "position_scheme='randomized' has no effect with"),
        (["--set", "training.stepps=3"], "stepps"),
        (["--task", "division"], "there is no task 'division'; expected one of"),
        (["--task", "addition", "--poolings", "max"], "--poolings has no effect with --task addition"),
        (["--task", "addition", "--variants", "hole"], "variant 'hole' is not known"),
        (["--task", "addition", "--kinds", "swap"], "kind 'swap' is not known"),
        (["--task", "addition", "--recipes", "sortedness"], "is of sortedness; expected one of addition"),
        (
            ["--task", "addition", "--lengths", "20,50"],
            "a length of 20 is within training, which is tested by held-out problems",
        ),
        (["--task", "addition", "--variants", "whole", "--encodings", "none"], "--encodings has no effect with"),
        (["--task", "reverse", "--lengths", "7,20"], "a length of 7 is within training"),
        (["--variants", "whole"], "--variants has no effect with --task sortedness"),
    ],
)
def test_mistakes_get_one_sentence_and_exit_code_2(tmp_path, arguments, sentence):
    answer = run("--output", str(tmp_path / "x"), *arguments, "--dry-run")
    assert answer.returncode == 2 and sentence in answer.stderr, answer.stderr
    assert len(answer.stderr.strip().splitlines()) == 1


def test_other_settings_under_the_same_name_are_refused(study):
    folder, _ = study
    answer = run("--output", str(folder), *ASKED, "--lengths", "16")
    assert answer.returncode == 2 and "was trained with other settings" in answer.stderr


def test_dry_run_lists_the_cells(tmp_path):
    answer = run("--output", str(tmp_path / "x"), "--dry-run")
    assert len(answer.stdout.splitlines()) == 108 and not (tmp_path / "x").exists()
    answer = run("--output", str(tmp_path / "x"), "--schemes", "sequential,randomized", "--quick", "--dry-run")
    assert "left out: none+randomized" in answer.stderr and "sinusoidal+randomized-max-0" in answer.stdout
