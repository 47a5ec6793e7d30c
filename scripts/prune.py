"""Really remove heads of a trained model and write the smaller checkpoint.

headcount prune runs/addition --output runs/addition-pruned
headcount prune runs/addition --output runs/addition-small --finetune 100 --max-drop 0.005 --control
headcount prune runs/addition --output runs/addition-8 --keep 8 --finetune 100
"""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from ..records.progress import say
from .whole_numbers import whole_number


GOES_ON = "what is finished stays; the same command goes on from there"


def main(
    model: Annotated[str, typer.Argument(help="Folder of a run, a model folder, or a Hub id.", metavar="MODEL")],
    output: Annotated[Path, typer.Option(help="Folder for the smaller model, its results and figures.")],
    max_drop: Annotated[float | None, typer.Option(help="Largest joint drop in accuracy; default 0.01.")] = None,
    keep: Annotated[
        int | None,
        typer.Option(parser=whole_number(0), metavar="N", help="Instead: how many heads to keep, whatever it costs."),
    ] = None,
    finetune: Annotated[
        int | None, typer.Option(parser=whole_number(1), metavar="N", help="Steps of training after every removal.")
    ] = None,
    control: Annotated[
        bool, typer.Option("--control", help="Also train the same small architecture from scratch.")
    ] = False,
    rows: Annotated[
        int, typer.Option(parser=whole_number(10), metavar="N", help="At most so many validation examples.")
    ] = 1000,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier result in the folder.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Remove as many heads as the accuracy allows, together and for good; tested once, on the test data.

    The same command goes on where it was stopped.
    """
    from ..analysis.heads.prune_run import prune
    from ..reports.figures.drawing import save_figure
    from ..reports.figures.pruning import draw_pruning
    from ..reports.tables.terminal import pruning_text
    from ..trainers.loop import TrainingStopped

    try:
        found = prune(
            model,
            output,
            max_drop=max_drop,
            keep=keep,
            finetune=finetune,
            control=control,
            rows=rows,
            overwrite=overwrite,
            say=say,
        )
    except TrainingStopped as stopped:  # the control; Ctrl-C is told by the command line
        print(f"headcount: the control: {stopped}", file=sys.stderr)
        raise typer.Exit(stopped.exit_code) from stopped
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    figure = draw_pruning(found.rows)
    if figure is not None:
        save_figure(figure, output / "figures", "pruning")
    say(f"done: {output}")
    print(json.dumps(found.rows, indent=1) if as_json else pruning_text(found.rows, found.removed))
