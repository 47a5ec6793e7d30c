"""Figures of the addition study show the rows they are given, and say what is built in."""

import json

import pytest

from headcount.reports.addition_figures import (
    draw_accuracy,
    draw_addition_figures,
    draw_dilution,
    draw_heads,
    mean_over_heads,
)


BASE = {"trained": [1, 20], "built_in": ["coupled position ids"]}


def accuracy(variant, seed, kind, length, value):
    place = {**BASE, "variant": variant, "seed": seed, "kind": kind, "length": length, "value": value}
    if value is None:
        return {**place, "interval": None, "n": 0}
    margin = {"value": 9 * value - 1, "interval": [9 * value - 2, 9 * value]}
    return {**place, "interval": [max(0, value - 0.02), min(1, value + 0.02)], "n": 100, "margin": margin}


LENGTHS = [
    *(accuracy("no-jitter", 0, "test", 20, 1.0), accuracy("no-jitter", 0, "random", 50, 0.1)),
    accuracy("no-jitter", 0, "random", 1000, None),
    *(accuracy("whole", seed, "test", 20, 1.0) for seed in (0, 1)),
    *(accuracy("whole", seed, "random", length, 1.0 - seed / 10) for seed in (0, 1) for length in (50, 1000)),
    *(accuracy("alibi", 0, "test", 20, 0.3), accuracy("alibi", 0, "random", 50, 0.0)),
]
READING = {"own column": 0.7, "right column": 0.1, "last digit": 0.1, "<bos>": 0.05, "other": 0.05}
COLUMNS = [
    *({**BASE, "variant": "whole", "seed": 0, "metric": "bias", "head": f"head {head}", "difference": difference,
       "value": 3.0 * head - 1} for head in (0, 1) for difference in (-1, 0, 1, "<bos>")),
    *({**BASE, "variant": "whole", "seed": 0, "metric": "weight", "head": f"decoder.0.self.{head}", "reads": reads,
       "length": length, "value": value} for head in (0, 1) for length in (20, 1000)
      for reads, value in READING.items()),
    *({**BASE, "variant": "whole", "seed": 0, "metric": "entropy_share", "head": f"decoder.0.self.{head}",
       "length": length, "value": 0.1 + head / 10} for head in (0, 1) for length in (20, 1000)),
]  # fmt: skip


def test_every_seed_has_its_line_and_a_model_that_never_fitted_says_so():
    figure = draw_accuracy(LENGTHS)
    panels = {axis.get_title(): axis for axis in figure.axes}
    heights = [tuple(line.get_ydata()) for line in panels["whole"].lines]
    assert heights == [pytest.approx((100, 100, 100)), pytest.approx((100, 90, 90))]
    assert [tuple(line.get_xdata()) for line in panels["no-jitter"].lines] == [(20, 50)]
    words = {name: [text.get_text() for text in axis.texts] for name, axis in panels.items()}
    assert words["whole"] == words["no-jitter"] == [] and "never fitted" in words["alibi"][0]
    assert "built in by hand: coupled position ids" in figure.get_suptitle()


def test_heads_show_their_biases_and_what_they_read():
    figure = draw_heads(COLUMNS)
    titles = [axis.get_title() for axis in figure.axes]
    assert titles[:2] == ["decoder.0.self.0", "decoder.0.self.1"]
    bars = [bar.get_height() for bar in figure.axes[1].patches]
    assert bars == [2.0, 2.0, 2.0, 2.0]
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["≤-1", "0", "≥+1", "<bos>"]
    stacked = [bar.get_height() for bar in figure.axes[2].patches]
    assert sum(stacked) == pytest.approx(2.0)  # two lengths, each to one
    assert "built in by hand" in figure.get_suptitle()


def test_tick_labels_have_one_size_and_dilution_says_what_is_built_in():
    figures = [draw_accuracy(LENGTHS), draw_dilution(LENGTHS, COLUMNS), draw_heads(COLUMNS)]
    for figure in figures:
        labels = [label for a in figure.axes for label in (*a.get_xticklabels(), *a.get_yticklabels())]
        assert {label.get_fontsize() for label in labels} == {8}
    none = [{**row, "built_in": []} if row["variant"] == "alibi" else row for row in LENGTHS]
    assert "coupled position ids (2 of 3 variants)" in draw_dilution(none, COLUMNS).get_suptitle()


def test_files_are_written_with_the_recipe_first(tmp_path):
    (tmp_path / "results").mkdir()
    summary = [{"variant": name} for name in ("whole", "no-jitter", "alibi")]
    for name, rows in (("lengths", LENGTHS), ("columns", COLUMNS), ("summary", summary)):
        (tmp_path / "results" / f"{name}.json").write_text(json.dumps(rows))
    written = {path.name for path in draw_addition_figures(tmp_path)}
    assert {"accuracy_by_digits.png", "margin_and_entropy.svg", "what_heads_read.png"} <= written


def test_the_mean_over_heads_is_taken_at_each_length():
    rows = [row for row in COLUMNS if row["metric"] == "entropy_share"]
    assert [row["value"] for row in mean_over_heads(rows)] == pytest.approx([0.15, 0.15])
