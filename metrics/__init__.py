"""Metrics: plain functions, and the same functions as `evaluate` modules, one folder each, with the card as docstring.

>>> from headcount import metrics
>>> metrics.compute_exact_match(["1188", "407"], ["1188", "417"])["exact_match"]
0.5

As an `evaluate` module, by path, from a clone or by name once headcount is installed, which the modules need:

>>> import evaluate
>>> metric = evaluate.load(metrics.path("exact_match"))
>>> metric.compute(predictions=["1188", "407"], references=["1188", "417"])["correct"]
1

All results are plain numbers, lists and dicts that `json.dumps` takes. A rate has its `n` and its `interval`
([low, high], 95 %, Wilson unless the card says otherwise) beside it; a rate of no examples is None with the interval
[0, 1]. In `evaluate.combine`, hand columns that only some metrics take to `add_batch`, not to `compute`.
"""

import difflib
from collections.abc import Callable
from pathlib import Path

from .answers import (
    breakdown,
    compute_carry_exact_match,
    compute_decoding_gap,
    compute_digit_accuracy,
    compute_exact_match,
    compute_place_accuracy,
    exactly_equal,
)
from .classes import class_rates, compute_sortedness_accuracy
from .confidence import compute_calibration


# Folder of the `evaluate` module -> the plain function that it wraps.
METRICS: dict[str, Callable[..., dict]] = {
    "exact_match": compute_exact_match,
    "digit_accuracy": compute_digit_accuracy,
    "carry_exact_match": compute_carry_exact_match,
    "decoding_gap": compute_decoding_gap,
    "sortedness_accuracy": compute_sortedness_accuracy,
    "calibration": compute_calibration,
}

__all__ = [
    "METRICS",
    "path",
    "compute_exact_match",
    "compute_place_accuracy",
    "compute_digit_accuracy",
    "compute_carry_exact_match",
    "compute_decoding_gap",
    "compute_sortedness_accuracy",
    "compute_calibration",
    "class_rates",
    "breakdown",
    "exactly_equal",
]


def path(name: str) -> str:
    """The folder of a metric, for `evaluate.load`.

    >>> path("exact_match").endswith("exact_match")
    True
    """
    if name not in METRICS:
        near = difflib.get_close_matches(name, METRICS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(METRICS)}."
        raise ValueError(f"There is no metric {name!r}, {hint}")
    return str(Path(__file__).resolve().parent / name)
