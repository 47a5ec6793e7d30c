"""Compare position encodings and poolings far beyond the training length.

headcount extrapolate --output study --quick
headcount extrapolate --output study
headcount extrapolate --output study --encodings rotary,rotary+window --poolings max --seeds 0,1,2,3,4
headcount extrapolate --output goals --recipes sortedness,sortedness-causal --seeds 0,1,2,3,4
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Annotated

import typer


def main(
    output: Annotated[Path, typer.Option(help="Folder for the study; one that is there already goes on.")],
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
    lengths: Annotated[str | None, typer.Option(help="Comma-separated lengths to test; default 8-16 to 4096.")] = None,
    kinds: Annotated[str | None, typer.Option(help="Comma-separated negatives; default shuffle,swap,move.")] = None,
    recipes: Annotated[
        str | None, typer.Option(help="Comma-separated recipes to study as they stand, instead of a grid.")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="KEY=VALUE for every cell, such as training.steps=400.")
    ] = None,
    rows: Annotated[
        int, typer.Option(min=2, help="Test sequences per kind and length beyond training, half of them sorted.")
    ] = 200,
    workers: Annotated[int | None, typer.Option(min=1, help="Cells at a time; default: one per core.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small grid with one seed, in a few minutes.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Train the cells anew that are there.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the cells and do nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON for machines.")] = False,
) -> None:
    """Train encodings x poolings x seeds and measure accuracy by length, with figures that show why."""
    from headcount.analysis import length_grid as grid

    if rows % 2:
        raise typer.BadParameter(
            f"--rows {rows} is odd, so the classes could not be balanced; expected an even number."
        )
    if recipes is not None:
        others = {"--encodings": encodings, "--poolings": poolings, "--schemes": schemes, "--normalizers": normalizers}
        given = [name for name, value in (others | {"--quick": quick or None}).items() if value is not None]
        if given:
            raise typer.BadParameter(f"{given[0]} has no effect with --recipes; expected one of the two.")
    try:
        tested = numbers("--lengths", lengths, 2) or (grid.QUICK_LENGTHS if quick else grid.DEFAULT_LENGTHS)
        chosen = numbers("--seeds", seeds, 0) or (grid.QUICK_SEEDS if quick else grid.DEFAULT_SEEDS)
        negatives = names("--kinds", kinds) or list(grid.KINDS)
        for kind in negatives:
            grid.check_name("kind", kind, grid.KINDS)
        if recipes is not None:
            cells = grid.recipe_cells(names("--recipes", recipes), chosen, set_ or ())
        else:
            cells = grid.make_grid(
                names("--encodings", encodings) or (grid.QUICK_VARIANTS if quick else grid.DEFAULT_VARIANTS),
                names("--poolings", poolings) or (grid.QUICK_POOLINGS if quick else grid.DEFAULT_POOLINGS),
                chosen,
                names("--schemes", schemes),
                names("--normalizers", normalizers),
                (*(grid.QUICK_SETTINGS if quick else ()), *(set_ or ())),
            )
        cells = check_cells(cells, output, overwrite)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    if dry_run:
        print(json.dumps([cell.name for cell in cells]) if as_json else "\n".join(cell.name for cell in cells))
        return
    summary, failed = study(cells, output, workers, overwrite, lengths=tested, kinds=negatives, rows=rows)
    print(json.dumps(summary, indent=1) if as_json else table(summary))
    for name, reason in failed.items():
        print(f"headcount: cell {name} failed: {reason}", file=sys.stderr)
    print(f"rows in {output / 'results'}, figures in {output / 'figures'}", file=sys.stderr)
    if failed:
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
    if parts is not None and not all(part.isdigit() and int(part) >= smallest for part in parts):
        raise ValueError(
            f"{option} {text!r} is not allowed; expected whole numbers from {smallest} on, such as 16,64."
        )
    return parts and [int(part) for part in parts]


def check_cells(cells: list, output: Path, overwrite: bool) -> list:
    """The cells that can be trained. A combination that the config refuses is left out with a sentence; a folder that
    holds something else under the name of a cell is an error."""
    from headcount.trainers.model_building import make_config
    from headcount.trainers.recipe import load_recipe

    if output.exists() and not output.is_dir():
        raise ValueError(f"{output} is a file; expected a folder for the study.")
    if output.exists() and any(output.iterdir()) and not (output / "cells").exists():
        raise ValueError(f"{output} is not empty and holds no study of headcount; expected a new folder.")
    possible, refused = [], {}
    for cell in cells:
        recipe = load_recipe(cell.recipe, [*cell.settings, f"training.seed={cell.seed}"])
        if recipe.task != "sortedness":
            raise ValueError(f"the recipe {cell.recipe!r} is of {recipe.task}; expected one of sortedness.")
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


def study(cells: list, output: Path, workers: int | None, overwrite: bool, **asked):
    """Runs the cells and writes all rows and figures; the summary, and the cells that failed."""
    from transformers.utils.logging import disable_progress_bar

    from headcount.analysis.extrapolation import StudyInterrupted, gather_rows, run_cells, write_rows
    from headcount.analysis.length_summary import summarize
    from headcount.analysis.position_mathematics import check_mathematics
    from headcount.analysis.position_tables import position_rows
    from headcount.reports.length_figures import draw_length_figures
    from headcount.reports.position_figures import draw_position_figures

    disable_progress_bar()  # the study has one display of its own
    with Display(len(cells), workers or os.cpu_count() or 1) as display:
        try:
            outcome = run_cells(cells, output, workers=workers, overwrite=overwrite, progress=display.show, **asked)
        except StudyInterrupted as stopped:
            print(f"headcount: {stopped}", file=sys.stderr)
            raise typer.Exit(130) from stopped
    gathered = gather_rows(output)
    summary = summarize(gathered["lengths"])
    gathered |= {"summary": summary, "mathematics": check_mathematics(), "positions": position_rows(output)}
    for name, found in gathered.items():
        write_rows(output, name, found)
    draw_length_figures(output)
    draw_position_figures(output)
    return summary, outcome.failed


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


def table(summary: list[dict]) -> str:
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
