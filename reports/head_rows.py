"""How the rows of the study of single heads are found: drops over all of the data, of shares and of other measures;
which maps are averages. Rows about sets of sites: `set_rows`.
"""

from ..data_builders.registry import TASKS
from ..records.rows import Row, Rows, select, values_of


def whole_drops(rows: Rows, mode: str = "zero") -> Rows:
    """What each head costs over all of the data, where that is a share: these rows have a class."""
    return [row for row in all_drops(rows, mode) if is_share(row)]


def number_drops(rows: Rows, mode: str = "zero") -> Rows:
    """The same for a measure that is no share, such as the likelihood of a text."""
    return [row for row in all_drops(rows, mode) if not is_share(row)]


def all_drops(rows: Rows, mode: str) -> Rows:
    found = select(rows, scope={}, study="ablation", mode=mode)
    return [row for row in found if row["metric"].endswith("_drop")]


def class_words(row: Row) -> str:
    """The class of a head or set; a question mark where the interval reaches into another one."""
    return row["class"] if row["class_is_certain"] else f"{row['class']}?"


def modes_of(rows: Rows) -> list[str]:
    return values_of(select(rows, study="ablation"), "mode")


def is_share(row: Row) -> bool:
    """Only of a share it can be said how much is much; `class` says so."""
    return row.get("class") is not None


def measure_of(row: Row) -> str:
    """`exact match` of `exact_match_drop`."""
    return row["metric"].removesuffix("_drop").replace("_", " ")


def is_average(row: Row) -> bool:
    """Whether a map is the mean over many examples."""
    return row["metric"] == "mean_attention_weights"


def relation_words(name: str) -> str:
    """What keys of a relation are, as the task that has it says."""
    found = (task.relations[name].says for task in TASKS.values() if name in task.relations)
    return next(found, name.replace("_", " "))
