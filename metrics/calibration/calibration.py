"""Calibration: does a model that says 90 % get 90 % right? Expected calibration error with equal-width bins.

Examples are put into bins of equal width by confidence; the error is the mean over examples of the distance between
accuracy and mean confidence of their bin (Guo et al., 2017, "On Calibration of Modern Neural Networks").

Inputs
    predictions, references: labels (numbers), or strings with `evaluate.load("metrics/calibration", "text")`.
    confidences: the probability that the model gave to each prediction, 0 to 1.

Options
    n_bins: the number of bins, 10 by default.

Outputs
    expected_calibration_error, n, interval; accuracy as {rate, n, interval (Wilson, 95 %)}; mean_confidence;
    bins: a row per bin [low, high), the last one with 1: low, high, n, accuracy, interval (Wilson), mean_confidence.
    A bin without examples has None for accuracy and mean confidence, and the interval [0, 1].

The interval
    Chance alone makes the error positive, so a plain bootstrap would sit too high and can leave out the estimate. Here
    2,000 draws (fixed seed) of the number of right answers per bin, around (right + 2) / (n + 4), show how large the
    sum of absolute deviations gets by chance; its 95 % point is subtracted and added. By the triangle inequality this
    covers the binned error, given these confidences, in about 95 % of samples or more.

Example
    >>> import evaluate
    >>> metric = evaluate.load("metrics/calibration")
    >>> result = metric.compute(predictions=[1, 0, 1, 1], references=[1, 0, 0, 1], confidences=[0.9, 0.6, 0.6, 1.0])
    >>> result["expected_calibration_error"], result["n"], result["interval"]
    (0.075, 4, [0.0, 0.6583])
    >>> result["accuracy"], result["mean_confidence"]
    ({'rate': 0.75, 'n': 4, 'interval': [0.3006, 0.9544]}, 0.775)

Needs
    headcount, which must be installed: the figures come from headcount.metrics.confidence.

Limits
    The value depends on n_bins, and within a bin over- and underconfidence cancel. With few examples per bin it is
    mostly noise: an interval that reaches 0 means that nothing was shown. A constant guess of the larger class can be
    perfectly calibrated, so read it next to the accuracy.
"""

from typing import Any

import datasets
import evaluate

from headcount.metrics.confidence import compute_calibration


FEATURES = {"default": datasets.Value("float64"), "text": datasets.Value("string")}


class Calibration(evaluate.Metric):
    def _info(self) -> evaluate.MetricInfo:
        if self.config_name not in FEATURES:
            raise ValueError(f"calibration has no configuration {self.config_name!r}, expected one of {[*FEATURES]}.")
        answer = FEATURES[self.config_name]
        return evaluate.MetricInfo(
            description=__doc__,
            citation="",
            inputs_description=compute_calibration.__doc__,
            features=datasets.Features(
                {"predictions": answer, "references": answer, "confidences": datasets.Value("float64")}
            ),
        )

    def _compute(
        self, predictions: list, references: list, confidences: list, n_bins: int = 10, **unknown: Any
    ) -> dict[str, Any]:
        if unknown:
            raise ValueError(f"calibration has the option n_bins only, got {', '.join(unknown)}.")
        return compute_calibration(predictions, references, confidences, n_bins)
