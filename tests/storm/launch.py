"""headcount as a process that can be killed.

Most are forks of a process that has everything imported: a start of Python and torch takes longer than the work, and
kills should hit the work. `cold=True` is a start from nothing, as a user's is.
"""

import gc
import importlib
import os
import pkgutil
import resource
import signal
import subprocess
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil


ROOMS = ("configuration", "records", "modeling", "data_builders", "metrics")
ROOMS += ("trainers", "analysis", "reports", "publishing", "scripts")
MARK = "HEADCOUNT_STORM"  # processes that a command starts inherit it; those that are left over are found by it
MOST_MEMORY = 16 << 30  # address space: what asks for more is refused, and the machine lives
POLL = 0.01
TRACEBACK = 70  # exit code of a fork that ended with an exception


def import_everything() -> None:
    """Every module of headcount and what the verbs import late; no tensor is computed, so forks start clean."""
    for room in ROOMS:
        package = importlib.import_module(f"headcount.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if ".template." not in module.name:  # what `headcount new` writes
                importlib.import_module(module.name)
    for name in ("datasets", "huggingface_hub", "transformers.models.auto.modeling_auto", "matplotlib.pyplot"):
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # a fork would copy every page whose objects its collector looks at


@dataclass(frozen=True)
class Answer:
    """`code` is None for a process that had to be killed because it did not end in time."""

    code: int | None
    stdout: str
    stderr: str
    seconds: float


@dataclass
class Launched:
    """A running command, in a session of its own."""

    pid: int
    mark: str
    folder: Path
    started: float = field(default_factory=time.monotonic)
    code: int | None = None

    def has_ended(self) -> bool:
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code is not None

    def wait(self, seconds: float) -> bool:
        """Whether it has ended after so many seconds at most."""
        end = time.monotonic() + seconds
        while not self.has_ended() and time.monotonic() < end:
            time.sleep(POLL)
        return self.code is not None

    def send(self, number: signal.Signals, group: bool = False) -> None:
        if not self.has_ended():
            (os.killpg if group else os.kill)(self.pid, number)

    def finish(self, seconds: float) -> Answer:
        """What it said; killed with all that belongs to it if it takes longer."""
        try:
            ended = self.wait(seconds)
        finally:
            self.clear()
        texts = [self._read(name) for name in ("stdout", "stderr")]
        return Answer(self.code if ended else None, *texts, time.monotonic() - self.started)

    def clear(self) -> None:
        """Nothing of it stays, whatever happened."""
        if not self.has_ended():
            os.kill(self.pid, signal.SIGKILL)
            self.wait(10)
        for process in self.left_over():
            if psutil.pid_exists(process.pid):
                process.kill()

    def _read(self, name: str) -> str:
        path = self.folder / name  # which is not there yet if it was killed at once
        return path.read_text(encoding="utf-8", errors="surrogateescape") if path.exists() else ""

    def left_over(self) -> list[psutil.Process]:
        """Processes that it started and that still run, or that are in its session."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.pid == self.pid or process.status() == psutil.STATUS_ZOMBIE:
                    continue
                if os.getsid(process.pid) == self.pid or process.environ().get(MARK) == self.mark:
                    found.append(process)
            except (psutil.Error, OSError):
                continue  # ended meanwhile, or somebody else's
        return found


def launch(
    arguments: Sequence[str],
    place: Path,
    log: Path,
    environment: Mapping[str, str] | None = None,
    before: Callable[[], None] | None = None,
    cold: bool = False,
) -> Launched:
    """Starts `headcount ARGUMENTS` in the folder `place`; what it prints goes to log/stdout and log/stderr.

    Args:
        before: called in a fork, before the command.
        cold: a new Python instead of a fork.
    """
    log.mkdir(parents=True, exist_ok=True)
    mark = uuid.uuid4().hex
    variables = {**(environment or {}), MARK: mark}
    if cold:
        with (log / "stdout").open("wb") as out, (log / "stderr").open("wb") as err:
            process = subprocess.Popen(
                [sys.executable, "-m", "headcount", *arguments],
                cwd=place,
                env={**os.environ, **variables},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        process.returncode = 0  # `Launched` waits for it, not subprocess
        return Launched(process.pid, mark, log)
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        _become(arguments, place, log, variables, before)
    return Launched(pid, mark, log)


def _become(
    arguments: Sequence[str],
    place: Path,
    log: Path,
    variables: Mapping[str, str],
    before: Callable[[], None] | None,
) -> None:
    """The child: never returns."""
    code: object = TRACEBACK
    try:
        os.setsid()
        for name, number in (("stdout", 1), ("stderr", 2)):
            os.dup2(os.open(log / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
        os.environ.update(variables)
        os.chdir(place)
        if before is not None:
            before()
        sys.argv = ["headcount", *arguments]
        from headcount.__main__ import main

        main()
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            threading._shutdown()  # as Python does at its end: threads that never end are found
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code if isinstance(code, int) else TRACEBACK)


def run(arguments: Sequence[str], place: Path, log: Path, seconds: float, **options: object) -> Answer:
    """`launch`, to its end."""
    return launch(arguments, place, log, **options).finish(seconds)  # type: ignore[arg-type]
