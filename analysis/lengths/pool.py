"""The pool of a length study: trains and measures cells, one thread each, several processes at a time.

A cell that is finished is not trained or measured again, one that was stopped goes on where it was, and one that
failed is reported while the others go on.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue

from ...records.files import read_json_lines
from ...records.run_folder import METRICS, PROVENANCE
from ...records.stopping import start_child, stop_children, stoppable
from .asked import Asked, is_finished
from .cells import Cell


WORKER = "headcount.analysis.lengths.worker"
SECONDS_TO_STOP = 10  # for a checkpoint; without one, the cell goes on from the one before
PAUSE = 0.5  # seconds between two looks at the workers


@dataclass
class Outcome:
    """Names of the cells that are done, and of those that failed with the last line they said."""

    done: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


class StudyInterrupted(Exception):
    """Ctrl-C: the cells that were running wrote their checkpoints; the same command goes on from there."""


class Worker:
    """A process that trains and measures one cell after the other: loading torch for each would cost more than some.

    It reads an order per line and answers with a line of JSON. It is shielded from the terminal's Ctrl-C, which is
    passed on once, and it ends with this process. If it dies, the cell has failed, and the next one gets a new one.
    """

    def __init__(self, log: Path):
        self.log = log
        self.process: subprocess.Popen | None = None
        self.cell: str | None = None

    def run(self, cell: Cell, order: dict) -> str | None:
        """Runs one cell to its end; a sentence if it failed."""
        if self.process is None or self.process.poll() is not None:
            self.process = self._start()
        orders, answers = self.process.stdin, self.process.stdout
        assert orders is not None and answers is not None  # both are pipes
        self.cell = cell.name
        try:
            orders.write(json.dumps(order) + "\n")
            orders.flush()
            answer = answers.readline()
        except BrokenPipeError:
            answer = ""
        self.cell = None
        if answer:
            return json.loads(answer)["error"]
        return f"its process ended with code {self.process.wait()}; {self.log} has what it said"

    def _start(self) -> subprocess.Popen:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("a") as log:
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            return start_child([sys.executable, "-m", WORKER], environment, subprocess.PIPE, log)

    def finish(self) -> None:
        """Lets an idle process end."""
        if self.process is not None and self.process.poll() is None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            self.process.wait()


Progress = Callable[[Outcome, dict[str, str]], None]


def run_cells(
    cells: list[Cell],
    output: Path,
    asked: Asked,
    workers: int | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Outcome:
    """Trains and measures the cells, `workers` at a time (default: one per core).

    `progress` is called twice a second with what is done and, by name, where the running cells are.
    """
    outcome, stopping = Outcome(), threading.Event()
    waiting: SimpleQueue[Cell] = SimpleQueue()
    for cell in cells:
        if not overwrite and is_finished(cell_folder(output, cell.name), asked):
            outcome.done.append(cell.name)
        else:
            waiting.put(cell)
    number = min(workers or os.cpu_count() or 1, waiting.qsize())
    crew = [Worker(output / "logs" / f"worker-{i}.log") for i in range(number)]

    def work(worker: Worker) -> None:
        while not stopping.is_set():
            try:
                cell = waiting.get_nowait()
            except Empty:
                break
            order = {"cell": asdict(cell), "folder": str(cell_folder(output, cell.name)), "asked": asdict(asked)}
            error = worker.run(cell, {**order, "overwrite": overwrite})
            if error is None:
                outcome.done.append(cell.name)
            elif not stopping.is_set():
                outcome.failed[cell.name] = error
        worker.finish()

    threads = [threading.Thread(target=work, args=(worker,), daemon=True) for worker in crew]
    for thread in threads:
        thread.start()
    try:
        with stoppable():
            while any(thread.is_alive() for thread in threads):
                time.sleep(PAUSE)
                if progress is not None:
                    progress(outcome, {name: where_is(output, name) for name in [w.cell for w in crew] if name})
    except BaseException as error:
        stopping.set()
        stop_children([worker.process for worker in crew if worker.process is not None], SECONDS_TO_STOP)
        if isinstance(error, KeyboardInterrupt):
            raise StudyInterrupted(
                f"interrupted with {len(outcome.done)} of {len(cells)} cells done; everything so far is in "
                f"{output}: the same command goes on from there."
            ) from error
        raise
    return outcome


def cell_folder(output: Path, name: str) -> Path:
    return output / "cells" / name


def where_is(output: Path, name: str) -> str:
    """A word on a running cell: the last step it logged, or that it is being measured."""
    folder = cell_folder(output, name)
    if (folder / PROVENANCE).exists():
        return "measuring"
    lines = read_json_lines(folder / METRICS) if (folder / METRICS).exists() else []
    return f"step {lines[-1]['step']}" if lines else "starting"
