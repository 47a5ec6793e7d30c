"""How good answers of several tokens are: as a whole, place by place, by parts of the data, and by way of decoding.

These are the functions that trainers and analyses call and that the `evaluate` modules of this folder wrap; what they
give back is described on the cards of those modules.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..records.intervals import mcnemar, paired_interval, rate, wilson
from .shares import check_columns, share


STEPS = {"first": 1, "last": -1}  # which end of an answer is its place 0 -> slice step that puts it in front
PLACE_ZERO = {"plain": "last", "reversed": "first"}  # order of the digits -> end with the units
PLACE_NAMES = ("units", "tens", "hundreds", "thousands")


def compute_exact_match(predictions: Sequence, references: Sequence) -> dict:
    """Share of equal pairs of strings, or of token lists, with n and interval.

    Returns:
        `{"exact_match", "n", "interval", "correct"}`.

    >>> compute_exact_match(["1188", "407"], ["1188", "417"])["exact_match"]
    0.5
    """
    n = check_columns(predictions=predictions, references=references)
    correct = int(exactly_equal(predictions, references).sum())
    return {"exact_match": correct / n, "n": n, "interval": rate(correct, n)["interval"], "correct": correct}


def exactly_equal(predictions: Sequence, references: Sequence) -> NDArray[np.bool_]:
    """(N,): which predictions are their reference from the first token to the last.

    >>> exactly_equal(["12", (1, 2)], ["12", [1, 3]])
    array([ True, False])
    """
    return np.array([_equal(*pair) for pair in zip(predictions, references, strict=True)], bool)


def _equal(prediction: Any, reference: Any) -> bool:
    if isinstance(prediction, str) or isinstance(reference, str):
        return prediction == reference
    return list(prediction) == list(reference)  # a tuple, an array row and a list of the same ids are the same answer


def breakdown(right: ArrayLike, values: ArrayLike) -> list[tuple[Any, dict]]:
    """The share of right answers for each value of a fact, the values in order, each with its estimate.

    Args:
        right: (N,) outcomes.
        values: (N,) what the examples are told apart by: numbers or names.

    >>> [(chain, estimate["value"]) for chain, estimate in breakdown([True, False, True], [0, 3, 0])]
    [(0, 1.0), (3, 0.0)]
    """
    right, values = np.asarray(right, bool), np.asarray(values)
    check_columns(outcomes=right, values=values)
    parts = ((value, right[values == value]) for value in np.unique(values))
    return [(_plain(value), rate(int(part.sum()), len(part))) for value, part in parts]


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def compute_carry_exact_match(
    predictions: Sequence[str], references: Sequence[str], longest_carry_chain: Sequence[int]
) -> dict:
    """Exact match overall and for each length of the longest carry chain, with n and interval.

    >>> result = compute_carry_exact_match(["579", "900"], ["579", "1000"], longest_carry_chain=[0, 3])
    >>> [row["exact_match"] for row in result["by_longest_carry_chain"]]
    [1.0, 0.0]
    """
    check_columns(predictions=predictions, references=references, longest_carry_chain=longest_carry_chain)
    chain = np.asarray(longest_carry_chain, dtype=float)
    if not (np.isfinite(chain) & (chain >= 0) & (chain == np.floor(chain))).all():
        raise ValueError("longest_carry_chain has values that are not whole numbers from 0.")
    by_length = breakdown(exactly_equal(predictions, references), chain.astype(int))
    return {
        **compute_exact_match(predictions, references),
        "by_longest_carry_chain": [
            {
                "longest_carry_chain": length,
                "exact_match": found["value"],
                "n": found["n"],
                "interval": found["interval"],
            }
            for length, found in by_length
        ],
    }


def compute_place_accuracy(predictions: Sequence[str], references: Sequence[str], place_zero: str = "first") -> dict:
    """How often each place of an answer is right, counted from one end of prediction and reference.

    A place that a prediction does not have is wrong; surplus ones belong to no place and show in `wrong_length` only.

    Args:
        predictions, references: strings, one character for each place.
        place_zero: which end is place 0, "first" or "last".

    Returns:
        `value`, `n`, `interval` over all places of all references. The places of one answer are not independent, so n
        is the number of answers, not of `places`. `wrong_length`: predictions longer or shorter than their reference.
        `by_place`: for each place `place`, `value`, `n` (references that have it), `interval`.

    >>> result = compute_place_accuracy(["cbx", "c"], ["cba", "cb"])
    >>> [(row["place"], row["value"], row["n"]) for row in result["by_place"]]
    [(0, 1.0, 2), (1, 0.5, 2), (2, 0.0, 1)]
    """
    if place_zero not in STEPS:
        raise ValueError(f"place_zero is {place_zero!r}, expected one of {[*STEPS]}.")
    n = check_columns(predictions=predictions, references=references)
    step = STEPS[place_zero]
    seen: Counter[int] = Counter()
    right: Counter[int] = Counter()
    wrong_length = 0
    # Each different pair once: of the million three-digit sums only 1,999 differ.
    for (prediction, reference), count in Counter(zip(predictions, references, strict=True)).items():
        for name, text in (("prediction", prediction), ("reference", reference)):
            if not isinstance(text, str):
                raise ValueError(f"The {name} {text!r} is not a string.")
        wrong_length += count * (len(prediction) != len(reference))
        ours, theirs = prediction[::step], reference[::step]
        for place, wanted in enumerate(theirs):
            seen[place] += count
            right[place] += count * (place < len(ours) and ours[place] == wanted)
    places = seen.total()
    if not places:
        raise ValueError("All references are empty, expected at least one character.")
    return {
        "value": right.total() / places,
        "n": n,
        "interval": wilson(right.total() / places, n),
        "places": places,
        "wrong_length": wrong_length,
        "by_place": [{"place": place, **rate(right[place], seen[place])} for place in sorted(seen)],
    }


def compute_digit_accuracy(predictions: Sequence[str], references: Sequence[str], answer_order: str = "plain") -> dict:
    """Accuracy of every decimal place, with n and interval; `answer_order` is "plain" or "reversed".

    >>> compute_digit_accuracy(["118", "17"], ["117", "117"])["by_place"][1]["name"]
    'tens'
    """
    if answer_order not in PLACE_ZERO:
        raise ValueError(f"answer_order is {answer_order!r}, expected one of {[*PLACE_ZERO]}.")
    check_columns(predictions=predictions, references=references)
    for reference in set(references):
        if not (isinstance(reference, str) and reference.isascii() and reference.isdigit()):
            raise ValueError(f"The reference {reference!r} is not a string of the digits 0-9.")
    found = compute_place_accuracy(predictions, references, PLACE_ZERO[answer_order])
    return {
        "digit_accuracy": found["value"],
        "n": found["n"],
        "interval": found["interval"],
        "digits": found["places"],
        "wrong_length": found["wrong_length"],
        "by_place": [
            {
                "place": row["place"],
                "name": PLACE_NAMES[row["place"]] if row["place"] < len(PLACE_NAMES) else f"10^{row['place']}",
                "accuracy": row["value"],
                "n": row["n"],
                "interval": row["interval"],
            }
            for row in found["by_place"]
        ],
    }


def compute_decoding_gap(
    predictions: Sequence[str], references: Sequence[str], teacher_forced_predictions: Sequence[str]
) -> dict:
    """Teacher-forced and free-running (`predictions`) exact match, their difference, paired interval and test.

    >>> compute_decoding_gap(["12", "50"], ["12", "56"], teacher_forced_predictions=["12", "56"])["gap"]
    0.5
    """
    n = check_columns(
        predictions=predictions, references=references, teacher_forced_predictions=teacher_forced_predictions
    )
    free, forced = exactly_equal(predictions, references), exactly_equal(teacher_forced_predictions, references)
    both, only_forced, only_free = (int(part.sum()) for part in (free & forced, forced & ~free, free & ~forced))
    low, high = paired_interval(both, only_forced, only_free, n, corrected=True)
    return {
        "gap": (only_forced - only_free) / n,
        "n": n,
        "interval": [max(-1.0, low), min(1.0, high)],
        "mcnemar_p": mcnemar(forced, free),
        "free_running": share(both + only_free, n),
        "teacher_forced": share(both + only_forced, n),
        "only_teacher_forced_right": only_forced,
        "only_free_running_right": only_free,
        "both_right": both,
        "both_wrong": n - both - only_forced - only_free,
    }
