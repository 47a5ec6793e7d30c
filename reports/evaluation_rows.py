"""How the rows of results/evaluation.json are found: whole splits, parts of them, places, tests at one length."""

import re
from collections.abc import Iterable
from typing import Any

from ..data_builders.tasks import Task
from ..records.rows import Row, Rows, only, parts, select, values_of


def whole(rows: Rows, metric: str, split: str = "test") -> Row | None:
    """The row about a whole split that is no class of problems at one length."""
    return only(rows, scope={}, metric=metric, split=split, kind=None)


def whole_splits(rows: Rows, metric: str = "exact_match") -> dict[str, Row]:
    """Split -> the row about the whole of it."""
    found: dict[str, Row] = {}
    for row in select(rows, scope={}, metric=metric, kind=None):
        found.setdefault(row["split"], row)
    return found


def by_fact(rows: Rows, fact: str, split: str) -> Rows:
    """Exact match by the values of a fact, in their order: 2 before 10, also within names."""
    return sorted(parts(rows, fact, metric="exact_match", split=split), key=lambda row: natural(row["scope"][fact]))


def natural(value: Any) -> list[tuple[bool, int, str]]:
    pieces = re.split(r"([0-9]+)", str(value))
    return [(not piece.isdigit(), int(piece) if piece.isdigit() else 0, piece) for piece in pieces if piece]


def by_place(rows: Rows, split: str) -> Rows:
    return sorted(parts(rows, "place", metric="place_accuracy", split=split), key=lambda row: row["scope"]["place"])


def at_lengths(rows: Rows, task: Task) -> Rows:
    """What was measured for classes of problems, each at one length; the shortest first."""
    found = [row for row in select(rows, scope={}, metric=task.measure["metric"]) if row["kind"] is not None]
    return sorted((row for row in found if row["value"] is not None), key=lambda row: row["length"])


def worst_by_length(rows: Rows) -> Rows:
    """For each length, the class of problems with the lowest figure."""
    return [min(select(rows, length=n), key=lambda row: row["value"]) for n in sorted(values_of(rows, "length"))]


def main_facts(task: Task) -> Iterable[str]:
    """The facts that card and findings tell."""
    return task.texts.facts if task.texts.main_facts is None else task.texts.main_facts
