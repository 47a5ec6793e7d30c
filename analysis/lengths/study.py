"""The study of lengths, for any task: how far each variant of a model holds beyond its training lengths, and why.

DIR/extrapolate.json  which task it is of, and the commands that made it, with the seconds that they took
DIR/cells/NAME/       the run folder of a cell, with the rows of its analyses in results/
DIR/logs/*.log        what the processes said
DIR/results/*.json    the rows of all cells that are there, and the summary
"""

import shlex
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...data_builders.registry import check_kept, keep_task, named_task
from ...data_builders.tasks import Task
from ...records.files import read_json, write_json
from ...records.litter import is_empty
from ...records.locks import alone_in
from ...records.rows import Rows, read_rows, results_path, write_rows
from ...records.run_folder import RECIPE
from ...trainers.model_building import make_config
from ...trainers.recipe import load_variants
from .analyses import LENGTH_ANALYSES
from .asked import Asked, read_asked, result_names
from .cells import Cell, check_name, length_study_of, make_cells
from .measure import check_lengths
from .pool import Outcome, Progress, cell_folder, run_cells
from .positions.mathematics import check_mathematics
from .positions.tables import position_rows
from .summary import summarize


STUDY_FILE = "extrapolate.json"


@dataclass(frozen=True)
class Plan:
    """A study that can be run: its cells, what they are measured for, and the variants that the config refuses."""

    task: Task
    output: Path
    cells: list[Cell]
    asked: Asked
    overwrite: bool = False
    refused: dict[str, str] = field(default_factory=dict)  # variant -> why
    command: str = ""  # that asks for it


@dataclass(frozen=True)
class LengthResults:
    """Rows by name of file, `summary` among them; `failed`: cell -> what went wrong."""

    output: Path
    rows: dict[str, Rows]
    failed: dict[str, str]


def extrapolate(
    task: str,
    output: str | Path,
    *,
    variants: Sequence[str] | None = None,
    encodings: Sequence[str] | None = None,
    poolings: Sequence[str] | None = None,
    schemes: Sequence[str] | None = None,
    normalizers: Sequence[str] | None = None,
    recipes: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    lengths: Sequence[int] | None = None,
    kinds: Sequence[str] | None = None,
    settings: Sequence[str] = (),
    rows: int = 200,
    quick: bool = False,
    overwrite: bool = False,
    workers: int | None = None,
    progress: Progress | None = None,
) -> LengthResults:
    """Trains variants x seeds and measures accuracy by length, in processes of their own; finished cells are kept.

    Args:
        task: name of a task, or a Python file with one.
        output: folder of the study; one that is there already goes on.
        variants, encodings, poolings, schemes, normalizers, recipes, seeds, settings, quick: which cells, see
            `make_cells`.
        lengths: to test; by default those of the task.
        kinds: classes of problems; by default all of the task.
        rows: problems per class and length beyond training.
        overwrite: train the cells anew that are there.
        workers: cells at a time; by default one per core.
        progress: is called twice a second with what is done, and where the running cells are.

    Returns:
        The rows, which are in `output`/results too, and what failed.

    >>> import headcount
    >>> tiny = ["training.steps=2", "model.num_hidden_layers=1", "model.num_attention_heads=2", "model.hidden_size=16"]
    >>> asked = {"encodings": ["rotary"], "seeds": [0], "lengths": [20], "rows": 4}
    >>> found = headcount.extrapolate("reverse", "study", **asked, settings=tiny)
    >>> {(row["variant"], row["task"]) for row in found.rows["summary"]}
    {('rotary', 'reverse')}
    """
    plan = plan_study(
        task,
        output,
        variants=variants,
        encodings=encodings,
        poolings=poolings,
        schemes=schemes,
        normalizers=normalizers,
        recipes=recipes,
        seeds=seeds,
        lengths=lengths,
        kinds=kinds,
        settings=settings,
        rows=rows,
        quick=quick,
        overwrite=overwrite,
    )
    return run_plan(plan, workers, progress)


def plan_study(
    task: str,
    output: str | Path,
    *,
    lengths: Sequence[int] | None = None,
    kinds: Sequence[str] | None = None,
    rows: int = 200,
    quick: bool = False,
    overwrite: bool = False,
    **cells: Any,
) -> Plan:
    """Everything checked, nothing written; the arguments are those of `extrapolate`."""
    found, output = named_task(task), Path(output)
    check_folder(found, output)
    if rows < 2 or (found.kind == "label" and rows % 2):
        raise ValueError(f"--rows {rows} is odd, so the classes could not be balanced; expected an even number.")
    if not lengths:
        study = length_study_of(found)
        lengths = study.quick_lengths if quick else study.lengths
    for kind in kinds or ():
        check_name("kind", kind, found.classes)
    chosen = tuple(kind for kind in found.classes if kinds is None or kind in kinds)
    asked = Asked(tuple(sorted(set(lengths))), chosen, rows)
    possible, refused = possible_cells(found, make_cells(found, quick=quick, **cells), asked, output, overwrite)
    command = command_of(found, output, {**cells, "lengths": lengths, "kinds": kinds, "rows": rows, "quick": quick})
    return Plan(found, output, possible, asked, overwrite, refused, command)


