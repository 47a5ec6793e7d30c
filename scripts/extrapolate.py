"""Test models of any task far beyond the training length: position encodings, poolings, or a recipe's ingredients.

headcount extrapolate --output study --quick
headcount extrapolate --output study
headcount extrapolate --output study --encodings rotary,rotary+window --poolings max --seeds 0,1,2,3,4
headcount extrapolate --output goals --recipes sortedness,sortedness-causal --seeds 0,1,2,3,4
headcount extrapolate --task addition --output adding --variants whole --seeds 0,1,2,3,4,5,6,7,8,9
headcount extrapolate --task addition --output ablation --kinds random,carry_dense,full_chain --rows 100
headcount extrapolate --task reverse --output reverse --encodings learned,rotary --lengths 12,16
"""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .whole_numbers import whole_number


if TYPE_CHECKING:
    from ..analysis.lengths.study import LengthResults, Plan


def main(
    output: Annotated[Path, typer.Option(help="Folder for the study; one that is there already goes on.")],
    task: Annotated[
        str, typer.Option(help="What the models do: headcount ls tasks, or a Python file.")
    ] = "sortedness",
    variants: Annotated[
        str | None, typer.Option(help="Comma-separated variants that the task's recipe names; default: all.")
    ] = None,
    encodings: Annotated[
        str | None,
        typer.Option(
            help="Comma-separated encodings, each with +causal, +window, +randomized, +log_n, +untrained, +table."
        ),
    ] = None,
    poolings: Annotated[str | None, typer.Option(help="Comma-separated poolings (headcount ls poolers).")] = None,
    schemes: Annotated[str | None, typer.Option(help="Every encoding with each: sequential,randomized.")] = None,
    normalizers: Annotated[str | None, typer.Option(help="Every encoding with each: softmax,log_n.")] = None,
    seeds: Annotated[str | None, typer.Option(help="Comma-separated seeds; default 0,1,2.")] = None,
    lengths: Annotated[
        str | None, typer.Option(help="Comma-separated lengths to test; default: those of the task.")
    ] = None,
    kinds: Annotated[str | None, typer.Option(help="Comma-separated classes of problems; default: all.")] = None,
    recipes: Annotated[
        str | None, typer.Option(help="Comma-separated recipes to study as they stand, instead of variants.")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="KEY=VALUE for every cell, such as training.steps=400.")
    ] = None,
    rows: Annotated[
        int,
        typer.Option(parser=whole_number(2), metavar="N", help="Test problems per kind and length beyond training."),
    ] = 200,
    workers: Annotated[
        int | None, typer.Option(parser=whole_number(1), metavar="N", help="Cells at a time; default: one per core.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Few variants with one seed, in a few minutes.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Train the cells anew that are there.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the cells and do nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON for machines.")] = False,
) -> None:
    """Train variants x seeds and measure accuracy by length, with figures that show why."""
    from headcount.analysis.lengths.study import plan_study

    try:
        plan = plan_study(
            task,
            output,
            variants=names("--variants", variants),
            encodings=names("--encodings", encodings),
            poolings=names("--poolings", poolings),
            schemes=names("--schemes", schemes),
            normalizers=names("--normalizers", normalizers),
            recipes=names("--recipes", recipes),
            seeds=numbers("--seeds", seeds, 0),
            lengths=numbers("--lengths", lengths, 2),
            kinds=names("--kinds", kinds),
            settings=tuple(set_ or ()),
            rows=rows,
            quick=quick,
            overwrite=overwrite,
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    for variant, reason in plan.refused.items():
        print(f"left out: {variant}: {reason}", file=sys.stderr)
    if dry_run:
        cells = [cell.name for cell in plan.cells]
        print(json.dumps(cells) if as_json else "\n".join(cells))
        return
    found = study(plan, workers)
    show(found, as_json)
    if found.failed:
        raise typer.Exit(1)


def names(option: str, text: str | None) -> list[str] | None:
    if text is None:
        return None
    found = list(dict.fromkeys(part.strip() for part in text.split(",")))
    if not all(found):
        raise ValueError(f"{option} {text!r} has an empty part; expected names with commas between them.")
    return found


def numbers(option: str, text: str | None, smallest: int) -> list[int] | None:
    parts = names(option, text)
    if parts is None:
        return None
    parse = whole_number(smallest)
    try:
        return [parse(part) for part in parts]
    except typer.BadParameter as error:
        raise ValueError(f"{option}: {error} Several have commas between them, such as 16,64.") from error


def study(plan: "Plan", workers: int | None) -> "LengthResults":
    """Runs the plan under one display, and draws the figures."""
    from transformers.utils.logging import disable_progress_bar

    from headcount.analysis.lengths.pool import StudyInterrupted
    from headcount.analysis.lengths.progress import Display
    from headcount.analysis.lengths.study import run_plan
    from headcount.records.locks import alone_in
    from headcount.reports.figures.lengths import draw_length_study

    disable_progress_bar()  # the study has one display of its own
    try:
        with Display(len(plan.cells), workers or os.cpu_count() or 1) as display:
            found = run_plan(plan, workers, display.show)
        with alone_in(plan.output):
            draw_length_study(plan.output)
    except StudyInterrupted as stopped:
        print(f"headcount: {stopped}", file=sys.stderr)
        raise typer.Exit(130) from stopped
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    return found


def show(found: "LengthResults", as_json: bool) -> None:
    from headcount.reports.tables.length_study import study_table

    summary = found.rows["summary"]
    if as_json:
        print(json.dumps(summary, indent=1))
    elif summary:
        print(study_table(summary))
    for name, reason in found.failed.items():
        print(f"headcount: cell {name} failed: {reason}", file=sys.stderr)
    print(f"rows in {found.output / 'results'}, figures in {found.output / 'figures'}", file=sys.stderr)
