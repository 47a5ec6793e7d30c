"""From nothing to a report: data, training over seeds, evaluation, heads, pruning, length, report and cards.

headcount study --output runs/study
headcount study --output runs/study-quick --quick
"""

import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer


@dataclass(frozen=True)
class Step:
    """One command of the study. It starts when the steps that it needs are done."""

    name: str
    arguments: tuple[str, ...]
    seconds: float  # what it takes on one core, roughly; the real figure replaces it once it is known
    needs: tuple[str, ...] = ()
    cores: int = 1


def main(
    output: Annotated[Path, typer.Option(help="Folder for the study; one that is there already goes on.")],
    quick: Annotated[bool, typer.Option("--quick", help="Tiny models: the whole way in about three minutes.")] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="Steps at a time; default: one per core.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the commands and do nothing.")] = False,
) -> None:
    """Run the whole study and write its report; what is finished is not computed again."""
    workers = workers or os.cpu_count() or 1
    steps = plan(output, quick, workers)
    if dry_run:
        for step in steps:
            print("headcount " + " ".join(step.arguments))
        return
    try:
        state = State(output, quick)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    failed = Runner(steps, state, workers).run()
    for name, reason in failed.items():
        print(f"headcount: {name} failed: {reason}", file=sys.stderr)
    if failed:
        raise typer.Exit(1)
    print(output / "report.html")


