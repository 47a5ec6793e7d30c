"""Commands of headcount that build on each other, run side by side and noted when they are done."""

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..records.files import write_json
from ..records.litter import is_empty
from ..records.locks import SECONDS_OF_A_PART, Busy, alone_in
from ..records.progress import new_bar
from ..records.run_folder import read_study_note
from ..records.stopping import start_child, stop_children


SECONDS_TO_STOP = 15  # for the checkpoints of the steps that run; longer than a pool of workers takes


@dataclass(frozen=True)
class Step:
    """One command of a study. It starts when the steps that it needs are done."""

    name: str
    arguments: tuple[str, ...]
    seconds: float  # what it takes on one core, roughly; the real figure replaces it once it is known
    needs: tuple[str, ...] = ()
    cores: int = 1

    @property
    def command(self) -> str:
        return "headcount " + " ".join(self.arguments)

    @property
    def folder(self) -> Path | None:
        """Where it writes."""
        given = [option for option in ("--output", "--local") if option in self.arguments]
        return Path(self.arguments[self.arguments.index(given[0]) + 1]) if given else None


class State:
    """study.json: which commands ran, how long each took, and when; one study per folder."""

    def __init__(self, folder: Path, about: dict):
        self.folder, self.path = folder, folder / "study.json"
        if self.path.exists():
            self.content = read_study_note(self.path)
            for name, value in about.items():
                if self.content.get(name) != value:
                    raise ValueError(
                        f"{folder} holds a study with {name}={self.content.get(name)!r}, now asked for {value!r}; "
                        "expected the same, or another folder."
                    )
        else:
            if folder.exists() and (not folder.is_dir() or not is_empty(folder)):
                raise ValueError(f"{folder} is not empty and holds no study of headcount; expected a new folder.")
            self.content = {**about, "started_at": now(), "finished_at": None, "seconds": 0.0, "steps": {}}
        try:
            (folder / "logs").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(f"{folder} cannot be written ({error.strerror}); expected a writable folder.") from error
        self.save()

    def is_done(self, step: Step) -> bool:
        """Whether just this command ran to its end, and what it wrote is still there."""
        ran = self.content["steps"].get(step.name, {}).get("command") == step.command
        return ran and (step.folder is None or step.folder.exists())

    def open_steps(self, steps: list[Step]) -> list[Step]:
        """The steps that are to run: those that are not done, and those that build on one of them."""
        left: dict[str, Step] = {}
        for step in steps:  # in an order in which every step comes after those that it needs
            if not self.is_done(step) or any(need in left for need in step.needs):
                left[step.name] = step
        return list(left.values())

    def begin(self, step: Step) -> None:
        """It is not done any more; a step that is stopped is then run again."""
        if self.content["steps"].pop(step.name, None) is not None:
            self.save()

    def finish(self, step: Step, seconds: float) -> None:
        self.content["steps"][step.name] = {"command": step.command, "seconds": round(seconds, 1)}
        self.content["finished_at"] = now()
        self.save()

    def save(self) -> None:
        write_json(self.path, self.content)


