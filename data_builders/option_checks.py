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


def _is_share(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1


def check_share(field: str, value: Any) -> None:
    if not _is_share(value):
        raise ValueError(f"{field}={value!r} is not allowed; expected a number from 0 to 1.")


def check_flag(field: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise ValueError(f"{field}={value!r} is not allowed; expected True or False.")


def check_shares(field: str, value: Any) -> tuple[float, ...]:
    """A list of numbers from 0 to 1, as a tuple."""
    is_list = isinstance(value, (list, tuple)) and len(value) > 0
    if not (is_list and all(_is_share(share) for share in value)):
        raise ValueError(f"{field}={value!r} is not allowed; expected a list of numbers from 0 to 1, like [0, 0.5].")
    return tuple(float(share) for share in value)


def check_lengths(field: str, value: Any, minimum: int, maximum: int | None = None) -> tuple[int, ...]:
    """A list of different whole numbers, as a tuple."""
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"{field}={value!r} is not allowed; expected a list of whole numbers.")
    for length in value:
        check_whole_number(field, length, minimum, maximum)
    if len(set(value)) < len(value):
        raise ValueError(f"{field}={list(value)} has a length twice; expected each length once.")
    return tuple(value)
