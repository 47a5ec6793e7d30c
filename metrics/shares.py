"""What all metrics have in common: a share with its interval, as cards show it, and the check of the columns."""

from collections.abc import Sized

from ..records.intervals import rate


def share(right: int, n: int) -> dict:
    """`{"rate", "n", "interval"}` with the 95 % Wilson interval; of no examples None, which may be anything in [0, 1].

    >>> share(0, 0)
    {'rate': None, 'n': 0, 'interval': [0.0, 1.0]}
    """
    if not n:
        return {"rate": None, "n": 0, "interval": [0.0, 1.0]}
    found = rate(right, n)
    return {"rate": found["value"], "n": found["n"], "interval": found["interval"]}


def check_columns(**columns: Sized) -> int:
    """How many examples there are; raises unless every column has as many, and at least one.

    >>> check_columns(predictions=["12", "7"], references=["12", "8"])
    2
    """
    counts = {name: len(column) for name, column in columns.items()}
    if len(set(counts.values())) > 1:
        *others, last = (f"{count} {name}" for name, count in counts.items())
        raise ValueError(f"There are {', '.join(others)} and {last}, expected as many.")
    n = next(iter(counts.values()))
    if n == 0:
        raise ValueError("There are no examples, expected at least one.")
    return n
