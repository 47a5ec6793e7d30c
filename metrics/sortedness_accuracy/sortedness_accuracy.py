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

Limits
    The rows of by_kind share their positives, so their balanced accuracies are not independent of each other. A rate
    of no examples is None with the interval [0, 1]. Kinds and lengths are believed, not recomputed.
"""

from collections.abc import Sequence

import datasets
import evaluate
import numpy as np
from scipy.stats import binomtest


def compute_sortedness_accuracy(
    predictions: Sequence[int], references: Sequence[int], length: Sequence[int], kind: Sequence[str]
) -> dict:
    """Accuracy, true-positive, true-negative and majority-class rate; accuracy by length and by kind of negative."""
    columns = {"predictions": predictions, "references": references, "length": length, "kind": kind}
    if len({len(column) for column in columns.values()}) > 1:
        counts = ", ".join(f"{len(column)} values of {name}" for name, column in columns.items())
        raise ValueError(f"There are {counts}, expected as many.")
    if len(references) == 0:
        raise ValueError("There are no examples, expected at least one.")
    predicted, label = np.asarray(predictions), np.asarray(references)
    for name, values in (("predictions", predicted), ("references", label)):
        if not np.isin(values, [0, 1]).all():
            raise ValueError(f"The {name} have values other than 0 (not sorted) and 1 (sorted).")
    lengths, kinds = np.asarray(length), np.asarray(kind)
    if not (lengths == np.floor(lengths)).all():
        raise ValueError("The length column has values that are not whole numbers.")
    if not all(isinstance(name, str) for name in kinds[label == 0]):
        raise ValueError("The kind column has values that are not strings where the reference is 0.")

    def kind_row(name: str, chosen: np.ndarray) -> dict:
        negative = (label == 0) & (kinds == name) & chosen
        positive = (label == 1) & chosen
        tnr, tpr = rate(predicted[negative] == 0), rate(predicted[positive] == 1)
        return {"kind": str(name), "true_negative_rate": tnr, "balanced_accuracy": mean_of_rates(tnr, tpr)}

    return {
        **class_rates(predicted, label),
        "by_length": [
            {"length": int(size), **class_rates(predicted[lengths == size], label[lengths == size])}
            for size in np.unique(lengths)
        ],
        "by_kind": [kind_row(name, np.ones(len(label), bool)) for name in np.unique(kinds[label == 0])],
        "by_length_and_kind": [
            {"length": int(size), **kind_row(name, lengths == size)}
            for size in np.unique(lengths)
            for name in np.unique(kinds[(label == 0) & (lengths == size)])
        ],
    }


def class_rates(predicted: np.ndarray, label: np.ndarray) -> dict:
    accuracy = rate(predicted == label)
    return {
        "accuracy": accuracy.pop("rate"),
        **accuracy,
        "true_positive_rate": rate(predicted[label == 1] == 1),
        "true_negative_rate": rate(predicted[label == 0] == 0),
        "majority_class_rate": rate(label == (2 * label.sum() >= len(label))),
        "predicts_one_class_only": len(np.unique(predicted)) == 1 and len(np.unique(label)) == 2,
    }


def rate(right: np.ndarray) -> dict:
    if not len(right):
        return {"rate": None, "n": 0, "interval": [0.0, 1.0]}
    interval = binomtest(int(right.sum()), len(right)).proportion_ci(method="wilson")
    return {"rate": float(right.mean()), "n": len(right), "interval": [float(end) for end in interval]}


def mean_of_rates(first: dict, second: dict) -> dict:
    if not (first["n"] and second["n"]):
        return {"rate": None, "n": 0, "interval": [0.0, 1.0]}
    mean = (first["rate"] + second["rate"]) / 2
    down, up = (np.hypot(*(r["rate"] - r["interval"][end] for r in (first, second))) / 2 for end in (0, 1))
    return {"rate": mean, "n": first["n"] + second["n"], "interval": [float(mean - down), float(mean + up)]}


class SortednessAccuracy(evaluate.Metric):
    def _info(self):
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

    def _compute(self, predictions, references, length, kind, **unknown):
        if unknown:
            raise ValueError(f"sortedness_accuracy has no options, got {', '.join(unknown)}.")
        return compute_sortedness_accuracy(predictions, references, length, kind)
