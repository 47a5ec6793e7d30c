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


CLASS_RATES = {
    "positives": "true_positive_rate",
    "negatives": "true_negative_rate",
    "majority": "majority_class_rate",
}


def main(
    model: Annotated[str, typer.Argument(help="Folder of a run, a model folder, or a Hub id.", metavar="MODEL")],
    data: Annotated[Path | None, typer.Option(help="Folder of headcount data; default: the run's own data.")] = None,
    exhaustive: Annotated[
        bool, typer.Option("--exhaustive", help="Test every problem there is, where the task can list them.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Test a trained model, free-running and teacher-forced side by side, with intervals."""
    from headcount.trainers.evaluation import evaluate_model
    from headcount.trainers.trained_run import load_run

    try:
        run = load_run(model, data, exhaustive)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    rows = evaluate_model(
        run.model, run.recipe, run.corpus, progress=lambda row: print(f"{row['split']} done", file=sys.stderr)
    )
    print(json.dumps(rows, indent=1) if as_json else table(rows))


def table(rows: list[dict]) -> str:
    """A line per figure; a classifier's also says how much of each class is right."""
    from headcount.reports.wording import percent

    lines = [f"{'what':58} {'value':>9}  {'95 % interval':19} {'n':>9}"]
    for row in rows:
        if row["metric"] == "wrong_answer":
            lines.append(f"  wrong: {row['input']} = {row['target']}, generated {row['generated']} ({row['split']})")
            continue
        places = {name: row[name] for name in ("length", "kind") if name in row} | row["scope"]
        decoding = [f"({row['decoding']})"] if row["decoding"] else []
        name = " ".join(
            [row["split"], row["metric"], *decoding, *(f"{fact} {value}" for fact, value in places.items())]
        )
        low, high = row["interval"]
        line = f"{name:58} {100 * row['value']:8.2f}%  {100 * low:6.2f} - {100 * high:6.2f} %  {row['n']:9,}"
        for said, rate in CLASS_RATES.items():
            if row.get(rate) is not None:
                line += f"  {said} {percent(row[rate], 1)}"
        lines.append(line)
    return "\n".join(lines)
