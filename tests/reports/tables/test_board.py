"""Tables of the board: what stands in a cell, and what does not."""

from small_board import write_study

from headcount.reports.board_rows import gather
from headcount.reports.tables.board import at_a_glance, tasks_by_encodings, variants_of_task


def as_dicts(table) -> list[dict[str, str]]:
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def test_a_cell_says_how_many_times_or_why_not(tmp_path):
    reverse = write_study(tmp_path / "a", "reverse", {"rotary": {0: 80}, "none": {0: 10}, "learned": {0: 0}})
    sorting = write_study(tmp_path / "b", "sortedness", {"rotary": {0: 20}})
    reverse_line, sorted_line = as_dicts(tasks_by_encodings(gather([reverse, sorting])))
    assert reverse_line == {
        "task": "reverse",
        "trained to": "10 letters",
        "rotary": "≥ 8 x",  # most tasks have it
        "learned": "not fitted",
        "none": "1 x",
    }
    assert (sorted_line["rotary"], sorted_line["none"], sorted_line["learned"]) == ("2 x", "", "")  # not measured


def test_a_task_at_a_glance_has_theory_and_papers(tmp_path):
    aids = {"whole": ["coupled position ids"]}
    adding = write_study(tmp_path / "a", "addition", {"rotary": {0: 20}, "whole": {0: 80}}, built_in=aids)
    (line,) = as_dicts(at_a_glance(gather([adding])))
    assert (line["best, nothing built in"], line["best, with aids"]) == ("20 (rotary)", "≥ 80 (whole)")
    assert (line["RASP-L"], line["C-RASP"], line["prediction"]) == ("no", "no", "disagrees")
    assert line["strongest published"].startswith("30 to 200 digits, more than 95 %")
    assert "(https://arxiv.org/abs/2405.20671)" in line["strongest published"]


def test_what_no_paper_says_is_not_made_up(tmp_path):
    (line,) = as_dicts(at_a_glance(gather([write_study(tmp_path / "a", "sortedness", {"rotary": {0: 20}})])))
    assert (line["RASP-L"], line["C-RASP"]) == ("not stated", "not stated")
    assert (line["strongest published"], line["prediction"]) == ("none known to us", "nothing to compare")


def test_a_variant_says_how_it_fails_and_what_it_costs(tmp_path):
    aids = {"rotary": ["window"]}
    found = gather([write_study(tmp_path / "a", "reverse", {"rotary": {0: 80, 1: 20}, "none": {0: 0}}, built_in=aids)])
    table = variants_of_task(found)
    none, rotary = as_dicts(table)
    assert (rotary["built in by hand"], none["built in by hand"]) == ("window", "nothing")
    assert (rotary["holds to, letters"], rotary["by seed"], rotary["then"]) == ("20", "80, 20", "at 40: 50.0 %")
    assert (none["holds to, letters"], none["training lengths, worst seed"], none["then"]) == (
        "not fitted",
        "50.0 %",
        "–",
    )
    assert rotary["seconds of one core, by seed"] == "30, 31"
    assert (
        "at least 200, of which all may be right at an error rate of 1.5 %" in table.note
        and "random, repeated" in table.note
    )
