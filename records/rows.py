"""Rows: what every result is kept as, and how it is found again.

A row is a plain dict, one object of a JSON list, with fixed fields and then what it is about:

    study      which analysis it comes from: evaluation, ablation, interchange, lengths, ...
    metric     what was measured: exact_match, exact_match_drop, carry_flip, ...
    scope      which part of the data it is about, {"longest_chain": 2}; {} is all of it
    decoding   free-running or teacher-forced; None where nothing is decoded
    value      the estimate; None where it was not measured
    n          how many examples it rests on
    interval   [low, high], 95 %; None where there is none
    ...        what it is about: head, site, mode, seed, split, length, kind, variant, ...

Rows are made by `row`, which knows the fixed fields, and read by `select`, `only` and `parts`; nobody guesses what a
row is from a key that is missing.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..configuration.rules import is_whole_number
from .files import read_json, write_json
from .row_kinds import ReadRow, check_kinds, is_real


Row = dict[str, Any]
Rows = list[Row]

FIXED = ("study", "metric", "scope", "decoding", "value", "n", "interval")
DECODINGS = ("free-running", "teacher-forced", None)
# What rows are about: names that headcount itself gives, never texts; they become file names, titles and columns.
NAMES = ("study", "metric", "split", "kind", "head", "site", "mode", "class", "task")
STRANGE_IN_NAMES = re.compile(r"""[\x00-\x1f\x7f`<>|{}\\"\[\]]""")
MOST_LETTERS = 300  # of a name
ANY: Any = object()  # `select(rows, scope=ANY)`: whatever part of the data


def row(
    study: str,
    metric: str,
    estimate: Mapping[str, Any] | None = None,
    *,
    scope: Mapping[str, Any] | None = None,
    decoding: str | None = None,
    **about: Any,
) -> Row:
    """A row from an estimate as `records.intervals` makes it; without one, value, n and interval are None, 0, None.

    >>> estimate = {"value": 0.99, "n": 100, "interval": [0.95, 1.0]}
    >>> row("evaluation", "exact_match", estimate, decoding="free-running", split="test")["value"]
    0.99
    """
    if decoding not in DECODINGS:
        raise ValueError(f"decoding={decoding!r} is not allowed; expected one of {DECODINGS}.")
    fixed = {"study": study, "metric": metric, "scope": dict(scope or {}), "decoding": decoding}
    figures = {"value": None, "n": 0, "interval": None, **(estimate or {})}
    taken = [name for name in about if name in fixed or name in figures]
    if taken:
        raise ValueError(f"{taken[0]!r} is given twice; expected it in the estimate or beside it.")
    return {**fixed, **figures, **about}


def select(rows: Iterable[Row], scope: Any = ANY, **wanted: Any) -> Rows:
    """The rows that have all of these values; `scope={}` are those about all of the data.

    >>> rows = [row("ablation", "exact_match_drop", mode=mode) for mode in ("zero", "mean")]
    >>> [found["mode"] for found in select(rows, study="ablation", mode="zero", scope={})]
    ['zero']
    """
    chosen = (r for r in rows if scope is ANY or r.get("scope") == scope)
    return [r for r in chosen if all(name in r and r[name] == value for name, value in wanted.items())]


def only(rows: Iterable[Row], scope: Any = ANY, **wanted: Any) -> Row | None:
    """The first of `select`, or None."""
    return next(iter(select(rows, scope, **wanted)), None)


def parts(rows: Iterable[Row], fact: str, **wanted: Any) -> Rows:
    """The rows about one part of the data each, told apart by this fact alone: `parts(rows, "longest_chain")`."""
    return [r for r in select(rows, **wanted) if set(r["scope"]) == {fact}]


def values_of(rows: Iterable[Row], name: str) -> list:
    """The different values of a field, in the order in which they come; rows without it are left out."""
    return list(dict.fromkeys(r[name] for r in rows if name in r))


def write_rows(folder: Path, name: str, rows: Rows) -> Path:
    """FOLDER/results/NAME.json, whole or not at all."""
    for each in rows:
        check_row(each, name)
    return write_json(results_path(folder, name), rows)


def read_rows(path: Path) -> Rows:
    """The rows of a file; a sentence that names the file if it holds anything else."""
    rows = read_json(path, list)
    for each in rows:
        check_row(each, path)
        check_kinds(each, path)
    return [ReadRow(each, path) for each in rows]


def results_path(folder: Path, name: str) -> Path:
    return folder / "results" / f"{name}.json"


def check_row(found: Row, where: Any) -> None:
    """Raises unless the fixed fields are there and are of their kinds."""
    missing = next((name for name in FIXED if name not in found), None)
    if missing is not None:
        raise ValueError(f"{where} has a row without {missing!r}; expected rows as headcount writes them.")
    value, interval = found["value"], found["interval"]
    is_pair = isinstance(interval, (list, tuple)) and len(interval) == 2 and all(map(is_real, interval))
    for name in NAMES:
        if name in found and not _is_name(found[name], optional=name not in FIXED):
            raise ValueError(f"{where} has a row with {name}={found[name]!r}; expected a name.")
    scope = found["scope"]
    for name, fits, expected in (
        (
            "scope",
            isinstance(scope, dict) and not any(isinstance(v, (dict, list)) for v in scope.values()),
            "an object",
        ),
        ("decoding", found["decoding"] in DECODINGS, "free-running, teacher-forced or null"),
        ("value", value is None or is_real(value), "a number or null"),
        ("n", isinstance(found["n"], int) and not isinstance(found["n"], bool) and found["n"] >= 0, "a count"),
        ("interval", interval is None or is_pair, "[low, high] or null"),
    ):
        if not fits:
            raise ValueError(f"{where} has a row with {name}={found[name]!r}; expected {expected}.")


def _is_name(value: Any, optional: bool) -> bool:
    if value is None or is_whole_number(value):  # `head` may be a number, within one layer
        return optional
    return isinstance(value, str) and 0 < len(value) <= MOST_LETTERS and not STRANGE_IN_NAMES.search(value)
