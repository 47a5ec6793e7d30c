"""`headcount data TASK`: writes a corpus as parquet splits with a dataset card.

headcount data addition --output addition-data
headcount data addition --output long --digits 20 --min-digits 1 --answer-order reversed --test-lengths 50,200,1000
headcount data sortedness --output sortedness-data --test-lengths 16,64,256 --dry-run
"""

import dataclasses
import json
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from ..configuration.rules import nearest
from ..data_builders.choices import ANSWER_ORDERS, SAMPLINGS, SPLIT_RULES, TASKS


def option(text: str, names: dict[str, str] | None = None, metavar: str | None = None):
    """An option that is left to the task's default unless it is given."""
    return typer.Option(
        help=text + (f" One of: {', '.join(names)}." if names else ""), metavar=metavar, show_default=False
    )


def main(
    task: Annotated[str, typer.Argument(help="One of: " + ", ".join(TASKS) + ".", metavar="TASK")],
    output: Annotated[Path, typer.Option(help="Folder to write; load_dataset(DIR, CONFIG) reads it.", metavar="DIR")],
    seed: Annotated[int, typer.Option(help="The same seed and options give the same rows on every machine.")] = 0,
    train: Annotated[int | None, option("Rows for training.")] = None,
    validation: Annotated[int | None, option("Rows for validation.")] = None,
    test: Annotated[int | None, option("Rows for testing; for sortedness, in every test split.")] = None,
    digits: Annotated[int | None, option("addition: largest number of digits of an operand.")] = None,
    min_digits: Annotated[
        int | None, option("addition: mixed lengths, from so many digits on, instead of every number below 10^digits.")
    ] = None,
    answer_order: Annotated[str | None, option("addition: order of the answer's digits.", ANSWER_ORDERS)] = None,
    zero_pad: Annotated[
        bool | None, typer.Option("--zero-pad/--no-zero-pad", help="addition: leading zeros.", show_default=False)
    ] = None,
    sampling: Annotated[str | None, option("addition: how training problems are drawn.", SAMPLINGS)] = None,
    split_by: Annotated[str | None, option("addition: whether a+b and b+a are one problem.", SPLIT_RULES)] = None,
    hard: Annotated[int | None, option("addition: rows of the split balanced over carry chains.")] = None,
    pairs: Annotated[int | None, option("addition: pairs of problems in which one carry differs.")] = None,
    long_test: Annotated[int | None, option("addition: rows of each class of problems at each test length.")] = None,
    exhaustive: Annotated[
        bool | None, typer.Option("--exhaustive", help="addition: also every problem there is.", show_default=False)
    ] = None,
    min_length: Annotated[int | None, option("sortedness: shortest training sequence.")] = None,
    max_length: Annotated[int | None, option("sortedness: longest training sequence.")] = None,
    test_lengths: Annotated[
        str | None, option("Lengths to test; for addition, digits beyond those of training.", metavar="N,N,...")
    ] = None,
    kinds: Annotated[
        str | None, option("sortedness: shares of the kinds of unsorted rows.", metavar="shuffle=P,swap=P,move=P")
    ] = None,
    narrow_share: Annotated[float | None, option("sortedness: share of training rows from a sub-range.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be written, write nothing.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing corpus folder.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Write the corpus of a task: parquet splits with a dataset card."""
    given = {name: value for name, value in locals().items() if name in ALL_OPTIONS and value is not None}
    if task not in TASKS:
        raise typer.BadParameter(
            f"there is no task {task!r}; expected one of {', '.join(TASKS)}.{nearest(task, TASKS)}"
        )
    from ..data_builders.folder import check_target, write_folder
    from ..data_builders.tasks import TASKS as IMPLEMENTED

    try:
        options = make_options(task, IMPLEMENTED[task].options, given)
        splits = IMPLEMENTED[task].corpus(options).splits()
        check_target(output, overwrite)
        if not dry_run:
            splits = write_folder(task, options, output, overwrite, Progress(splits))["splits"]
    except (ValueError, OSError) as error:
        raise typer.BadParameter(str(error)) from error
    report(task, options, splits, output, dry_run, as_json)


TASK_OPTIONS = {
    "addition": (
        "digits", "min_digits", "answer_order", "zero_pad", "sampling", "split_by", "hard", "pairs", "long_test",
        "exhaustive",
    ),
    "sortedness": ("min_length", "max_length", "kinds", "narrow_share"),
}  # fmt: skip
ALL_OPTIONS = {"seed", "train", "validation", "test", "test_lengths"}.union(*TASK_OPTIONS.values())


def make_options(task: str, options_class: type, given: dict):
    """The task's options from the command line's words; an option of another task is an error."""
    for other, names in TASK_OPTIONS.items():
        for name in names:
            if other != task and name in given:
                raise ValueError(
                    f"--{name.replace('_', '-')} is an option of {other} and has no effect on {task}; leave it out."
                )
    values = dict(given)
    if "test_lengths" in values:
        values["test_lengths"] = tuple(
            _number("--test-lengths", word, int) for word in values["test_lengths"].split(",")
        )
    if "kinds" in values:
        words = [word.partition("=") for word in values["kinds"].split(",")]
        values["kinds"] = {name.strip(): _number("--kinds", share, float) for name, _, share in words}
    return options_class(**values)


def _number(flag: str, word: str, kind: type):
    try:
        return kind(word)
    except ValueError:
        example = "16,64,256" if kind is int else "shuffle=0.5,swap=0.5"
        raise ValueError(
            f"{flag} has {word.strip()!r} where a number is wanted; expected a list such as {example}."
        ) from None


class Progress:
    """One line on standard error that follows the rows; only on a terminal."""

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
            text = f"{split:24} {self.done:,} of {self.total:,} rows, {rate:,.0f} a second"
            print(f"\r{text:78}", end="\n" if finished else "", file=sys.stderr, flush=True)


def report(task: str, options, splits: dict, output: Path, dry_run: bool, as_json: bool) -> None:
    if as_json:
        facts = {"task": task, "output": str(output), "written": not dry_run}
        print(json.dumps({**facts, "options": dataclasses.asdict(options), "splits": splits}, indent=2))
        return
    print(f"{task}, seed {options.seed}: {'would be written' if dry_run else 'written'} to {output}")
    for config, sizes in splits.items():
        for split, rows in sizes.items():
            print(f"{config:11} {split:11} {rows:>12,} rows")
