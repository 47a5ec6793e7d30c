"""Figures show the rows they are given: every seed, at its height."""

import pytest

from headcount.reports.drawing import save_figure
from headcount.reports.length_figures import best_head, draw_dilution, extrapolation_curves, panels
from headcount.reports.position_figures import best_cell


def accuracy(variant, pooling, seed, length, value):
    place = {"variant": variant, "pooling": pooling, "seed": seed, "length": length, "kind": "swap"}
    place["trained"] = [8, 16]
    interval = None if value is None else [value - 0.02, min(1.0, value + 0.02)]
    return {**place, "value": value, "interval": interval, "n": 200 if value is not None else 0}


ROWS = [
    *(accuracy("rotary", "max", 0, length, value) for length, value in ((16, 1.0), (64, 0.9), (256, 0.5))),
    *(accuracy("rotary", "max", 1, length, value) for length, value in ((16, 0.99), (64, 0.8), (256, None))),
    *(accuracy("none", "mean", 0, length, 0.5) for length in (16, 64, 256)),
]


def test_every_seed_has_its_line_and_unmeasured_lengths_have_no_point(tmp_path):
    figure = extrapolation_curves(ROWS, "swap")
    titles = {axis.get_title(): axis for axis in figure.axes}
    assert list(titles) == ["rotary", "none"]
    heights = sorted(tuple(box.lines[0].get_ydata()) for box in titles["rotary"].containers)
    assert heights == [pytest.approx((99.0, 80.0)), pytest.approx((100.0, 90.0, 50.0))]
    written = save_figure(figure, tmp_path, "curves")
    assert [path.stat().st_size > 5000 for path in written] == [True, True]


def head_rows(variant, pooling, weights):
    base = {"variant": variant, "pooling": pooling, "seed": 0, "n": 16}
    for length, (first, second) in weights.items():
        for head, weight in (("encoder.0.self.0", first), ("encoder.0.self.1", second)):
            for looks, value in (("back", weight), ("ahead", 0.01)):
                yield {**base, "metric": "neighbour_weight", "head": head, "looks": looks, "length": length,
                       "value": value, "interval": [value, value]}  # fmt: skip
            yield {**base, "metric": "entropy_share", "head": head, "length": length, "value": 1 - weight,
                   "interval": None}  # fmt: skip
        yield {**base, "metric": "pooled_signal", "length": length, "value": 8 / length, "interval": None}


def test_dilution_follows_the_head_that_was_best_at_the_shortest_length():
    rows = list(head_rows("rotary", "max", {16: (0.2, 0.9), 64: (0.8, 0.4)}))
    assert best_head(rows) == ("encoder.0.self.1", "back")
    entropy, weight, signal = draw_dilution(rows).axes
    assert list(weight.lines[0].get_ydata()) == [0.9, 0.4]
    assert list(entropy.lines[0].get_ydata()) == pytest.approx([0.1, 0.6])
    assert list(signal.lines[0].get_ydata()) == [0.5, 0.125] == list(signal.lines[1].get_ydata())  # as 1/L


def test_the_best_cell_is_the_one_whose_worst_seed_holds_furthest():
    summary = [
        {"variant": "a", "pooling": "max", "kind": "swap", "holds_to": {"0": 1024, "1": 16}, "accuracy": {}},
        {"variant": "b", "pooling": "max", "kind": "swap", "holds_to": {"0": 64, "1": 64}, "accuracy": {}},
    ]
    neighbour = [
        {"variant": variant, "pooling": "max", "seed": seed, "value": weight}
        for variant, seed, weight in (("a", 0, 1.0), ("a", 1, 0.9), ("b", 0, 0.3), ("b", 1, 0.6))
    ]
    assert best_cell(neighbour, summary) == [neighbour[3]]
    assert best_cell([], summary) == []


def test_panels_beyond_the_titles_are_empty():
    figure, axes = panels(["a", "b", "c", "d", "e"])
    assert len(axes) == 5 and sum(axis.get_visible() for axis in figure.axes) == 5
