"""report.html and report.md: what is in them, what may be missing, and that nothing from data becomes markup."""

import json
import re
import shutil

import pytest
from small_study import addition_study

from headcount.records.files import write_json as write
from headcount.records.rows import row as make_row
from headcount.records.rows import select
from headcount.reports.markdown import inline
from headcount.reports.page.report import (
    GENERATOR,
    embedded_json,
    render_html,
    render_markdown,
    write_report,
)
from headcount.reports.study import read_study
from headcount.reports.tables.lengths import generated_answers, length_summary
from headcount.reports.tables.table import make_table


HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'|`*_&"


def data_of(page: str) -> dict:
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


@pytest.fixture(scope="module")
def page(study):
    return render_html(read_study(study))


def test_page_has_every_part_and_asks_for_nothing(page, study):
    assert re.findall(r'<section id="([\w-]+)"', page) == [
        *("findings", "runs", "heads", "pruning", "length-sortedness", "length-addition", "made")
    ]
    assert "default-src 'none'" in page and "script-src 'sha256-" in page
    assert not re.search(r'(?:src|href)="(?:https?:)?//', page) and "@import" not in page and "url(" not in page
    assert "headcount train addition-tiny" in page and "a quick study" in page and "Heads of addition-tiny-0" in page
    assert "Its answers are written units first." in page
    assert len(page.encode()) < 3_000_000
    for address in re.findall(r'href="([^"#][^"]*)"', page):
        assert (study / address.replace("%20", " ")).exists(), address


def test_page_holds_what_the_rows_say(page, study):
    data = data_of(page)
    rows = json.loads((study / "heads" / "results" / "ablation.json").read_text())
    row = select(rows, scope={}, metric="exact_match_drop", mode="mean")[0]
    measure = next(measure for measure in data["heads"]["measures"] if measure["key"] == "drop_mean")
    assert measure["values"][row["head"]]["value"] == pytest.approx(row["value"], abs=1e-5)
    assert measure["values"][row["head"]]["n"] == row["n"] == 40
    groups = [group["group"] for group in data["heads"]["layers"]]
    assert groups == ["encoder self", "decoder self", "decoder cross"]
    keys = {measure["key"] for measure in data["heads"]["measures"]}
    assert {"drop_zero", "drop_mean", "drop_resample", "same_column", "carry_source", "shapley"} <= keys
    assert {"carry_flip", "carry_moved", "carry_recovered", "carry_false_flip", "carry_errors"} <= keys
    assert all(head.count(".") == 3 for measure in data["heads"]["measures"] for head in measure["values"])
    assert "excess" not in page and "p (Holm)" not in page
    toggles = json.loads((study / "heads" / "results" / "toggles.json").read_text())
    for row in toggles:
        example = next(e for e in data["heads"]["examples"] if e["key"] == str(row["example"]))
        shown = example["intact"] if row["head"] is None else example["answers"][row["head"]]
        assert shown["answer"] == row["answer"] and shown["right"] is row["right"]
    assert data["heads"]["examples"][-1]["key"] == "average"
    charts = {chart["key"]: chart for chart in data["charts"]}
    assert set(charts) == {
        *("validation", "loss", "parts-addition", "places-addition", "pruning", "length-sortedness", "length-addition")
    }
    assert [choice["values"] for choice in charts["length-sortedness"]["choices"]] == [
        ["swap", "shuffle"],
        ["max", "mean"],
    ]
    spared = [s for s in charts["length-sortedness"]["series"] if s["name"] == "learned" and s["each"] == "seed 1"]
    assert all([point["x"] for point in series["points"]] == [8, 16, 32] for series in spared)


def test_long_addition_shows_every_variant_class_and_seed(page):
    chart = next(chart for chart in data_of(page)["charts"] if chart["key"] == "length-addition")
    assert chart["choices"][0]["values"] == [
        "random: random digits, both operands of the full length",
        "full_chain: a carry is made in the units and runs through every other column",
    ]
    assert chart["band"]["to"] == 20 and chart["x"] == {"label": "digits", "scale": "log", "from": 10}
    assert "reference" not in chart["y"], "there is no chance level"
    names = list(dict.fromkeys(series["name"] for series in chart["series"]))
    assert names == ["whole", "no-jitter", "alibi", "baseline-none"]
    seen = {
        (series["name"], series["each"]): {point["x"]: point["y"] for point in series["points"]}
        for series in chart["series"]
        if series["tags"]["kind"].startswith("full_chain")
    }
    assert seen["whole", "seed 1"] == {20: 1, 50: 1, 200: 1, 1000: 1}
    assert seen["no-jitter", "seed 0"] == {20: 1, 50: 1, 200: 0} and seen["alibi", "seed 0, never fitted"][20] == 0.3


