"""Commands of headcount that build on each other, run side by side and noted when they are done."""

import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from ..records.files import read_json, write_json
from ..records.progress import new_bar


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
            self.content = read_json(self.path)
            for name, value in about.items():
                if self.content.get(name) != value:
                    raise ValueError(
                        f"{folder} holds a study with {name}={self.content.get(name)!r}, now asked for {value!r}; "
                        "expected the same, or another folder."
                    )
        else:
            others = folder.is_dir() and any(folder.iterdir())
            if others or (folder.exists() and not folder.is_dir()):
                raise ValueError(f"{folder} is not empty and holds no study of headcount; expected a new folder.")
            self.content = {**about, "started_at": now(), "finished_at": None, "seconds": 0.0, "steps": {}}
        try:
            (folder / "logs").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(f"{folder} cannot be written ({error.strerror}); expected a writable folder.") from error
        self.save()

    def is_done(self, step: Step) -> bool:
        return self.content["steps"].get(step.name, {}).get("command") == step.command

    def finish(self, step: Step, seconds: float) -> None:
        self.content["steps"][step.name] = {"command": step.command, "seconds": round(seconds, 1)}
        self.content["finished_at"] = now()
        self.save()

    def save(self) -> None:
        write_json(self.path, self.content)


class Runner:
    """Runs steps side by side, as many as there are workers; says what is done, what comes and how long it takes.

    On a terminal, a bar counts the seconds of work that are left.
    """

    def __init__(self, steps: list[Step], state: State, workers: int):
        self.steps, self.state, self.workers = steps, state, workers
        self.left = [step for step in steps if not state.is_done(step)]
        self.failed: dict[str, str] = {}
        self.begun: dict[str, float] = {}  # when each step was started
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
            while self.left or running:
                self._start_what_can(pool, running)
                for future in wait(running, timeout=1.0, return_when=FIRST_COMPLETED).done:
                    self._note(running.pop(future), *future.result())
                self._show(running)
        self.state.content["seconds"] += round(time.perf_counter() - start, 1)
        self.state.save()
        return self.failed

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
            self.say(f"{step.name} ... {self._outlook(step, running)}")
            running[pool.submit(self._execute, step)] = step

    def _execute(self, step: Step) -> tuple[float, str | None]:
        """Seconds, and the last line it said if it failed."""
        arguments, folder = list(step.arguments), step.folder
        if folder is not None and folder.exists():
            if step.arguments[0] == "train" and (folder / "recipe.yaml").exists():
                arguments.append("--resume")
            if step.arguments[0] in ("data", "prune"):
                arguments.append("--overwrite")  # it was stopped half-way; a finished one is not run again
            if step.arguments[0] == "push":
                shutil.rmtree(folder)  # the study itself wrote it, and was stopped before it could note that
        threads = str(max(1, (os.cpu_count() or 1) // self.workers))
        environment = {**os.environ, "OMP_NUM_THREADS": "1" if step.cores > 1 else threads}
        log = self.state.folder / "logs" / f"{step.name}.log"
        start = time.perf_counter()
        with log.open("w") as file:
            command = [sys.executable, "-m", "headcount", *arguments]
            answer = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, env=environment)
        if answer.returncode == 0:
            return time.perf_counter() - start, None
        lines = log.read_text().strip().splitlines() or [f"exit code {answer.returncode}"]
        return time.perf_counter() - start, f"{lines[-1].removeprefix('headcount: ')} ({log})"

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
