"""Have Python files with a task run that somebody else wrote, once you have read them.

headcount trust runs/from-bob/own_task.py
"""

from pathlib import Path
from typing import Annotated

import typer


def main(
    files: Annotated[
        list[Path],
        typer.Argument(help="Python files with a TASK, such as the own_task.py of a run.", metavar="FILE..."),
    ],
) -> None:
    """Let headcount run Python files that came with a run or a model; read them first.

    What you name yourself (headcount train my_task.py) is run and remembered without this.
    """
    from ..data_builders.registry import load_task

    try:
        for path in files:
            task = load_task(path)
            print(f"{path}: {task.name}, {task.texts.description}")
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
