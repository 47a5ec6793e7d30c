"""Sortedness accuracy: by class, by length and by kind of negative, with the rate of always guessing the larger class.

A sorted sequence (a positive) has no kind, so two figures judge a kind: the true-negative rate on this kind, and the
balanced accuracy, which is the mean of that rate and of the true-positive rate on all positives (of the same length,
in the rows by length and kind). Chance is 0.5 there whatever the mixture, and a model that calls everything unsorted
gets 0.5, not 1.

Inputs
    predictions, references: 1 = sorted, 0 = not sorted.
    length: the number of values of each sequence.
    kind: how the negative was made ("shuffle", "swap", "move", ...); a string such as "" where the reference is 1,
    which is ignored.

Outputs (every rate as {rate, n, interval}, unless said otherwise; Wilson, 95 %)
    accuracy with n and interval beside it; true_positive_rate, true_negative_rate; majority_class_rate (what the best
    constant guess scores on these references); predicts_one_class_only (true if all predictions are the same but
    the references are not).
    by_length: a row of the same keys for each length. by_kind, by_length_and_kind: true_negative_rate and
    balanced_accuracy, whose interval adds the distances of the two Wilson intervals in squares (they are independent).

Example
    >>> import evaluate
    >>> metric = evaluate.load("metrics/sortedness_accuracy")
    >>> result = metric.compute(
    ...     predictions=[1, 1, 1, 0], references=[1, 1, 0, 0], length=[8, 8, 8, 8], kind=["", "", "swap", "shuffle"]
    ... )
    >>> result["accuracy"], result["n"], result["interval"], result["majority_class_rate"]["rate"]
    (0.75, 4, [0.3006, 0.9544], 0.5)
    >>> result["by_kind"][1]["true_negative_rate"]
    {'rate': 0.0, 'n': 1, 'interval': [0.0, 0.7935]}
    >>> result["by_kind"][1]["balanced_accuracy"]
    {'rate': 0.5, 'n': 3, 'interval': [0.1712, 0.8967]}

Needs
    headcount, which must be installed: the figures come from headcount.metrics.classes.

Limits
    The rows of by_kind share their positives, so their balanced accuracies are not independent of each other. A rate
    of no examples is None with the interval [0, 1]. Kinds and lengths are believed, not recomputed.
"""

from typing import Any

import datasets
import evaluate

from headcount.metrics.classes import compute_sortedness_accuracy


class SortednessAccuracy(evaluate.Metric):
    def _info(self) -> evaluate.MetricInfo:
        # Numbers as floats, because evaluate would silently cut a probability of 0.9 down to an integer 0.
        number, text = datasets.Value("float64"), datasets.Value("string")
        return evaluate.MetricInfo(
            description=__doc__,
            citation="",
            inputs_description=compute_sortedness_accuracy.__doc__,
            features=datasets.Features(
                {"predictions": number, "references": number, "length": number, "kind": text},
            ),
        )

    def _compute(
        self, predictions: list, references: list, length: list, kind: list, **unknown: Any
    ) -> dict[str, Any]:
        if unknown:
            raise ValueError(f"sortedness_accuracy has no options, got {', '.join(unknown)}.")
        return compute_sortedness_accuracy(predictions, references, length, kind)
