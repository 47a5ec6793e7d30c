"""Prediction against measurement: the rule, case by case."""

import pytest
from small_board import write_study

from headcount.data_builders.expectations import C_RASP, RASP_L, Expectation, Prediction
from headcount.data_builders.reverse import Reverse
from headcount.reports.board_rows import gather
from headcount.reports.findings.board import AGREES, DISAGREES, OPEN, judge


def predicting(*expressible: bool | None) -> Reverse:
    found = Reverse()
    pairs = zip((RASP_L, C_RASP), expressible, strict=False)
    found.expectation = Expectation(tuple(Prediction(each, stated, "so it is") for each, stated in pairs))
    return found


@pytest.fixture
def rows(tmp_path):
    def make(reach: dict[str, int], **given):
        return gather(
            [write_study(tmp_path / "a", "reverse", {name: {0: far} for name, far in reach.items()}, **given)]
        )

    return make


@pytest.mark.parametrize(
    ("expressible", "reach", "built_in", "word"),
    [
        (True, {"rotary": 20}, {}, AGREES),
        (True, {"rotary": 10}, {}, DISAGREES),
        (True, {"rotary": 0}, {}, OPEN),  # what does not fit says nothing about longer problems
        (True, {"rotary": 10, "coupled": 80}, {"coupled": ["coupled position ids"]}, DISAGREES),
        (True, {"none": 20}, {"none": ["causal mask"]}, AGREES),  # the formalism has it too
        (False, {"rotary": 10}, {}, AGREES),
        (False, {"rotary": 0}, {}, AGREES),
        (False, {"rotary": 20}, {}, DISAGREES),
        (False, {"coupled": 80}, {"coupled": ["coupled position ids"]}, OPEN),  # nothing without aids
        (False, {"rotary": 10, "coupled": 80}, {"coupled": ["coupled position ids"]}, AGREES),
        (None, {"rotary": 80}, {}, OPEN),
    ],
)
def test_the_rule(rows, expressible, reach, built_in, word):
    assert judge(predicting(expressible, None), rows(reach, built_in=built_in)).word == word


def test_papers_that_disagree_predict_nothing(rows):
    assert judge(predicting(True, False), rows({"rotary": 80})).word == OPEN


def test_what_was_tested_too_near_is_not_compared(rows):
    assert judge(predicting(False), rows({"rotary": 12}, lengths=(12, 16))).word == OPEN


def test_sentences_name_the_variants_and_what_they_were_given(rows):
    found = rows({"rotary": 10, "coupled": 80}, built_in={"coupled": ["coupled position ids"]})
    assert judge(predicting(True), found).text == (
        "Predicted to generalise. Of 1 variant with nothing built in, 1 fits its training lengths on all seeds, and "
        "none goes 2 times as far. With coupled position ids built in by hand, coupled goes 2 times as far or more. "
        "That a program exists does not say that this training finds it."
    )
    assert judge(predicting(False), rows({"rotary": 20, "none": 40})).text == (
        "Predicted not to generalise. none and rotary go 2 times as far or more with nothing built in by hand."
    )
