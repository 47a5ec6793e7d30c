"""The length study: trains and measures the cells of a grid, one thread each, several processes at a time.

>>> from headcount.analysis.extrapolation import run_cells
>>> from headcount.analysis.length_grid import make_grid
>>> outcome = run_cells(make_grid(["alibi_directional"], ["max"], [0]), Path("study"), lengths=[16, 64, 256])

    DIR/cells/NAME/       the run folder of a cell, with the rows of its analyses in results/
    DIR/logs/*.log        what the processes said
    DIR/results/*.json    the rows of all cells that are there, and the summary

A cell that is finished is not trained or measured again, one that was stopped goes on where it was, and one that
failed is reported while the others go on.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue

from .length_families import LENGTH_FAMILIES, LengthFamily
from .length_grid import Cell


WORKER = "headcount.scripts.extrapolate_cell"
SECONDS_TO_STOP = 120
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

    It reads an order per line and answers with a line of JSON. It is shielded from the terminal's Ctrl-C, so that
    `stop` can pass that on once. If it dies, the cell has failed, and the next one gets a new process.
    """

    def __init__(self, log: Path):
        self.log, self.process, self.cell = log, None, None

    def run(self, cell: Cell, order: dict) -> str | None:
        """Runs one cell to its end; a sentence if it failed."""
        if self.process is None or self.process.poll() is not None:
            self.process = self._start()
        self.cell = cell.name
        try:
            self.process.stdin.write(json.dumps(order) + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        self.cell = None
        if answer:
            return json.loads(answer)["error"]
        return f"its process ended with code {self.process.wait()}; {self.log} has what it said"

    def _start(self) -> subprocess.Popen:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("a") as log:
            return subprocess.Popen(
                [sys.executable, "-m", WORKER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                start_new_session=True,
            )

    def finish(self) -> None:
        """Lets an idle process end."""
        if self.process is not None and self.process.poll() is None:
            self.process.stdin.close()
            self.process.wait()

    def interrupt(self) -> None:
        """Asks for a checkpoint and an end."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)

    def await_end(self) -> None:
        try:
            if self.process is not None:
                self.process.wait(SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            self.process.kill()


def run_cells(
    cells: list[Cell],
    output: Path,
    lengths: Iterable[int],
    rows: int = 200,
    kinds: Iterable[str] | None = None,
    workers: int | None = None,
    task: str = "sortedness",
    overwrite: bool = False,
    progress: Callable[[Outcome, dict[str, str]], None] | None = None,
) -> Outcome:
    """Trains and measures the cells, `workers` at a time (default: one per core).

    `progress` is called twice a second with what is done and, by name, where the running cells are.
    """
    outcome, stopping = Outcome(), threading.Event()
    family = LENGTH_FAMILIES[task]
    wanted = set(family.kinds if kinds is None else kinds)
    asked = {"lengths": sorted(set(lengths)), "kinds": [kind for kind in family.kinds if kind in wanted], "rows": rows}
    waiting: SimpleQueue[Cell] = SimpleQueue()
    for cell in cells:
        if not overwrite and is_finished(output / "cells" / cell.name, asked, family):
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
            about = {"task": task, "folder": str(output / "cells" / cell.name)}
            error = worker.run(cell, asdict(cell) | about | {"asked": asked, "overwrite": overwrite})
            if error is None:
                outcome.done.append(cell.name)
            elif not stopping.is_set():
                outcome.failed[cell.name] = error
        worker.finish()

    threads = [threading.Thread(target=work, args=(worker,), daemon=True) for worker in crew]
    for thread in threads:
        thread.start()
    previous = note_termination()
    try:
        while any(thread.is_alive() for thread in threads):
            time.sleep(PAUSE)
            if progress is not None:
                progress(outcome, {name: where_is(output, name) for name in [w.cell for w in crew] if name})
    except BaseException as error:
        stopping.set()
        for worker in crew:
            worker.interrupt()
        for worker in crew:
            worker.await_end()
        if isinstance(error, KeyboardInterrupt):
            raise StudyInterrupted(
                f"interrupted with {len(outcome.done)} of {len(cells)} cells done; everything so far is in "
                f"{output}: the same command goes on from there."
            ) from error
        raise
    finally:
        if previous is not None:
            signal.signal(signal.SIGTERM, previous)
    return outcome


def note_termination():
    """From now on a polite kill counts as Ctrl-C, so that no worker is left behind; gives what it counted as before.

    Elsewhere than in the main thread signals cannot be caught: None.
    """
    if threading.current_thread() is not threading.main_thread():
        return None
    return signal.signal(signal.SIGTERM, signal.default_int_handler)


def is_finished(folder: Path, asked: dict, family: LengthFamily) -> bool:
    """Whether a cell is trained, and everything that is asked for is measured."""
    there = all((folder / "results" / f"{name}.json").exists() for name in family.results)
    return there and join_asked(was_asked(folder), asked) == was_asked(folder)


def was_asked(folder: Path) -> dict | None:
    """What a cell was measured for: `lengths`, `kinds`, and `rows` for each; None if it has not been."""
    path = folder / "results" / "asked.json"
    return json.loads(path.read_text())[0] if path.exists() else None


def join_asked(before: dict | None, asked: dict) -> dict:
    """What to measure so that nothing gets lost that was measured before."""
    if before is None:
        return asked
    return {
        "lengths": sorted({*before["lengths"], *asked["lengths"]}),
        "kinds": list(dict.fromkeys([*before["kinds"], *asked["kinds"]])),
        "rows": asked["rows"],
    }


def where_is(output: Path, name: str) -> str:
    """A word on a running cell: the last step it logged, or that it is being measured."""
    folder = output / "cells" / name
    if (folder / "provenance.json").exists():
        return "measuring"
    log = folder / "metrics.jsonl"
    lines = log.read_text().splitlines() if log.exists() else []
    try:
        return f"step {json.loads(lines[-1])['step']}" if lines else "starting"
    except ValueError:  # the line is being written
        return "training"


def gather_rows(output: Path, task: str = "sortedness") -> dict[str, list[dict]]:
    """The rows of all cells in the folder, by analysis; a cell counts once all its analyses are there."""
    results = LENGTH_FAMILIES[task].results
    gathered = {name: [] for name in results}
    for folder in sorted((output / "cells").glob("*")):
        paths = {name: folder / "results" / f"{name}.json" for name in results}
        if all(path.exists() for path in paths.values()):
            for name, path in paths.items():
                gathered[name] += json.loads(path.read_text())
    return gathered


def write_rows(output: Path, name: str, rows: list[dict]) -> Path:
    """DIR/results/NAME.json, under a temporary name first."""
    path = output / "results" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    partial.write_text(json.dumps(rows, indent=1))
    partial.replace(path)
    return path
