"""`headcount data TASK`: writes a corpus as parquet splits with a dataset card.

headcount data addition --output addition-data
headcount data addition --output long --digits 20 --min-digits 1 --answer-order reversed --test-lengths 50,200,1000
headcount data sortedness --output sortedness-data --test-lengths 16,64,256 --dry-run
headcount data addition --recipe addition --output addition-data
headcount data my_task.py --recipe my_task.py --output my-data
"""

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer


if TYPE_CHECKING:
    from ..data_builders.tasks import Task


# The other options are those of the task: see task_options.py.
GOES_ON = "nothing was written; the same command can be given again"
CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True}


def main(
    context: typer.Context,
    task: Annotated[
        str, typer.Argument(help="Name of a task (headcount ls tasks), or a Python file with one.", metavar="TASK")
    ],
    output: Annotated[Path, typer.Option(help="Folder to write; load_dataset(DIR, CONFIG) reads it.", metavar="DIR")],
    recipe: Annotated[
        str | None, typer.Option(help="Take the data options of this recipe; others given here come on top.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be written, write nothing.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing corpus folder.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Write the corpus of a task: parquet splits with a dataset card.

    Every option of the task can be given, such as --digits 4 or --test-lengths 16,64: headcount ls options.
    """
    from ..data_builders.folder import check_target, write_folder
    from ..data_builders.registry import named_task
    from .task_options import parse_options

    try:
        chosen = named_task(task)
        options = chosen.options(**{**recipe_options(chosen, recipe), **parse_options(chosen, context.args)})
        splits = chosen.splits(options).sizes()
        check_target(output, overwrite)
        if not dry_run:
            splits = write_folder(chosen, options, output, overwrite, Progress(splits))["splits"]
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    report(chosen, options, splits, output, dry_run, as_json)


def recipe_options(task: "Task", recipe: str | None) -> dict:
    """The data section of a recipe of this task."""
    from ..trainers.recipe import load_recipe

    if recipe is None:
        return {}
    found = load_recipe(recipe)
    if found.task != task.name:
        raise ValueError(f"the recipe {recipe!r} is of {found.task}; expected one of {task.name}.")
    return dict(found.data)


class Progress:
    """One line on standard error that follows the rows and says how long it still takes; only on a terminal."""

    def __init__(self, splits: dict[str, dict[str, int]]):
        self.total = sum(sum(sizes.values()) for sizes in splits.values())
        self.done, self.start, self.shown = 0, time.monotonic(), 0.0

    def __call__(self, split: str, rows: int) -> None:
        self.done += rows
        now = time.monotonic()
        finished = self.done >= self.total
        if sys.stderr.isatty() and (finished or now - self.shown > 0.1):
            self.shown = now
            rate = self.done / max(now - self.start, 1e-9)
            left = (self.total - self.done) / rate
            text = f"{split:24} {self.done:,} of {self.total:,} rows, {rate:,.0f} a second, {left:.0f} s left"
            print(f"\r{text:90}", end="\n" if finished else "", file=sys.stderr, flush=True)


def report(task: "Task", options: Any, splits: dict, output: Path, dry_run: bool, as_json: bool) -> None:
    from ..data_builders.tasks import plain_options

    if as_json:
        facts = {"task": task.name, "output": str(output), "written": not dry_run}
        print(json.dumps({**facts, "options": plain_options(options), "splits": splits}, indent=2))
        return
    print(f"{task.name}, seed {options.seed}: {'would be written' if dry_run else 'written'} to {output}")
    for config, sizes in splits.items():
        for split, rows in sizes.items():
            print(f"{config:11} {split:11} {rows:>12,} rows")
