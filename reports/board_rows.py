"""Rows of the board: how far every variant of every task goes, gathered from length studies.

A study is a folder that `headcount extrapolate` wrote. What the board needs of it is a few hundred bytes per variant,
which can be kept: a folder of such rows (NAME.json, `study` is `board`) is read as the studies they came from.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..data_builders.registry import find_task
from ..data_builders.tasks import options_of, plain_options
from ..records.files import read_json
from ..records.recipe_file import read_recipe
from ..records.rows import Row, Rows, read_rows, results_path, row, select
from ..records.run_folder import PROVENANCE, RECIPE
from .findings.sequence_lengths import WHOLE
from .length_rows import cell


STUDY = "board"
NOTE = "extrapolate.json"  # what marks the folder of a length study
OWN_RECIPE = "own recipe"
AS_THEY_STAND = (WHOLE, "a recipe as it stands")  # what the rows of such a recipe say
BY_SEED = ("holds_to", "in_distribution_by_seed", "fails_at", "fails_with", "seconds")


def gather(folders: Sequence[Path]) -> Rows:
    """The board's rows of all folders, a variant of a task once; seeds of several folders are put together.

    Folders that are no length studies, and variants whose data or seeds do not go together, are a ValueError.
    """
    found: dict[tuple[str, str], Row] = {}
    origin: dict[tuple[str, str], Path] = {}
    for folder in folders:
        for each in read_folder(folder):
            key = each["task"], cell(each)
            if key in found:
                check_same_data(found[key], each, origin[key], folder)
                found[key] = joined(found[key], each, origin[key], folder)
            else:
                found[key], origin[key] = each, folder
    return sorted(found.values(), key=lambda each: each["task"])  # stable: variants stay in the order of their study


def read_folder(folder: Path) -> Rows:
    """The board's rows of one length study, or of a folder in which such rows are kept."""
    if (folder / NOTE).is_file():
        if not results_path(folder, "summary").exists():
            raise ValueError(f"{folder} is a length study without results; expected one that has been run.")
        return study_rows(folder)
    kept = sorted(folder.glob("*.json")) if folder.is_dir() else []
    rows = [each for path in kept for each in read_rows(path)]
    if not rows or any(each["study"] != STUDY for each in rows):
        raise ValueError(
            f"{folder} is no length study; expected a folder that `headcount extrapolate` wrote, or one with rows of "
            "the board."
        )
    return rows


def study_rows(folder: Path) -> Rows:
    """A row for every variant and pooling of a length study, over all classes of problems that it was tested on."""
    summary = read_rows(results_path(folder, "summary"))
    cells = read_cells(folder)
    commands = sorted(read_json(folder / NOTE).get("commands", {}).items())
    groups: dict[str, Rows] = {}
    for each in summary:
        groups.setdefault(cell(each), []).append(each)
    return [
        board_row(own, select(cells, variant=own[0]["variant"], pooling=own[0]["pooling"]), commands)
        for own in groups.values()
    ]


def read_cells(folder: Path) -> Rows:
    """What a cell's rows do not say: the data that it was trained on, and the processor time that it took."""
    found = []
    for path in sorted((folder / "cells").glob("*")):
        if not results_path(path, "lengths").exists():
            continue
        first = read_rows(results_path(path, "lengths"))[0]
        about = {name: first[name] for name in ("variant", "pooling", "seed")}
        seconds = read_json(path / PROVENANCE)["cpu_seconds"]
        options = options_of(find_task(first["task"]), read_recipe(path / RECIPE).get("data") or {})
        found.append({**about, "seconds": seconds, "data": plain_options(options)})
    return found