def command_of(task: Task, output: Path, options: dict[str, Any]) -> str:
    """What one would type; of the folder, which may be anywhere, the name."""
    words = ["headcount", "extrapolate", "--task", task.name, "--output", output.absolute().name]
    for setting in options.pop("settings", ()):
        words += ["--set", setting]
    for name, value in options.items():
        if value is True:
            words.append(f"--{name}")
        elif value:
            words += [f"--{name}", ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)]
    return shlex.join(words)


def check_folder(task: Task, output: Path) -> None:
    """Raises unless the folder is new, empty, or holds a study of this task."""
    if output.exists() and not output.is_dir():
        raise ValueError(f"{output} is a file; expected a folder for the study.")
    if (output / STUDY_FILE).exists():
        other = read_json(output / STUDY_FILE)["task"]
        if other != task.name:
            raise ValueError(f"{output} holds the study of another task, {other}; expected a folder for {task.name}.")
    elif not is_empty(output):
        raise ValueError(f"{output} is not empty and holds no study of headcount; expected a new folder.")


def possible_cells(
    task: Task, cells: list[Cell], asked: Asked, output: Path, overwrite: bool
) -> tuple[list[Cell], dict[str, str]]:
    """The cells that can be trained, and by variant why others cannot: the config refuses some combinations.

    Nothing left is an error, and so is a folder that holds something else under the name of a cell.
    """
    possible, refused = [], {}
    for cell in cells:
        recipe = cell.load_recipe()
        if recipe.task != task.name:
            raise ValueError(f"the recipe {cell.recipe!r} is of {recipe.task}; expected one of {task.name}.")
        check_lengths(task, task.trained_lengths(recipe.options)[1], asked.lengths)
        try:
            make_config(recipe)
        except ValueError as error:
            refused[cell.variant] = str(error)
            continue
        there = cell_folder(output, cell.name) / RECIPE
        if there.exists() and not overwrite:
            check_kept(task, there.parent)
        if there.exists() and not overwrite and there.read_text(encoding="utf-8") != recipe.to_yaml():
            raise ValueError(
                f"{there.parent} was trained with other settings than now asked for; expected the same ones, "
                "--overwrite to train it anew, or another folder."
            )
        possible.append(cell)
    if not possible:
        raise ValueError(next(f"{variant}: {reason}" for variant, reason in refused.items()))
    return possible, refused


def run_plan(plan: Plan, workers: int | None = None, progress: Progress | None = None) -> LengthResults:
    """Runs the cells and writes all rows; one process at a time in a folder."""
    with alone_in(plan.output):
        keep_task(plan.task, plan.output)
        before = {} if plan.overwrite else commands_of(plan.output)
        clock = time.perf_counter()
        note_command(plan, before, clock)
        try:
            outcome, rows = run_and_conclude(plan, workers, progress)
        finally:  # a command that is stopped has taken its time as well
            note_command(plan, before, clock)
    return LengthResults(plan.output, rows, outcome.failed)


def run_and_conclude(plan: Plan, workers: int | None, progress: Progress | None) -> tuple[Outcome, dict[str, Rows]]:
    if plan.overwrite:  # what was gathered is of cells that are about to go
        for name in ("results", "figures"):
            shutil.rmtree(plan.output / name, ignore_errors=True)
    outcome = run_cells(plan.cells, plan.output, plan.asked, workers, plan.overwrite, progress)
    rows = gather_rows(plan.output)
    rows |= conclusions(plan.task, plan.output, rows)
    for name, found in rows.items():
        write_rows(plan.output, name, found)
    return outcome, rows


def commands_of(output: Path) -> dict[str, float]:
    """Command -> seconds that it took, of a folder in which a study has been made or begun."""
    path = output / STUDY_FILE
    return read_json(path).get("commands", {}) if path.exists() else {}


def note_command(plan: Plan, before: dict[str, float], clock: float) -> None:
    """A command that is given again, to go on, takes what it took in all."""
    took = round(before.get(plan.command, 0.0) + time.perf_counter() - clock, 1)
    write_json(plan.output / STUDY_FILE, {"task": plan.task.name, "commands": {**before, plan.command: took}})


def gather_rows(output: Path) -> dict[str, Rows]:
    """The rows of all cells in the folder, by analysis; a cell counts once all its analyses are there."""
    folders = [folder for folder in sorted((output / "cells").glob("*")) if read_asked(folder) is not None]
    return {
        name: [row for folder in own for row in read_rows(results_path(folder, name))]
        for name in LENGTH_ANALYSES
        if (own := [folder for folder in folders if name in result_names(folder)])
    }


def conclusions(task: Task, output: Path, rows: dict[str, Rows]) -> dict[str, Rows]:
    """The summary; and, of a study that compares encodings, what they are: tables, scores, mathematics.

    Variants that a recipe names are about its ingredients, everything else is about encodings.
    """
    lengths = rows.get("lengths", [])
    found = {"summary": summarize(lengths)}
    named = {} if task.length_study is None else load_variants(task.length_study.recipe)
    if any(row["variant"] not in named for row in lengths):
        about = {"task": task.name}
        found["mathematics"] = [{**row, **about} for row in check_mathematics()]
        found["positions"] = [{**row, **about} for row in position_rows(output)]
    return found
