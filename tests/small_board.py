"""Length studies for tests of the board: folders as `headcount extrapolate` leaves them, with rows by hand."""

from pathlib import Path

import yaml

from headcount.analysis.lengths.summary import summarize
from headcount.data_builders.registry import find_task
from headcount.records.files import write_json, write_text
from headcount.records.intervals import rate
from headcount.records.rows import Rows, row, write_rows


COMMAND = "headcount extrapolate --task {} --output study --seeds 0,1"
EXAMPLES = 200


def write_study(
    folder: Path,
    task: str,
    reach: dict[str, dict[int, int]],
    built_in: dict[str, list[str]] | None = None,
    says: dict[str, str] | None = None,
    lengths: tuple[int, ...] = (20, 40, 80),
    trained: tuple[int, int] = (5, 10),
    data: dict | None = None,
) -> Path:
    """`reach`: variant -> seed -> the length up to which everything is right; 0: not even at the training lengths."""
    rows: Rows = []
    for variant, by_seed in reach.items():
        for seed, farthest in by_seed.items():
            about = {"variant": variant, "seed": seed, "pooling": None, "says": (says or {}).get(variant, "x")}
            about |= {"task": task, "trained": list(trained), "built_in": (built_in or {}).get(variant, [])}
            about |= {"training_seconds": 50.0, "one_class_only": False}
            own = cell_rows(task, about, farthest, lengths)
            cell = folder / "cells" / f"{variant}-{seed}"
            write_rows(cell, "lengths", own)
            write_json(cell / "provenance.json", {"cpu_seconds": 30.0 + seed})
            write_text(cell / "recipe.yaml", yaml.safe_dump({"task": task, "data": data or {"seed": 0}}))
            rows += own
    write_rows(folder, "lengths", rows)
    write_rows(folder, "summary", summarize(rows))
    write_json(folder / "extrapolate.json", {"task": task, "commands": {COMMAND.format(task): 61.2}})
    return folder


def cell_rows(task: str, about: dict, farthest: int, lengths: tuple[int, ...]) -> Rows:
    found = find_task(task)
    kinds = [("test", about["trained"][1])] + [(kind, length) for kind in found.classes for length in lengths]
    return [
        row(
            "lengths",
            found.measure["metric"],
            share,
            decoding=found.measure["decoding"],
            kind=kind,
            length=length,
            **about,
        )
        for kind, length in kinds
        for share in [rate(EXAMPLES if length <= farthest else EXAMPLES // 2, EXAMPLES)]
    ]
