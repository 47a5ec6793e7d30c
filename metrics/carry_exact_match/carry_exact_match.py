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

Needs
    headcount, which must be installed: the figures come from headcount.metrics.answers.

Limits
    The chain lengths are believed, not recomputed. The overall figure depends on how often each length occurs in the
    data; only the rows can be compared between a uniform and a balanced set. Columns that sum to nine without a carry
    are hard as well and are not told apart here.
"""

from typing import Any

import datasets
import evaluate

from headcount.metrics.answers import compute_carry_exact_match


class CarryExactMatch(evaluate.Metric):
    def _info(self) -> evaluate.MetricInfo:
        text = datasets.Value("string")
        # As a float, because evaluate would silently cut 1.5 down to an integer 1.
        chain = datasets.Value("float64")
        return evaluate.MetricInfo(
            description=__doc__,
            citation="",
            inputs_description=compute_carry_exact_match.__doc__,
            features=datasets.Features({"predictions": text, "references": text, "longest_carry_chain": chain}),
        )

    def _compute(
        self, predictions: list, references: list, longest_carry_chain: list, **unknown: Any
    ) -> dict[str, Any]:
        if unknown:
            raise ValueError(f"carry_exact_match has no options, got {', '.join(unknown)}.")
        return compute_carry_exact_match(predictions, references, longest_carry_chain)
