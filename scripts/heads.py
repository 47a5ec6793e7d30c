"""What every attention head of a trained model does: maps, specialization, ablation, interchange.

headcount heads runs/addition --output runs/addition-heads
headcount heads runs/addition --output runs/addition-heads --rows 500 --mode zero
headcount heads bert-base-uncased --task feature-extraction --data texts.txt --output runs/bert-heads
"""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ..records.progress import progress_bar, say
from .whole_numbers import whole_number


GOES_ON = "what is finished stays; the same command goes on from there"


def main(
    model: Annotated[
        str,
        typer.Argument(
            help="Folder of a run, a model folder or a Hub id; with --task, any transformers model.", metavar="MODEL"
        ),
    ],
    output: Annotated[Path, typer.Option(help="Folder for results/ and figures/.")],
    rows: Annotated[
        int, typer.Option(parser=whole_number(10), metavar="N", help="At most so many test examples.")
    ] = 2000,
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
    """Show what every head does, and what the model loses without it."""
    from ..analysis.heads.ablation import MODES
    from ..records.locks import alone_in
    from ..records.run_folder import is_run
    from ..reports.figures.head_study import draw_head_figures
    from ..reports.tables.terminal import head_ranking_text
    from .stock_heads import study_stock_heads

    modes = tuple(mode or MODES)
    unknown = [name for name in modes if name not in MODES]
    if unknown:
        raise typer.BadParameter(f"--mode {unknown[0]!r} is not known; expected one of {', '.join(MODES)}.")
    if "zero" not in modes:
        raise typer.BadParameter("--mode zero is missing; expected it, because the ranking and the atlas build on it.")
    try:
        if task is not None and is_run(Path(model)):
            raise ValueError(f"{model} is a run, whose task is known; expected no --task.")
        if task is not None and data is None:
            raise ValueError("--task needs --data; expected a table or a dataset.")
        with alone_in(output):
            if task is None:
                results = study_own_heads(model, output, rows, modes, data, overwrite)
            else:
                results = study_stock_heads(model, output, rows, modes, str(data), task, overwrite)
            drawn = draw_head_figures(output, results)
    except (ValueError, RuntimeError) as error:
        raise typer.BadParameter(str(error).splitlines()[0]) from error
    say(f"{len(drawn)} figures in {output / 'figures'}, rows in {output / 'results'}")
    if as_json:
        print(json.dumps({name: found for name, found in results.items() if name != "maps"}))
    else:
        print(head_ranking_text(results))


def study_own_heads(
    model: str, output: Path, rows: int, modes: tuple[str, ...], data: Path | None, overwrite: bool
) -> dict[str, list[dict]]:
    """The rows of every analysis by name; what is finished is read instead of computed."""
    from ..analysis.heads.run_data import load_study_data
    from ..analysis.heads.study import ANALYSES, NEEDS, analyses_for
    from ..data_builders.folder import hash_data
    from ..records.claims import Claim
    from ..records.files import hash_file
    from ..records.rows import write_rows
    from ..trainers.trained_run import find_model, load_run

    run = load_run(model, data)
    weights = hash_file(find_model(model)[1] / "model.safetensors")
    settings = {"rows": rows, "modes": modes, "data": hash_data(run.corpus, data), "weights": weights}
    claim = Claim(output, "heads", settings, tuple(ANALYSES), overwrite)
    study = load_study_data(run, rows)
    results: dict[str, list[dict]] = {}
    for name in analyses_for(run.model, study):
        found = claim.finished(name)
        if found is None:
            options: dict[str, Any] = {needed: results[needed] for needed in NEEDS.get(name, ())}
            if name in ("ablation", "sets"):
                options["modes"] = modes
            say(f"{name} ...")
            found = ANALYSES[name](run.model, study, progress=progress_bar, **options)
            write_rows(output, name, found)
        results[name] = found
    return results
