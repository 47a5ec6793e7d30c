"""What is left when a file of results was read, is of the right kinds, and yet does not fit the others."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


TRACEBACK = "HEADCOUNT_TRACEBACK"  # environment variable: show where, for whoever takes it for a mistake of headcount
MISFITS = (TypeError, KeyError, IndexError, AttributeError, ZeroDivisionError, OverflowError)


@contextmanager
def as_written(folder: Path) -> Iterator[None]:
    """Within it, rows are only put together and shown; what fails there is about the files, and becomes a sentence."""
    try:
        yield
    except MISFITS as error:
        if os.environ.get(TRACEBACK):
            raise
        raise ValueError(
            f"the results in {folder} do not fit together; expected the files as headcount wrote them "
            f"({TRACEBACK}=1 shows where it failed)."
        ) from error