class Runner:
    """Runs steps side by side, as many as there are workers; says what is done, what comes and how long it takes.

    On a terminal, a bar counts the seconds of work that are left. If this process is stopped, so are the steps.
    """

    def __init__(self, steps: list[Step], state: State, workers: int):
        self.steps, self.state, self.workers = steps, state, workers
        self.left = state.open_steps(steps)
        self.failed: dict[str, str] = {}
        self.begun: dict[str, float] = {}  # when each step was started
        self.children: dict[str, subprocess.Popen] = {}
        self.starting, self.stopping = threading.Lock(), False
        work = round(sum(step.seconds for step in self.left))
        shape = "{l_bar}{bar}| {n_fmt} of {total_fmt} s of work [{elapsed}, {remaining} left{postfix}]"
        self.bar = new_bar(work, bar_format=shape)

    def run(self) -> dict[str, str]:
        """Step -> why it failed. Steps that need a failed one are left out, the others go on; the last one is last."""
        skipped = len(self.steps) - len(self.left)
        if skipped:
            self.say(f"{skipped} of {len(self.steps)} steps were finished already")
        start = time.perf_counter()
        running: dict[Future, Step] = {}
        with self.bar, ThreadPoolExecutor(self.workers) as pool:
            try:
                while self.left or running:
                    self._start_what_can(pool, running)
                    for future in wait(running, timeout=1.0, return_when=FIRST_COMPLETED).done:
                        self._note(running.pop(future), *future.result())
                    self._show(running)
            except BaseException:  # the pool would wait until every step is done
                self._stop()
                raise
        self.state.content["seconds"] += round(time.perf_counter() - start, 1)
        self.state.save()
        return self.failed

    def _stop(self) -> None:
        """Ends the steps that run, and starts no other."""
        with self.starting:
            self.stopping = True
            children = list(self.children.values())
        stop_children(children, SECONDS_TO_STOP)

    def _start_what_can(self, pool: ThreadPoolExecutor, running: dict[Future, Step]) -> None:
        open_steps = {step.name for step in [*self.left, *running.values()]}
        for step in list(self.left):
            busy = sum(min(other.cores, self.workers) for other in running.values())
            if busy + min(step.cores, self.workers) > self.workers:
                continue
            if step is self.steps[-1]:
                if running or len(self.left) > 1:
                    continue
            elif any(need in open_steps for need in step.needs):
                continue
            elif any(need in self.failed for need in step.needs):
                self.failed[step.name] = f"it needs {next(n for n in step.needs if n in self.failed)}"
                self.left.remove(step)
                continue
            self.left.remove(step)
            self.begun[step.name] = time.perf_counter()
            self.state.begin(step)
            self.say(f"{step.name} ... {self._outlook(step, running)}")
            running[pool.submit(self._execute, step)] = step

    def _execute(self, step: Step) -> tuple[float, str | None]:
        """Seconds, and the last line it said if it failed."""
        try:
            arguments = self._arguments(step)
        except ValueError as error:
            return 0.0, str(error)
        threads = str(max(1, (os.cpu_count() or 1) // self.workers))
        environment = {**os.environ, "OMP_NUM_THREADS": "1" if step.cores > 1 else threads}
        log = self.state.folder / "logs" / f"{step.name}.log"
        start = time.perf_counter()
        with log.open("w") as file:
            with self.starting:
                if self.stopping:
                    return 0.0, "it was not started"
                command = [sys.executable, "-m", "headcount", *arguments]
                child = self.children[step.name] = start_child(command, environment, file, subprocess.STDOUT)
            code = child.wait()
        assert child.stdin is not None
        child.stdin.close()
        if code == 0:
            return time.perf_counter() - start, None
        lines = log.read_text().strip().splitlines() or [f"exit code {code}"]
        return time.perf_counter() - start, f"{lines[-1].removeprefix('headcount: ')} ({log})"

    def _arguments(self, step: Step) -> list[str]:
        """Those of a step that goes on, once nobody is at work in its folder."""
        arguments, folder = list(step.arguments), step.folder
        if folder is None:
            return arguments
        with self._alone_in(folder):
            if step.arguments[0] == "train" and (folder / "recipe.yaml").exists():
                arguments.append("--resume")
            if step.arguments[0] == "data" and folder.exists():
                arguments.append("--overwrite")  # it was written, but not noted as done
            if step.arguments[0] == "push" and folder.exists():
                shutil.rmtree(folder)  # the study itself wrote it, and was stopped before it could note that
        return arguments

    @contextmanager
    def _alone_in(self, folder: Path) -> Iterator[None]:
        """Waits for what an earlier study left, which was killed just now, unless this one is stopped, too."""
        deadline = time.monotonic() + SECONDS_OF_A_PART
        with ExitStack() as held:
            while True:
                try:
                    held.enter_context(alone_in(folder, patience=0.5))
                    break
                except Busy:
                    if self.stopping or time.monotonic() > deadline:
                        raise
            yield

    def _note(self, step: Step, seconds: float, error: str | None) -> None:
        if error is not None:
            self.failed[step.name] = error
            self.say(f"{step.name} failed: {error}")
            return
        self.state.finish(step, seconds)
        self.say(f"{step.name} done in {clock(seconds)}")

    def _seconds_left(self, steps: list[Step]) -> dict[Step, float]:
        """Of the steps that run and of those to come."""
        now = time.perf_counter()
        seconds = {step: step.seconds for step in self.left}
        return seconds | {step: max(0.0, step.seconds - (now - self.begun[step.name])) for step in steps}

    def _outlook(self, step: Step, running: dict[Future, Step]) -> str:
        seconds = self._seconds_left([*running.values(), step])
        work = sum(left * min(s.cores, self.workers) for s, left in seconds.items())
        coming = f", next {self.left[0].name}" if self.left else ""
        shortest = max(work / self.workers, *seconds.values())
        return f"({len(self.left) + len(running) + 1} steps left, about {clock(shortest)}{coming})"

    def _show(self, running: dict[Future, Step]) -> None:
        left = sum(self._seconds_left(list(running.values())).values())
        self.bar.n = max(0, round(self.bar.total - left))
        self.bar.set_postfix_str(", ".join(step.name for step in running.values()))

    def say(self, text: str) -> None:
        self.bar.write(text, file=sys.stderr)
        sys.stderr.flush()


def clock(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
