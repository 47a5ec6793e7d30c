"""One display for all cells of a study: a bar with the time left on a terminal, a line per finished cell elsewhere."""

import sys
import time
from types import TracebackType

from ...records.progress import new_bar
from .pool import Outcome


class Display:
    """`show` is the `progress` of a study; everything goes to standard error."""

    def __init__(self, total: int, workers: int):
        self.bar = new_bar(total, "cell")
        self.total, self.started = total, time.monotonic()
        self.said: set[str] | None = None
        print(f"{total} cells, {workers} at a time", file=sys.stderr)

    def __enter__(self) -> "Display":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.close()

    def show(self, outcome: Outcome, running: dict[str, str]) -> None:
        if self.said is None:  # what was there before the study went on
            self.said = set(outcome.done)
            if self.said:
                print(f"{len(self.said)} cells were finished already", file=sys.stderr)
            self.bar.update(len(self.said))
        for name in [*outcome.done, *outcome.failed]:
            if name not in self.said:
                self.said.add(name)
                self.bar.update()
                if self.bar.disable:
                    state = "failed" if name in outcome.failed else "done"
                    minutes = (time.monotonic() - self.started) / 60
                    print(f"{len(self.said)}/{self.total} {name} {state} ({minutes:.1f} min)", file=sys.stderr)
        self.bar.set_postfix_str(", ".join(f"{name} {state}" for name, state in running.items()))
