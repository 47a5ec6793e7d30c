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

Needs
    headcount, which must be installed: the figures come from headcount.metrics.answers.

Limits
    Interval and test take the examples to be independent. They are made in different ways, so on few examples the
    interval can leave out 0 while mcnemar_p is above 0.05, or the other way round.
"""

from typing import Any

import datasets
import evaluate

from headcount.metrics.answers import compute_decoding_gap


INPUTS = ["predictions", "references", "teacher_forced_predictions"]


class DecodingGap(evaluate.Metric):
    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=__doc__,
            citation="",
            inputs_description=compute_decoding_gap.__doc__,
            features=datasets.Features(dict.fromkeys(INPUTS, datasets.Value("string"))),
        )

    def _compute(
        self, predictions: list, references: list, teacher_forced_predictions: list, **unknown: Any
    ) -> dict[str, Any]:
        if unknown:
            raise ValueError(f"decoding_gap has no options, got {', '.join(unknown)}.")
        return compute_decoding_gap(predictions, references, teacher_forced_predictions)
