"""How good labels are: the rates of a two-class problem, and those of sortedness by length and kind of negative.

Shapes: N examples; labels and predictions are 1 (the positive class) or 0.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .shares import check_columns, share


def class_rates(predicted: ArrayLike, label: ArrayLike, classes: int = 2) -> dict:
    """Accuracy with the rates that show how it came about, and what always guessing one class would give.

    Args:
        predicted, label: (N,) of 0 and 1, 1 being the positive class; or of the numbers of more classes.
        classes: how many there are.

    Returns:
        `value`, `n`, `interval` of the accuracy; `true_positive_rate`, `true_negative_rate` (None without examples of
        that class, and with more than two classes); `majority_class_rate`, which the best constant guess would score;
        `one_class_only`, whether all predictions are the same.

    >>> rates = class_rates([0, 0, 0, 0], [0, 0, 0, 1])
    >>> rates["value"], rates["true_positive_rate"], rates["majority_class_rate"], rates["one_class_only"]
    (0.75, 0.0, 0.75, True)
    """
    predicted, label = _checked(predicted, label, classes)
    accuracy, true_positive, true_negative, majority = _class_shares(predicted, label)
    if classes > 2:  # none of them is the positive one
        true_positive = true_negative = share(0, 0)
        majority = share(int(np.bincount(label).max()), len(label))
    return {
        "value": accuracy["rate"],
        "n": accuracy["n"],
        "interval": accuracy["interval"],
        "true_positive_rate": true_positive["rate"],
        "true_negative_rate": true_negative["rate"],
        "majority_class_rate": majority["rate"],
        "one_class_only": bool((predicted == predicted[0]).all()),
    }


def _checked(predicted: ArrayLike, label: ArrayLike, classes: int = 2) -> tuple[NDArray, NDArray]:
    predicted, label = np.asarray(predicted), np.asarray(label)
    check_columns(predictions=predicted, references=label)
    for name, values in (("predictions", predicted), ("references", label)):
        if not np.isin(values, np.arange(classes)).all():
            known = "0 (the negative class) and 1 (the positive one)" if classes == 2 else f"0 to {classes - 1}"
            raise ValueError(f"The {name} have values other than {known}.")
    return predicted, label


def _class_shares(predicted: NDArray, label: NDArray) -> tuple[dict, dict, dict, dict]:
    """Accuracy, true-positive, true-negative and majority-class rate as shares with their intervals."""
    right, positives = predicted == label, int((label == 1).sum())
    negatives = len(label) - positives
    return (
        share(int(right.sum()), len(label)),
        share(int(right[label == 1].sum()), positives),
        share(int(right[label == 0].sum()), negatives),
        share(max(positives, negatives), len(label)),
    )


def compute_sortedness_accuracy(
    predictions: Sequence[int], references: Sequence[int], length: Sequence[int], kind: Sequence[str]
) -> dict:
    """Accuracy, true-positive, true-negative and majority-class rate; accuracy by length and by kind of negative.

    >>> result = compute_sortedness_accuracy([1, 1, 0], [1, 0, 0], length=[8, 8, 8], kind=["", "swap", "shuffle"])
    >>> [(row["kind"], row["true_negative_rate"]["rate"]) for row in result["by_kind"]]
    [('shuffle', 1.0), ('swap', 0.0)]
    """
    check_columns(predictions=predictions, references=references, length=length, kind=kind)
    predicted, label = _checked(predictions, references)
    lengths, kinds = np.asarray(length), np.asarray(kind)
    if not (lengths == np.floor(lengths)).all():
        raise ValueError("The length column has values that are not whole numbers.")
    if not all(isinstance(name, str) for name in kinds[label == 0]):
        raise ValueError("The kind column has values that are not strings where the reference is 0.")

    def kind_row(name: str, chosen: NDArray[np.bool_]) -> dict:
        of_kind = chosen & ((label == 1) | (kinds == name))  # all positives: they have no kind
        _, true_positive, true_negative, _ = _class_shares(predicted[of_kind], label[of_kind])
        balanced = _mean_of_shares(true_negative, true_positive)
        return {"kind": str(name), "true_negative_rate": true_negative, "balanced_accuracy": balanced}

    return {
        **_card_rates(predicted, label),
        "by_length": [
            {"length": int(size), **_card_rates(predicted[lengths == size], label[lengths == size])}
            for size in np.unique(lengths)
        ],
        "by_kind": [kind_row(name, np.ones(len(label), bool)) for name in np.unique(kinds[label == 0])],
        "by_length_and_kind": [
            {"length": int(size), **kind_row(name, lengths == size)}
            for size in np.unique(lengths)
            for name in np.unique(kinds[(label == 0) & (lengths == size)])
        ],
    }


def _card_rates(predicted: NDArray, label: NDArray) -> dict:
    """`class_rates` with an interval for every rate; a constant guess is only a fault where there are two classes."""
    rates = class_rates(predicted, label)
    _, true_positive, true_negative, majority = _class_shares(predicted, label)
    return {
        "accuracy": rates["value"],
        "n": rates["n"],
        "interval": rates["interval"],
        "true_positive_rate": true_positive,
        "true_negative_rate": true_negative,
        "majority_class_rate": majority,
        "predicts_one_class_only": rates["one_class_only"] and majority["rate"] < 1,
    }


def _mean_of_shares(first: dict, second: dict) -> dict:
    if not (first["n"] and second["n"]):
        return share(0, 0)
    mean = (first["rate"] + second["rate"]) / 2
    down, up = (np.hypot(*(each["rate"] - each["interval"][end] for each in (first, second))) / 2 for end in (0, 1))
    return {"rate": mean, "n": first["n"] + second["n"], "interval": [float(mean - down), float(mean + up)]}
