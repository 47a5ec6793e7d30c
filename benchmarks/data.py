"""How fast corpora are made and written to parquet, side by side with a plain Python generator and reasoning-gym.

Times are processor seconds per row, of one process (arrow restricted to one thread). Every line makes problems, solves
them and writes them to parquet; headcount's lines include carries, column classes, checksums, card and figure, the
others only texts and numbers. Rows are as many for plain Python as for us, 20,000 for reasoning-gym, whose chain_sum
cannot be asked for sums alone.
"""

import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from timing import absent, compare, take_turns, version

from headcount.data_builders.addition_options import AdditionOptions
from headcount.data_builders.folder import write_folder
from headcount.data_builders.sortedness_corpus import SortednessOptions


OURS, GYM = "headcount", "reasoning-gym"


def ours(task: str, options) -> Callable[[Path], int]:
    def write(folder: Path) -> int:
        manifest = write_folder(task, options, folder / "corpus")
        return sum(sum(sizes.values()) for sizes in manifest["splits"].values())

    return write


def all_additions(digits: int) -> Callable[[Path], int]:
    """Every problem there is, one at a time."""

    def write(folder: Path) -> int:
        columns = {name: [] for name in ("input", "target", "a", "b", "sum")}
        for a in range(10**digits):
            for b in range(10**digits):
                row = (f"{a:0{digits}d}+{b:0{digits}d}", f"{a + b:0{digits + 1}d}", a, b, a + b)
                for column, value in zip(columns.values(), row, strict=True):
                    column.append(value)
        pq.write_table(pa.table(columns), folder / "plain.parquet")
        return 10 ** (2 * digits)

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


def cases() -> dict[str, dict[str, Callable[[Path], int]]]:
    """Work -> who -> how; the first is ours."""
    alone = {"validation": 0, "test": 0, "hard": 0, "pairs": 0}
    found = {
        "data, addition, 3 digits, all of them": {
            OURS: ours("addition", AdditionOptions(train=0, exhaustive=True, **alone)),
            "plain Python": all_additions(3),
        },
        "data, addition, 6 digits, different": {
            OURS: ours("addition", AdditionOptions(digits=6, train=500_000, **alone)),
            "plain Python": plain_addition(500_000, 6),
        },
        "data, addition, 6 digits, carry balanced": {
            OURS: ours("addition", AdditionOptions(digits=6, train=500_000, sampling="carry_balanced", **alone)),
        },
        "data, sortedness, length 16": {
            OURS: ours("sortedness", SortednessOptions(min_length=16, train=200_000, validation=0, test=0)),
            "plain Python": plain_sortedness(200_000, 16),
        },
    }  # fmt: skip
    for digits, work in ((3, "data, addition, 3 digits, all of them"), (6, "data, addition, 6 digits, different")):
        if version(GYM):
            found[work][f"{GYM}, {digits} digits"] = reasoning_gym_addition(20_000, digits)
    return found


def cpu_per_row(write: Callable[[Path], int]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        rows = write(Path(folder))
        return (time.process_time() - start) / rows


def measure(seconds: float) -> list[dict]:
    pa.set_cpu_count(1)
    with tempfile.TemporaryDirectory() as folder:
        ours("addition", AdditionOptions())(Path(folder))  # imports and first calls are not what is measured
    found, works = [], cases()
    for work, ways in works.items():
        times: dict[str, list[float]] = {name: [] for name in ways}
        measured = {name: lambda w=way, into=times[name]: into.append(cpu_per_row(w)) for name, way in ways.items()}
        take_turns(measured, seconds / len(works), warm_up={OURS: lambda: None})
        found += compare(work, times, OURS, unit="processor time per row")
    if version(GYM) is None:
        found.append(absent("data, addition", GYM, "not installed"))
    return found
