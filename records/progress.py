"""Bars with the time left: on a terminal only, on standard error, of the same shape everywhere."""

import shutil
import sys
from collections.abc import Callable
from typing import Any

from tqdm import tqdm


def new_bar(total: int, unit: str = "it", title: str | None = None, shown: bool = True, **options: Any) -> tqdm:
    """A tqdm bar; `shown=False`, or a standard error that is no terminal, gives one that does nothing.

    Its size is set here: in a terminal that does not tell its own, tqdm would show nothing.
    """
    columns, lines = shutil.get_terminal_size()
    return tqdm(
        total=total,
        unit=unit,
        desc=title,
        disable=not (shown and sys.stderr.isatty()),
        file=sys.stderr,
        ncols=columns,
        nrows=lines,
        **options,
    )


def progress_bar(title: str) -> Callable[[int, int], None]:
    """`update(done, total)` for one bar, which goes when it is full."""
    bar = new_bar(1, title=title, leave=False)

    def update(done: int, total: int) -> None:
        bar.total = total
        bar.update(done - bar.n)
        if done >= total:
            bar.close()

    return update


def say(text: str) -> None:
    """One line on standard error."""
    print(text, file=sys.stderr, flush=True)
