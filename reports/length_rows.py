"""How the rows of a study of lengths are found, and what its sentences, tables and figures share."""

from ..data_builders.registry import find_task
from ..data_builders.tasks import LEARNED, Task
from ..records.rows import Row, Rows, values_of
from .wording import listed, percent


MOST = 6  # combinations that one sentence names; the table has them all


def task_of_rows(rows: Rows) -> Task:
    """All rows of a study of lengths are of one task, which they name."""
    return find_task(rows[0]["task"])


def kinds_in_order(rows: Rows) -> list[str]:
    """The classes of problems that the rows are about, the hardest first; held-out splits are none."""
    task, found = task_of_rows(rows), values_of(rows, "kind")
    order = [*task.hardest, *task.classes]
    return sorted((kind for kind in found if kind in task.classes), key=order.index)


def hardest_kind(rows: Rows) -> Rows:
    """The summary rows of the hardest class that was tested."""
    kinds = kinds_in_order(rows)
    return [row for row in rows if row["kind"] == kinds[0]] if kinds else []


def cell(row: Row) -> str:
    """`alibi / max`; without the pooling where nothing is pooled."""
    return row["variant"] if row["pooling"] is None else f"{row['variant']} / {row['pooling']}"


def cells_of(rows: Rows) -> dict[str, Rows]:
    """Cell -> its rows."""
    found: dict[str, Rows] = {}
    for row in rows:
        found.setdefault(cell(row), []).append(row)
    return found


def longest_tested(rows: Rows) -> int:
    return max((int(length) for row in rows for length in row["accuracy"]), default=0)


def as_in_summary(rows: Rows, summary: Rows) -> Rows:
    """Rows with their variants in the order of the summary, which has the recipe as it stands first."""
    order = values_of([*summary, *rows], "variant")
    return sorted(rows, key=lambda row: order.index(row["variant"]))


def training_lengths(rows: Rows) -> str:
    """`of 1 to 20 digits`"""
    spans = list(dict.fromkeys(tuple(row["trained"]) for row in rows))
    texts = [f"{first:,} to {last:,}" if first < last else f"{last:,}" for first, last in spans]
    return f"of {listed(texts)} {unit_of(rows)}" if unit_of(rows) != "length" else f"of length {listed(texts)}"


def learned_at(task: Task) -> str:
    """`95 %`: the share right at the training lengths from which on a model counts as having learned its task."""
    return percent(LEARNED[task.kind], 0)


def unit_of(rows: Rows) -> str:
    """What a length counts: `digits`."""
    return task_of_rows(rows).texts.length
