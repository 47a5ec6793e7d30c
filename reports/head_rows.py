"""How the rows of the study of heads are found: drops over all of the data, of shares and of other measures."""

from ..records.rows import Rows, select, values_of


def whole_drops(rows: Rows, mode: str = "zero") -> Rows:
    """What each head costs over all of the data, where that is a share: these rows have a class."""
    return [row for row in all_drops(rows, mode) if is_share(row)]


def number_drops(rows: Rows, mode: str = "zero") -> Rows:
    """The same for a measure that is no share, such as the likelihood of a text."""
    return [row for row in all_drops(rows, mode) if not is_share(row)]


def all_drops(rows: Rows, mode: str) -> Rows:
    found = select(rows, scope={}, study="ablation", mode=mode)
    return [row for row in found if row["metric"].endswith("_drop")]


def modes_of(rows: Rows) -> list[str]:
    return values_of(select(rows, study="ablation"), "mode")


def is_share(row: dict) -> bool:
    """Only of a share it can be said how much is much; `class` says so."""
    return row.get("class") is not None


def measure_of(row: dict) -> str:
    """`exact match` of `exact_match_drop`."""
    return row["metric"].removesuffix("_drop").replace("_", " ")
