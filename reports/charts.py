"""What the charts of the page show: plain data, drawn by templates/charts.js.

A chart has series of points (x, y, interval, n). Series may carry tags (`kind`, `pooling`, ...); a chart's `choices`
name the tags that the reader picks one value of. Series with one `name` share colour and legend entry, so that the
seeds of one encoding look alike; `each` tells them apart.
"""

import math

from .addition_findings import KIND_TITLES, as_in_summary
from .length_findings import HARDEST
from .run_findings import runs_by_recipe
from .study_folder import Run, Study


CHANCE = {"value": 0.5, "label": "chance"}
DIGITS = 6


def point(row: dict, x, **more) -> dict:
    """A row as a point; a figure that was not measured (None) has no point and is dropped by `series`."""
    low, high = row.get("interval", (None, None))
    found = {"x": x, "y": row["value"], "low": low, "high": high, "n": row.get("n"), **more}
    finite = {name: v for name, v in found.items() if v is not None and not (isinstance(v, float) and math.isnan(v))}
    return {name: round(v, DIGITS) if isinstance(v, float) else v for name, v in finite.items()}


def series(name: str, points: list[dict], each: str = "", **tags: str) -> dict:
    return {"name": name, "each": each, "tags": tags, "points": [p for p in points if "y" in p]}


def chart(key: str, title: str, x: dict, y: dict, found: list[dict], choices: list[dict] = (), **more) -> list[dict]:
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


def learning_curves(runs: list[Run]) -> list[dict]:
    many = len(runs_by_recipe(runs)) > 1
    validation, loss = [], []
    for run in runs:
        name = run.recipe_name if many else run.name
        tested = [
            {"value": row["validation"], "n": row.get("n"), "x": row["step"]}
            for row in run.metrics
            if "validation" in row
        ]
        validation.append(series(name, [point(row, row["x"]) for row in tested], run.name))
        losses = [{"value": row["loss"], "x": row["step"]} for row in run.metrics if row.get("loss")]
        loss.append(series(name, [point(row, row["x"]) for row in losses], run.name))
    step = {"label": "training step", "scale": "linear"}
    share = {"label": "validation accuracy", "scale": "linear", "percent": True}
    return [
        *chart("validation", "Learning: validation accuracy", step, share, validation),
        *chart("loss", "Learning: training loss", step, {"label": "loss (log scale)", "scale": "log"}, loss),
    ]


def addition_accuracy(runs: list[Run]) -> list[dict]:
    """Exact match by carry chain, digit accuracy by place."""
    chains, places = [], []
    names = {"longest_chain": "longest carry chain", "group": "kind of problem"}
    for run in (run for run in runs if run.task == "addition"):
        for split in dict.fromkeys(row["split"] for row in run.evaluation if "split" in row):
            own = [row for row in run.evaluation if row.get("split") == split and "value" in row]
            for fact, name in names.items():
                found = [point(row, str(row[fact])) for row in own if fact in row]
                chains.append(series(run.name, found, split=split, by=name))
            digits = [point(row, str(row["place"])) for row in own if "place" in row]
            places.append(series(run.name, digits, split=split))
    category = {"scale": "category"}
    choices = [{"tag": "split", "label": "Split"}, {"tag": "by", "label": "By"}]
    exact = {"label": "free-running exact match", "scale": "linear", "percent": True}
    digit = {"label": "digit accuracy, free-running", "scale": "linear", "percent": True}
    return [
        *chart("chains", "Accuracy by carry chain", {**category, "label": ""}, exact, chains, choices),
        *chart("places", "Accuracy by column (0: units)", {**category, "label": "column"}, digit, places, choices[:1]),
    ]


def sortedness_accuracy(runs: list[Run]) -> list[dict]:
    found = []
    for run in (run for run in runs if run.task == "sortedness"):
        rows = [r for r in run.evaluation if r.get("metric") == "accuracy" and r.get("value") is not None]
        for kind in dict.fromkeys(row["kind"] for row in rows):
            points = [point(row, row["length"], note=_rates(row)) for row in rows if row["kind"] == kind]
            found.append(series(run.recipe_name, points, run.name, kind=kind))
    return chart(
        "sortedness", "Accuracy by length", {"label": "length", "scale": "log"},
        {"label": "accuracy", "scale": "linear", "percent": True, "reference": CHANCE, "from": 0.4}, found,
        [{"tag": "kind", "label": "Negatives", "first": HARDEST}],
    )  # fmt: skip


