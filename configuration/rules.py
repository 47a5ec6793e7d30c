"""The rules that config fields obey: each says what it accepts, and in words what is allowed."""

import difflib
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Rule:
    allowed: str  # completes the sentence "expected ..."
    accepts: Callable[[Any], bool]
    names: tuple[str, ...] = ()  # what to search for a near miss


def is_whole_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Also whether a whole number is small enough to be one with a decimal point."""
    return (is_whole_number(value) and abs(value) < 10**300) or (isinstance(value, float) and math.isfinite(value))


def whole_number(minimum: int, maximum: int = 2**63 - 1) -> Rule:
    """The largest that is allowed unless told otherwise is the largest that torch and numpy hold."""
    shown = f"a whole number >= {minimum}" if maximum == 2**63 - 1 else f"a whole number from {minimum} to {maximum:,}"
    return Rule(shown, lambda value: is_whole_number(value) and minimum <= value <= maximum)


def number_above(bound: float) -> Rule:
    return Rule(f"a number > {bound}", lambda value: is_number(value) and value > bound)


def fraction() -> Rule:
    return Rule("a number from 0 up to, but not including, 1", lambda value: is_number(value) and 0 <= value < 1)


def share() -> Rule:
    return Rule("a number above 0 and up to 1", lambda value: is_number(value) and 0 < value <= 1)


def flag() -> Rule:
    return Rule("True or False", lambda value: isinstance(value, bool))


def one_of(names: Iterable[str]) -> Rule:
    names = tuple(names)
    return Rule("one of " + ", ".join(names), lambda value: isinstance(value, str) and value in names, names)


def token_list() -> Rule:
    return Rule(
        "a list of different token ids",
        lambda value: (
            isinstance(value, list) and all(map(is_whole_number, value)) and len(set(value)) == len(value) > 0
        ),
    )


def optional(rule: Rule) -> Rule:
    return Rule(f"None or {rule.allowed}", lambda value: value is None or rule.accepts(value), rule.names)


def nearest(name: str, names: Iterable[str]) -> str:
    """A hint such as ` Did you mean 'rotary'?`, or nothing if no name is near."""
    found = difflib.get_close_matches(str(name), list(names), n=1, cutoff=0.5)
    return f" Did you mean {found[0]!r}?" if found else ""
