"""Decoding gap: teacher-forced minus free-running exact match, on the same examples.

Teacher-forced, a model sees the right prefix at every step; free-running, it sees its own. Only the second is what a
user gets. For greedy decoding the two must agree example by example, so a gap points to a bug (a wrong start token, a
wrong shift) or to answers that were cut to the reference's length.

Inputs
    predictions: free-running answers, strings, the end of the answer found by the model itself.
    teacher_forced_predictions: argmax of every step under the right prefix, strings, for the same examples.
    references: strings.

Outputs
    gap: teacher-forced minus free-running; interval: paired, 95 %, Newcombe's square-and-add of the two Wilson
    intervals (Statistics in Medicine 17, 1998, method 10: with the correlation of the two outcomes); n.
    free_running, teacher_forced: each {rate, n, interval (Wilson, 95 %)}.
    only_teacher_forced_right, only_free_running_right, both_right, both_wrong: numbers of examples.
    mcnemar_p: exact two-sided McNemar test, that is a binomial test on the examples right in one way only.

Example
    >>> import evaluate
    >>> metric = evaluate.load("metrics/decoding_gap")
    >>> result = metric.compute(
    ...     predictions=["12", "34", "50", "70"],
    ...     teacher_forced_predictions=["12", "34", "56", "78"],
    ...     references=["12", "34", "56", "78"],
    ... )
    >>> result["gap"], result["n"], result["interval"], result["mcnemar_p"]
    (0.5, 4, [-0.102, 0.85], 0.5)
    >>> result["free_running"]
    {'rate': 0.5, 'n': 4, 'interval': [0.15, 0.85]}

Limits
    Interval and test take the examples to be independent. They are made in different ways, so on few examples the
    interval can leave out 0 while mcnemar_p is above 0.05, or the other way round.
"""

from collections.abc import Sequence

import datasets
import evaluate
from scipy.stats import binomtest


INPUTS = ["predictions", "references", "teacher_forced_predictions"]


def compute_decoding_gap(
    predictions: Sequence[str], references: Sequence[str], teacher_forced_predictions: Sequence[str]
) -> dict:
    """Teacher-forced and free-running (`predictions`) exact match, their difference, paired interval and test."""
    n = len(references)
    if not len(predictions) == len(teacher_forced_predictions) == n:
        raise ValueError(
            f"There are {len(predictions)} predictions, {n} references and {len(teacher_forced_predictions)} "
            "teacher_forced_predictions, expected as many."
        )
    if n == 0:
        raise ValueError("There are no examples, expected at least one.")
    both = only_forced = only_free = 0
    for free, forced, reference in zip(predictions, teacher_forced_predictions, references, strict=True):
        both += free == reference and forced == reference
        only_forced += forced == reference and free != reference
        only_free += free == reference and forced != reference
    discordant = only_forced + only_free
    return {
        "gap": (only_forced - only_free) / n,
        "n": n,
        "interval": paired_interval(both, only_forced, only_free, n),
        "mcnemar_p": float(binomtest(only_forced, discordant).pvalue) if discordant else 1.0,
        "free_running": rate(both + only_free, n),
        "teacher_forced": rate(both + only_forced, n),
        "only_teacher_forced_right": only_forced,
        "only_free_running_right": only_free,
        "both_right": both,
        "both_wrong": n - both - discordant,
    }


def rate(correct: int, n: int) -> dict:
    interval = binomtest(correct, n).proportion_ci(method="wilson")
    return {"rate": correct / n, "n": n, "interval": [float(end) for end in interval]}


def paired_interval(both: int, only_first: int, only_second: int, n: int) -> list[float]:
    """Newcombe's interval for the first rate minus the second."""
    first, second = rate(both + only_first, n), rate(both + only_second, n)
    (p1, (low1, high1)), (p2, (low2, high2)) = ((r["rate"], r["interval"]) for r in (first, second))
    neither = n - both - only_first - only_second
    covariance = float(both * neither - only_first * only_second)
    if covariance > 0:
        covariance = max(covariance - n / 2, 0.0)  # Newcombe's continuity correction
    margins = (both + only_first) * (only_second + neither) * (both + only_second) * (only_first + neither)
    phi = covariance / margins**0.5 if margins else 0.0
    down = (p1 - low1) ** 2 - 2 * phi * (p1 - low1) * (high2 - p2) + (high2 - p2) ** 2
    up = (high1 - p1) ** 2 - 2 * phi * (high1 - p1) * (p2 - low2) + (p2 - low2) ** 2
    gap = (only_first - only_second) / n
    return [max(-1.0, gap - max(down, 0.0) ** 0.5), min(1.0, gap + max(up, 0.0) ** 0.5)]


class DecodingGap(evaluate.Metric):
    def _info(self):
        return evaluate.MetricInfo(
            description=__doc__,
            citation="",
            inputs_description=compute_decoding_gap.__doc__,
            features=datasets.Features(dict.fromkeys(INPUTS, datasets.Value("string"))),
        )

    def _compute(self, predictions, references, teacher_forced_predictions, **unknown):
        if unknown:
            raise ValueError(f"decoding_gap has no options, got {', '.join(unknown)}.")
        return compute_decoding_gap(predictions, references, teacher_forced_predictions)
