"""Whole numbers as words of the command line, with an error that says which ones are allowed."""

from collections.abc import Callable

import typer


MOST = 10**12
LONGEST = 40  # letters of a number that is not one, as far as they are shown


def whole_number(minimum: int) -> Callable[[str], int]:
    """A parser for `typer.Option(parser=whole_number(1), metavar="N")`."""

    def parse(text: str) -> int:
        try:
            found = int(text) if len(str(text)) <= LONGEST else MOST + 1
        except ValueError:
            found = minimum - 1
        if not minimum <= found <= MOST:
            shown = text if len(str(text)) <= LONGEST else f"{str(text)[:LONGEST]}..."
            raise typer.BadParameter(f"{shown!r} is not allowed; expected a whole number from {minimum} to {MOST:,}.")
        return found

    return parse
