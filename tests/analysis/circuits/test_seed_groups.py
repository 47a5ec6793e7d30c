"""Runs that hold their variables in the same places are one group; a step that is no longer than others joins."""

import pytest

from headcount.analysis.circuits.seed_groups import seed_groups
from headcount.records.rows import check_row, row, select


def account(**reached):
    return [
        row("variables", "interchange_accuracy", {"value": value, "n": 9}, variable="carry", site=site, stage="search")
        for site, value in reached.items()
    ]


def groups(rows):
    return [found["value"] for found in select(rows, metric="group")]


def test_groups_follow_from_what_is_reached_at_each_site():
    rows = seed_groups({"a": account(x=0.9, y=0.1), "c": account(x=0.1, y=0.9), "b": account(x=0.85, y=0.2)})
    assert groups(rows) == [1, 2, 1]
    assert select(rows, metric="apart", run="a", compared_with="c")[0]["value"] == pytest.approx(0.8)
    for each in rows:
        check_row(each, "test")


def test_even_distances_make_no_groups():
    rows = seed_groups({name: account(x=0.1 * place) for place, name in enumerate("abc")})
    assert groups(rows) == [1, 1, 1]
    assert groups(seed_groups({"a": account(x=0.1), "b": account(x=0.9)})) == [1, 1], "two runs have no groups"


def test_runs_of_other_tasks_cannot_be_compared():
    other = [{**each, "variable": "violation"} for each in account(x=0.5)]
    with pytest.raises(ValueError, match="no variable in common"):
        seed_groups({"a": account(x=0.5), "b": other, "c": other})
