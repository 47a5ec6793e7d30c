"""A causal account of a trained model: what is enough for it, what reads what, where its variables are.

headcount explain runs/addition-small --output runs/account
headcount explain runs/addition-small --output runs/account --variable carry
headcount explain runs/seed-0 runs/seed-1 runs/seed-2 --output runs/accounts
headcount explain --constructions --output runs/known-circuits
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..records.progress import progress_bar, say


if TYPE_CHECKING:
    from ..records.rows import Rows

GOES_ON = "what is finished stays; the same command goes on from there"


def main(
    output: Annotated[Path, typer.Option(help="Folder for results/ and figures/.")],
    models: Annotated[
        list[str] | None,
        typer.Argument(
            help="Folder of a run, a model folder or a Hub id; several are explained one by one and compared.",
            metavar="[MODEL]...",
        ),
    ] = None,
    variable: Annotated[
        list[str] | None, typer.Option(help="A variable of the task; may be repeated; default: all of them.")
    ] = None,
    constructions: Annotated[
        bool,
        typer.Option(
            "--constructions",
            help="Try methods of circuit discovery on models whose circuits are known (headcount ls constructions).",
        ),
    ] = False,
    construction: Annotated[
        list[str] | None, typer.Option(help="With --constructions: this one alone; may be repeated.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Compute again what is there already.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows for machines.")] = False,
) -> None:
    """Find the circuit of a model and where it holds the variables of its task, each beside its controls."""
    from ..records.locks import alone_in
    from ..reports.tables.explain import as_text, explain_tables, method_table

    check_options(models or [], variable, constructions, construction)
    try:
        with alone_in(output):
            if constructions:
                rows = try_methods(output, construction, overwrite)
                tables = [method_table(rows)]
            else:
                rows = explain_models(models or [], output, variable, overwrite)
                tables = explain_tables(rows)
    except (ValueError, RuntimeError) as error:
        raise typer.BadParameter(str(error).splitlines()[0]) from error
    say(f"figures in {output / 'figures'}, rows in {output / 'results'}" if not constructions else f"rows in {output}")
    print(json.dumps(rows) if as_json else "\n\n".join(as_text(table) for table in tables))


def check_options(
    models: list[str], variable: list[str] | None, constructions: bool, construction: list[str] | None
) -> None:
    """Raises for options that have no effect beside each other."""
    if constructions and (models or variable):
        what = "a MODEL" if models else "--variable"
        raise typer.BadParameter(f"{what} has no effect with --constructions; expected one or the other.")
    if construction and not constructions:
        raise typer.BadParameter("--construction has no effect without --constructions.")
    if not constructions and not models:
        raise typer.BadParameter("MODEL is missing; expected a run to explain, or --constructions.")


def explain_models(models: list[str], output: Path, variable: list[str] | None, overwrite: bool) -> "Rows":
    """The rows of one account; of several, those of each with its `run`, and what tells them apart."""
    from ..analysis.circuits.seed_groups import seed_groups
    from ..records.rows import write_rows
    from ..reports.figures.drawing import save_figure
    from ..reports.figures.explain import draw_seeds

    if len(models) == 1:
        return explain_model(models[0], output, variable, overwrite)
    names = names_of(models)
    accounts = {}
    for name, model in names.items():
        say(f"{name} ...")
        accounts[name] = explain_model(model, output / name, variable, overwrite)
    rows = [{**row, "run": name} for name, found in accounts.items() for row in found]
    groups = seed_groups(accounts)
    write_rows(output, "seed_groups", groups)
    figure = draw_seeds([*rows, *groups])
    if figure is not None:
        save_figure(figure, output / "figures", "seed_groups")
    return [*rows, *groups]


def names_of(models: list[str]) -> dict[str, str]:
    """A name for each model, the last part of its path."""
    found = {Path(model).name: model for model in models}
    if len(found) < len(models):
        raise ValueError("two models have the same name; expected folders of different names.")
    return found


def explain_model(model: str, output: Path, variable: list[str] | None, overwrite: bool) -> "Rows":
    """The rows of every part; what is finished is read instead of computed."""
    from ..analysis.circuits.explain import PARTS, parts_for
    from ..analysis.circuits.variable_pairs import chosen_variables
    from ..data_builders.folder import hash_data
    from ..records.claims import Claim
    from ..records.files import hash_file
    from ..records.rows import write_rows
    from ..reports.figures.drawing import save_figure
    from ..reports.figures.explain import EXPLAIN_FIGURES
    from ..trainers.trained_run import find_model, load_run

    run = load_run(model)
    names = parts_for(run)
    wanted = chosen_variables(run, variable) if variable or "variables" in names else None
    weights = hash_file(find_model(model)[1] / "model.safetensors")
    settings = {"variables": wanted or [], "data": hash_data(run.corpus, None), "weights": weights}
    claim = Claim(output, "explain", settings, tuple(PARTS), overwrite)
    results: dict[str, Rows] = {}
    for name in names:
        found = claim.finished(name)
        if found is None:
            say(f"{name} ...")
            found = PARTS[name](run, wanted, progress_bar)
            write_rows(output, name, found)
        results[name] = found
    for title, draw in EXPLAIN_FIGURES.items():
        figure = draw(results.get(title.partition("_and_")[0], []))
        if figure is not None:
            save_figure(figure, output / "figures", title)
    return [row for found in results.values() for row in found]


def try_methods(output: Path, wanted: list[str] | None, overwrite: bool) -> "Rows":
    """The scores of all methods on every construction, each kept as soon as it is there."""
    from ..analysis.circuits.constructions.catalogue import CONSTRUCTIONS
    from ..analysis.circuits.validation import EXAMPLES, construction_names, validation_rows
    from ..records.claims import Claim
    from ..records.rows import write_rows

    names = construction_names(wanted)
    claim = Claim(output, "constructions", {"examples": EXAMPLES}, names, overwrite)
    rows: Rows = []
    progress = progress_bar("constructions")
    for number, name in enumerate(names):
        found = claim.finished(name)
        if found is None:
            found = validation_rows(CONSTRUCTIONS[name])
            write_rows(output, name, found)
        rows += found
        progress(number + 1, len(names))
    return rows
