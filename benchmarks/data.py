"""How fast corpora are made and written to parquet, side by side with a plain Python generator and reasoning-gym.

Times are processor seconds per row, of one process (arrow restricted to one thread). Every line makes problems, solves
them and writes them to parquet; headcount's lines include checksums, card and figure. Plain Python is there twice:
with the columns that headcount writes (carries, chains, classes of columns, groups), and with texts and numbers alone.
Rows are as many for plain Python as for us, 20,000 for reasoning-gym, whose chain_sum cannot be asked for sums alone
and gives texts only. What arrow's writer takes for our finished tables is the limit of any way to make this file.
"""

import random
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from timing import absent, compare, take_turns, version

from headcount.data_builders.addition.options import AdditionOptions
from headcount.data_builders.folder import parquet_writer, write_folder
from headcount.data_builders.registry import TASKS
from headcount.data_builders.sortedness.options import SortednessOptions


OURS, GYM = "headcount", "reasoning-gym"
WRITING = "headcount's tables, written only"


def ours(task: str, options) -> Callable[[Path], int]:
    def write(folder: Path) -> int:
        manifest = write_folder(task, options, folder / "corpus")
        return sum(sum(sizes.values()) for sizes in manifest["splits"].values())

    return write


def only_written(task: str, options) -> Callable[[Path], int]:
    """The limit: the tables of our corpus, made before, through arrow's writer and nothing else."""
    corpus = TASKS[task].splits(options)
    ((config, sizes),) = corpus.sizes().items()
    tables = list(corpus.tables(config, *sizes))

    def write(folder: Path) -> int:
        with parquet_writer(corpus, config, folder / "tables.parquet") as writer:
            for table in tables:
                writer.write_table(table)
        return sum(table.num_rows for table in tables)

    return write


def texts_and_numbers(a: int, b: int, digits: int) -> dict:
    target = f"{a + b:0{digits + 1}d}"
    return {"input": f"{a:0{digits}d}+{b:0{digits}d}", "target": target, "a": a, "b": b, "sum": a + b}


def same_columns(a: int, b: int, digits: int) -> dict:
    """The row that headcount writes of this problem: column addition as on paper, units first."""
    carry_into, classes, chain, longest = [0], [], 0, 0
    rest_a, rest_b = a, b
    for _ in range(digits):
        rest_a, first = divmod(rest_a, 10)
        rest_b, second = divmod(rest_b, 10)
        total = first + second
        classes.append(0 if total < 9 else 1 if total == 9 else 2)
        carry = total + carry_into[-1] >= 10
        chain = 0 if not carry else chain + 1 if total == 9 else 1
        longest = max(longest, chain)
        carry_into.append(int(carry))
    nines = all(kind == 1 for kind in classes)
    return texts_and_numbers(a, b, digits) | {
        "digits": digits,
        "carries": sum(carry_into),
        "longest_chain": longest,
        "group": "nines" if nines else f"chain_{longest}",
        "carry_into": carry_into,
        "column_class": classes,
    }


PLAIN = {"plain Python, the same columns": same_columns, "plain Python, texts and numbers": texts_and_numbers}


def write_rows(rows: Iterable[dict], folder: Path) -> int:
    columns: dict[str, list] = {}
    for row in rows:
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
    pq.write_table(pa.table(columns), folder / "plain.parquet")
    return len(next(iter(columns.values())))


def all_additions(make: Callable[..., dict], digits: int) -> Callable[[Path], int]:
    """Every problem there is, one at a time."""
    numbers = range(10**digits)
    return lambda folder: write_rows((make(a, b, digits) for a in numbers for b in numbers), folder)


def different_additions(make: Callable[..., dict], rows: int, digits: int) -> Callable[[Path], int]:
    """Different problems, one at a time, with a set of those that were drawn."""

    def draw() -> Iterator[dict]:
        rng, seen = random.Random(0), set()
        while len(seen) < rows:
            a, b = rng.randrange(10**digits), rng.randrange(10**digits)
            key = (min(a, b), max(a, b))
            if key not in seen:
                seen.add(key)
                yield make(a, b, digits)

    return lambda folder: write_rows(draw(), folder)


def plain_sortedness(rows: int, length: int) -> Callable[[Path], int]:
    """Sorted rows and rows with two neighbours exchanged, one at a time, with the columns that headcount writes."""

    def draw() -> Iterator[dict]:
        rng = random.Random(0)
        for number in range(rows):
            values = sorted(rng.randrange(100) for _ in range(length))
            if number % 2:
                place = rng.choice([place for place in range(length - 1) if values[place] < values[place + 1]])
                values[place], values[place + 1] = values[place + 1], values[place]
            falls = [place for place in range(length - 1) if values[place] > values[place + 1]]
            position = falls[0] if falls else -1
            yield {
                "values": values,
                "length": length,
                "label": int(not falls),
                "kind": 2 * (number % 2),
                "position": position,
                "violations": len(falls),
            }

    return lambda folder: write_rows(draw(), folder)


def reasoning_gym_addition(rows: int, digits: int) -> Callable[[Path], int]:
    """Two-term chain_sum problems: additions and subtractions, which it always mixes."""
    import reasoning_gym

    def write(folder: Path) -> int:
        dataset = reasoning_gym.create_dataset(
            "chain_sum",
            size=rows,
            seed=0,
            min_terms=2,
            max_terms=2,
            min_digits=digits,
            max_digits=digits,
        )
        return write_rows(({name: row[name] for name in ("question", "answer")} for row in dataset), folder)

    return write


def cases() -> dict[str, dict[str, Callable[[Path], int]]]:
    """Work -> who -> how; the first is ours."""
    alone = {"validation": 0, "test": 0, "hard": 0, "pairs": 0}
    every = AdditionOptions(train=0, exhaustive=True, **alone)
    six = AdditionOptions(digits=6, train=500_000, **alone)
    sequences = SortednessOptions(min_length=16, train=200_000, validation=0, test=0)
    found = {
        "data, addition, 3 digits, all of them": {
            OURS: ours("addition", every),
            WRITING: only_written("addition", every),
            **{name: all_additions(make, 3) for name, make in PLAIN.items()},
        },
        "data, addition, 6 digits, different": {
            OURS: ours("addition", six),
            WRITING: only_written("addition", six),
            **{name: different_additions(make, 500_000, 6) for name, make in PLAIN.items()},
        },
        "data, addition, 6 digits, carry balanced": {
            OURS: ours("addition", replace(six, sampling="carry_balanced")),
        },
        "data, sortedness, length 16": {
            OURS: ours("sortedness", sequences),
            "plain Python, the same columns": plain_sortedness(200_000, 16),
        },
    }
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
