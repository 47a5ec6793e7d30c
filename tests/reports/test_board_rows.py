"""Length studies become rows of the board: a variant once, every class and every seed counts."""

import json

import pytest
from small_board import EXAMPLES, write_study

from headcount.analysis.lengths.cells import AS_IT_STANDS
from headcount.data_builders.registry import TASKS
from headcount.records.files import write_json
from headcount.records.rows import write_rows
from headcount.reports.board_rows import OWN_RECIPE, column_of, gather, holds_throughout, ratio
from headcount.reports.findings.sequence_lengths import WHOLE


def only_row(*folders):
    (found,) = gather(folders)
    return found


def test_the_farthest_length_is_that_of_the_worst_seed(tmp_path):
    found = only_row(write_study(tmp_path / "a", "reverse", {"rotary": {0: 80, 1: 20}}))
    assert (found["value"], found["n"], found["holds_to"]) == (20, 2, {"0": 80, "1": 20})
    assert (found["fails_at"], found["fails_with"]) == ({"0": None, "1": 40}, {"0": None, "1": 0.5})
    assert ratio(found) == 2 and not holds_throughout(found)
    assert (found["tested_to"], found["examples"], found["seconds"]) == (80, EXAMPLES, {"0": 30.0, "1": 31.0})


def test_one_class_that_fails_is_enough(tmp_path):
    folder = write_study(tmp_path / "a", "reverse", {"rotary": {0: 80}})
    summary = folder / "results" / "summary.json"
    rows = json.loads(summary.read_text())
    assert {row["kind"] for row in rows} == set(TASKS["reverse"].classes)
    repeated = next(row for row in rows if row["kind"] == "repeated")
    repeated["holds_to"]["0"] = 20
    repeated["accuracy"]["40"]["by_seed"]["0"] = 0.25
    write_json(summary, rows)
    found = only_row(folder)
    assert (found["value"], found["fails_at"]["0"], found["fails_with"]["0"]) == (20, 40, 0.25)


def test_what_was_not_fitted_is_zero_and_what_was_not_measured_is_nothing(tmp_path):
    folder = write_study(tmp_path / "a", "reverse", {"rotary": {0: 0}, "none": {0: 80}})
    assert [(row["variant"], row["value"]) for row in gather([folder])] == [("none", 80), ("rotary", 0)]
    rows = json.loads((folder / "results" / "summary.json").read_text())
    for row in rows:
        row["holds_to"]["0"] = row["in_distribution_by_seed"]["0"] = None
    write_json(folder / "results" / "summary.json", rows)
    assert [row["value"] for row in gather([folder])] == [None, None]


def test_seeds_of_two_folders_are_put_together(tmp_path):
    one = write_study(tmp_path / "a", "reverse", {"rotary": {0: 80}})
    other = write_study(tmp_path / "b", "reverse", {"rotary": {1: 20}})
    found = only_row(one, other)
    assert (found["value"], found["seeds"], found["n"]) == (20, [0, 1], 2)
    assert only_row(one, one) == only_row(one)  # the same study twice is that study


def test_the_same_variant_of_other_data_is_a_sentence(tmp_path):
    one = write_study(tmp_path / "a", "reverse", {"rotary": {0: 80}}, data={"seed": 0, "max_length": 10})
    other = write_study(tmp_path / "b", "reverse", {"rotary": {1: 80}}, data={"seed": 0, "max_length": 16})
    with pytest.raises(
        ValueError, match=r"both have reverse with rotary, but of different data: max_length is 10 and 16"
    ):
        gather([one, other])


def test_the_same_seed_with_another_result_is_a_sentence(tmp_path):
    one = write_study(tmp_path / "a", "reverse", {"rotary": {0: 80}})
    other = write_study(tmp_path / "b", "reverse", {"rotary": {0: 20}})
    with pytest.raises(ValueError, match=r"rotary and seed 0, and disagree; expected each seed once\.$"):
        gather([one, other])


def test_a_folder_that_is_no_length_study_is_a_sentence(tmp_path):
    for folder in (tmp_path / "missing", tmp_path):
        with pytest.raises(
            ValueError, match="is no length study; expected a folder that `headcount extrapolate` wrote"
        ):
            gather([folder])
    study = write_study(tmp_path / "a", "reverse", {"rotary": {0: 80}})
    with pytest.raises(ValueError, match="is no length study"):
        gather([study / "results"])  # rows, but not of the board
    (study / "results" / "summary.json").unlink()
    with pytest.raises(ValueError, match="is a length study without results"):
        gather([study])


def test_rows_that_were_kept_are_read_as_their_study(tmp_path):
    rows = gather([write_study(tmp_path / "a", "reverse", {"rotary": {0: 80}, "none": {0: 0}})])
    write_rows(tmp_path / "kept", "reverse", rows)
    assert gather([tmp_path / "kept" / "results"]) == rows


def test_recipes_as_they_stand_are_one_column(tmp_path):
    says = {"whole": WHOLE, "dyck-nested": AS_IT_STANDS}
    rows = gather([write_study(tmp_path / "a", "reverse", {name: {0: 80} for name in ("rotary", *says)}, says=says)])
    assert [column_of(row) for row in rows] == [OWN_RECIPE, "rotary", OWN_RECIPE]
