"""How near a circuit that was found comes to the one that is known: precision, recall and F1 of nodes and of edges."""

from collections.abc import Collection, Iterable
from typing import TypeVar

from ....records.rows import Rows, row
from .construction import Construction
from .wiring import Edge


Item = TypeVar("Item", str, Edge)


def score(found_nodes: Iterable[str], found_edges: Iterable[Edge] | None, construction: Construction) -> Rows:
    """Rows of the study `constructions`: precision, recall and f1 of nodes and, where both sides have any, of edges.

    Precision is the share of what was found that is true; every member of redundant `alternatives` counts as true,
    with its edges. Recall is the share of a smallest complete circuit that was found: of alternatives it has as many
    as are needed (one of a pair), and of all such circuits the one counts that was found best. So one of a redundant
    pair is complete, both are no mistake, and neither is one node missed. Of nothing that was found, precision is
    None; F1 is then 0.

    >>> from headcount.analysis.circuits.constructions.catalogue import CONSTRUCTIONS
    >>> known = CONSTRUCTIONS["sorter"]
    >>> rows = score(["encoder.0.mlp", "encoder.1.mlp"], None, known)
    >>> [(each["metric"], each["value"]) for each in rows]
    [('node_precision', 0.5), ('node_recall', 0.5), ('node_f1', 0.5)]

    Args:
        found_nodes: names of heads and feed-forward sublayers, each counted once.
        found_edges: pairs of names, or None from a method that finds none.
        construction: the truth.

    Returns:
        A row for every metric; `n` is the number of things found for precision, of true ones for recall, and both
        together for F1. A construction whose edges training decided has no rows about edges.
    """
    nodes, edges = set(found_nodes), None if found_edges is None else set(found_edges)
    versions = list(construction.versions())
    whole = max(versions, key=lambda version: (len(nodes & version[0]), len((edges or set()) & (version[1] or set()))))
    rows = _rows("node", nodes, set(construction.nodes), whole[0], construction)
    if edges is not None and construction.edges is not None and whole[1] is not None:
        rows += _rows("edge", edges, set(construction.edges), whole[1], construction)
    return rows


def _rows(
    what: str, found: set[Item], true: set[Item], smallest: Collection[Item], construction: Construction
) -> Rows:
    right, complete = len(found & true), len(found & set(smallest))
    precision = right / len(found) if found else None
    recall = complete / len(smallest)
    f1 = 2 * precision * recall / (precision + recall) if precision and recall else 0.0
    figures = (
        ("precision", precision, len(found)),
        ("recall", recall, len(smallest)),
        ("f1", f1, len(found) + len(smallest)),
    )
    return [
        row(
            "constructions",
            f"{what}_{name}",
            {"value": value, "n": count},
            construction=construction.name,
            task=construction.task,
        )
        for name, value, count in figures
    ]