def test_tables_of_long_addition(study):
    part = next(part for part in read_study(study).lengths if part.task == "addition")
    (table, other), (written,) = length_summary(part), generated_answers(part)
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    assert table.title.startswith("Exact match by digits: random") and "full_chain" in other.title
    assert rows[0] == {
        "variant": "whole",
        "what it changes": "the recipe as it stands",
        "built in by hand": "coupled position ids",
        "fitted": "2 of 2",
        "held out": "100 % (99.6–100.0)",
        "50": "100 % (98.1–100.0)",
        "200": "100 % (98.1–100.0)",
        "1,000": "100 % (98.1–100.0)",
        "holds to, by seed": "1,000, 1,000",
        "training seconds, by seed": "80, 81",
    }
    assert rows[1]["200"] == "0 % (0.0–1.9)" and rows[1]["1,000"] == "–" and rows[1]["holds to, by seed"] == "50, 50"
    assert rows[2]["fitted"] == "0 of 2, never fitted" and rows[2]["holds to, by seed"] == "never fitted, never fitted"
    assert rows[3]["holds to, by seed"] == "1,000, never fitted" and rows[3]["built in by hand"] == "nothing"
    assert "1,000: 100 to 200" in table.note and "50 % is chance" not in table.note
    assert written.columns == ["variant", "seeds", "50 digits", "200 digits", "1,000 digits", "all"]
    assert written.rows[:2] == [
        ["whole", "2", "0 of 400", "0 of 400", "0 of 400", "0 of 1,200"],
        ["no-jitter", "2", "0 of 400", "–", "–", "0 of 400"],
    ]


def test_a_length_study_is_known_by_the_task_of_its_rows(study, tmp_path):
    """All have files lengths and summary, any may be the folder itself, and folders may have any name."""
    assert [part.task for part in read_study(study / "length").lengths] == ["sortedness"]
    assert [part.task for part in read_study(study / "adding").lengths] == ["addition"]
    for name in ("lengths", "summary", "generated"):
        write(tmp_path / name / "results" / f"{name}.json", addition_study()[name])
        assert '<section id="length-addition"' in render_html(read_study(tmp_path / name)), f"{name} alone"
    strings = [{**row, "task": "reverse", "kind": "random"} for row in addition_study()["summary"][:1]]
    write(tmp_path / "study" / "backwards" / "results" / "summary.json", strings)
    write(tmp_path / "study" / "length" / "results" / "summary.json", addition_study()["summary"])
    write(tmp_path / "study" / "later" / "results" / "summary.json", addition_study()["summary"])
    found = read_study(tmp_path / "study")
    assert [(part.path, part.task) for part in found.lengths] == [
        ("length", "addition"),
        ("backwards", "reverse"),
        ("later", "addition"),
    ]
    page = render_html(found)
    assert re.findall(r'<section id="([\w-]+)"', page)[1:] == [
        "length-addition",
        "length-reverse",
        "length-addition-2",
    ]
    assert "Length: Addition (later)" in page and "Length: Reversal" in page and "up to 1,000 letters" in page


def test_the_same_rows_give_the_same_bytes_and_a_second_call_replaces_its_own_report(study, tmp_path, page):
    folder = shutil.copytree(study, tmp_path / study.name)
    html, markdown = write_report(folder)
    assert html.read_text() == page and markdown.read_text() == render_markdown(read_study(study))
    write_report(folder)
    assert html.read_text() == page and not list(folder.glob(".*partial"))
    markdown.write_text("notes of my own")
    with pytest.raises(ValueError, match="was not written by headcount report; expected --overwrite"):
        write_report(folder)
    assert markdown.read_text() == "notes of my own"
    write_report(folder, overwrite=True)
    assert GENERATOR in markdown.read_text()


