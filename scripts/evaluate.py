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
    model: Annotated[str, typer.Argument(help="Folder of a run, a model folder, or a Hub id.", metavar="MODEL")],
    data: Annotated[Path | None, typer.Option(help="Folder of headcount data; default: the run's own data.")] = None,
    exhaustive: Annotated[
        bool, typer.Option("--exhaustive", help="Test every problem there is, where the task can list them.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Test a trained model, free-running and teacher-forced side by side, with intervals."""
    from headcount.reports.tables.evaluation import evaluation_lines
    from headcount.trainers.evaluation import evaluate_model
    from headcount.trainers.trained_run import load_run

    try:
        run = load_run(model, data, exhaustive)
        rows = evaluate_model(run.model, run.recipe, run.corpus, progress=say_split)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    print(json.dumps(rows, indent=1) if as_json else evaluation_lines(rows))


def say_split(row: dict) -> None:
    print(f"{row['split']} done", file=sys.stderr)
