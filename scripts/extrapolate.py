"""Test models far beyond the training length: position encodings and poolings, or addition with every ingredient.

headcount extrapolate --output study --quick
headcount extrapolate --output study
headcount extrapolate --output study --encodings rotary,rotary+window --poolings max --seeds 0,1,2,3,4
headcount extrapolate --output goals --recipes sortedness,sortedness-causal --seeds 0,1,2,3,4
headcount extrapolate --task addition --output adding --variants whole --seeds 0,1,2,3,4,5,6,7,8,9
headcount extrapolate --task addition --output ablation --kinds random,carry_dense,full_chain --rows 100
"""

import json
import os
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer


def main(
    output: Annotated[Path, typer.Option(help="Folder for the study; one that is there already goes on.")],
    task: Annotated[
        str, typer.Option(help="sortedness (encodings x poolings) or addition (variants).")
    ] = "sortedness",
    variants: Annotated[
        str | None, typer.Option(help="Addition: comma-separated variants of addition-long; default: all.")
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
        str | None, typer.Option(help="Comma-separated lengths to test; default 8-16 to 4096, or 21 to 1000 digits.")
    ] = None,
    kinds: Annotated[
        str | None, typer.Option(help="Comma-separated negatives, or classes of addition problems; default: all.")
    ] = None,
    recipes: Annotated[
        str | None, typer.Option(help="Comma-separated recipes to study as they stand, instead of a grid.")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="KEY=VALUE for every cell, such as training.steps=400.")
    ] = None,
    rows: Annotated[
        int, typer.Option(min=2, help="Test sequences or problems per kind and length beyond training.")
    ] = 200,
    workers: Annotated[int | None, typer.Option(min=1, help="Cells at a time; default: one per core.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small grid with one seed, in a few minutes.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Train the cells anew that are there.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the cells and do nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON for machines.")] = False,
) -> None:
    """Train variants x seeds and measure accuracy by length, with figures that show why."""
    given = {"--encodings": encodings, "--poolings": poolings, "--schemes": schemes, "--normalizers": normalizers}
    try:
        refuse_idle_options(task, given, variants, recipes, quick)
        asked = {
            "variants": names("--variants", variants),
            **{flag.removeprefix("--"): names(flag, text) for flag, text in given.items()},
            "seeds": numbers("--seeds", seeds, 0),
            "lengths": numbers("--lengths", lengths, 2),
            "kinds": names("--kinds", kinds),
            "recipes": names("--recipes", recipes),
        }
        chosen, tested, problems = CHOICES[task](asked, quick, tuple(set_ or ()), rows)
        cells = check_cells(chosen, task, tested, output, overwrite)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    if dry_run:
        print(json.dumps([cell.name for cell in cells]) if as_json else "\n".join(cell.name for cell in cells))
        return
    with ExitStack() as held:
        keep_others_out(output, held)
        summary, failed = study(cells, task, output, workers, overwrite, lengths=tested, kinds=problems, rows=rows)
    print(json.dumps(summary, indent=1) if as_json else TABLES[task](summary))
    for name, reason in failed.items():
        print(f"headcount: cell {name} failed: {reason}", file=sys.stderr)
    print(f"rows in {output / 'results'}, figures in {output / 'figures'}", file=sys.stderr)
    if failed:
        raise typer.Exit(1)


def keep_others_out(output: Path, held: ExitStack) -> None:
    from headcount.trainers.run_folder import alone_in

    try:
        held.enter_context(alone_in(output))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    except OSError as error:
        raise typer.BadParameter(
            f"{output} cannot be written ({error.strerror}); expected a writable folder."
        ) from error


def refuse_idle_options(task: str, given: dict, variants: str | None, recipes: str | None, quick: bool) -> None:
    """An option without effect is an error."""
    if task not in CHOICES:
        raise ValueError(f"there is no length study of {task!r}; expected --task sortedness or --task addition.")
    idle = given if task == "addition" else {"--variants": variants}
    for name, value in idle.items():
        if value is not None:
            raise ValueError(f"{name} has no effect with --task {task}; leave it out.")
    if recipes is not None:
        for name, value in (given | {"--variants": variants, "--quick": quick or None}).items():
            if value is not None:
                raise ValueError(f"{name} has no effect with --recipes; expected one of the two.")


