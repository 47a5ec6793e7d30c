"""A table as texts, and how a rate stands in its cells."""

from dataclasses import dataclass

from ..wording import percent


NOTHING = "–"


@dataclass(frozen=True)
class Table:
    """`columns` that start with a letter of text are aligned left, those in `numeric` right."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    note: str = ""
    numeric: frozenset[int] = frozenset()


def make_table(title: str, rows: list[dict[str, str]], note: str = "") -> Table:
    """From rows as dicts; a column is numeric if every cell of it starts like a number.

    >>> make_table("t", [{"name": "a", "value": "1.5 %"}]).numeric
    frozenset({1})
    """
    columns = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[str(row.get(name, NOTHING)) for name in columns] for row in rows]
    numeric = frozenset(
        place
        for place in range(len(columns))
        if all(row[place] == NOTHING or row[place].lstrip("−<>≥ ")[:1].isdigit() for row in cells)
    )
    return Table(title, columns, cells, note, numeric)


def with_interval(row: dict) -> str:
    """`98.5 % (95.7–99.5)`"""
    low, high = row["interval"]
    return f"{percent(row['value'], 1)} ({100 * low:.1f}–{100 * high:.1f})"


def in_points(value: float) -> str:
    return f"{100 * value:.2f}".replace("-", "−")


def by_hand(names: list[str]) -> dict[str, str]:
    """The column that says what was not trained."""
    return {"built in by hand": ", ".join(names) or "nothing"}
