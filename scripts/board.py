"""Gather length studies into one table and one figure: who generalises how far, beside what theory predicts.

headcount board runs/reverse-lengths runs/addition-lengths --output board
headcount board docs/board --output docs/board.md
"""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from .as_written import as_written


def main(
    folders: Annotated[
        list[Path], typer.Argument(help="Folders of headcount extrapolate, or of rows that an earlier board left.")
    ],
    output: Annotated[Path, typer.Option(help="A page, NAME.md, or a folder for board.md.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a page of another origin.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON for machines.")] = False,
) -> None:
    """Write the board of length studies: a page, a figure and its rows; computes nothing."""
    from headcount.records.locks import alone_in
    from headcount.reports.board_page import check_page, write_board
    from headcount.reports.board_rows import gather
    from headcount.reports.tables.board import tasks_by_encodings
    from headcount.reports.tables.length_study import aligned

    page = output if output.suffix == ".md" else output / "board.md"
    try:
        with as_written(folders[0]):
            rows = gather(folders)
            if not overwrite:
                check_page(rows, page)
            with alone_in(page):
                written = write_board(rows, page)
            table = tasks_by_encodings(rows)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    if as_json:
        print(json.dumps(rows, indent=1))
    else:
        print("\n".join(aligned([table.columns, *table.rows], 2)))
    for path in written:
        print(f"wrote {path}", file=sys.stderr)