def choose_sortedness(asked: dict, quick: bool, settings: tuple[str, ...], rows: int) -> tuple[list, list, list]:
    """Cells, lengths and kinds of negatives."""
    from headcount.analysis import length_grid as grid

    if rows % 2:
        raise ValueError(f"--rows {rows} is odd, so the classes could not be balanced; expected an even number.")
    tested = asked["lengths"] or (grid.QUICK_LENGTHS if quick else grid.DEFAULT_LENGTHS)
    seeds = asked["seeds"] or (grid.QUICK_SEEDS if quick else grid.DEFAULT_SEEDS)
    kinds = asked["kinds"] or list(grid.KINDS)
    for kind in kinds:
        grid.check_name("kind", kind, grid.KINDS)
    if asked["recipes"] is not None:
        return grid.recipe_cells(asked["recipes"], seeds, settings), tested, kinds
    cells = grid.make_grid(
        asked["encodings"] or (grid.QUICK_VARIANTS if quick else grid.DEFAULT_VARIANTS),
        asked["poolings"] or (grid.QUICK_POOLINGS if quick else grid.DEFAULT_POOLINGS),
        seeds,
        asked["schemes"],
        asked["normalizers"],
        (*(grid.QUICK_SETTINGS if quick else ()), *settings),
    )
    return cells, tested, kinds


def choose_addition(asked: dict, quick: bool, settings: tuple[str, ...], rows: int) -> tuple[list, list, list]:
    """Cells, numbers of digits and classes of problems."""
    from headcount.analysis import addition_grid as grid
    from headcount.analysis.length_families import LENGTH_FAMILIES
    from headcount.analysis.length_grid import check_name, recipe_cells

    tested = asked["lengths"] or (grid.QUICK_ADDITION_LENGTHS if quick else grid.ADDITION_LENGTHS)
    seeds = asked["seeds"] or ((0,) if quick else (0, 1, 2))
    kinds = asked["kinds"] or list(LENGTH_FAMILIES["addition"].kinds)
    for kind in kinds:
        check_name("kind", kind, LENGTH_FAMILIES["addition"].kinds)
    if asked["recipes"] is not None:
        return recipe_cells(asked["recipes"], seeds, settings), tested, kinds
    variants = asked["variants"] or (grid.QUICK_ADDITION_VARIANTS if quick else grid.VARIANTS)
    quickly = grid.QUICK_ADDITION_SETTINGS if quick else ()
    return grid.addition_grid(variants, seeds, (*quickly, *settings)), tested, kinds


CHOICES = {"sortedness": choose_sortedness, "addition": choose_addition}


def names(option: str, text: str | None) -> list[str] | None:
    if text is None:
        return None
    found = list(dict.fromkeys(part.strip() for part in text.split(",")))
    if not all(found):
        raise ValueError(f"{option} {text!r} has an empty part; expected names with commas between them.")
    return found


def numbers(option: str, text: str | None, smallest: int) -> list[int] | None:
    parts = names(option, text)
    if parts is not None and not all(part.isdigit() and int(part) >= smallest for part in parts):
        raise ValueError(
            f"{option} {text!r} is not allowed; expected whole numbers from {smallest} on, such as 16,64."
        )
    return parts and [int(part) for part in parts]


