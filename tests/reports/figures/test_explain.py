"""Figures of an account: they show what the rows say, and are left out where there are none."""

import pytest

from headcount.records.rows import row
from headcount.reports.figures.explain import EXPLAIN_FIGURES, draw_accounts, draw_circuit, draw_seeds, draw_variables


def figure(value, n=100):
    return {"value": value, "n": n, "interval": [max(0.0, value - 0.05), min(1.0, value + 0.05)]}


def reached(value, site="encoder.0.residual@column", stage="account", control="none", **about):
    about = {"variable": "carry", "site": site, "directions": 4, "stage": stage, "control": control, **about}
    return row("variables", "interchange_accuracy", figure(value), **about)


def circuit_rows():
    about = {"mode": "mean", "searched_under": "mean", "by": "exact_match", "of": 9}
    edges = ["encoder.embed -> encoder.0.mlp", "encoder.0.mlp -> logits"]
    return [
        row("circuit", "faithfulness", figure(0.98), level="edges", size=2, edges=edges, **about),
        row("circuit", "removal_cost", figure(0.4), level="nodes", size=1, site="encoder.0.mlp", **about),
        *(row("circuit", "removal_cost", figure(0.4), level="edges", size=2, edge=edge, **about) for edge in edges),
    ]


def texts(found):
    return [text.get_text() for axes in found.axes for text in axes.texts]


def test_a_circuit_names_its_nodes_and_what_they_cost():
    found = draw_circuit(circuit_rows())
    assert "2 of 9 edges reach 98.0 % of the model" in found.axes[0].get_title()
    assert {"encoder.embed", "encoder.0.mlp", "logits"} <= set(texts(found))
    assert any("40.0 points" in text.replace("\n", " ") for text in texts(found))


def test_variables_show_every_site_that_was_searched():
    rows = [reached(0.9, stage="search"), reached(0.1, "encoder.1.residual@left", stage="search")]
    assert sorted(texts(draw_variables(rows))) == ["10", "90"]


def test_accounts_stand_beside_their_controls():
    found = draw_accounts([reached(0.9), reached(0.02, control="wrong place"), reached(0.0, control="no swap")])
    labels = [text.get_text() for text in found.legends[0].get_texts()]
    assert {"the directions found", "trained at other tokens", "nothing swapped"} <= set(labels)


def test_runs_side_by_side_name_their_groups():
    rows = [reached(0.9, run="a"), reached(0.5, run="b")]
    rows += [row("seed_groups", "group", {"value": float(n), "n": 1}, run=name) for n, name in ((1, "a"), (2, "b"))]
    found = draw_seeds(rows)
    assert [label.get_text() for label in found.axes[0].get_yticklabels()] == ["a (group 1)", "b (group 2)"]


@pytest.mark.parametrize("name", EXPLAIN_FIGURES)
def test_without_rows_there_is_no_figure(name):
    assert EXPLAIN_FIGURES[name]([]) is None
