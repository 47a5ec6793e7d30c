"""What the charts of the page show: plain data, drawn by templates/charts.js.

A chart has series of points (x, y, interval, n). Series may carry tags (`kind`, `pooling`, ...); a chart's `choices`
name the tags that the reader picks one value of. Series with one `name` share colour and legend entry, so that the
seeds of one encoding look alike; `each` tells them apart.
"""

import math
from collections.abc import Sequence
from typing import Any

from ...data_builders.tasks import Task
from ...records.rows import Row, Rows, select, values_of
from ...records.run_folder import Run
from ..evaluation_rows import at_lengths, by_fact, by_place, whole_splits
from ..findings.runs import runs_by_recipe
from ..length_rows import as_in_summary
from ..study import Part, task_of


CHANCE = {"value": 0.5, "label": "chance"}
ACCURACY = {"label": "accuracy", "scale": "linear", "percent": True, "reference": CHANCE, "from": 0.4}
DIGITS = 6


def point(row: dict, x: Any, **more: Any) -> dict:
    """A row as a point; a figure that was not measured (None) has no point and is dropped by `series`."""
    low, high = row["interval"] or (None, None)
    found = {"x": x, "y": row["value"], "low": low, "high": high, "n": row["n"] or None, **more}
    finite = {name: v for name, v in found.items() if v is not None and not (isinstance(v, float) and math.isnan(v))}
    return {name: round(v, DIGITS) if isinstance(v, float) else v for name, v in finite.items()}


def series(name: str, points: list[dict], each: str = "", **tags: str) -> dict:
    return {"name": name, "each": each, "tags": tags, "points": [p for p in points if "y" in p]}


def chart(
    key: str, title: str, x: dict, y: dict, found: list[dict], choices: Sequence[dict] = (), **more: Any
) -> list[dict]:
    """A list with one chart, or none if nothing was measured."""
    found = [one for one in found if one["points"]]
    used = [
        {**choice, "values": values}
        for choice in choices
        if len(values := _values(found, choice["tag"], choice.get("first", ()))) > 1
    ]
    spec = {"key": key, "title": title, "x": x, "y": y, "series": found, "choices": used, **more}
    return [spec] if found else []


def _values(found: list[dict], tag: str, first: tuple) -> list[str]:
    values = list(dict.fromkeys(one["tags"][tag] for one in found))
    return sorted(values, key=lambda value: first.index(value) if value in first else len(first))


def logged(value: float, step: int, n: int | None = None) -> dict:
    """A line of the training log as a point."""
    return point({"value": value, "interval": None, "n": n}, step)


def learning_curves(runs: list[Run]) -> list[dict]:
    many = len(runs_by_recipe(runs)) > 1
    validation, loss = [], []
    for run in runs:
        name = run.recipe_name if many else run.name
        tested = [
            logged(row["validation"], row["step"], row.get("n")) for row in run.metrics if "validation" in row
        ]  # lines of a log are no rows: each names what was logged at its step
        validation.append(series(name, tested, run.name))
        losses = [logged(row["loss"], row["step"]) for row in run.metrics if row.get("loss")]
        loss.append(series(name, losses, run.name))
    step = {"label": "training step", "scale": "linear"}
    share = {"label": "validation accuracy", "scale": "linear", "percent": True}
    return [
        *chart("validation", "Learning: validation accuracy", step, share, validation),
        *chart("loss", "Learning: training loss", step, {"label": "loss (log scale)", "scale": "log"}, loss),
    ]


def run_accuracy(runs: list[Run]) -> list[dict]:
    """Task by task: exact match by parts of the data and by place, or accuracy by length."""
    found = []
    for name in dict.fromkeys(run.task for run in runs):
        own = [run for run in runs if run.task == name]
        task = task_of(own[0])
        found += label_accuracy(own, task) if task.kind == "label" else answer_accuracy(own, task)
    return found


def answer_accuracy(runs: list[Run], task: Task) -> list[dict]:
    """Exact match by every fact, accuracy by place of the answer."""
    by_facts, by_places = [], []
    for run in runs:
        for split in whole_splits(run.evaluation):
            for fact, name in task.texts.facts.items():
                points = [point(row, str(row["scope"][fact])) for row in by_fact(run.evaluation, fact, split)]
                by_facts.append(series(run.name, points, split=split, by=name))
            points = [point(row, str(row["scope"]["place"])) for row in by_place(run.evaluation, split)]
            by_places.append(series(run.name, points, split=split))
    category = {"scale": "category"}
    choices = [{"tag": "split", "label": "Split"}, {"tag": "by", "label": "By"}]
    exact = {"label": "free-running exact match", "scale": "linear", "percent": True}
    right = {"label": "right, free-running", "scale": "linear", "percent": True}
    places = f"Accuracy by {task.texts.place} (0: {task.place_name(0)})"
    return [
        *chart(
            f"parts-{task.name}", "Accuracy by part of the data", {**category, "label": ""}, exact, by_facts, choices
        ),
        *chart(f"places-{task.name}", places, {**category, "label": "place"}, right, by_places, choices[:1]),
    ]


