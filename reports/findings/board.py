"""Prediction against measurement, task by task, by a rule that is computed from the rows of the board.

Theory speaks of models that are given nothing but the text: cells into which something was built by hand, other than
what the formalism itself has (`Expectation.grants`), are told apart. A task *generalises* in a cell if it holds at FAR
times the longest training length. Then
- a program is predicted, no cell without aids gets that far though at least one fits its training lengths: disagrees;
- no program can be, and a cell without aids gets that far: disagrees;
- everything else that was measured without aids agrees; where nothing was predicted, or measured so, there is nothing
  to compare.
"""

from dataclasses import dataclass

from ...data_builders.expectations import Expectation
from ...data_builders.tasks import Task
from ...records.rows import Row, Rows
from ..board_rows import ratio
from ..length_rows import MOST, cell
from ..wording import counted, listed


FAR = 2  # times the longest training length
AGREES, DISAGREES, OPEN = "agrees", "disagrees", "nothing to compare"


@dataclass(frozen=True)
class Verdict:
    """`word` is one of AGREES, DISAGREES and OPEN; `text` the sentence that says why."""

    word: str
    text: str


def judge(task: Task, rows: Rows) -> Verdict:
    """What becomes of the predictions about a task, given all of its rows."""
    expectation = task.expectation
    if expectation is None or expectation.predicted is None:
        return Verdict(OPEN, "No paper that we know of predicts whether it generalises.")
    tested = [row for row in rows if row["value"] is not None and row["tested_to"] >= FAR * row["trained"][1]]
    plain = [row for row in tested if is_plain(row, expectation)]
    far, plain_far = (list(filter(goes_far, own)) for own in (tested, plain))
    fitted = [row for row in plain if row["value"]]
    if not tested:
        return Verdict(OPEN, f"Nothing was tested at {FAR} times the training length.")
    if plain_far:
        word = AGREES if expectation.predicted else DISAGREES
        return Verdict(word, f"{promised(expectation)} {reached(plain_far)} with nothing built in by hand.")
    if expectation.predicted is False and plain:
        return Verdict(AGREES, f"{promised(expectation)} {without_aids(plain, fitted)}{with_aids(far)}")
    if not fitted:
        return Verdict(OPEN, f"{promised(expectation)} {without_aids(plain, fitted)}{with_aids(far)}")
    return Verdict(
        DISAGREES,
        f"{promised(expectation)} {without_aids(plain, fitted)}{with_aids(far)} That a program exists does not say "
        "that this training finds it.",
    )


def is_plain(row: Row, expectation: Expectation) -> bool:
    """Whether nothing was built into its model that the theory does not have as well."""
    return set(row["built_in"]) <= expectation.grants


def goes_far(row: Row) -> bool:
    return (ratio(row) or 0) >= FAR


def promised(expectation: Expectation) -> str:
    return "Predicted to generalise." if expectation.predicted else "Predicted not to generalise."


def reached(rows: Rows) -> str:
    return (
        f"{listed([cell(row) for row in rows], MOST)} {'goes' if len(rows) == 1 else 'go'} {FAR} times as far or more"
    )


def without_aids(plain: Rows, fitted: Rows) -> str:
    if not plain:
        return "Nothing was measured without something built in by hand."
    if not fitted:
        return (
            f"Of {counted(len(plain), 'variant')} with nothing built in, none fits its training lengths on all seeds."
        )
    fit = "1 fits its" if len(fitted) == 1 else f"{len(fitted)} fit their"
    return (
        f"Of {counted(len(plain), 'variant')} with nothing built in, {fit} training lengths on all seeds, and none "
        f"goes {FAR} times as far."
    )


def with_aids(far: Rows) -> str:
    """What gets there all the same, and what it was given; of rows without aids there are none here."""
    if not far:
        return ""
    aids = sorted({name for row in far for name in row["built_in"]})
    return f" With {listed(aids)} built in by hand, {reached(far)}."
