"""Bars with the time left, on a terminal; silent elsewhere."""

import sys
from collections.abc import Callable


def progress_bar(title: str) -> Callable[[int, int], None]:
    """`update(done, total)` for one bar on standard error, which goes when it is full."""
    from tqdm.auto import tqdm

    bar = tqdm(total=1, desc=title, disable=not sys.stderr.isatty(), file=sys.stderr, leave=False)

    def update(done: int, total: int) -> None:
        bar.total = total
        bar.update(done - bar.n)
        if done >= total:
            bar.close()

    return update


def say(text: str) -> None:
    """One line on standard error."""
    print(text, file=sys.stderr, flush=True)
