"""Scores worked out by hand."""

import pytest

from headcount.analysis.circuits.constructions.catalogue import CONSTRUCTIONS
from headcount.analysis.circuits.constructions.scoring import score
from headcount.records.rows import check_row, only


def figures(rows) -> dict[str, tuple[float | None, int]]:
    for each in rows:
        check_row(each, "score")
    return {each["metric"]: (each["value"], each["n"]) for each in rows}


@pytest.mark.parametrize("name", CONSTRUCTIONS)
def test_the_truth_itself_is_perfect(name):
    known = CONSTRUCTIONS[name]
    rows = score(known.nodes, known.edges, known)
    assert {each["value"] for each in rows} == {1.0}
    assert len(rows) == (3 if known.edges is None else 6)
    assert {(each["study"], each["construction"]) for each in rows} == {("constructions", name)}


@pytest.mark.parametrize("name", CONSTRUCTIONS)
def test_nothing_is_no_circuit(name):
    found = figures(score([], [], CONSTRUCTIONS[name]))
    assert found["node_precision"] == (None, 0)
    assert found["node_recall"][0] == found["node_f1"][0] == 0.0


def test_what_is_too_much_costs_precision_and_what_is_missing_recall():
    known = CONSTRUCTIONS["adder"]  # 5 nodes
    found = figures(score([*known.nodes[:4], "encoder.0.self.1", "decoder.0.cross.1"], None, known))
    precision, recall = 4 / 6, 4 / 5
    assert found == {
        "node_precision": (pytest.approx(precision), 6),
        "node_recall": (pytest.approx(recall), 5),
        "node_f1": (pytest.approx(2 * precision * recall / (precision + recall)), 11),
    }


def test_edges_are_counted_by_direction():
    known = CONSTRUCTIONS["sorter"]  # 4 edges
    edges = [("encoder.0.self.0", "encoder.0.mlp"), ("encoder.0.mlp", "encoder.0.self.0")]
    found = figures(score(known.nodes, edges, known))
    assert found["edge_precision"] == (0.5, 2) and found["edge_recall"] == (0.25, 4)


@pytest.mark.parametrize("taken, recall", [((0,), 1.0), ((1,), 1.0), ((0, 1), 1.0), ((), 5 / 6)])
def test_one_of_a_redundant_pair_is_complete_and_both_are_no_mistake(taken, recall):
    known = CONSTRUCTIONS["adder-redundant"]
    (pair,) = known.alternatives
    gone = {member for number, member in enumerate(pair.members) if number not in taken}
    nodes = [node for node in known.nodes if node not in gone]
    edges = [edge for edge in known.edges if not gone & set(edge)]
    found = figures(score(nodes, edges, known))
    assert found["node_precision"][0] == found["edge_precision"][0] == 1.0
    assert found["node_recall"][0] == pytest.approx(recall)
    assert (found["edge_recall"][0] == 1.0) == bool(taken)


@pytest.mark.parametrize("taken, recall", [(3, 1.0), (2, 1.0), (1, 6 / 7), (0, 5 / 7)])
def test_of_a_majority_of_three_two_are_needed(taken, recall):
    known = CONSTRUCTIONS["adder-majority"]
    (group,) = known.alternatives
    gone = set(group.members[taken:])
    rows = score([node for node in known.nodes if node not in gone], None, known)
    assert only(rows, metric="node_recall")["value"] == pytest.approx(recall)
