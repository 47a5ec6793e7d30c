"""Exact match: the share of answers that are right from the first token to the last.

Inputs
    predictions, references: strings, compared character by character (nothing is stripped or normalised).
    With `evaluate.load("metrics/exact_match", "token_ids")`: lists of integers instead.

Outputs
    exact_match, correct (how many), n, interval (Wilson, 95 %).

Example
    >>> import evaluate
    >>> metric = evaluate.load("metrics/exact_match")
    >>> metric.compute(predictions=["1188", "0407", "12"], references=["1188", "0407", "0012"])
    {'exact_match': 0.6667, 'n': 3, 'interval': [0.2077, 0.9385], 'correct': 2}

Needs
    headcount, which must be installed: the figures come from headcount.metrics.answers.

Limits
    Says nothing about how a wrong answer is wrong: see digit_accuracy. It cannot know whether the predictions were
    decoded freely or with the right prefix given (see decoding_gap). Padding and end tokens count like any token.
    A perfect score over n examples still allows an error rate of about 3 / n. `token_ids` turns whatever it gets into
    integers ("01" becomes 1), so tokens that are strings belong into the default configuration, joined.
"""

from typing import Any

import datasets
import evaluate

from headcount.metrics.answers import compute_exact_match


FEATURES = {"default": datasets.Value("string"), "token_ids": datasets.List(datasets.Value("int64"))}


class ExactMatch(evaluate.Metric):
    def _info(self) -> evaluate.MetricInfo:
        if self.config_name not in FEATURES:
            raise ValueError(f"exact_match has no configuration {self.config_name!r}, expected one of {[*FEATURES]}.")
        return evaluate.MetricInfo(
            description=__doc__,
            citation="",
            inputs_description=compute_exact_match.__doc__,
            features=datasets.Features(dict.fromkeys(["predictions", "references"], FEATURES[self.config_name])),
        )

    def _compute(self, predictions: list, references: list, **unknown: Any) -> dict[str, Any]:
        if unknown:
            raise ValueError(f"exact_match has no options, got {', '.join(unknown)}.")
        return compute_exact_match(predictions, references)
