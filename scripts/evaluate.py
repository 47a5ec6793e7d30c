"""Evaluate a trained model: what it really generates, with intervals.

headcount evaluate runs/addition
headcount evaluate runs/addition --exhaustive
headcount evaluate runs/addition --data addition-data --json
"""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer


def main(
    model: Annotated[Path, typer.Argument(help="Folder of a run, as headcount train leaves it.")],
    data: Annotated[Path | None, typer.Option(help="Folder of headcount data; default: the run's own data.")] = None,
    exhaustive: Annotated[bool, typer.Option("--exhaustive", help="Addition: test every problem there is.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Test a trained model, free-running and teacher-forced side by side, with intervals."""
    from headcount.trainers.evaluation import evaluate_model
    from headcount.trainers.trained_run import load_run

    try:
        run = load_run(model, data, exhaustive)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    rows = evaluate_model(*run, progress=lambda row: print(f"{row['split']} done", file=sys.stderr))
    print(json.dumps(rows, indent=1) if as_json else table(rows))


def table(rows: list[dict]) -> str:
    lines = [f"{'what':58} {'value':>9}  {'95 % interval':19} {'n':>9}"]
    for row in rows:
        if row["metric"] == "wrong_answer":
            lines.append(f"  wrong: {row['input']} = {row['target']}, generated {row['generated']} ({row['split']})")
            continue
        where = [
            f"{name} {row[name]}" for name in ("group", "longest_chain", "place", "length", "kind") if name in row
        ]
        name = " ".join(
            [row["split"], row["metric"], *([f"({row['decoding']})"] if "decoding" in row else []), *where]
        )
        low, high = row["interval"]
        line = f"{name:58} {100 * row['value']:8.2f}%  {100 * low:6.2f} - {100 * high:6.2f} %  {row['n']:9,}"
        if row["task"] == "sortedness":
            line += f"  sorted {percent(row['true_positive_rate'])} unsorted {percent(row['true_negative_rate'])}"
            line += f"  majority {percent(row['majority_class_rate'])}"
        lines.append(line)
    return "\n".join(lines)


def percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}%"