def test_markdown_has_the_same_findings_and_tables(study, page):
    text = render_markdown(read_study(study))
    assert text.count("\n- **") == page.count('<span class="figure">') > 8
    for title in ("Addition, every seed", "Heads by what they cost", "Smaller models", "Accuracy by length: swap"):
        assert f"**{title}**" in text and f"<caption>{title}</caption>" in page
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(widths) == 1, block


@pytest.mark.parametrize("gone", ["runs", "heads", "pruned", "length", "adding", "study.json"])
def test_a_missing_part_is_simply_not_there(study, tmp_path, gone):
    folder = shutil.copytree(study, tmp_path / "study")
    (folder / gone).unlink() if (folder / gone).is_file() else shutil.rmtree(folder / gone)
    page, text = render_html(read_study(folder)), render_markdown(read_study(folder))
    names = {"pruned": "pruning", "length": "length-sortedness", "adding": "length-addition"}
    section = names.get(gone, gone)
    assert f'<section id="{section}"' not in page and "undefined" not in text
    assert data_of(page)["heads"] is None if gone == "heads" else data_of(page)["heads"]


def test_every_single_file_of_rows_may_be_missing(study, tmp_path):
    for path in sorted((study / "heads" / "results").iterdir()):
        folder = tmp_path / path.stem
        shutil.copytree(study / "heads" / "results", folder / "heads" / "results")
        (folder / "heads" / "results" / path.name).unlink()
        assert '<section id="heads"' in render_html(read_study(folder)), path.name


@pytest.mark.parametrize(
    "part, section",
    [
        ("runs/addition-tiny-0", "runs"),
        ("heads", "heads"),
        ("pruned", "pruning"),
        ("length", "length-sortedness"),
        ("adding", "length-addition"),
    ],
)
def test_one_part_by_itself_is_a_report_too(study, part, section):
    page = render_html(read_study(study / part))
    assert f'<section id="{section}"' in page and page.count('<span class="figure">') > 0


def test_hostile_text_stays_text(study, tmp_path):
    folder = shutil.copytree(study, tmp_path / "study")
    rows = json.loads((folder / "heads" / "results" / "toggles.json").read_text())
    write(
        folder / "heads" / "results" / "toggles.json", [{**row, "input": HOSTILE, "target": HOSTILE} for row in rows]
    )
    summary = json.loads((folder / "length" / "results" / "summary.json").read_text())
    write(folder / "length" / "results" / "summary.json", [{**row, "variant": HOSTILE} for row in summary])
    adding = json.loads((folder / "adding" / "results" / "summary.json").read_text())
    write(folder / "adding" / "results" / "summary.json", [{**r, "variant": HOSTILE + r["variant"]} for r in adding])
    write(folder / "study.json", {"steps": {HOSTILE: {"command": HOSTILE, "seconds": 1.0}}})
    evaluation = folder / "runs" / "addition-tiny-0" / "results" / "evaluation.json"
    texts = {"input": HOSTILE, "target": HOSTILE, "generated": HOSTILE}
    wrong = make_row("evaluation", "wrong_answer", {"n": 1}, split="test", kind=None, length=None, **texts)
    write(evaluation, [*json.loads(evaluation.read_text()), wrong])
    page, text = render_html(read_study(folder)), render_markdown(read_study(folder))
    assert page.count("<script") == page.count("</script>") == 2 and "<img src=x" not in page
    assert data_of(page)["heads"]["examples"][0]["input"] == HOSTILE
    assert not re.search(r"(?<!\\)<(?!!-- headcount|[\w%./-]+>\))", text), "nothing in Markdown is read as HTML"


def test_escaping_of_json_and_markdown():
    assert embedded_json({"a": "</script>\u2028&"}) == '{"a":"\\u003c/script\\u003e\\u2028\\u0026"}'
    assert json.loads(embedded_json([float("nan"), 0.5])) == [None, 0.5]
    assert inline("a|b\n<c> `d` [e](f) *g*") == "a\\|b \\<c> \\`d\\` \\[e\\](f) \\*g\\*"
    table = make_table("t", [{"name": "a", "value": "1.5 %"}, {"name": "b", "value": "−2"}, {"name": "c"}])
    assert table.numeric == {1} and table.rows[2] == ["c", "–"]


