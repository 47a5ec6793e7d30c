"""How fast corpora are made and written to parquet, side by side with a plain Python generator and reasoning-gym.

Seconds are processor seconds of one process (arrow restricted to one thread), so that they mean "per core" on a busy
machine too; wall-clock figures stand beside them. Every line makes problems, solves them and writes them to parquet;
headcount's lines include carries, column classes, checksums, card and figure, the others only texts and numbers.
reasoning-gym's chain_sum is left out, and said so, where it is not installed. A ratio is of processor seconds per row.
"""

import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from timing import LEAST_ROUNDS, MOST_ROUNDS, absent, version

from headcount.data_builders.addition_options import AdditionOptions
from headcount.data_builders.folder import write_folder
from headcount.data_builders.sortedness_corpus import SortednessOptions


def ours(task: str, options) -> Callable[[Path], int]:
    def write(folder: Path) -> int:
        manifest = write_folder(task, options, folder / "corpus")
        return sum(sum(sizes.values()) for sizes in manifest["splits"].values())

    return write


def plain_addition(rows: int, digits: int) -> Callable[[Path], int]:
    """Different problems, one at a time, with a set of those that were drawn."""

    def write(folder: Path) -> int:
        rng, seen, columns = random.Random(0), set(), {name: [] for name in ("input", "target", "a", "b", "sum")}
        while len(seen) < rows:
            a, b = rng.randrange(10**digits), rng.randrange(10**digits)
            key = (min(a, b), max(a, b))
            if key in seen:
                continue
            seen.add(key)
            row = (f"{a:0{digits}d}+{b:0{digits}d}", f"{a + b:0{digits + 1}d}", a, b, a + b)
            for column, value in zip(columns.values(), row, strict=True):
                column.append(value)
        pq.write_table(pa.table(columns), folder / "plain.parquet")
        return rows

    return write


def plain_sortedness(rows: int, length: int) -> Callable[[Path], int]:
    """Sorted rows and rows with two neighbours exchanged, one at a time."""

    def write(folder: Path) -> int:
        rng, columns = random.Random(0), {"values": [], "label": [], "position": []}
        for number in range(rows):
            values, position = sorted(rng.randrange(100) for _ in range(length)), -1
            if number % 2:
                rises = [place for place in range(length - 1) if values[place] < values[place + 1]]
                position = rng.choice(rises)
                values[position], values[position + 1] = values[position + 1], values[position]
            for column, value in zip(columns.values(), (values, 1 - number % 2, position), strict=True):
                column.append(value)
        pq.write_table(pa.table(columns), folder / "plain.parquet")
        return rows

    return write


def reasoning_gym_addition(rows: int, digits: int) -> Callable[[Path], int]:
    """Two-term chain_sum problems: additions and subtractions, which it always mixes."""
    import reasoning_gym

    def write(folder: Path) -> int:
        dataset = reasoning_gym.create_dataset(
            "chain_sum", size=rows, seed=0, min_terms=2, max_terms=2, min_digits=digits, max_digits=digits,
        )  # fmt: skip
        columns: dict[str, list[str]] = {"question": [], "answer": []}
        for row in dataset:
            for name, column in columns.items():
                column.append(row[name])
        pq.write_table(pa.table(columns), folder / "peer.parquet")
        return rows

    return write


def cases() -> list[tuple[str, str, str, Callable[[Path], int]]]:
    """(task, what, who, how) in the order of the table; the first of a `what` is ours."""
    none = {"validation": 0, "test": 0}
    alone = {**none, "hard": 0, "pairs": 0}
    found = [
        ("addition", "3 digits, all of them", "headcount",
         ours("addition", AdditionOptions(train=0, exhaustive=True, **alone))),
        ("addition", "3 digits, all of them", "plain Python", plain_addition(100_000, 3)),
        ("addition", "6 digits, different", "headcount",
         ours("addition", AdditionOptions(digits=6, train=2_000_000, **alone))),
        ("addition", "6 digits, different", "plain Python", plain_addition(100_000, 6)),
        (
            "addition", "6 digits, carry balanced", "headcount",
            ours("addition", AdditionOptions(digits=6, train=500_000, sampling="carry_balanced", **alone)),
        ),
        (
            "sortedness", "length 16", "headcount",
            ours("sortedness", SortednessOptions(min_length=16, train=400_000, **none)),
        ),
        ("sortedness", "length 16", "plain Python", plain_sortedness(20_000, 16)),
    ]  # fmt: skip
    if version("reasoning-gym"):
        found.insert(4, ("addition", "6 digits, different", "reasoning-gym", reasoning_gym_addition(20_000, 6)))
        found.insert(2, ("addition", "3 digits, all of them", "reasoning-gym", reasoning_gym_addition(20_000, 3)))
    return found


def once(write: Callable[[Path], int]) -> dict[str, float]:
    """Rows and processor seconds of one run."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        rows = write(Path(folder))
        return {"rows": rows, "cpu_seconds": time.process_time() - start}


def measure(seconds: float) -> list[dict]:
    """Ratios are of rows per processor second. The work is fixed; it is done as often as the time allows."""
    pa.set_cpu_count(1)
    with tempfile.TemporaryDirectory() as folder:
        ours("addition", AdditionOptions())(Path(folder))  # imports and first calls are not what is measured
    end, rounds = time.perf_counter() + seconds, []
    while len(rounds) < LEAST_ROUNDS or (time.perf_counter() < end and len(rounds) < MOST_ROUNDS):
        rounds.append([(task, what, who, once(write)) for task, what, who, write in cases()])
    rows = []
    for number, (task, what, who, _) in enumerate(rounds[0]):
        first = next(i for i, case in enumerate(rounds[0]) if case[:2] == (task, what))
        own = [per_row(turn[number][3]) for turn in rounds]
        ratios = [mine / per_row(turn[first][3]) for mine, turn in zip(own, rounds, strict=True)]
        rows.append({
            "work": f"data, {task}, {what}", "way": who, "seconds": statistics.median(own),
            "range": [min(own), max(own)], "ratio": statistics.median(ratios),
            "ratio_range": [min(ratios), max(ratios)], "rounds": len(rounds), "compared_with": "headcount",
            "rows_per_cpu_second": 1 / statistics.median(own), "raw": own,
        })  # fmt: skip
    if version("reasoning-gym") is None:
        rows.append(absent("data, addition", "reasoning-gym", "not installed"))
    return rows


def per_row(found: dict[str, float]) -> float:
    return found["cpu_seconds"] / found["rows"]