def board_row(summary: Rows, cells: Rows, commands: Iterable[tuple[str, float]]) -> Row:
    """One row from the summary rows of a variant, one for each class of problems.

    `value` is the farthest length at which every class is right in 99 % or more on every seed, and at all lengths
    below; 0: not at the training lengths either; None: these were not measured. `n` counts seeds.
    """
    first, seeds = summary[0], [str(seed) for seed in summary[0]["seeds"]]
    failures = {seed: first_failure(summary, seed) for seed in seeds}
    by_seed: dict[str, Any] = {
        "holds_to": {seed: least(each["holds_to"][seed] for each in summary) for seed in seeds},
        "in_distribution_by_seed": {
            seed: least(each["in_distribution_by_seed"][seed] for each in summary) for seed in seeds
        },
        "fails_at": {seed: failure[0] for seed, failure in failures.items()},
        "fails_with": {seed: failure[1] for seed, failure in failures.items()},
        "seconds": {str(each["seed"]): each["seconds"] for each in cells},
    }
    return row(
        STUDY,
        "farthest_length",
        farthest(by_seed["holds_to"]),
        task=first["task"],
        variant=first["variant"],
        pooling=first["pooling"],
        says=first["says"],
        built_in=first["built_in"],
        trained=first["trained"],
        kinds=[each["kind"] for each in summary],
        seeds=first["seeds"],
        tested_to=max((int(length) for each in summary for length in each["accuracy"]), default=first["trained"][1]),
        examples=fewest_examples(summary),
        data=cells[0]["data"] if cells else {},
        commands=[f"{command}  # {seconds:,.0f} s" for command, seconds in commands],
        **by_seed,
    )


def farthest(holds_to: dict[str, int | None]) -> dict[str, Any]:
    return {"value": least(holds_to.values()), "n": len(holds_to), "interval": None}


def least(values: Iterable[Any]) -> Any:
    """The smallest; None if one of them was not measured."""
    found = list(values)
    return None if None in found else min(found)


def first_failure(summary: Rows, seed: str) -> tuple[int | None, float | None]:
    """The shortest length at which a class no longer holds, and the lowest share right there; of a seed that fits its
    training lengths, for nothing follows from one that does not.
    """
    shares: dict[int, list[float]] = {}
    failures = []
    for each in summary:
        measured = {int(length): found["by_seed"][seed] for length, found in each["accuracy"].items()}
        for length, value in measured.items():
            if value is not None:
                shares.setdefault(length, []).append(value)
        reach = each["holds_to"][seed]
        if reach:
            failures += [length for length, value in measured.items() if length > reach and value is not None]
    return (min(failures), min(shares[min(failures)])) if failures else (None, None)


def fewest_examples(summary: Rows) -> int:
    """Problems of one class, length and seed, where they are fewest."""
    counts = [
        found["n"] // sum(value is not None for value in found["by_seed"].values())
        for each in summary
        for found in each["accuracy"].values()
        if "n" in found
    ]
    return min(counts, default=0)


def check_same_data(one: Row, other: Row, first: Path, second: Path) -> None:
    for name in ("data", "trained", "kinds", "built_in"):
        if one[name] != other[name]:
            raise ValueError(
                f"{first} and {second} both have {one['task']} with {cell(one)}, but of different {name}: "
                f"{differing(one[name], other[name])}; expected studies of the same data, or one of the two."
            )


def differing(one: Any, other: Any) -> str:
    """`max_length is 10 and 16`; of what is no dict, the two themselves."""
    if not isinstance(one, dict):
        return f"{one} and {other}"
    name = next(name for name in {**one, **other} if one.get(name) != other.get(name))
    return f"{name} is {one.get(name)} and {other.get(name)}"


def joined(one: Row, other: Row, first: Path, second: Path) -> Row:
    """A variant with the seeds of both; the same seed twice must have come to the same."""
    for seed in set(one["seeds"]) & set(other["seeds"]):
        name = next((each for each in BY_SEED[:-1] if one[each][str(seed)] != other[each][str(seed)]), None)
        if name is not None:
            raise ValueError(
                f"{first} and {second} both have {one['task']} with {cell(one)} and seed {seed}, and disagree; "
                "expected each seed once."
            )
    by_seed = {name: {**other[name], **one[name]} for name in BY_SEED}
    return {
        **one,
        **by_seed,
        **farthest(by_seed["holds_to"]),
        "seeds": sorted({*one["seeds"], *other["seeds"]}),
        "tested_to": min(one["tested_to"], other["tested_to"]),
        "examples": min(one["examples"], other["examples"]),
        "commands": list(dict.fromkeys([*one["commands"], *other["commands"]])),
    }


def column_of(found: Row) -> str:
    """The encoding that a row is about; recipes as they stand, which every task has its own of, are one column."""
    return OWN_RECIPE if found["says"] in AS_THEY_STAND else found["variant"]


def ratio(found: Row) -> float | None:
    """How many times the longest training length: None where nothing was measured, 0 where nothing was fitted."""
    return None if found["value"] is None else found["value"] / found["trained"][1]


def holds_throughout(found: Row) -> bool:
    """Whether it holds at every length that was tested, so that its farthest length is not known."""
    return found["value"] is not None and found["value"] >= found["tested_to"]
