"""Intervals and tests for shares, for differences on the same examples, and for many heads at once.

Everything takes per-example outcomes or counts and gives plain numbers for JSON rows.
"""

import math
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats


CONFIDENCE = 0.95


def rate(right: int, n: int) -> dict:
    """`{"value": 0.99, "n": 2000, "interval": [0.984, 0.994]}`: a share with its 95 % Wilson interval."""
    interval = stats.binomtest(int(right), int(n)).proportion_ci(CONFIDENCE, method="wilson")
    return {"value": right / n, "n": int(n), "interval": [float(interval.low), float(interval.high)]}


def wilson(share: float, n: int) -> list[float]:
    """The Wilson interval in closed form, for a share of which share * n need not be whole."""
    z = float(stats.norm.ppf((1 + CONFIDENCE) / 2))
    center = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * (share * (1 - share) / n + z**2 / (4 * n**2)) ** 0.5 / (1 + z**2 / n)
    return [max(0.0, min(share, center - half)), min(1.0, max(share, center + half))]  # min and max undo rounding


def pooled(estimates: Iterable[Mapping]) -> dict | None:
    """The share over all examples of several rates; None without any."""
    estimates = list(estimates)
    if not estimates:
        return None
    return rate(round(sum(e["value"] * e["n"] for e in estimates)), sum(e["n"] for e in estimates))


def paired_drop(before: NDArray[np.bool_], after: NDArray[np.bool_]) -> dict:
    """How much lower the share of `after` is than that of `before` on the same examples, with a 95 % interval.

    Positive = `after` is worse. The interval is that of `paired_interval`.

    >>> row = paired_drop(np.array([1, 1, 1, 1], bool), np.array([1, 1, 0, 1], bool))
    >>> row["value"], row["n"]
    (0.25, 4)
    """
    before, after = np.asarray(before, bool), np.asarray(after, bool)
    n = len(before)
    if len(after) != n or not n:
        raise ValueError(
            f"there are {n} outcomes before and {len(after)} after; expected as many of each, at least 1."
        )
    both, lost = int((before & after).sum()), int((before & ~after).sum())
    won = int((~before & after).sum())
    interval = paired_interval(both, lost, won, n)
    return {"value": (both + lost) / n - (both + won) / n, "n": n, "interval": interval}


def paired_interval(both: int, only_first: int, only_second: int, n: int, corrected: bool = False) -> list[float]:
    """Newcombe's interval for the first share minus the second, on the same examples, from the counts.

    Statistics in Medicine 17, 1998, 2635-2650: two Wilson intervals, joined by the correlation of the outcomes (method
    8); `corrected`: with a continuity correction of that correlation, for few examples (method 10).
    """
    first, second = rate(both + only_first, n), rate(both + only_second, n)
    neither = n - both - only_first - only_second
    covariance = float(both * neither - only_first * only_second)
    if corrected and covariance > 0:
        covariance = max(covariance - n / 2, 0.0)
    margins = math.prod((both + only_first, only_second + neither, both + only_second, only_first + neither))
    correlation = covariance / math.sqrt(margins) if margins else 0.0

    def reach(a: float, b: float) -> float:
        return math.sqrt(max(0.0, a * a - 2 * correlation * a * b + b * b))

    gap = first["value"] - second["value"]
    (low1, high1), (low2, high2) = first["interval"], second["interval"]
    low = gap - reach(first["value"] - low1, high2 - second["value"])
    high = gap + reach(high1 - first["value"], second["value"] - low2)
    return [low, high]


def difference(first: dict, second: dict) -> dict:
    """first - second of two independent estimates with intervals, by squaring and adding their reaches.

    Zou and Donner, Statistics in Medicine 27, 2008 (MOVER).
    """
    value = first["value"] - second["value"]
    (low1, high1), (low2, high2) = first["interval"], second["interval"]
    low = value - math.hypot(first["value"] - low1, high2 - second["value"])
    high = value + math.hypot(high1 - first["value"], second["value"] - low2)
    return {"value": value, "n": min(first["n"], second["n"]), "interval": [low, high]}


def mcnemar(before: NDArray[np.bool_], after: NDArray[np.bool_]) -> float:
    """Exact two-sided p value for "both are right equally often", from the examples on which they differ."""
    before, after = np.asarray(before, bool), np.asarray(after, bool)
    lost, won = int((before & ~after).sum()), int((~before & after).sum())
    return float(stats.binomtest(lost, lost + won, 0.5).pvalue) if lost + won else 1.0


def holm(p_values: ArrayLike) -> list[float]:
    """Holm's adjusted p values, in the order given: below 0.05 holds for all of them together.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    p_values = np.asarray(p_values, float)
    order = np.argsort(p_values, kind="stable")
    stepwise = p_values[order] * np.arange(len(p_values), 0, -1)
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(np.maximum.accumulate(stepwise), 1.0)
    return adjusted.tolist()


def ratio_with_interval(above: ArrayLike, below: ArrayLike) -> dict:
    """The mean of one quantity over that of another on the same examples, with a 95 % interval (delta method).

    >>> ratio_with_interval([1.0, 2.0, 3.0], [2.0, 4.0, 6.0])["value"]
    0.5
    """
    above, below = np.asarray(above, float), np.asarray(below, float)
    n, mean = len(above), float(below.mean())
    value = float(above.mean()) / mean
    half = 0.0
    if n > 1:
        error = float(np.std((above - value * below) / mean, ddof=1)) / math.sqrt(n)
        half = float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1)) * error
    return {"value": value, "n": n, "interval": [value - half, value + half]}


def mean_with_interval(values: ArrayLike) -> dict:
    """Mean over examples with its 95 % t interval; one example alone has none."""
    values = np.asarray(values, float)
    n = len(values)
    mean = float(values.mean())
    if n < 2:
        return {"value": mean, "n": n, "interval": None}
    reach = float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1) * values.std(ddof=1) / math.sqrt(n))
    return {"value": mean, "n": n, "interval": [mean - reach, mean + reach]}


def rank_correlation(first: ArrayLike, second: ArrayLike) -> float | None:
    """Spearman's; None where one of the two does not vary."""
    first, second = np.asarray(first, float), np.asarray(second, float)
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    return float(stats.spearmanr(first, second).statistic)
