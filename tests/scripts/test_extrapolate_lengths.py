"""`headcount extrapolate --lengths` beyond training only, and a study whose question changes while it is stopped."""

import contextlib
import json

import pytest
from command_line import run

from headcount.analysis.lengths import cell_work
from headcount.analysis.lengths.analyses import LENGTH_ANALYSES, LengthAnalysis
from headcount.analysis.lengths.asked import Asked, is_finished, read_asked
from headcount.analysis.lengths.cells import make_cells
from headcount.analysis.lengths.study import gather_rows
from headcount.data_builders.registry import TASKS
from headcount.records.rows import read_rows, results_path, select


TINY = [
    *("training.steps=2", "model.num_hidden_layers=1", "model.hidden_size=16", "model.intermediate_size=16"),
    *("data.test=20", "data.validation=20"),
]
ASKED = [
    *("--encodings", "none", "--poolings", "mean", "--seeds", "0", "--rows", "10", "--kinds", "swap"),
    *("--workers", "1", *(word for value in TINY for word in ("--set", value))),
]


@pytest.mark.slow
def test_lengths_beyond_training_come_with_the_training_lengths_up_to_the_report(tmp_path):
    folder = tmp_path / "study"
    said = run("extrapolate", "--output", folder, *ASKED, "--lengths", "32,64").stdout
    found = read_rows(results_path(folder, "lengths"))
    trained = [row["length"] for row in select(found, kind="swap") if row["value"] is not None and row["length"] <= 16]
    assert trained and max(trained) == 16
    (summary,) = read_rows(results_path(folder, "summary"))
    assert summary["in_distribution"]["n"] == 20 * len(trained) and "not measured in distribution" not in said
    run("report", folder)
    assert "not measured there" not in (folder / "report.md").read_text()


@pytest.mark.slow
def test_a_study_that_holds_nothing_out_never_says_never(tmp_path):
    folder = tmp_path / "study"
    bare = ["--set", "data.test_lengths=[32]"]
    said = run("extrapolate", "--output", folder, *ASKED, "--lengths", "32,64", *bare).stdout
    assert "not measured in distribution" in said and "never learned" not in said
    (summary,) = read_rows(results_path(folder, "summary"))
    assert summary["in_distribution"] is None and summary["holds_to"] == {"0": None}
    run("report", folder)
    for name in ("report.md", "report.html"):
        text = (folder / name).read_text()
        assert "never learned" not in text and "no combination is at 99 %" not in text
        assert "1 not measured there" in text


@pytest.fixture
def cell(tmp_path):
    (made,) = make_cells(TASKS["sortedness"], encodings=["none"], poolings=["mean"], seeds=[0], settings=TINY)
    return made, tmp_path / "cells" / made.name


def stop_at(monkeypatch, name):
    def stop(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setitem(LENGTH_ANALYSES, name, LengthAnalysis(LENGTH_ANALYSES[name].applies, stop))


def sizes(folder):
    return {row["n"] for row in read_rows(results_path(folder, "lengths")) if row["length"] == 32}


def test_a_cell_stopped_between_two_questions_answers_neither_with_rows_of_the_other(cell, monkeypatch):
    made, folder = cell
    large, small = Asked((32,), ("swap",), 20), Asked((32,), ("swap",), 10)
    cell_work.work(made, folder, large)
    assert is_finished(folder, large) and sizes(folder) == {20}
    with monkeypatch.context() as patched, contextlib.suppress(KeyboardInterrupt):
        stop_at(patched, "dilution")
        cell_work.work(made, folder, small)
    assert sizes(folder) == {10} and not is_finished(folder, large) and read_asked(folder) is None
    assert gather_rows(folder.parents[1]) == {}
    cell_work.work(made, folder, large)
    assert is_finished(folder, large) and sizes(folder) == {20}


def test_a_cell_trained_anew_forgets_what_was_asked_of_the_old_one(cell, monkeypatch):
    made, folder = cell
    before, now = Asked((32, 64), ("swap",), 10), Asked((128,), ("swap",), 10)
    cell_work.work(made, folder, before)

    def stop(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, contextlib.suppress(KeyboardInterrupt):
        patched.setattr(cell_work, "write_asked", stop)  # killed when all rows are there
        cell_work.work(made, folder, now, overwrite=True)
    assert not is_finished(folder, before)
    cell_work.work(made, folder, now)
    assert json.loads((folder / "asked.json").read_text())["lengths"] == [128]
