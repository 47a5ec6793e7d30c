"""What every attention head of a trained model does: maps, specialization, ablation, carries.

headcount heads runs/addition --output runs/addition-heads
headcount heads runs/addition --output runs/addition-heads --rows 500 --mode zero
headcount heads bert-base-uncased --task feature-extraction --data texts.txt --output runs/bert-heads
"""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from . import stock_heads


MAPS_DRAWN = 3  # examples with a sheet of maps each; the rows hold more


def main(
    model: Annotated[Path, typer.Argument(help="Folder of a run; with --task, any transformers model.")],
    output: Annotated[Path, typer.Option(help="Folder for results/ and figures/.")],
    rows: Annotated[int, typer.Option(min=10, help="At most so many test examples.")] = 2000,
    mode: Annotated[list[str] | None, typer.Option(help="zero, mean or resample; default: all three.")] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of headcount data; default: the run's own. With --task, a file or dataset."),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            help="For a model that is not headcount's own: text-classification, text2text, text-generation "
            "or feature-extraction."
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Compute again what is there already.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Show what every head does, what the model loses without it, and which heads carry the carry."""
    from headcount.analysis.ablation import MODES
    from headcount.analysis.head_study import ANALYSES, NEEDS, analyses_for
    from headcount.scripts.study_inputs import Claim, load_study_data
    from headcount.trainers.run_folder import write_rows
    from headcount.trainers.trained_run import load_run

    modes = tuple(mode or MODES)
    unknown = [name for name in modes if name not in MODES]
    if unknown:
        raise typer.BadParameter(f"--mode {unknown[0]!r} is not known; expected one of {', '.join(MODES)}.")
    if "zero" not in modes:
        raise typer.BadParameter("--mode zero is missing; expected it, because the ranking and the atlas build on it.")
    if task is not None:
        if (model / "recipe.yaml").exists():
            raise typer.BadParameter(f"{model} is a run, whose task is known; expected no --task.")
        if data is None:
            raise typer.BadParameter("--task needs --data; expected a table or a dataset.")
        stock_heads.run(str(model), output, rows, modes, str(data), task, overwrite, as_json)
        return
    try:
        loaded, recipe, corpus = load_run(model, data)
        claim = Claim(output, "heads", {"model": model, "rows": rows, "modes": modes, "data": data}, overwrite)
        study = load_study_data(loaded, recipe, corpus, rows)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    results: dict[str, list[dict]] = {}
    for name in analyses_for(loaded, study):
        found = claim.finished(name)
        if found is None:
            options = {needed: results[needed] for needed in NEEDS.get(name, ())}
            if name == "ablation":
                options["modes"] = modes
            print(f"{name} ...", file=sys.stderr, flush=True)
            found = ANALYSES[name](loaded, study, progress=progress_bar, **options)
            write_rows(output, name, found)
        results[name] = found
    drawn = draw_figures(output, results)
    print(f"{len(drawn)} figures in {output / 'figures'}, rows in {output / 'results'}", file=sys.stderr)
    if as_json:
        print(json.dumps({name: found for name, found in results.items() if name != "maps"}))
    else:
        print(table(results))


def progress_bar(title: str):
    """`update(done, total)` for one bar on a terminal; silent elsewhere."""
    from tqdm.auto import tqdm

    bar = tqdm(total=1, desc=title, disable=not sys.stderr.isatty(), file=sys.stderr, leave=False)

    def update(done: int, total: int) -> None:
        bar.total = total
        bar.update(done - bar.n)

    return update


def draw_figures(output: Path, results: dict[str, list[dict]]) -> list[Path]:
    from headcount.reports.drawing import save_figure
    from headcount.reports.head_figures import FIGURES, map_sheets

    folder, written = output / "figures", []
    for name, rows in results.items():
        figure = FIGURES[name](rows) if name in FIGURES else None
        if figure is not None:
            written += save_figure(figure, folder, name)
    for name, figure in map_sheets(results.get("maps", []), MAPS_DRAWN).items():
        written += save_figure(figure, folder, name, kinds=("png",))
    return written


def table(results: dict[str, list[dict]]) -> str:
    """Heads by what they cost, with the class, its interval and, for addition, the role."""
    drops = [row for row in results["ablation"] if "class" in row and row["mode"] == "zero"]
    gradient = {row["head"]: row["value"] for row in results["gradient"] if "head" in row}
    roles = {row["head"]: row for row in results.get("carry_atlas", [])}
    lines = [f"{'head':20} {'drop':>8}  {'95 % interval':19} {'class':10} {'p (Holm)':>9} {'gradient':>9}"]
    lines[0] += f"  {'carry moved':>11}  role" if roles else ""
    for row in sorted(drops, key=lambda row: -row["value"]):
        low, high = row["interval"]
        sure = row["class"] if row["class_is_certain"] else f"{row['class']}?"
        line = f"{row['head']:20} {100 * row['value']:7.2f}   {100 * low:6.2f} to {100 * high:6.2f}     {sure:10} "
        line += f"{row['p_holm']:9.2g} {gradient[row['head']]:9.3f}"
        if row["head"] in roles:
            line += f"  {100 * roles[row['head']]['carry_flip']['value']:9.1f} %  {roles[row['head']]['role']}"
        lines.append(line)
    first, n = drops[0], drops[0]["n"]
    lines.append(f"intact {100 * first['intact']['value']:.2f} %, n = {n:,}; drops in points, zero ablation; "
                 "'?': the interval reaches into another class")  # fmt: skip
    return "\n".join(lines)