def label_accuracy(runs: list[Run], task: Task) -> list[dict]:
    found = []
    for run in runs:
        rows = at_lengths(run.evaluation, task)
        for kind in values_of(rows, "kind"):
            points = [point(row, row["length"], note=_rates(row, task)) for row in select(rows, kind=kind)]
            found.append(series(run.recipe_name, points, run.name, kind=kind))
    return chart(
        f"runs-{task.name}",
        f"Accuracy by {task.texts.length}",
        {"label": task.texts.length, "scale": "log"},
        ACCURACY,
        found,
        [{"tag": "kind", "label": task.texts.kind_noun.capitalize(), "first": task.hardest}],
    )


def pruning_curve(pruning: Part) -> list[dict]:
    rows = select(pruning.get("pruning"), study="pruning", split="validation")
    found = []
    for tuned, name in ((False, "without training"), (True, "trained after each removal")):
        points = [
            point(row, row["removed"], note="" if row["kept"] else "put back")
            for row in select(rows, fine_tuned=tuned)
        ]
        found.append(series(name, points))
    return chart(
        "pruning",
        "Removing heads one after the other",
        {"label": "heads removed", "scale": "linear"},
        {"label": "validation accuracy", "scale": "linear", "percent": True, "from_zero": True},
        found,
    )


def extrapolation(part: Part, key: str) -> list[dict]:
    """The figure by length: every variant, pooling, class of problems and seed."""
    if not part.get("lengths"):
        return []
    return label_lengths(part, key) if task_of(part).kind == "label" else answer_lengths(part, key)


def label_lengths(part: Part, key: str) -> list[dict]:
    task = task_of(part)
    groups: dict[tuple, Rows] = {}
    for row in part.get("lengths"):
        if row["kind"] in task.classes and row["value"] is not None:
            groups.setdefault((row["variant"], row["pooling"], row["kind"], row["seed"]), []).append(row)
    found = []
    for (variant, pooling, kind, seed), rows in groups.items():
        ordered = sorted(rows, key=lambda row: row["length"])
        points = [point(row, row["length"], note=_rates(row, task)) for row in ordered]
        found.append(series(variant, points, f"seed {seed}", kind=kind, pooling=pooling or "none"))
    return chart(
        key,
        "Accuracy far beyond the training length",
        {"label": task.texts.length, "scale": "log"},
        ACCURACY,
        found,
        [
            {"tag": "kind", "label": task.texts.kind_noun.capitalize(), "first": task.hardest},
            {"tag": "pooling", "label": "Pooling", "first": ("max",)},
        ],
        band=training_band(part.get("lengths")),
    )


def answer_lengths(part: Part, key: str) -> list[dict]:
    """Exact match by length; held-out problems of the training lengths come first."""
    task, summary = task_of(part), part.get("summary")
    rows = [row for row in part.get("lengths") if row["value"] is not None]
    unfitted = {(row["variant"], int(seed)) for row in summary for seed, far in row["holds_to"].items() if far == 0}
    held_out = {(row["variant"], row["seed"]): row for row in select(rows, kind="test")}
    groups: dict[tuple, Rows] = {}
    for row in as_in_summary(rows, summary):
        if row["kind"] in task.classes:
            groups.setdefault((row["variant"], row["kind"], row["seed"]), []).append(row)
    found = []
    for (variant, kind, seed), own in groups.items():
        points = [point(row, row["length"]) for row in sorted(own, key=lambda row: row["length"])]
        first = held_out.get((variant, seed))
        if first is not None:
            note = f"held-out {task.texts.problems} of the training lengths"
            points.insert(0, point(first, first["length"], note=note))
        each = f"seed {seed}" + (", never fitted" if (variant, seed) in unfitted else "")
        found.append(series(variant, points, each, kind=f"{kind}: {task.classes[kind]}"))
    band = training_band(rows)
    return chart(
        key,
        "Exact match far beyond the training length",
        {"label": task.texts.length, "scale": "log", **({"from": band["to"] / 2} if band else {})},
        {"label": "exact match, free-running", "scale": "linear", "percent": True, "from_zero": True},
        found,
        [{"tag": "kind", "label": task.texts.kind_noun.capitalize()}],
        band=band,
    )


def training_band(rows: Rows) -> dict | None:
    longest = max((row["trained"][1] for row in rows), default=None)
    return {"to": longest, "label": "training lengths"} if longest else None


def _rates(row: Row, task: Task) -> str:
    """What stands behind an accuracy: how much of each class is right."""
    if row["one_class_only"]:
        return "calls everything one class"
    rates = zip(task.labels[::-1], (row["true_positive_rate"], row["true_negative_rate"]), strict=False)
    return ", ".join(f"{name} {100 * rate:.0f} %" for name, rate in rates if rate is not None)
