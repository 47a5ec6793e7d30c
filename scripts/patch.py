"""What sites of a trained model bring to the answer: their outputs from one problem, put into another.

headcount patch runs/addition
headcount patch runs/addition --sites "decoder.*.cross.*" --sites "encoder.0.residual@column" --pairs minimal
headcount patch runs/addition --sites "decoder.*.cross.*@left" --freeze "decoder.*.mlp" --pairs minimal
headcount patch gpt2 --pairs pairs.jsonl --sites "decoder.*.self.*" --sites "decoder.5.residual@position(-1)"
"""

import json
from pathlib import Path
from typing import Annotated

import typer

from ..records.progress import progress_bar, say
from .whole_numbers import whole_number


GOES_ON = "nothing was written; the same command can be given again"


def main(
    model: Annotated[str, typer.Argument(help="Folder of a run, a model folder or a Hub id.", metavar="MODEL")],
    sites: Annotated[
        list[str] | None,
        typer.Option(
            help="Sites that are swapped together: names or patterns such as 'decoder.*.cross.*', joined by ' + ', or "
            "'all but ...'; '@column' for some tokens only. May be repeated; default: every site alone and the sets "
            "of each layer and kind."
        ),
    ] = None,
    pairs: Annotated[
        list[str] | None,
        typer.Option(
            help="Kind of pairs; may be repeated; default: all that the task has. For a model that is not headcount's "
            "own: a file NAME.jsonl with base, source, base_answer and source_answer in every line."
        ),
    ] = None,
    variable: Annotated[str | None, typer.Option(help="Variable of the task; default: its first.")] = None,
    freeze: Annotated[
        list[str] | None, typer.Option(help="Sites that keep what they put out on the base; may be repeated.")
    ] = None,
    complements: Annotated[
        bool, typer.Option("--complements", help="Beside every set that is named, all other heads or sublayers.")
    ] = False,
    rows: Annotated[
        int, typer.Option(parser=whole_number(10), metavar="N", help="At most so many pairs of each kind.")
    ] = 1000,
    data: Annotated[Path | None, typer.Option(help="Folder of headcount data; default: the run's own.")] = None,
    output: Annotated[Path | None, typer.Option(help="Folder for results/interchange.json.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows for machines.")] = False,
) -> None:
    """Swap what sites put out between the two problems of counterfactual pairs, and see what moves."""
    from ..analysis.circuits.swap import swap_rows, swap_sets
    from ..analysis.heads.run_data import load_pairs
    from ..analysis.interventions.sets import find_frozen, find_sets
    from ..reports.tables.pairs import pair_text
    from ..reports.tables.swaps import swap_text
    from ..trainers.trained_run import load_run
    from .stock_patch import is_pair_file, patch_stock_model

    if complements and not sites:
        raise typer.BadParameter("--complements has no effect without --sites, where they are swapped anyway.")
    try:
        if any(map(is_pair_file, pairs or ())):
            check_stock(model, pairs or [], variable, data)
            found = patch_stock_model(model, (pairs or [])[0], sites, freeze or [], complements, rows)
            kept(output, found)
            print(json.dumps(found) if as_json else pair_text(found))
            return
        run = load_run(model, data)
        task = run.recipe.the_task
        name = chosen_variable(task.name, list(task.variables), variable)
        kinds = task.variables[name].pair_kinds
        unknown = next((kind for kind in pairs or () if kind not in kinds), None)
        if unknown is not None:
            raise ValueError(f"--pairs {unknown!r} is not known; expected one of {', '.join(kinds)}.")
        known = load_pairs(run, name, rows, tuple(dict.fromkeys(pairs)) if pairs else tuple(kinds))
        frozen = find_frozen(run.model, freeze or ())
        found = []
        for kind, own in known.items():
            sets = find_sets(run.model, sites, complements) if sites else swap_sets(run.model, own)
            found += swap_rows(run.model, own, sets, frozen, progress_bar(f"{kind} pairs"))
        kept(output, found)
    except (ValueError, RuntimeError) as error:
        raise typer.BadParameter(str(error).splitlines()[0]) from error
    print(json.dumps(found) if as_json else swap_text(found, kinds))


def check_stock(model: str, pairs: list[str], variable: str | None, data: Path | None) -> None:
    """Raises for options that have no effect on pairs from a file."""
    from ..records.run_folder import is_run

    if len(pairs) > 1:
        raise ValueError(f"--pairs is given {len(pairs)} times; expected one file, or kinds of pairs of a task.")
    if is_run(Path(model)):
        raise ValueError(f"{model} is a run, whose task makes its pairs; expected their kinds, not a file.")
    unused = [name for name, value in (("--variable", variable), ("--data", data)) if value is not None]
    if unused:
        raise ValueError(f"{unused[0]} has no effect on pairs from a file; expected it without one.")


def kept(output: Path | None, rows: list[dict]) -> None:
    """Writes the rows if a folder for them was named."""
    from ..records.locks import alone_in
    from ..records.rows import write_rows

    if output is not None:
        with alone_in(output):
            say(f"rows in {write_rows(output, 'interchange', rows)}")


def chosen_variable(task: str, known: list[str], wanted: str | None) -> str:
    if not known:
        raise ValueError(f"the task {task} names no variable; expected one whose pairs can be swapped.")
    if wanted is not None and wanted not in known:
        raise ValueError(f"--variable {wanted!r} is not known; expected one of {', '.join(known)}.")
    return wanted or known[0]
