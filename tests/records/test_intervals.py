"""Intervals and tests against known figures and against simulation."""

import numpy as np
import pytest
from scipy import stats

from headcount.records.intervals import holm, mcnemar, mean_with_interval, paired_drop, rank_correlation, rate


def test_rate_is_the_wilson_interval():
    row = rate(95, 100)
    assert row["value"] == 0.95 and row["n"] == 100
    assert row["interval"] == pytest.approx([0.8882, 0.9785], abs=1e-4)


def outcomes(both, lost, won, neither):
    before = [True] * (both + lost) + [False] * (won + neither)
    after = [True] * both + [False] * lost + [True] * won + [False] * neither
    return np.array(before), np.array(after)


def test_paired_drop_covers_the_true_difference_as_often_as_it_says():
    generator, hits, rounds = np.random.default_rng(0), 0, 1500
    for _ in range(rounds):
        before = generator.random(150) < 0.9
        after = np.where(before, generator.random(150) < 0.85, generator.random(150) < 0.3)
        low, high = paired_drop(before, after)["interval"]
        hits += low <= 0.9 - (0.9 * 0.85 + 0.1 * 0.3) <= high
    assert 0.93 <= hits / rounds <= 0.975


def test_paired_drop_of_equal_outcomes_is_zero_with_a_narrow_interval_that_holds_zero():
    before, after = outcomes(1990, 0, 0, 10)
    row = paired_drop(before, after)
    assert row["value"] == 0 and row["interval"][0] <= 0 <= row["interval"][1] < 0.005


def test_paired_drop_needs_the_same_examples():
    with pytest.raises(ValueError, match="3 outcomes before and 2 after"):
        paired_drop(np.ones(3, bool), np.ones(2, bool))


def test_mcnemar_is_exact():
    before, after = outcomes(50, 9, 1, 40)
    assert mcnemar(before, after) == pytest.approx(22 / 1024)  # two tails of Binomial(10, 1/2) at 0 and 1
    assert mcnemar(*outcomes(5, 0, 0, 5)) == 1.0


def test_holm_is_monotone_and_never_above_one():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_mean_interval_is_that_of_the_t_test():
    values = np.random.default_rng(1).normal(size=40)
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert mean_with_interval(values)["interval"] == pytest.approx([expected.low, expected.high])
    assert mean_with_interval([2.0])["interval"] is None


def test_rank_correlation_of_constants_is_none():
    assert rank_correlation([1, 2, 3], [1, 4, 9]) == pytest.approx(1.0)
    assert rank_correlation([1, 2, 3], [5, 5, 5]) is None
