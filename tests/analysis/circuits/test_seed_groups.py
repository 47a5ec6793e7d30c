"""Runs that hold their variables in the same places are one group, and so are those that others link."""

import pytest

from headcount.analysis.circuits.seed_groups import seed_groups
from headcount.records.rows import check_row, row, select


def account(**reached):
    return [
        row(
            "variables", "interchange_accuracy", {"value": value, "n": 10}, variable="carry", site=site, stage="search"
        )
        for site, value in reached.items()
    ]


def groups(rows):
    return {found["run"]: found["value"] for found in select(rows, metric="group")}


def test_groups_follow_from_what_is_reached_at_each_site():
    rows = seed_groups({"a": account(x=0.9, y=0.1), "b": account(x=0.85, y=0.2), "c": account(x=0.1, y=0.9)})
    assert groups(rows) == {"a": 1, "b": 1, "c": 2}
    assert select(rows, metric="apart", run="a", compared_with="c")[0]["value"] == pytest.approx(0.8)
    for each in rows:
        check_row(each, "test")


def test_links_join_what_is_far_apart():
    rows = seed_groups({"a": account(x=0.0), "b": account(x=0.12), "c": account(x=0.24)})
    assert groups(rows) == {"a": 1, "b": 1, "c": 1}


def test_runs_of_other_tasks_cannot_be_compared():
    other = [{**each, "variable": "violation"} for each in account(x=0.5)]
    with pytest.raises(ValueError, match="no variable in common"):
        seed_groups({"a": account(x=0.5), "b": other})
