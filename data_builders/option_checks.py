"""Checks of corpus options, with errors that say what was wrong and what is expected."""

import difflib
from collections.abc import Iterable
from typing import Any


def check_name(field: str, value: Any, names: Iterable[str]) -> None:
    names = list(names)
    if value not in names:
        near = difflib.get_close_matches(str(value), names, n=1, cutoff=0.5)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"{field}={value!r} is not allowed; expected one of {', '.join(names)}.{hint}")


def check_whole_number(field: str, value: Any, minimum: int, maximum: int | None = None) -> None:
    allowed = f"a whole number >= {minimum}" if maximum is None else f"a whole number from {minimum} to {maximum}"
    if (
        not isinstance(value, int)
        or isinstance(value, bool)
        or value < minimum
        or (maximum is not None and value > maximum)
    ):
        raise ValueError(f"{field}={value!r} is not allowed; expected {allowed}.")


def check_share(field: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise ValueError(f"{field}={value!r} is not allowed; expected a number from 0 to 1.")


def check_flag(field: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise ValueError(f"{field}={value!r} is not allowed; expected True or False.")
