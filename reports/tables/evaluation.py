"""The rows of an evaluation as lines of a terminal."""

from ...records.rows import Row, Rows
from ..wording import interval, percent


def evaluation_lines(rows: Rows) -> str:
    """One line per row: what, value, interval and n; wrong answers as they were written."""
    lines = [f"{'what':58} {'value':>10}  {'95 % interval':21} {'n':>9}"]
    for row in rows:
        if row["metric"] == "wrong_answer":
            lines.append(f"  wrong: {row['input']} = {row['target']}, generated {row['generated']} ({row['split']})")
            continue
        line = f"{name_of(row):58} {percent(row['value']):>10}  {interval(row):21} {row['n']:9,}"
        lines.append(f"{line}  {rates(row)}" if row["metric"] == "accuracy" else line)
    return "\n".join(lines)


def name_of(row: Row) -> str:
    decoding = [f"({row['decoding']})"] if row["decoding"] else []
    about = {"length": row["length"], "kind": row["kind"], **row["scope"]}
    where = [f"{name} {value}" for name, value in about.items() if value is not None]
    return " ".join([row["split"], row["metric"], *decoding, *where])


def rates(row: Row) -> str:
    """How an accuracy came about: how much of each class is right, and what one answer for all would reach."""
    names = {"positives": "true_positive_rate", "negatives": "true_negative_rate", "majority": "majority_class_rate"}
    found = {name: row[key] for name, key in names.items()}
    return "  ".join(f"{name} {'-' if value is None else percent(value, 1)}" for name, value in found.items())
