"""What holds for every metric and any data."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metric_examples import INPUTS, alike

from headcount import metrics


NOT_RATES = {"low", "high", "mean_confidence", "mcnemar_p"}
answers = st.text("01", max_size=3)
digits = st.text("01", min_size=1, max_size=3)
labels = st.integers(0, 1)
COLUMNS = {
    "predictions": answers,
    "references": digits,
    "teacher_forced_predictions": digits,
    "longest_carry_chain": st.integers(0, 3),
    "length": st.sampled_from([8, 16]),
    "kind": st.sampled_from(["swap", "move", "shuffle"]),
    "confidences": st.floats(0, 1),
}
LABEL_METRICS = {"sortedness_accuracy", "calibration"}


def examples_of(name):
    """Lists of examples, each a tuple with one value per input of the metric."""
    columns = COLUMNS | dict.fromkeys(["predictions", "references"], labels) if name in LABEL_METRICS else COLUMNS
    return st.lists(st.tuples(*(columns[column] for column in INPUTS[name])), min_size=1, max_size=30)


def compute(name, examples):
    columns = dict(zip(INPUTS[name], map(list, zip(*examples, strict=True)), strict=True))
    return metrics.METRICS[name](**columns)


def dicts_in(result):
    if isinstance(result, dict):
        yield result
    for value in result.values() if isinstance(result, dict) else result if isinstance(result, list) else []:
        yield from dicts_in(value)


@pytest.mark.parametrize("name", metrics.METRICS)
@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_every_rate_lies_in_its_interval_and_has_n(name, data):
    examples = data.draw(examples_of(name))
    result = compute(name, examples)
    assert result["n"] == len(examples)
    for found in dicts_in(result):
        rates = {key: value for key, value in found.items() if isinstance(value, float) and key not in NOT_RATES}
        if not rates:
            continue
        assert len(rates) == 1, f"n and interval belong to one rate, found {rates}"
        (key, rate), (low, high) = rates.popitem(), found["interval"]
        assert isinstance(found["n"], int) and 1 <= found["n"] <= len(examples)
        assert (-1 if key == "gap" else 0) <= low <= rate <= high <= 1
        assert low < high


@pytest.mark.parametrize("name", metrics.METRICS)
@settings(deadline=None, max_examples=30)
@given(data=st.data())
def test_the_order_of_examples_does_not_matter(name, data):
    examples = data.draw(examples_of(name))
    shuffled = data.draw(st.permutations(examples))
    assert alike(compute(name, examples), compute(name, shuffled))


@pytest.mark.parametrize("name", metrics.METRICS)
@settings(deadline=None, max_examples=20)
@given(data=st.data())
def test_results_survive_json(name, data):
    result = compute(name, data.draw(examples_of(name)))
    assert json.loads(json.dumps(result, allow_nan=False)) == result


@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_more_of_the_same_narrows_the_interval(data):
    name = data.draw(st.sampled_from(list(metrics.METRICS)))
    examples = data.draw(examples_of(name))
    (low, high), (low_more, high_more) = (compute(name, examples * times)["interval"] for times in (1, 40))
    assert high_more - low_more < high - low


@settings(deadline=None, max_examples=40)
@given(examples=examples_of("decoding_gap"))
def test_exchanging_the_two_ways_of_decoding_turns_the_gap_round(examples):
    gap = compute("decoding_gap", examples)
    turned = compute("decoding_gap", [(forced, reference, free) for free, reference, forced in examples])
    assert turned["gap"] == -gap["gap"] and turned["mcnemar_p"] == pytest.approx(gap["mcnemar_p"])
    assert turned["interval"] == pytest.approx([-gap["interval"][1], -gap["interval"][0]])


@settings(deadline=None, max_examples=40)
@given(examples=examples_of("carry_exact_match"))
def test_the_rows_of_carry_exact_match_add_up(examples):
    result = compute("carry_exact_match", examples)
    rows = result["by_longest_carry_chain"]
    assert sum(r["n"] for r in rows) == result["n"]
    assert sum(r["n"] * r["exact_match"] for r in rows) == pytest.approx(result["correct"])
