"""Sections of cases, each repeated by its seed and number, spread over forks of this process."""

import contextlib
import json
import os
import random
import shutil
import struct
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from .confinement import confine
from .judge import Failure, Tried
from .material import Material


NUMBER = struct.Struct("<i")  # a case in the queue, which is a pipe


@dataclass(frozen=True)
class Section:
    """`case` makes and judges one case in a folder of its own, from its random numbers alone."""

    name: str
    says: str
    case: Callable[[random.Random, int, Path, Material], Tried]
    cases: int  # of a whole storm
    few: int  # of the part that is in `make test`
    is_confined: bool = False  # it may do harm: its processes can write in the folder of the storm alone


@dataclass(frozen=True)
class Result:
    section: str
    number: int
    seconds: float
    tried: Tried


def run_section(
    section: Section, seed: int, numbers: Sequence[int], material: Material, workers: int, end: float, keep: bool
) -> list[Result]:
    """Runs cases side by side until all are done or the time is over; those that failed keep their folders."""
    jobs, more = os.pipe()
    os.write(more, b"".join(map(NUMBER.pack, numbers)))
    os.close(more)
    place = material.work / section.name
    place.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    pids = []
    for worker in range(workers):
        pid = os.fork()
        if pid == 0:
            _work(section, seed, jobs, material, place, place / f"results-{worker}.jsonl", end, keep)
        pids.append(pid)
    os.close(jobs)
    try:
        for pid in pids:
            os.waitpid(pid, 0)
    except KeyboardInterrupt:
        for pid in pids:  # they get the same signal from the terminal, and clear up
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
        raise
    lines = [line for path in sorted(place.glob("results-*.jsonl")) for line in path.read_text().splitlines()]
    return sorted(map(read_result, lines), key=lambda result: result.number)


def read_result(line: str) -> Result:
    found = json.loads(line)
    failures = [Failure(**failure) for failure in found["tried"].pop("failures")]
    return Result(**{**found, "tried": Tried(**found["tried"], failures=failures)})


def _work(
    section: Section, seed: int, jobs: int, material: Material, place: Path, notes: Path, end: float, keep: bool
) -> None:
    """A worker: never returns."""
    code = 1
    try:
        is_safe = not section.is_confined or confine(material.work, material.folder)
        with notes.open("w") as file:
            while time.monotonic() < end:
                job = os.read(jobs, NUMBER.size)
                if not job:
                    break
                number = NUMBER.unpack(job)[0]
                if is_safe:
                    result = run_case(section, seed, number, material, place, keep)
                else:
                    skipped = Tried(n=0, skipped="root, and no rights to make the system read-only for it")
                    result = Result(section.name, number, 0.0, skipped)
                file.write(json.dumps(asdict(result)) + "\n")
                file.flush()
        code = 0
    except KeyboardInterrupt:
        code = 130
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def run_case(section: Section, seed: int, number: int, material: Material, place: Path, keep: bool) -> Result:
    start, folder = time.monotonic(), place / f"{number:05d}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    tried = section.case(random.Random(f"{seed} {section.name} {number}"), number, folder, material)
    if not keep or tried.is_good:
        shutil.rmtree(folder, ignore_errors=True)
    return Result(section.name, number, round(time.monotonic() - start, 2), tried)