def check_cells(cells: list, task: str, lengths: list[int], output: Path, overwrite: bool) -> list:
    """The cells that can be trained. A combination that the config refuses is left out with a sentence; a folder that
    holds something else under the name of a cell is an error."""
    from headcount.trainers.model_building import make_config
    from headcount.trainers.recipe import load_recipe

    if output.exists() and not output.is_dir():
        raise ValueError(f"{output} is a file; expected a folder for the study.")
    if output.exists() and any(output.iterdir()) and not (output / "cells").exists():
        raise ValueError(f"{output} is not empty and holds no study of headcount; expected a new folder.")
    for there in sorted((output / "cells").glob("*/recipe.yaml"))[:1]:
        if f"task: {task}\n" not in there.read_text():
            raise ValueError(f"{output} holds the study of another task; expected a folder for {task} alone.")
    possible, refused = [], {}
    for cell in cells:
        recipe = load_recipe(cell.recipe, [*cell.settings, f"training.seed={cell.seed}"])
        if recipe.task != task:
            raise ValueError(f"the recipe {cell.recipe!r} is of {recipe.task}; expected one of {task}.")
        if task == "addition":
            check_addition(recipe, min(lengths))
        try:
            make_config(recipe)
        except ValueError as error:
            refused[cell.variant] = str(error)
            continue
        there = output / "cells" / cell.name / "recipe.yaml"
        if there.exists() and not overwrite and there.read_text() != recipe.to_yaml():
            raise ValueError(
                f"{there.parent} was trained with other settings than now asked for; expected the same ones, "
                "--overwrite to train it anew, or another folder."
            )
        possible.append(cell)
    for variant, reason in refused.items():
        if not possible:
            raise ValueError(f"{variant}: {reason}")
        print(f"left out: {variant}: {reason}", file=sys.stderr)
    return possible


def check_addition(recipe, shortest: int) -> None:
    from headcount.data_builders.addition_options import AdditionOptions

    trained = AdditionOptions(**recipe.data).digits
    if shortest <= trained:
        raise ValueError(
            f"--lengths has {shortest}, which is within the training of {recipe.name}, where held-out problems are "
            f"tested in any case; expected more than {trained} digits."
        )
    if recipe.model.get("architecture") != "decoder":
        raise ValueError(f"the recipe {recipe.name!r} is no decoder; expected model.architecture=decoder.")


def study(cells: list, task: str, output: Path, workers: int | None, overwrite: bool, **asked):
    """Runs the cells and writes all rows and figures; the summary, and the cells that failed."""
    from transformers.utils.logging import disable_progress_bar

    from headcount.analysis.extrapolation import StudyInterrupted, gather_rows, run_cells, write_rows

    disable_progress_bar()  # the study has one display of its own
    with Display(len(cells), workers or os.cpu_count() or 1) as display:
        try:
            outcome = run_cells(
                cells, output, workers=workers, overwrite=overwrite, task=task, progress=display.show, **asked
            )
        except StudyInterrupted as stopped:
            print(f"headcount: {stopped}", file=sys.stderr)
            raise typer.Exit(130) from stopped
    gathered = gather_rows(output, task)
    gathered |= CONCLUSIONS[task](output, gathered)
    for name, found in gathered.items():
        write_rows(output, name, found)
    FIGURES[task](output)
    return gathered["summary"], outcome.failed


def conclude_sortedness(output: Path, gathered: dict[str, list[dict]]) -> dict[str, list[dict]]:
    from headcount.analysis.length_summary import summarize
    from headcount.analysis.position_mathematics import check_mathematics
    from headcount.analysis.position_tables import position_rows

    summary = summarize(gathered["lengths"])
    return {"summary": summary, "mathematics": check_mathematics(), "positions": position_rows(output)}


def conclude_addition(output: Path, gathered: dict[str, list[dict]]) -> dict[str, list[dict]]:
    from headcount.analysis.addition_summary import summarize_addition, training_seconds

    return {"summary": summarize_addition(gathered["lengths"], training_seconds(output))}


def draw_sortedness(output: Path) -> None:
    from headcount.reports.length_figures import draw_length_figures
    from headcount.reports.position_figures import draw_position_figures

    draw_length_figures(output)
    draw_position_figures(output)


def draw_addition(output: Path) -> None:
    from headcount.reports.addition_figures import draw_addition_figures

    draw_addition_figures(output)


