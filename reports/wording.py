"""Figures in words, the same way everywhere: a value never stands without its n and interval."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """`figure` is the one number to look at, `text` the sentence with n and interval, `source` the file of rows."""

    figure: str
    text: str
    source: str


def percent(value: float, digits: int = 2) -> str:
    """99.95 %; 100 % and 0 % only where they are exact, else `> 99.99 %` and `< 0.01 %`."""
    if value in (0, 1):
        return f"{100 * value:.0f} %"
    step = 10**-digits
    if 100 - step / 2 <= 100 * value < 100:
        return f"> {100 - step:.{digits}f} %"
    if 0 < 100 * value < step / 2:
        return f"< {step:.{digits}f} %"
    return f"{100 * value:.{digits}f} %"


def at_least(values: list[float], digits: int = 2) -> str:
    """The lowest of several, marked as such."""
    lowest = percent(min(values), digits)
    return lowest if len(values) == 1 or min(values) == 1 else f"≥ {lowest.removeprefix('> ')}"


def points(value: float) -> str:
    return f"{100 * value:.1f} points".replace("-", "−")


def interval(row: dict) -> str:
    """`99.72 to 99.99 %`"""
    low, high = row["interval"]
    return f"{100 * low:.2f} to {100 * high:.2f} %".replace("-", "−")


def share(row: dict) -> str:
    """`99.95 % (95 % interval 99.72 to 99.99 %, n = 2,000)`"""
    return f"{percent(row['value'])} (95 % interval {interval(row)}, n = {row['n']:,})"


def drop(row: dict) -> str:
    """`46.5 points (95 % interval 44.2 to 48.6, n = 2,000)`"""
    low, high = row["interval"]
    inside = f"95 % interval {100 * low:.1f} to {100 * high:.1f}, n = {row['n']:,}".replace("-", "−")
    return f"{points(row['value'])} ({inside})"


def listed(names: list[str], most: int | None = None) -> str:
    """`a`, `a and b`, `a, b and c`; of more than `most`, the first ones and how many others."""
    names = [str(name) for name in names]
    if most is not None and len(names) > most:
        names = [*names[:most], f"{len(names) - most} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def apart(first: dict, second: dict) -> int:
    """1 or -1 where the interval of the first lies wholly above or below that of the second, else 0."""
    if first["interval"][0] > second["interval"][1]:
        return 1
    return -1 if first["interval"][1] < second["interval"][0] else 0
