"""Digit accuracy by place: how often the units, the tens, the hundreds, ... of an answer are right.

Places are counted from the least significant digit of prediction and reference, so 17 against 117 has the right units
and tens and the wrong hundreds. A digit that is missing is wrong.

Inputs
    predictions: strings; any character that is not the right digit is wrong.
    references: strings of the digits 0-9, at least one.

Options
    answer_order: "plain" (most significant digit first, the default) or "reversed" (least significant first).

Outputs
    by_place: a row per place, units first: place (0, 1, ...), name, accuracy, n (references that have this place) and
    interval (Wilson, 95 %).
    digit_accuracy: over all digits of all references. The digits of one answer are not independent, so `interval` is
    the Wilson interval for n = the number of answers, not of digits (`digits`): if anything too wide.
    wrong_length: how many predictions are longer or shorter than their reference.

Example
    >>> import evaluate
    >>> metric = evaluate.load("metrics/digit_accuracy")
    >>> result = metric.compute(predictions=["118", "17"], references=["117", "117"])
    >>> result["by_place"][0]
    {'place': 0, 'name': 'units', 'accuracy': 0.5, 'n': 2, 'interval': [0.0945, 0.9055]}
    >>> result["digit_accuracy"], result["n"], result["digits"], result["interval"], result["wrong_length"]
    (0.6667, 2, 6, [0.1594, 0.9547], 1)

Needs
    headcount, which must be installed: the figures come from headcount.metrics.answers.

Limits
    Surplus digits belong to no place of the reference and show in wrong_length only: 9117 against 117 has every place
    right. One lost digit in the middle shifts all digits above it.
"""

from typing import Any

import datasets
import evaluate

from headcount.metrics.answers import compute_digit_accuracy


class DigitAccuracy(evaluate.Metric):
    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=__doc__,
            citation="",
            inputs_description=compute_digit_accuracy.__doc__,
            features=datasets.Features(dict.fromkeys(["predictions", "references"], datasets.Value("string"))),
        )

    def _compute(
        self, predictions: list, references: list, answer_order: str = "plain", **unknown: Any
    ) -> dict[str, Any]:
        if unknown:
            raise ValueError(f"digit_accuracy has the option answer_order only, got {', '.join(unknown)}.")
        return compute_digit_accuracy(predictions, references, answer_order)