CONCLUSIONS = {"sortedness": conclude_sortedness, "addition": conclude_addition}
FIGURES = {"sortedness": draw_sortedness, "addition": draw_addition}


class Display:
    """One progress display for all cells: a bar on a terminal, a line per finished cell elsewhere."""

    def __init__(self, total: int, workers: int):
        from tqdm import tqdm

        self.bar = tqdm(total=total, unit="cell", file=sys.stderr, disable=not sys.stderr.isatty())
        self.total, self.said, self.started = total, None, time.monotonic()
        print(f"{total} cells, {workers} at a time", file=sys.stderr)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.bar.close()

    def show(self, outcome, running: dict[str, str]) -> None:
        finished = [*outcome.done, *outcome.failed]
        if self.said is None:  # what was there before the study went on
            self.said = set(outcome.done)
            if self.said:
                print(f"{len(self.said)} cells were finished already", file=sys.stderr)
            self.bar.update(len(self.said))
        for name in finished:
            if name not in self.said:
                self.said.add(name)
                self.bar.update()
                if self.bar.disable:
                    state = "failed" if name in outcome.failed else "done"
                    minutes = (time.monotonic() - self.started) / 60
                    print(f"{len(self.said)}/{self.total} {name} {state} ({minutes:.1f} min)", file=sys.stderr)
        self.bar.set_postfix_str(", ".join(f"{name} {state}" for name, state in running.items()))


def sortedness_table(summary: list[dict]) -> str:
    """What `swap` negatives, the hardest, show of every variant and pooling."""
    shown = [row for row in summary if row["kind"] == "swap"]
    lengths = sorted({int(length) for row in shown for length in row["accuracy"]})
    head = f"{'encoding':30} {'pooling':10} {'learned':8} {'holds to, by seed':26} {'8-16':>6}"
    lines = [
        "accuracy in % on one exchanged pair, all seeds pooled (chance 50; - not measured: at chance before)",
        head + "".join(f"{length:>7}" for length in lengths),
    ]
    for row in shown:
        learned = f"{row['learned']}/{len(row['seeds'])}"
        holds = " ".join(str(value or "-") for value in row["holds_to"].values())
        line = f"{row['variant']:30} {row['pooling']:10} {learned:8} {holds:26} {percent(row['in_distribution'])}"
        line += "".join(f" {percent(row['accuracy'].get(str(length)))}" for length in lengths)
        lines.append(line + ("  " + "; ".join(row["flags"]) if row["flags"] else ""))
    return "\n".join(lines)


def percent(found: dict | None) -> str:
    return f"{'-':>6}" if found is None else f"{100 * found['value']:6.1f}"


def addition_table(summary: list[dict]) -> str:
    """What every variant reaches on every class of problems, the seeds pooled, and how far each seed holds."""
    lengths = sorted({int(length) for row in summary for length in row["accuracy"]})
    first, last = summary[0]["trained"]
    lines = [
        "exact match in %, free-running, all seeds pooled (- not measured: nothing right before)",
        f"{'variant':20} {'problems':14} {'fitted':7} {f'{first}-{last}':>6}"
        + "".join(f"{length:>7}" for length in lengths)
        + "  holds to, by seed",
    ]
    for row in summary:
        fitted = f"{row['fitted']}/{len(row['seeds'])}"
        line = f"{row['variant']:20} {row['kind']:14} {fitted:7} {percent(row['in_distribution'])}"
        line += "".join(f" {percent(row['accuracy'].get(str(length)))}" for length in lengths)
        line += "  " + " ".join(str(value or "-") for value in row["holds_to"].values())
        lines.append(line + ("  " + "; ".join(row["flags"]) if row["flags"] else ""))
    built_in = sorted({name for row in summary for name in row["built_in"]})
    return "\n".join([*lines, *([f"built in by hand: {', '.join(built_in)}"] if built_in else [])])


TABLES = {"sortedness": sortedness_table, "addition": addition_table}
