"""Rows: fixed fields, found again by what they say, and refused where a file holds anything else."""

import json

import pytest

from headcount.records.files import write_json
from headcount.records.intervals import rate
from headcount.records.rows import FIXED, only, parts, read_rows, row, select, values_of, write_rows


ROWS = [
    row("ablation", "exact_match_drop", rate(1, 10), decoding="free-running", head="encoder.0.self.0", mode="zero"),
    row("ablation", "exact_match_drop", rate(2, 10), head="encoder.0.self.0", mode="mean"),
    row("ablation", "exact_match_drop", rate(3, 5), scope={"longest_chain": 2}, head="encoder.0.self.0", mode="zero"),
    row("ablation", "exact_match_drop", rate(1, 2), scope={"longest_chain": 2, "kind": "a"}, head="x", mode="zero"),
    row("ablation", "loss_rise", head="encoder.0.self.1", mode="zero"),
]


def test_a_row_has_all_fixed_fields_and_what_it_is_about():
    assert tuple(ROWS[0])[: len(FIXED)] == FIXED
    assert ROWS[0]["value"] == 0.1 and ROWS[0]["scope"] == {} and ROWS[0]["head"] == "encoder.0.self.0"
    assert (ROWS[-1]["value"], ROWS[-1]["n"], ROWS[-1]["interval"]) == (None, 0, None)


def test_rows_are_found_by_their_values_and_by_their_part_of_the_data():
    assert select(ROWS, mode="zero", scope={}) == [ROWS[0], ROWS[4]]
    assert select(ROWS, metric="exact_match_drop", mode="zero") == [ROWS[0], ROWS[2], ROWS[3]]
    assert only(ROWS, mode="mean") is ROWS[1] and only(ROWS, mode="resample") is None
    assert parts(ROWS, "longest_chain") == [ROWS[2]]
    assert select(ROWS, seed=None) == [], "a field that is not there has no value, not even None"
    assert values_of(ROWS, "mode") == ["zero", "mean"]


def test_what_is_given_twice_and_unknown_decodings_are_refused():
    with pytest.raises(ValueError, match="'interval' is given twice"):
        row("evaluation", "exact_match", rate(1, 2), interval=[0, 1])
    with pytest.raises(ValueError, match="decoding='greedy' is not allowed"):
        row("evaluation", "exact_match", decoding="greedy")


def test_rows_survive_the_file(tmp_path):
    path = write_rows(tmp_path, "ablation", ROWS)
    assert path == tmp_path / "results" / "ablation.json" and read_rows(path) == ROWS
    assert [p.name for p in path.parent.iterdir()] == ["ablation.json"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[", "is not JSON"),
        ("{}", "holds something else; expected a list of rows"),
        ("[1]", "holds something else; expected a list of rows"),
        ("[{}]", "has a row without 'study'"),
        (json.dumps([{**ROWS[0], "value": "high"}]), "value='high'; expected a number or null"),
        (json.dumps([{**ROWS[0], "n": -1}]), "n=-1; expected a count"),
        (json.dumps([{**ROWS[0], "interval": [1]}]), r"interval=\[1\]; expected \[low, high\] or null"),
        (json.dumps([{**ROWS[0], "scope": None}]), "scope=None; expected an object"),
    ],
)
def test_a_file_with_anything_else_is_named_and_refused(content, message, tmp_path):
    path = tmp_path / "rows.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=message) as error:
        read_rows(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"head": "a`b"}, "head='a`b'; expected a name"),
        ({"head": 3}, "head=3; expected the name of a head"),
        ({"steps": "many"}, "steps='many'; expected a whole number"),
        ({"right": 1}, "right=1; expected true or false"),
        ({"drop": {"n": 1}}, "expected value, n and interval"),
        ({"weights": [1]}, "expected a map of numbers"),
        ({"study": "evaluation", "metric": "exact_match"}, "without a value or an interval"),
        ({"study": "ablation", "metric": "exact_match_drop", "value": 0.5}, "without a value or an interval"),
    ],
)
def test_fields_of_another_kind_are_named_where_rows_are_read(change, said, tmp_path):
    path = write_json(tmp_path / "ablation.json", [{**row("x", "y"), **change}])
    with pytest.raises(ValueError, match=said) as error:
        read_rows(path)
    assert "ablation.json has a row" in str(error.value)


def test_a_field_that_is_missing_names_the_file(tmp_path):
    (found,) = read_rows(write_json(tmp_path / "toggles.json", [row("x", "y")]))
    assert found == row("x", "y") and found.get("head") is None
    with pytest.raises(ValueError, match=r"toggles.json has a row without 'head'"):
        found["head"]