def test_figures_that_do_not_fit_are_linked(study, monkeypatch):
    monkeypatch.setattr("headcount.reports.page.report.MOST_BYTES", 300_000)
    page = render_html(read_study(study))
    assert "Too large to be inside this page" in page and "figures/atlas.png" in page


def test_broken_input_is_one_sentence(study, tmp_path):
    with pytest.raises(ValueError, match="is not a folder; expected a study"):
        read_study(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="holds no results; expected a folder with runs/"):
        read_study(tmp_path)
    folder = shutil.copytree(study, tmp_path / "study")
    path = folder / "heads" / "results" / "maps.json"
    for text, problem in (
        ("[{", "is not JSON"),
        ("{}", "expected a list of rows"),
        ("[1]", "expected a list of rows"),
        ('[{"study": "maps"}]', "has a row without 'metric'"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=f"maps.json.*{problem}"):
            read_study(folder)


def test_a_log_that_is_still_being_written_can_be_read(study, tmp_path):
    folder = shutil.copytree(study / "runs" / "addition-tiny-0", tmp_path / "run")
    whole = len(read_study(folder).runs[0].metrics)
    with (folder / "metrics.jsonl").open("a") as log:
        log.write('{"step": 130, "lo')
    assert len(read_study(folder).runs[0].metrics) == whole


def test_heads_beside_the_results_of_a_run_are_found_and_named(study, tmp_path):
    folder = shutil.copytree(study, tmp_path / "study")
    run = folder / "runs" / "addition-tiny-0"
    for path in (folder / "heads" / "results").iterdir():
        path.rename(run / "results" / path.name)
    shutil.rmtree(folder / "heads")
    found = read_study(folder)
    assert found.studied.name == run.name and found.heads.path == "runs/addition-tiny-0"
    assert "runs/addition-tiny-0/results/atlas.json" in render_html(found)
    assert '<section id="heads"' in render_html(read_study(run)), "and in a report of that run alone"


def test_heads_of_several_seeds_are_drawn_side_by_side(study, tmp_path):
    folder = shutil.copytree(study, tmp_path / "study")
    for name in ("heads-1", "heads-10", "heads-2"):
        shutil.copytree(folder / "heads" / "results", folder / name / "results")
    found = read_study(folder)
    assert list(found.heads_by_run) == ["addition-tiny-0", "heads-1", "heads-2", "heads-10"]
    assert found.heads.path == "heads" and "atlas_by_seed" not in found.figures
    html, markdown = write_report(folder)
    assert (folder / "figures" / "atlas_by_seed.png").stat().st_size > 0
    assert "The atlas of every seed" in html.read_text() and "figures/atlas_by_seed.png" in markdown.read_text()
    assert "of 4 seeds" in markdown.read_text() and "heads-2/results/atlas.json" in html.read_text()
    again = html.read_text()
    write_report(folder)
    assert html.read_text() == again
    assert "of every seed" not in render_markdown(read_study(study))


def test_lengths_that_only_some_cells_reached_keep_their_order(study, tmp_path):
    folder = shutil.copytree(study / "length", tmp_path / "length")
    rows = json.loads((folder / "results" / "summary.json").read_text())
    few = rows[-1]["accuracy"]
    rows[-1]["accuracy"] = {"16": few["32"], **few, "1024": few["64"]}
    write(folder / "results" / "summary.json", rows)
    header = next(line for line in render_markdown(read_study(folder)).splitlines() if line.startswith("| encoding"))
    assert re.findall(r"(?<=\| )[\d,]+(?= \|)", header) == ["16", "32", "64", "1,024"]


def test_maps_that_are_too_large_stay_out_of_the_page(study, tmp_path):
    folder = shutil.copytree(study / "heads", tmp_path / "heads")
    rows = json.loads((folder / "results" / "maps.json").read_text())
    long = {"queries": ["1"] * 60, "keys": ["1"] * 60, "weights": [[[0.0167] * 60] * 60] * 2}
    write(folder / "results" / "maps.json", [{**rows[0], **long}, *rows[1:]])
    example = data_of(render_html(read_study(folder)))["heads"]["examples"][0]
    assert rows[0]["layer"] not in example["maps"] and rows[1]["layer"] in example["maps"]
