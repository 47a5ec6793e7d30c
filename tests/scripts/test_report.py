"""`headcount report` as a user runs it."""

import json
import subprocess
import sys

import pytest
from small_study import length_rows, summary_rows

from headcount.records.files import write_json as write
from headcount.scripts.as_written import as_written


def run(*arguments, code: int = 0) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "headcount", "report", *map(str, arguments)]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert answer.returncode == code, answer.stderr
    if code == 2:
        assert answer.stderr.strip().count("\n") == 0 and "Traceback" not in answer.stderr, answer.stderr
    return answer


def test_report_prints_findings_and_says_where_it_is(tmp_path):
    write(tmp_path / "length" / "results" / "summary.json", summary_rows())
    write(tmp_path / "length" / "results" / "lengths.json", length_rows())
    answer = run(tmp_path)
    assert answer.stdout.startswith("- Before it can go far") and f"wrote {tmp_path / 'report.html'}" in answer.stderr
    found = json.loads(run(tmp_path, "--json").stdout)
    assert [row["text"] for row in found] == [line[2:] for line in answer.stdout.splitlines()]
    assert {row["source"] for row in found} == {"length/results/summary.json"}


def test_report_names_what_is_wrong(tmp_path):
    assert "is not a folder" in run(tmp_path / "nowhere", code=2).stderr
    assert "holds no results; expected a folder with runs/" in run(tmp_path, code=2).stderr
    write(tmp_path / "length" / "results" / "summary.json", summary_rows())
    (tmp_path / "report.md").write_text("my notes")
    assert "was not written by headcount report" in run(tmp_path, code=2).stderr
    assert (tmp_path / "report.md").read_text() == "my notes" and not (tmp_path / "report.html").exists()
    run(tmp_path, "--overwrite")
    (tmp_path / "length" / "results" / "summary.json").write_text("{")
    assert "summary.json is not JSON" in run(tmp_path, code=2).stderr


def test_results_that_do_not_fit_together_are_one_sentence(tmp_path):
    (first, *others) = length_rows()
    write(tmp_path / "length" / "results" / "summary.json", summary_rows())
    for change, said in (
        ({"length": None}, "length=None; expected a whole number"),
        ({"kind": ["a"]}, "expected a name"),
    ):
        write(tmp_path / "length" / "results" / "lengths.json", [{**first, **change}, *others])
        assert said in run(tmp_path, code=2).stderr
    write(tmp_path / "length" / "results" / "lengths.json", length_rows())
    write(tmp_path / "study.json", {"steps": {"train": ["headcount train", 3]}})
    assert "study.json has steps=" in run(tmp_path, code=2).stderr


def test_whatever_else_does_not_fit_is_a_sentence_or_asked_for_a_traceback(monkeypatch, tmp_path):
    with (
        pytest.raises(ValueError, match="do not fit together; expected the files as headcount wrote them"),
        as_written(tmp_path),
    ):
        {}["missing"]
    monkeypatch.setenv("HEADCOUNT_TRACEBACK", "1")
    with pytest.raises(KeyError), as_written(tmp_path):
        {}["missing"]
