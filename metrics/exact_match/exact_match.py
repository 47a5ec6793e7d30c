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

Limits
    Says nothing about how a wrong answer is wrong: see digit_accuracy. It cannot know whether the predictions were
    decoded freely or with the right prefix given (see decoding_gap). Padding and end tokens count like any token.
    A perfect score over n examples still allows an error rate of about 3 / n. `token_ids` turns whatever it gets into
    integers ("01" becomes 1), so tokens that are strings belong into the default configuration, joined.
"""

from collections.abc import Sequence

import datasets
import evaluate
from scipy.stats import binomtest


FEATURES = {"default": datasets.Value("string"), "token_ids": datasets.List(datasets.Value("int64"))}


def compute_exact_match(predictions: Sequence, references: Sequence) -> dict:
    """Share of equal pairs of strings, or of token lists, with n and interval."""
    n = len(references)
    if len(predictions) != n:
        raise ValueError(f"There are {len(predictions)} predictions and {n} references, expected as many.")
    if n == 0:
        raise ValueError("There are no examples, expected at least one.")
    correct = sum(equal(*pair) for pair in zip(predictions, references, strict=True))
    interval = binomtest(correct, n).proportion_ci(method="wilson")
    return {"exact_match": correct / n, "n": n, "interval": [float(end) for end in interval], "correct": correct}


def equal(prediction, reference) -> bool:
    if isinstance(prediction, str) or isinstance(reference, str):
        return prediction == reference
    return list(prediction) == list(reference)  # a tuple, an array row and a list of the same ids are the same answer


class ExactMatch(evaluate.Metric):
    def _info(self):
        if self.config_name not in FEATURES:
            raise ValueError(f"exact_match has no configuration {self.config_name!r}, expected one of {[*FEATURES]}.")
        return evaluate.MetricInfo(
            description=__doc__,
            citation="",
            inputs_description=compute_exact_match.__doc__,
            features=datasets.Features(dict.fromkeys(["predictions", "references"], FEATURES[self.config_name])),
        )

    def _compute(self, predictions, references, **unknown):
        if unknown:
            raise ValueError(f"exact_match has no options, got {', '.join(unknown)}.")
        return compute_exact_match(predictions, references)
