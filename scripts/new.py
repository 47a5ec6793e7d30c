"""Start something of your own from a commented file that runs.

headcount new task my_task --output my_task.py
headcount new task shift --output data_builders/shift.py --recipe trainers/recipes/shift.yaml
"""

from pathlib import Path
from typing import Annotated

import typer


app = typer.Typer(help="Start something of your own from a commented file that runs.", rich_markup_mode=None)


@app.callback()
def group() -> None:
    """Start something of your own from a commented file that runs."""


@app.command()
def task(
    name: Annotated[str, typer.Argument(help="Name of the task: small letters, digits and _.", metavar="NAME")],
    output: Annotated[
        Path, typer.Option(help="The Python file to write; its test goes beside it.", metavar="FILE.py")
    ],
    recipe: Annotated[
        Path | None,
        typer.Option(
            help="For a task of headcount itself: its recipe as a file, instead of a test.", metavar="FILE.yaml"
        ),
    ] = None,
) -> None:
    """Write a Python file with a task that runs as it is, and its test beside it."""
    from ..data_builders.new_task import write_new_task

    try:
        written = write_new_task(name, output, recipe)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    print("\n".join(map(str, written)))
