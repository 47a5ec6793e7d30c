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

Limits
    Surplus digits belong to no place of the reference and show in wrong_length only: 9117 against 117 has every place
    right. One lost digit in the middle shifts all digits above it.
"""

from collections import Counter
from collections.abc import Sequence

import datasets
import evaluate
from scipy.stats import norm


STEPS = {"plain": -1, "reversed": 1}  # slice step that puts the units first
NAMES = ["units", "tens", "hundreds", "thousands"]


def compute_digit_accuracy(predictions: Sequence[str], references: Sequence[str], answer_order: str = "plain") -> dict:
    """Accuracy of every decimal place, with n and interval; `answer_order` is "plain" or "reversed"."""
    if answer_order not in STEPS:
        raise ValueError(f"answer_order is {answer_order!r}, expected one of {[*STEPS]}.")
    if len(predictions) != len(references):
        raise ValueError(
            f"There are {len(predictions)} predictions and {len(references)} references, expected as many."
        )
    if len(references) == 0:
        raise ValueError("There are no examples, expected at least one.")
    step = STEPS[answer_order]
    seen: Counter[int] = Counter()
    right: Counter[int] = Counter()
    wrong_length = 0
    # Each different pair once: of the million three-digit sums only 1,999 differ.
    for (prediction, reference), count in Counter(zip(predictions, references, strict=True)).items():
        if not (isinstance(reference, str) and reference.isascii() and reference.isdigit()):
            raise ValueError(f"The reference {reference!r} is not a string of the digits 0-9.")
        if not isinstance(prediction, str):
            raise ValueError(f"The prediction {prediction!r} is not a string.")
        wrong_length += count * (len(prediction) != len(reference))
        pairs = zip(prediction[::step].ljust(len(reference)), reference[::step], strict=False)
        for place, (predicted, wanted) in enumerate(pairs):
            seen[place] += count
            right[place] += count * (predicted == wanted)
    digits = seen.total()
    return {
        "digit_accuracy": right.total() / digits,
        "n": len(references),
        "interval": wilson(right.total() / digits, len(references)),
        "digits": digits,
        "wrong_length": wrong_length,
        "by_place": [
            {
                "place": place,
                "name": NAMES[place] if place < len(NAMES) else f"10^{place}",
                "accuracy": right[place] / seen[place],
                "n": seen[place],
                "interval": wilson(right[place] / seen[place], seen[place]),
            }
            for place in sorted(seen)
        ],
    }


def wilson(rate: float, n: int) -> list[float]:
    """The Wilson interval in closed form, since rate * n need not be whole here."""
    z = float(norm.ppf(0.975))
    center = (rate + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * (rate * (1 - rate) / n + z**2 / (4 * n**2)) ** 0.5 / (1 + z**2 / n)
    return [max(0.0, min(rate, center - half)), min(1.0, max(rate, center + half))]  # min and max undo rounding only


class DigitAccuracy(evaluate.Metric):
    def _info(self):
        return evaluate.MetricInfo(
            description=__doc__,
            citation="",
            inputs_description=compute_digit_accuracy.__doc__,
            features=datasets.Features(dict.fromkeys(["predictions", "references"], datasets.Value("string"))),
        )

    def _compute(self, predictions, references, answer_order="plain", **unknown):
        if unknown:
            raise ValueError(f"digit_accuracy has the option answer_order only, got {', '.join(unknown)}.")
        return compute_digit_accuracy(predictions, references, answer_order)