def pruning_curve(study: Study) -> list[dict]:
    rows = [row for row in study.rows("pruning", "pruning") if row.get("split") == "validation"]
    found = []
    for tuned, name in ((False, "without training"), (True, "trained after each removal")):
        points = [
            point(row, row["removed"], note="" if row.get("kept", True) else "put back") for row in rows
            if row["fine_tuned"] is tuned
        ]  # fmt: skip
        found.append(series(name, points))
    return chart(
        "pruning", "Removing heads one after the other", {"label": "heads removed", "scale": "linear"},
        {"label": "validation accuracy", "scale": "linear", "percent": True, "from_zero": True}, found,
    )  # fmt: skip


def extrapolation(study: Study) -> list[dict]:
    """Accuracy by length: every encoding, pooling, kind of negatives and seed."""
    groups: dict[tuple, list[dict]] = {}
    for row in study.rows("length", "lengths"):
        if row.get("metric") == "accuracy" and row["value"] is not None:
            groups.setdefault((row["variant"], row["pooling"], row["kind"], row["seed"]), []).append(row)
    found = []
    for (variant, pooling, kind, seed), rows in groups.items():
        points = [point(row, row["length"], note=_rates(row)) for row in sorted(rows, key=lambda r: r["length"])]
        found.append(series(variant, points, f"seed {seed}", kind=kind, pooling=pooling))
    return chart(
        "extrapolation", "Accuracy far beyond the training length", {"label": "length", "scale": "log"},
        {"label": "accuracy", "scale": "linear", "percent": True, "reference": CHANCE, "from": 0.4}, found,
        [
            {"tag": "kind", "label": "Negatives", "first": HARDEST},
            {"tag": "pooling", "label": "Pooling", "first": ("max",)},
        ],
        band=training_band(study.rows("length", "lengths")),
    )  # fmt: skip


def long_addition(study: Study) -> list[dict]:
    """Exact match by digits: every variant, class of problems and seed; held-out problems come first."""
    rows = [row for row in study.rows("adding", "lengths") if row["value"] is not None]
    summary = study.rows("adding", "summary")
    unfitted = {(row["variant"], int(seed)) for row in summary for seed, far in row["holds_to"].items() if far == 0}
    held_out = {(row["variant"], row["seed"]): row for row in rows if row["kind"] == "test"}
    groups: dict[tuple, list[dict]] = {}
    for row in as_in_summary(rows, summary):
        if row["kind"] not in ("test", "hard"):
            groups.setdefault((row["variant"], row["kind"], row["seed"]), []).append(row)
    found = []
    for (variant, kind, seed), own in groups.items():
        points = [point(row, row["length"]) for row in sorted(own, key=lambda row: row["length"])]
        first = held_out.get((variant, seed))
        if first is not None:
            points.insert(0, point(first, first["length"], note="held-out problems of the training lengths"))
        each = f"seed {seed}" + (", never fitted" if (variant, seed) in unfitted else "")
        found.append(series(variant, points, each, kind=f"{kind}: {KIND_TITLES.get(kind, kind)}"))
    band = training_band(rows)
    return chart(
        "adding", "Exact match far beyond the training length",
        {"label": "digits", "scale": "log", **({"from": band["to"] / 2} if band else {})},
        {"label": "exact match, free-running", "scale": "linear", "percent": True, "from_zero": True}, found,
        [{"tag": "kind", "label": "Problems"}], band=band,
    )  # fmt: skip


def training_band(rows: list[dict]) -> dict | None:
    longest = max((row["trained"][1] for row in rows if row.get("trained")), default=None)
    return {"to": longest, "label": "training lengths"} if longest else None


def _rates(row: dict) -> str:
    """What stands behind an accuracy: how much of each class is right."""
    if row.get("one_class_only"):
        return "calls everything one class"
    rates = [
        f"{name} {100 * row[key]:.0f} %"
        for name, key in (("sorted", "true_positive_rate"), ("unsorted", "true_negative_rate"))
        if row.get(key) is not None
    ]
    return ", ".join(rates)
