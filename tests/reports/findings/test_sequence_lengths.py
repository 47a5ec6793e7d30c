"""How far variants go, for tasks that answer with a sequence: on every class, and only of those that fitted."""

import pytest
from small_study import addition_lengths, addition_study

from headcount.analysis.lengths.summary import summarize
from headcount.records.rows import Rows
from headcount.reports.findings.sequence_lengths import (
    against_the_whole,
    fitted_in_distribution,
    generated_as_decided,
    holds_farthest,
    holds_to_the_longest,
)
from headcount.reports.length_rows import training_lengths


def summed(reach: dict, rows: int = 100) -> Rows:
    return summarize(addition_lengths(reach, rows))


def test_how_far_addition_goes():
    rows = addition_study()["summary"]
    (fitted,) = fitted_in_distribution(rows, "x")
    assert (
        fitted.figure == "2 of 4" and "problems of 1 to 20 digits in every seed (whole and no-jitter)" in fitted.text
    )
    assert "1 in none (alibi: never fitted, which says nothing about longer ones)" in fitted.text
    assert fitted.text.endswith("coupled position ids (whole, no-jitter and alibi); nothing (baseline-none).")
    (far,) = holds_to_the_longest(rows, "x")
    assert far.figure == "1,000" and far.text.startswith("2 of 4 variants stay at 99 %")
    assert "whole, 2 of 2 seeds, with 100 % (95 % interval 98.12 to 100.00 %, n = 200) at 1,000" in far.text
    assert "baseline-none, 1 of 2 seeds (1 never fitted), with 100 %" in far.text
    assert far.text.endswith("Built in by hand: coupled position ids (whole); nothing (baseline-none).")
    assert holds_farthest(rows, "x") == []


def test_where_none_holds_to_the_longest_number_the_farthest_is_named():
    near = [row for row in addition_study()["summary"] if row["variant"] in ("no-jitter", "alibi")]
    assert holds_to_the_longest(near, "x") == []
    (finding,) = holds_farthest(near, "x")
    assert (
        finding.figure == "50" and "up to 200 digits" in finding.text and "no-jitter holds up to 50." in finding.text
    )
    assert finding.text.endswith("Built in by hand: coupled position ids (no-jitter).")
    never = summed({("alibi", 0): None})
    assert holds_farthest(never, "x") == [], "what never fitted does not fail at long numbers"
    weakest = summed({("whole", 0): 1000})
    weakest[1]["holds_to"]["0"] = 200
    assert "whole holds up to 200" in holds_farthest(weakest, "x")[0].text, "every class must hold"


def test_a_change_is_said_to_matter_only_where_the_rows_show_it():
    (finding,) = against_the_whole(addition_study()["summary"], "x")
    assert finding.figure == "0 %" and finding.text.startswith(
        "no-jitter (scores as they are) falls short of the recipe"
    )
    assert (
        "0 % (95 % interval 0.00 to 1.88 %, n = 200) against 100 %" in finding.text and "at 200 digits" in finding.text
    )
    assert "It holds up to 50 digits, the recipe up to 1,000 digits." in finding.text
    assert finding.text.endswith("Built in by hand: coupled position ids (no-jitter and whole).")
    assert "trained on" not in finding.text, "both on the same lengths"
    otherwise = [
        {**row, "trained": [20, 20]} if row["variant"] == "no-jitter" else row for row in addition_study()["summary"]
    ]
    (finding,) = against_the_whole(otherwise, "x")
    assert "It was trained on problems of 20 digits, the recipe of 1 to 20 digits." in finding.text
    better = summed({("whole", 0): 50, ("log_n", 0): 1000})
    assert "log_n (scores times log n, no jitter) does better" in against_the_whole(better, "x")[0].text
    one_seed_never_fitted = summed({("whole", 0): 1000, ("alibi", 0): 50, ("alibi", 1): None})
    few = summed({("whole", 0): 1000, ("no-jitter", 0): 50}, rows=1)
    for rows in (one_seed_never_fitted, few, summed({("log_n", 0): 1000, ("no-jitter", 0): 50})):
        assert against_the_whole(rows, "x") == []


def test_generated_sums_agree_or_it_is_said_where_not():
    rows = addition_study()["generated"]
    assert generated_as_decided(rows, "x")[0].figure == "0 of 2,200"
    (finding,) = generated_as_decided([*rows[1:], {**rows[0], "disagree": 3}], "x")
    assert "another end on 3 of 2,200 problems (whole)" in finding.text


@pytest.mark.parametrize(("trained", "words"), [([1, 20], "of 1 to 20 digits"), ([20, 20], "of 20 digits")])
def test_one_training_length_is_not_a_range(trained, words):
    assert training_lengths([{"task": "addition", "trained": trained}]) == words


def test_lengths_are_counted_in_the_words_of_the_task():
    rows = [
        {**row, "task": "reverse", "kind": {"full_chain": "repeated"}.get(row["kind"], row["kind"])}
        for row in addition_study()["summary"]
    ]
    told = fitted_in_distribution(rows, "x") + holds_to_the_longest(rows, "x") + against_the_whole(rows, "x")
    text = " ".join(finding.text for finding in told)
    assert "held-out strings of 1 to 20 letters" in text and "up to 1,000 letters" in text and "digits" not in text
