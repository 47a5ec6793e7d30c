"""Figures show the rows they are given: every seed, at its height."""

import pytest

from headcount.records.rows import row
from headcount.reports.figures.drawing import save_figure
from headcount.reports.figures.label_lengths import best_head, draw_dilution, draw_margins, extrapolation_curves
from headcount.reports.figures.panels import panels
from headcount.reports.figures.positions import best_cell


def accuracy(variant, pooling, seed, length, value):
    place = {"variant": variant, "pooling": pooling, "seed": seed, "length": length, "kind": "swap"}
    estimate = (
        None if value is None else {"value": value, "n": 200, "interval": [value - 0.02, min(1.0, value + 0.02)]}
    )
    return row("lengths", "accuracy", estimate, task="sortedness", trained=[8, 16], built_in=[], **place)


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
    def measured(metric, value, length, **more):
        about = {"task": "sortedness", "variant": variant, "pooling": pooling, "seed": 0, "length": length, **more}
        return row("dilution", metric, {"value": value, "n": 16}, **about)

    for length, (first, second) in weights.items():
        for head, weight in (("encoder.0.self.0", first), ("encoder.0.self.1", second)):
            for looks, value in (("back", weight), ("ahead", 0.01)):
                yield measured("neighbour_weight", value, length, head=head, looks=looks)
            yield measured("entropy_share", 1 - weight, length, head=head)
        yield measured("pooled_signal", 8 / length, length)
        for label, margin in (("sorted", 3.0), ("unsorted", -length)):
            yield measured("margin", margin, length, twin="plain", label=label)
    yield measured("signal_exponent", -1.0, None, lengths=list(weights))


def test_margins_of_both_labels_are_named_by_the_task():
    figure = draw_margins(list(head_rows("rotary", "max", {16: (0.2, 0.9), 64: (0.8, 0.4)})))
    lines = {line.get_label(): list(line.get_ydata()) for line in figure.axes[0].lines[1:]}
    assert lines == {"sorted": [3.0, 3.0], "unsorted": [-16, -64]}
    assert figure.get_supylabel() == "logit of sorted minus unsorted"


def test_dilution_follows_the_head_that_was_best_at_the_shortest_length():
    rows = list(head_rows("rotary", "max", {16: (0.2, 0.9), 64: (0.8, 0.4)}))
    assert best_head(rows) == ("encoder.0.self.1", "back")
    entropy, weight, signal = draw_dilution(rows).axes
    assert list(weight.lines[0].get_ydata()) == [0.9, 0.4]
    assert list(entropy.lines[0].get_ydata()) == pytest.approx([0.1, 0.6])
    assert list(signal.lines[0].get_ydata()) == [0.5, 0.125] == list(signal.lines[1].get_ydata())  # as 1/L


def test_the_best_cell_is_the_one_whose_worst_seed_holds_furthest():
    def about(variant, **more):
        return {"task": "sortedness", "variant": variant, "pooling": "max", **more}

    reaches = {"a": {"0": 1024, "1": 16}, "b": {"0": 64, "1": 64}}
    summary = [
        row("summary", "accuracy", kind="swap", accuracy={}, holds_to=reach, **about(variant))
        for variant, reach in reaches.items()
    ]
    neighbour = [
        row("neighbour", "neighbour_head", {"value": weight}, seed=seed, **about(variant))
        for variant, seed, weight in (("a", 0, 1.0), ("a", 1, 0.9), ("b", 0, 0.3), ("b", 1, 0.6))
    ]
    assert best_cell(neighbour, summary) == [neighbour[3]]
    assert best_cell([], summary) == []


def test_panels_beyond_the_titles_are_empty():
    figure, axes = panels(["a", "b", "c", "d", "e"])
    assert len(axes) == 5 and sum(axis.get_visible() for axis in figure.axes) == 5
