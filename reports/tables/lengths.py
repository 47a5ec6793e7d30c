"""Tables of a study of lengths, for any task: what came of every cell, class by class."""

from ...data_builders.tasks import Task
from ...records.rows import Row, Rows, select, values_of
from ..length_rows import as_in_summary, kinds_in_order, learned_at, training_lengths
from ..study import Part, task_of
from ..wording import counted
from .table import NOTHING, Table, by_hand, make_table, with_interval


def length_summary(part: Part) -> list[Table]:
    """One table per class of problems: of labels the hardest first, of sequences as they were tested."""
    summary = part.get("summary")
    if not summary:
        return []
    task = task_of(part)
    is_label = task.kind == "label"
    lengths = sorted({length for row in summary for length in row["accuracy"]}, key=int)
    tables = []
    for kind in kinds_in_order(summary) if is_label else values_of(summary, "kind"):
        own = select(summary, kind=kind)
        rows = [(label_row if is_label else answer_row)(row, lengths) for row in own]
        note = (label_note if is_label else answer_note)(own, lengths, task)
        measure = "Accuracy" if is_label else "Exact match"
        title = kind if is_label or kind not in task.classes else f"{kind} ({task.classes[kind]})"
        tables.append(make_table(f"{measure} by {task.texts.length}: {title}", rows, note))
    return tables


def label_row(row: Row, lengths: list[str]) -> dict[str, str]:
    one_class = [f"{length:,}" for length in row["one_class_from"].values() if length is not None]
    return {
        "encoding": row["variant"],
        "pooling": row["pooling"] or NOTHING,
        "learned": learned(row, "not measured"),
        "training lengths": with_interval(row["in_distribution"]) if row["in_distribution"] else NOTHING,
        **cells_by_length(row, lengths),
        "99 % up to, by seed": holds_to(row, never="0"),
        "one class from": ", ".join(one_class) or "never",
        **by_hand(row["built_in"]),
    }


def answer_row(row: Row, lengths: list[str]) -> dict[str, str]:
    seconds = [NOTHING if s is None else f"{s:,.0f}" for s in row["seconds"].values()]
    return {
        "variant": row["variant"],
        "what it changes": row["says"],
        **by_hand(row["built_in"]),
        "fitted": learned(row, "not measured")
        + ("" if row["learned"] or not row["in_distribution"] else ", never fitted"),
        "held out": with_interval(row["in_distribution"]) if row["in_distribution"] else NOTHING,
        **cells_by_length(row, lengths),
        "holds to, by seed": holds_to(row, never="never fitted"),
        "training seconds, by seed": ", ".join(seconds),
    }


def holds_to(row: Row, never: str) -> str:
    """By seed; what was not measured is not called `never`."""
    return ", ".join(
        "not measured" if length is None else f"{length:,}" if length else never for length in row["holds_to"].values()
    )


def learned(row: Row, unknown: str) -> str:
    return f"{row['learned']} of {len(row['seeds'])}" if row["in_distribution"] else unknown


def label_note(rows: Rows, lengths: list[str], task: Task) -> str:
    return (
        f"Accuracy on {rows[0]['kind']} {task.texts.kind_noun} with its 95 % interval, pooled over {seeds_of(rows)}; "
        f"classes are balanced: 50 % is chance. n by length: {sizes(rows, lengths)}. Learned: seeds with "
        f"{learned_at(task)} at the training lengths."
    )


def answer_note(rows: Rows, lengths: list[str], task: Task) -> str:
    unit, problems = task.texts.length, task.texts.problems
    return (
        f"Exact match, free-running, with its 95 % interval, by {unit}, pooled over {seeds_of(rows)}. A seed with "
        f"nothing right at one length is not measured at longer ones and does not count there; {NOTHING}: no seed "
        f"was. n by length: {sizes(rows, lengths)}. Held out: {problems} {training_lengths(rows)}, kept out of "
        f"training. Fitted: seeds with {learned_at(task)} there; one below never fitted, which says nothing about "
        f"longer {problems}. Holds to: the most {unit} up to which every length is at 99 % or more."
    )


def seeds_of(rows: Rows) -> str:
    return counted(max(len(row["seeds"]) for row in rows), "seed")


def generated_answers(part: Part) -> list[Table]:
    """On how many problems `generate()` and one pass disagree, by variant and length."""
    generated = as_in_summary(part.get("generated"), part.get("summary"))
    if not generated:
        return []
    unit = task_of(part).texts.length
    rows = []
    for variant in values_of(generated, "variant"):
        own = select(generated, variant=variant)
        row = {"variant": variant, "seeds": str(len(values_of(own, "seed")))}
        for length in sorted(values_of(generated, "length")):
            row[f"{length:,} {unit}"] = disagreements(select(own, length=length))
        rows.append({**row, "all": disagreements(own)})
    note = (
        "Problems on which the two disagree, of n that generate() wrote token by token with its cache; all seeds and "
        "classes. Every test problem of shorter lengths, a sample of longer ones; lengths at which nothing was right "
        "are left out."
    )
    return [make_table("generate() against one pass", rows, note)]


def disagreements(rows: Rows) -> str:
    return f"{sum(r['disagree'] for r in rows):,} of {sum(r['n'] for r in rows):,}" if rows else NOTHING


def mathematics(part: Part) -> list[Table]:
    rows = [
        {
            "statement": row["statement"],
            "for": row["subject"],
            "largest residual": f"{row['value']:.2g}",
            "allowed": f"{row['tolerance']:.2g}",
            "holds": "yes" if row["holds"] else "no",
            "expected": "yes" if row["expected"] else "no",
        }
        for row in part.get("mathematics")
    ]
    return [make_table("The mathematics, checked", rows)] if rows else []


def cells_by_length(row: Row, lengths: list[str]) -> dict[str, str]:
    """What a summary row measured at every length; a length that it was spared is empty."""
    found = row["accuracy"]
    return {f"{int(length):,}": with_interval(found[length]) if length in found else NOTHING for length in lengths}


def sizes(rows: Rows, lengths: list[str]) -> str:
    """n at every length: `32: 200; 4,096: 20 to 40`."""
    found = []
    for length in lengths:
        counts = sorted({row["accuracy"][length]["n"] for row in rows if length in row["accuracy"]})
        if counts:
            span = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
            found.append(f"{int(length):,}: {span}")
    return "; ".join(found)
