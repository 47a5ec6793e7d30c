"""Train a recipe, on one device or many.

headcount train addition --output runs/addition
headcount train addition --output runs/addition --resume
headcount train addition --output runs/addition --data addition-data
headcount train sortedness --output runs/sortedness --seed 1 --set training.steps=400
headcount train my_task.py --output runs/mine
headcount train --data names.csv --input name --target greeting --output runs/greetings
headcount train --data alice/reviews --input text --label stars --tokens word --output runs/reviews
accelerate launch --multi_gpu --num_processes 2 scripts/train.py addition --output runs/two --processes 2
"""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headcount.scripts.whole_numbers import whole_number


if TYPE_CHECKING:
    from ..trainers.recipe import Recipe

GOES_ON = "go on with the same command, and with --resume if the folder holds a run"


def main(
    output: Annotated[Path, typer.Option(help="Folder for the run.")],
    recipe: Annotated[
        str | None,
        typer.Argument(help="Name of a recipe (headcount ls recipes), a YAML file, or a Python file with a task."),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            help="Train and test on this folder of headcount data, written from the recipe; with --input, on any "
            "table: a file, a folder or the id of a dataset on the Hub."
        ),
    ] = None,
    input_: Annotated[str | None, typer.Option("--input", help="Column of the table that is read.")] = None,
    target: Annotated[str | None, typer.Option(help="Column of the table that is to be written.")] = None,
    label: Annotated[str | None, typer.Option(help="Column of the table with one class for each row.")] = None,
    config: Annotated[str | None, typer.Option(help="Config of the dataset; default: its own.")] = None,
    split: Annotated[str | None, typer.Option(help="Take this split of the dataset alone, cut into three.")] = None,
    tokens: Annotated[str | None, typer.Option(help="What a token is: character (default) or word.")] = None,
    seed: Annotated[
        int | None, typer.Option(parser=whole_number(0), metavar="N", help="Seed of the run; default: the recipe's.")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="KEY=VALUE, such as training.batch_size=128.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where an earlier run in the folder stopped.")
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier run in the folder.")] = False,
    keep: Annotated[int, typer.Option(parser=whole_number(1), metavar="N", help="How many checkpoints to keep.")] = 2,
    report_to: Annotated[str, typer.Option(help="Tracker: none, tensorboard or trackio.")] = "none",
    processes: Annotated[
        int | None,
        typer.Option(parser=whole_number(1), metavar="N", help="Fail unless so many processes run together."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the resolved recipe and do nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Train a recipe and leave model, metrics and evaluation in a folder."""
    from headcount.trainers.loop import RunOptions, TrainingStopped, train_recipe
    from headcount.trainers.table_recipe import TableColumns, chosen_recipe

    if resume and overwrite:
        raise typer.BadParameter("--resume and --overwrite exclude each other; expected one of them.")
    if report_to not in ("none", "tensorboard", "trackio"):
        raise typer.BadParameter(f"--report-to {report_to!r} is not known; expected none, tensorboard or trackio.")
    try:
        overrides = [*(set_ or []), *([f"training.seed={seed}"] if seed is not None else [])]
        columns = TableColumns(input_, target, label, config, split, tokens)
        chosen, folder = chosen_recipe(recipe, data, columns, overrides, say=lambda text: print(text, file=sys.stderr))
        if dry_run:
            show_plan(chosen, as_json)
            return
        options = RunOptions(output, folder, resume, overwrite, keep, report_to, processes)
        summary = train_recipe(chosen, options)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    except TrainingStopped as stopped:
        print(f"headcount: {stopped}", file=sys.stderr)
        raise typer.Exit(stopped.exit_code) from stopped
    if as_json:
        print(json.dumps(summary))


def show_plan(recipe: "Recipe", as_json: bool) -> None:
    """The resolved recipe, its number of parameters, and how long a few steps take here."""
    import time

    import torch

    from headcount.trainers.model_building import make_model
    from headcount.trainers.optimizers import OPTIMIZERS
    from headcount.trainers.training_data import make_batches, make_corpus

    model, batches = make_model(recipe), make_batches(recipe, make_corpus(recipe))
    steps, optimizers = batches.steps, OPTIMIZERS[recipe.training.optimizer](model, recipe.training)
    clock = []
    for step in range(6):
        start = time.perf_counter()
        model(**batches(step)).loss.backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        clock.append(time.perf_counter() - start)
    plan = {
        "parameters": model.num_parameters(),
        "steps": steps,
        "estimated_seconds": round(steps * sorted(clock)[len(clock) // 2], 1),
        "threads": torch.get_num_threads(),
    }
    if as_json:
        print(json.dumps({"recipe": recipe.to_yaml(), **plan}))
    else:
        print(recipe.to_yaml())
        print("\n".join(f"# {name}: {value}" for name, value in plan.items()))


if __name__ == "__main__":
    from headcount.scripts.cli import run

    sys.exit(run(["train", *sys.argv[1:]]))
