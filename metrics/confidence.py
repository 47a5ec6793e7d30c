"""Whether a model is right as often as it says: expected calibration error, and an interval that allows for chance."""

from collections.abc import Sequence

import numpy as np

from .shares import check_columns, share


DRAWS = 2000


def compute_calibration(
    predictions: Sequence, references: Sequence, confidences: Sequence[float], n_bins: int = 10
) -> dict:
    """Expected calibration error over `n_bins` equal-width bins, with n, interval and the rows of the bins.

    >>> result = compute_calibration([1, 0, 1, 1], [1, 0, 0, 1], confidences=[0.9, 0.6, 0.6, 1.0])
    >>> round(result["expected_calibration_error"], 3)
    0.075
    """
    if isinstance(n_bins, bool) or not isinstance(n_bins, int) or n_bins < 1:
        raise ValueError(f"n_bins is {n_bins!r}, expected a whole number from 1.")
    size = check_columns(predictions=predictions, references=references, confidences=confidences)
    confidence = np.asarray(confidences, dtype=float)
    if not ((confidence >= 0) & (confidence <= 1)).all():
        raise ValueError("The confidences have values outside 0 to 1, expected probabilities.")
    right = np.array([prediction == reference for prediction, reference in zip(predictions, references, strict=True)])

    edges = np.arange(n_bins + 1) / n_bins
    bin_index = np.digitize(confidence, edges[1:-1])
    n, correct = np.bincount(bin_index, minlength=n_bins), np.bincount(bin_index, weights=right, minlength=n_bins)
    total_confidence = np.bincount(bin_index, weights=confidence, minlength=n_bins)
    error = float(np.abs(correct - total_confidence).sum() / size)
    chance = (correct + 2) / (n + 4)  # never 0 or 1, so that a bin without an error still counts as uncertain
    draws = np.random.default_rng(0).binomial(n, chance, size=(DRAWS, n_bins))
    margin = float(np.quantile(np.abs(draws - n * chance).sum(1) / size, 0.95))
    rows = []
    for low, high, count, hits, confident in zip(edges[:-1], edges[1:], n, correct, total_confidence, strict=True):
        accuracy = share(int(hits), int(count))
        rows.append(
            {
                "low": float(low),
                "high": float(high),
                "accuracy": accuracy["rate"],
                "n": accuracy["n"],
                "interval": accuracy["interval"],
                "mean_confidence": float(confident / count) if count else None,
            }
        )
    return {
        "expected_calibration_error": error,
        "n": size,
        "interval": [max(0.0, error - margin), min(1.0, error + margin)],
        "accuracy": share(int(right.sum()), size),
        "mean_confidence": float(confidence.mean()),
        "bins": rows,
    }
