"""Rows of results as tables of a model card: every rate with n and its 95 % interval, chance beside it."""

from typing import Any

from ..data_builders.tasks import Task
from ..records.rows import Row, Rows, select, values_of
from ..records.run_folder import Run
from ..reports.evaluation_rows import at_lengths, by_fact, by_place, main_facts, whole_splits, worst_by_length
from ..reports.head_rows import modes_of, whole_drops
from ..reports.markdown import cell, code, inline
from ..reports.wording import interval, percent


NOTHING = "-"


def table(head: list[str], rows: list[list]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(cell, line)) + " |" for line in lines)


def measured(row: Row, digits: int = 2) -> list[str]:
    """Three cells: n, the rate and its interval."""
    return [f"{row['n']:,}", percent(row["value"], digits), interval(row)]


def split_words(task: Task, split: str) -> str:
    said = task.texts.splits.get(split)
    return f"split {code(split)} ({said})" if said else f"split {code(split)}"


def answer_tables(rows: Rows, task: Task) -> list[tuple[str, str]]:
    """(caption, table): the whole splits with both ways of counting, then exact match by every fact that is told."""
    lines, splits, forced = [], whole_splits(rows), whole_splits(rows, "token_accuracy")
    for split, free in splits.items():
        n, value, between = measured(forced[split]) if split in forced else [NOTHING] * 3
        lines.append([code(split), *measured(free), value, between, n])
    head = ["split", task.texts.problems, "exact match, free-running", "95 % interval"]
    tables = [("", table([*head, "tokens right, teacher-forced", "95 % interval", "tokens"], lines))] if lines else []
    for split in splits:
        for fact in main_facts(task):
            parts = by_fact(rows, fact, split)
            lines = [[inline(task.fact_name(fact, row["scope"][fact])), *measured(row)] for row in parts]
            caption = f"By {task.texts.facts[fact]}, {split_words(task, split)}:"
            head = [task.texts.facts[fact], "n", "exact match, free-running", "95 % interval"]
            tables += [(caption, table(head, lines))] if lines else []
    return tables


def longer_table(rows: Rows, task: Task) -> str:
    """Exact match at each length beyond training, a column per class of problems."""
    rows = at_lengths(rows, task)
    kinds = values_of(rows, "kind")
    lines = []
    for length in values_of(rows, "length"):
        own = {row["kind"]: row for row in select(rows, length=length)}
        cells = [
            f"{percent(own[kind]['value'])} ({interval(own[kind])})" if kind in own else NOTHING for kind in kinds
        ]
        lines.append([f"{length:,}", f"{max(row['n'] for row in own.values()):,}", *cells])
    return table([task.texts.length, "n each", *map(code, kinds)], lines)


def place_table(rows: Rows, split: str, task: Task) -> str:
    lines = [[inline(task.place_name(row["scope"]["place"])), *measured(row)] for row in by_place(rows, split)]
    return table([task.texts.place, "n", "right, free-running", "95 % interval"], lines)


def label_table(rows: Rows, task: Task, longest_trained: int) -> str:
    """Accuracy by length and class, with the rates that show how it came about."""
    lines = []
    for row in sorted(at_lengths(rows, task), key=lambda row: (row["length"], row["kind"])):
        longer = "" if row["length"] <= longest_trained else " (longer than trained)"
        lines.append([f"{row['length']:,}{longer}", inline(row["kind"]), *measured(row, 1), *class_cells(row)])
    head = [task.texts.length, task.texts.kinds, "n", "accuracy", "95 % interval", *class_columns(task)]
    return table(head, lines) if lines else ""


def whole_label_table(rows: Rows) -> str:
    """Accuracy on whole splits, for a task that is not tested by class and length."""
    found = whole_splits(rows, "accuracy").values()
    lines = [[code(row["split"]), *measured(row, 1), maybe(row["majority_class_rate"])] for row in found]
    return table(["split", "n", "accuracy", "95 % interval", "one answer for all"], lines) if lines else ""


def class_columns(task: Task) -> list[str]:
    return [*(f"{name} rows right" for name in task.labels[::-1]), "one answer for all"]


def class_cells(row: Row) -> list[str]:
    names = ("true_positive_rate", "true_negative_rate", "majority_class_rate")
    return [maybe(row[name]) for name in names]


def maybe(value: float | None) -> str:
    return NOTHING if value is None else percent(value, 1)


def seed_table(task: Task, runs: list[Run]) -> str:
    """The headline figures of every run, seed by seed, each with n and interval."""
    lines = []
    for run in sorted(runs, key=lambda run: run.seed or 0):
        lines += [[run.seed, inline(label), *measured(row)] for label, row in headline_rows(task, run.evaluation)]
    name = "accuracy at the worst length" if task.kind == "label" else "exact match, free-running"
    return table(["seed", task.texts.kinds, "n", name, "95 % interval"], lines)


def headline_rows(task: Task, rows: Rows) -> list[tuple[str, Row]]:
    """(words, row): of answers every whole split, and the worst class at every longer length; of labels, the worst
    length of every class, longest first, or whole splits where there is none.
    """
    measure = task.measure["metric"]
    splits = list(whole_splits(rows, measure).items())
    longer = at_lengths(rows, task)
    if task.kind != "label":
        unit = task.texts.length
        worst = worst_by_length(longer)
        return splits + [(f"{row['length']:,} {unit}, {row['kind']} (the worst class)", row) for row in worst]
    for kind in values_of(longer, "kind"):
        row = min(select(longer, kind=kind), key=lambda row: (row["value"], -row["length"]))
        splits.append((f"{kind}, length {row['length']:,}", row))
    return splits


def judged_heads(rows: Rows) -> Rows:
    """The rows that judge a head as a whole, by the first way of switching off that was used."""
    modes = modes_of(rows)
    return whole_drops(rows, modes[0]) if modes else []


def head_table(rows: Rows) -> str:
    """The heads of a model, the one that is missed most first."""
    lines = []
    for row in sorted(rows, key=lambda row: -row["value"]):
        low, high = row["interval"]
        span = f"{100 * low:.2f} to {100 * high:.2f}"
        lines.append(
            [code(row["head"]), f"{100 * row['value']:.2f} points", span, f"{row['n']:,}", inline(row["class"])]
        )
    return table(["head switched off", "lost accuracy", "95 % interval", "n", "class"], lines)


def pruning_table(rows: Rows) -> str:
    """The pruned model on test data, beside what it came from and what it is compared with."""
    lines: list[list[Any]] = []
    for row in select(rows, study="pruning", split="test"):
        size = [f"{row['parameters']:,}", f"{row['bytes']:,}", f"{row['relative_speed']:.2f}x"]
        lines.append([inline(row["model"]), row["removed"], *measured(row), *size])
    head = ["model", "heads removed", "n", "right", "95 % interval", "parameters", "bytes", "speed"]
    return table(head, lines) if lines else ""