def plan(output: Path, quick: bool, workers: int) -> list[Step]:
    """The commands of the study, in an order in which each can run.

    The length study needs nothing from the rest and takes about as long as all of it: with half of the workers, from
    the beginning, both end together.
    """
    seeds, recipe = (range(2), "addition-tiny") if quick else (range(3), "addition")
    runs = output / "runs"
    half = max(1, workers // 2)
    length = ("extrapolate", "--output", str(output / "length"), *(QUICK_LENGTH if quick else LENGTH))
    steps = [
        Step("extrapolate", (*length, "--workers", str(half)), (90 if quick else 500) / half, cores=half),
        Step("data-addition", ("data", "addition", "--output", str(output / "data" / "addition")), 12),
        Step("data-sortedness", ("data", "sortedness", "--output", str(output / "data" / "sortedness")), 15),
    ]
    for name in (recipe,) if quick else (recipe, "addition-reversed"):
        for seed in seeds:
            arguments = ("train", name, "--seed", str(seed), "--output", str(runs / f"{name}-{seed}"))
            steps.append(Step(f"train-{name}-{seed}", arguments, 15 if quick else 30))
    first = runs / f"{recipe}-0"
    trained = (f"train-{recipe}-0",)
    # Beside the run's own results, so that the card of the published model has them too.
    heads = ("heads", str(first), "--output", str(first), *(("--rows", "200") if quick else ()))
    prune = ("prune", str(first), "--output", str(output / "pruned"), "--keep", "6", "--control")
    steps += [
        Step("heads", heads, 15 if quick else 45, trained),
        Step("prune", (*prune, "--finetune", "20" if quick else "100"), 30 if quick else 240, trained),
    ]
    others = tuple(word for seed in seeds[1:] for word in ("--beside", str(runs / f"{recipe}-{seed}")))
    card = ("push", str(first), "--repo-id", recipe, *others, "--local", str(output / "published" / recipe))
    seeds_trained = tuple(f"train-{recipe}-{seed}" for seed in seeds)
    steps.append(Step("publish", card, 15, (*seeds_trained, "heads")))
    everything = tuple(step.name for step in steps)
    return [*steps, Step("report", ("report", str(output)), 10, everything)]


# Twelve cells of the length study, which fit into the quarter of an hour; `headcount extrapolate` alone has them all.
ENCODINGS = "sinusoidal,learned,none,rotary,alibi_directional,none+causal+log_n"
LENGTH = ("--encodings", ENCODINGS, "--poolings", "mean,max", "--seeds", "0")
QUICK_LENGTH = ("--quick",)


class State:
    """study.json: which commands ran, how long each took, and when; one study per folder."""

    def __init__(self, folder: Path, quick: bool):
        self.folder, self.path = folder, folder / "study.json"
        if self.path.exists():
            self.content = json.loads(self.path.read_text())
            if self.content["quick"] != quick:
                kind = "a quick" if self.content["quick"] else "the full"
                raise ValueError(f"{folder} holds {kind} study; expected the same option --quick or another folder.")
        else:
            if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
                raise ValueError(f"{folder} is not empty and holds no study of headcount; expected a new folder.")
            self.content = {"quick": quick, "started_at": now(), "finished_at": None, "seconds": 0.0, "steps": {}}
        try:
            (folder / "logs").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(f"{folder} cannot be written ({error.strerror}); expected a writable folder.") from error
        self.save()

    def done(self, step: Step) -> bool:
        return self.content["steps"].get(step.name, {}).get("command") == command_of(step)

    def finish(self, step: Step, seconds: float) -> None:
        self.content["steps"][step.name] = {"command": command_of(step), "seconds": round(seconds, 1)}
        self.content["finished_at"] = now()
        self.save()

    def save(self) -> None:
        from headcount.trainers.run_folder import write_text

        write_text(self.path, json.dumps(self.content, indent=1))


def command_of(step: Step) -> str:
    return "headcount " + " ".join(step.arguments)


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


class Runner:
    """Runs steps side by side, as many as there are workers; says what is done, what comes and how long it takes."""

    def __init__(self, steps: list[Step], state: State, workers: int):
        self.steps, self.state, self.workers = steps, state, workers
        self.left = [step for step in steps if not state.done(step)]
        self.failed: dict[str, str] = {}
        self.begun: dict[str, float] = {}  # when each step was started

    def run(self) -> dict[str, str]:
        """Step -> why it failed. Steps that need a failed one are left out, the others go on; the report is last."""
        skipped = len(self.steps) - len(self.left)
        if skipped:
            say(f"{skipped} of {len(self.steps)} steps were finished already")
        start, running = time.perf_counter(), {}
        with ThreadPoolExecutor(self.workers) as pool:
            try:
                while self.left or running:
                    self._start_what_can(pool, running)
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        step = running.pop(future)
                        self._note(step, *future.result())
            except KeyboardInterrupt:
                say(f"interrupted; the same command goes on from here: everything so far is in {self.state.folder}")
                raise
        self.state.content["seconds"] += round(time.perf_counter() - start, 1)
        self.state.save()
        return self.failed

    def _start_what_can(self, pool, running: dict) -> None:
        open_steps = {step.name for step in [*self.left, *running.values()]}
        for step in list(self.left):
            busy = sum(min(other.cores, self.workers) for other in running.values())
            if busy + min(step.cores, self.workers) > self.workers:
                continue
            if step.name == "report":
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
            say(f"{step.name} ... {self._outlook(step, running)}")
            running[pool.submit(self._execute, step)] = step

    def _execute(self, step: Step) -> tuple[float, str | None]:
        """Seconds, and the last line it said if it failed."""
        arguments = list(step.arguments)
        folder = next(
            (Path(arguments[arguments.index(o) + 1]) for o in ("--output", "--local") if o in arguments), None
        )
        if step.arguments[0] == "train" and (folder / "recipe.yaml").exists():
            arguments.append("--resume")
        if step.arguments[0] in ("data", "prune") and folder.exists():
            arguments.append("--overwrite")  # it was stopped half-way; a finished one is not run again
        if step.arguments[0] == "push" and folder.exists():
            shutil.rmtree(folder)  # the study itself wrote it, and was stopped before it could note that
        threads = str(max(1, (os.cpu_count() or 1) // self.workers))
        environment = {**os.environ, "OMP_NUM_THREADS": "1" if step.cores > 1 else threads}
        log = self.state.folder / "logs" / f"{step.name}.log"
        start = time.perf_counter()
        with log.open("w") as file:
            answer = subprocess.run(
                [sys.executable, "-m", "headcount", *arguments], stdout=file, stderr=subprocess.STDOUT, env=environment
            )
        if answer.returncode == 0:
            return time.perf_counter() - start, None
        lines = log.read_text().strip().splitlines() or [f"exit code {answer.returncode}"]
        return time.perf_counter() - start, f"{lines[-1].removeprefix('headcount: ')} ({log})"

    def _note(self, step: Step, seconds: float, error: str | None) -> None:
        if error is not None:
            self.failed[step.name] = error
            say(f"{step.name} failed: {error}")
            return
        self.state.finish(step, seconds)
        say(f"{step.name} done in {clock(seconds)}")

    def _outlook(self, step: Step, running: dict) -> str:
        now = time.perf_counter()
        seconds = {s: s.seconds for s in self.left}
        seconds |= {s: max(0.0, s.seconds - (now - self.begun[s.name])) for s in [*running.values(), step]}
        work = sum(left * min(s.cores, self.workers) for s, left in seconds.items())
        coming = f", next {self.left[0].name}" if self.left else ""
        shortest = max(work / self.workers, *seconds.values())
        return f"({len(self.left) + len(running) + 1} steps left, about {clock(shortest)}{coming})"


def clock(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
