"""A run of a task that the report has never heard of by name has everything that a run of addition has."""

import pytest
from small_runs import REVERSE, SORTEDNESS, small_run
from small_study import study_heads

from headcount.reports.findings.collect import collect_findings
from headcount.reports.page.report import render_html, render_markdown, write_report
from headcount.reports.study import read_study


@pytest.fixture(scope="module")
def strings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("other") / "study"
    run = small_run(folder / "runs" / "reverse-0", "reverse", [*REVERSE, "model.num_attention_heads=1"])
    study_heads(run, folder / "heads")
    return folder


def test_a_reverse_run_has_a_report(strings):
    study = read_study(strings)
    found, page, text = collect_findings(study), render_html(study), render_markdown(study)
    assert list(found) == ["runs", "heads"] and study.studied.name == "reverse-0"
    assert "exact match on strings that were not in training" in found["runs"][0].text
    assert '<h2 id="runs-title">Reversal</h2>' in page
    for words in (
        "Reversal, every seed",
        "Reversal beyond the training length, every seed",
        "Heads by what they cost",
    ):
        assert f"**{words}**" in text
    assert "| 12 letters |" in text and "Accuracy by letter of the answer (0: 0)" in page
    assert "the letter that is to be written" in page, "a relation of the task, as it says itself"
    assert "carry" not in page.lower() and "digit" not in text and "undefined" not in text


def test_runs_of_several_tasks_stand_in_one_report(strings, tmp_path):
    small_run(strings / "runs" / "sortedness-0", "sortedness-tiny", SORTEDNESS)
    text = render_markdown(read_study(strings))
    assert "## Trained models" in text and "**Reversal, every seed**" in text and "**Sortedness, every seed**" in text
    assert [path.name for path in write_report(strings)] == ["report.html", "report.md"]
