"""Exact match by longest carry chain: the share of right sums for each number of columns that a carry runs through.

Long chains are rare among random problems and hard for models, so an overall figure hides them: a model that fails
on every chain of three columns can still be right on nearly all of a uniform test set.

Inputs
    predictions, references: strings, compared character by character.
    longest_carry_chain: whole numbers from 0 (no carry), one per example; the addition data has this column.

Outputs
    exact_match, correct, n, interval: over all examples (Wilson, 95 %).
    by_longest_carry_chain: a row per length that occurs, from 0 up: longest_carry_chain, exact_match, n, interval.

Example
    >>> import evaluate
    >>> metric = evaluate.load("metrics/carry_exact_match")
    >>> result = metric.compute(
    ...     predictions=["579", "1188", "900"], references=["579", "1188", "1000"], longest_carry_chain=[0, 1, 3]
    ... )
    >>> result["exact_match"], result["n"], result["interval"]
    (0.6667, 3, [0.2077, 0.9385])
    >>> result["by_longest_carry_chain"][2]
    {'longest_carry_chain': 3, 'exact_match': 0.0, 'n': 1, 'interval': [0.0, 0.7935]}

Limits
    The chain lengths are believed, not recomputed. The overall figure depends on how often each length occurs in the
    data; only the rows can be compared between a uniform and a balanced set. Columns that sum to nine without a carry
    are hard as well and are not told apart here.
"""

from collections.abc import Sequence

import datasets
import evaluate
import numpy as np
from scipy.stats import binomtest


def compute_carry_exact_match(
    predictions: Sequence[str], references: Sequence[str], longest_carry_chain: Sequence[int]
) -> dict:
    """Exact match overall and for each length of the longest carry chain, with n and interval."""
    n = len(references)
    if not len(predictions) == len(longest_carry_chain) == n:
        raise ValueError(
            f"There are {len(predictions)} predictions, {n} references and {len(longest_carry_chain)} values of "
            "longest_carry_chain, expected as many."
        )
    if n == 0:
        raise ValueError("There are no examples, expected at least one.")
    chain = np.asarray(longest_carry_chain, dtype=float)
    if not (np.isfinite(chain) & (chain >= 0) & (chain == np.floor(chain))).all():
        raise ValueError("longest_carry_chain has values that are not whole numbers from 0.")
    right = np.array([prediction == reference for prediction, reference in zip(predictions, references, strict=True)])
    return {
        **exact_match(right),
        "correct": int(right.sum()),
        "by_longest_carry_chain": [
            {"longest_carry_chain": int(length), **exact_match(right[chain == length])} for length in np.unique(chain)
        ],
    }


def exact_match(right: np.ndarray) -> dict:
    interval = binomtest(int(right.sum()), len(right)).proportion_ci(method="wilson")
    return {"exact_match": float(right.mean()), "n": len(right), "interval": [float(end) for end in interval]}


class CarryExactMatch(evaluate.Metric):
    def _info(self):
        text = datasets.Value("string")
        # As a float, because evaluate would silently cut 1.5 down to an integer 1.
        chain = datasets.Value("float64")
        return evaluate.MetricInfo(
            description=__doc__,
            citation="",
            inputs_description=compute_carry_exact_match.__doc__,
            features=datasets.Features({"predictions": text, "references": text, "longest_carry_chain": chain}),
        )

    def _compute(self, predictions, references, longest_carry_chain, **unknown):
        if unknown:
            raise ValueError(f"carry_exact_match has no options, got {', '.join(unknown)}.")
        return compute_carry_exact_match(predictions, references, longest_carry_chain)
