"""The core of every benchmark: ways to do the same work take turns, and what is compared are ratios within a round.

A machine that is busy with other things, or that slows down when it is warm, is so for all of them alike.
"""

import json
import multiprocessing
import os
import platform
import random
import statistics
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import torch

from headcount.records.files import write_text
from headcount.records.provenance import cpu_name


Ways = dict[str, Callable[..., object]]
LEAST_ROUNDS, MOST_ROUNDS = 3, 15
PEERS = Path(__file__).with_name("peers.txt")


def take_turns(ways: Ways, seconds: float, warm_up: Ways | None = None) -> dict[str, list[float]]:
    """Seconds of every way in every round, after one round of warm-up that is not counted.

    Every round has an order of its own, so that nobody always comes after the same one. Rounds go on until the time is
    up; there are at least three. `warm_up` is less of the same work, where once is long enough.
    """
    end = time.perf_counter() + seconds
    for way in (warm_up or ways).values():
        way()
    times: dict[str, list[float]] = {name: [] for name in ways}
    number = 0
    while number < LEAST_ROUNDS or (number < MOST_ROUNDS and time.perf_counter() < end):
        for name in random.Random(number).sample(list(ways), len(ways)):
            start = time.perf_counter()
            ways[name]()
            times[name].append(time.perf_counter() - start)
        number += 1
    return times


class Apart:
    """A way that has a process of its own, as its user would start it: what one sets up is no help to the others.

    The process calls `make(*arguments)` once; after that a call here is a call of what it got there.
    """

    def __init__(self, make: Callable[..., Callable[[], object]], *arguments):
        context = multiprocessing.get_context("spawn")
        self.line, other_end = context.Pipe()
        self.process = context.Process(target=serve, args=(other_end, make, arguments), daemon=True)
        self.process.start()
        other_end.close()  # so that a process that dies is noticed here

    def __call__(self) -> object:
        self.line.send(True)
        return self.line.recv()

    def close(self) -> None:
        self.line.send(False)
        self.process.join()


def serve(line, make: Callable[..., Callable[[], object]], arguments: tuple) -> None:
    work = make(*arguments)
    while line.recv():
        line.send(work())


def compare(work: str, times: dict[str, list[float]], ours: str, per: int = 1, **facts) -> list[dict]:
    """One row per way: seconds, and how many times as long as ours it takes, each as median and range.

    `per` is how often one call does the work; a ratio above 1 means that ours is faster.
    """
    rows = []
    for name, values in times.items():
        ratios = [value / own for value, own in zip(values, times[ours], strict=True)]
        rows.append(
            {
                "work": work,
                "way": name,
                "seconds": statistics.median(values) / per,
                "range": [min(values) / per, max(values) / per],
                "ratio": statistics.median(ratios),
                "ratio_range": [min(ratios), max(ratios)],
                "rounds": len(values),
                "compared_with": ours,
                "raw": [value / per for value in values],
                **facts,
            }
        )
    return rows


def absent(work: str, way: str, why: str) -> dict:
    """A row for a peer that could not take part."""
    return {"work": work, "way": way, "absent": why}


def version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def machine(at: str | None) -> dict:
    """What the figures were measured on, and at which commit."""
    packages = ["torch", "transformers", "accelerate", "numpy", *PEERS.read_text().split()]
    return {
        "processor": cpu_name(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "load_average": os.getloadavg()[0],  # above 0 by much: others were at work too
        "python": platform.python_version(),
        "versions": {name: version(name) for name in packages},
        "commit": at,
        "measured_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def write_result(path: Path, before: dict, seconds: float, rows: list[dict]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps({"machine": before, "seconds": round(seconds, 1), "rows": rows}, indent=1))


def show(row: dict) -> str:
    place = f"{row['work']:44} {row['way']:40}"
    if "absent" in row:
        return f"{place} not measured: {row['absent']}"
    if "ratio" not in row:
        return f"{place} {row['value']:.4g} {row['unit']}"
    low, high = row["ratio_range"]
    return (
        f"{place} {1000 * row['seconds']:12.3f} ms {row['ratio']:7.2f}x ({low:.2f}-{high:.2f}, {row['rounds']} rounds)"
    )
