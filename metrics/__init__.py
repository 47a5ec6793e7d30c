"""Metrics as `evaluate` modules: one folder, one file, one metric; its card is the docstring of the file.

From a clone, or anywhere once headcount is installed (the files themselves need evaluate, numpy and scipy only):

>>> import evaluate
>>> metric = evaluate.load("metrics/exact_match")
>>> from headcount import metrics
>>> metric = evaluate.load(metrics.path("exact_match"))

The function behind each metric can be called without evaluate's files on disk:

>>> metrics.compute_exact_match(["1188", "407"], ["1188", "417"])["exact_match"]
0.5

All results are plain numbers, lists and dicts that `json.dumps` takes. A rate has its `n` and its `interval`
([low, high], 95 %, Wilson unless the card says otherwise) beside it; a rate of no examples is None with the interval
[0, 1]. In `evaluate.combine`, hand columns that only some metrics take to `add_batch`, not to `compute`.
"""

import difflib
import importlib
from pathlib import Path
from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from .calibration.calibration import compute_calibration
    from .carry_exact_match.carry_exact_match import compute_carry_exact_match
    from .decoding_gap.decoding_gap import compute_decoding_gap
    from .digit_accuracy.digit_accuracy import compute_digit_accuracy
    from .exact_match.exact_match import compute_exact_match
    from .sortedness_accuracy.sortedness_accuracy import compute_sortedness_accuracy

# Folder -> the plain function in its file.
METRICS = {
    "exact_match": "compute_exact_match",
    "digit_accuracy": "compute_digit_accuracy",
    "carry_exact_match": "compute_carry_exact_match",
    "decoding_gap": "compute_decoding_gap",
    "sortedness_accuracy": "compute_sortedness_accuracy",
    "calibration": "compute_calibration",
}

__all__ = [
    "METRICS",
    "path",
    "compute_exact_match",
    "compute_digit_accuracy",
    "compute_carry_exact_match",
    "compute_decoding_gap",
    "compute_sortedness_accuracy",
    "compute_calibration",
]


def path(name: str) -> str:
    """The folder of a metric, for `evaluate.load`."""
    if name not in METRICS:
        near = difflib.get_close_matches(name, METRICS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(METRICS)}."
        raise ValueError(f"There is no metric {name!r}, {hint}")
    return str(Path(__file__).resolve().parent / name)


def __getattr__(name: str):
    # evaluate takes seconds to import, so it waits until a metric is used.
    for folder, function in METRICS.items():
        if name == function:
            return getattr(importlib.import_module(f".{folder}.{folder}", __name__), function)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
