"""The summary of a length study as a table of text, for any task."""

from ...data_builders.registry import find_task
from ...records.rows import Rows, values_of
from ..wording import percent


def study_table(summary: Rows) -> str:
    """What every variant reaches, the seeds pooled, and how far each seed holds.

    Labels: the hardest class that was measured, against which all others are easy; answers: every class.
    """
    task = find_task(summary[0]["task"])
    kinds = values_of(summary, "kind")
    if task.kind == "label":
        kinds = [kind for kind in task.hardest if kind in kinds][:1] or kinds[:1]
    shown = [row for row in summary if row["kind"] in kinds]
    lengths = sorted({int(length) for row in shown for length in row["accuracy"]})
    first, last = shown[0]["trained"]
    has_pooling = any(row["pooling"] is not None for row in shown)
    table = [
        [
            "variant",
            *(["pooling"] if has_pooling else []),
            "class",
            "learned",
            f"{first}-{last}",
            *map(str, lengths),
            "holds to, by seed",
            "",
        ]
    ]
    for row in shown:
        table.append(
            [
                row["variant"],
                *([row["pooling"]] if has_pooling else []),
                row["kind"],
                "-" if row["in_distribution"] is None else f"{row['learned']}/{len(row['seeds'])}",
                _percent(row["in_distribution"]),
                *(_percent(row["accuracy"].get(str(length))) for length in lengths),
                " ".join(str(value or "-") for value in row["holds_to"].values()),
                "; ".join(row["flags"]),
            ]
        )
    measure = shown[0]["metric"].replace("_", " ")
    chance = f"chance {100 / len(task.labels):.0f}; " if task.labels else ""
    lines = [
        f"{measure} in % by {task.texts.length}, all seeds pooled ({chance}- not measured)",
        *aligned(table, 3 if has_pooling else 2),
    ]
    built_in = sorted({name for row in shown for name in row["built_in"]})
    return "\n".join([*lines, *([f"built in by hand: {', '.join(built_in)}"] if built_in else [])])


def _percent(found: dict | None) -> str:
    return "-" if found is None else percent(found["value"], digits=1).removesuffix(" %")


def aligned(table: list[list[str]], names: int) -> list[str]:
    """Columns of equal width, with two blanks between them; words, which begin and end a line, to the left."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    words = {*range(names), len(widths) - 2, len(widths) - 1}
    return [
        "  ".join(
            cell.ljust(width) if number in words else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in table
    ]
