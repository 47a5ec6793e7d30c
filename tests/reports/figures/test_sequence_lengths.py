"""Figures of answers by length show the rows they are given, and say what is built in."""

import pytest
from small_study import addition_study, length_rows, summary_rows

from headcount.records.rows import Rows, row, write_rows
from headcount.reports.figures.lengths import draw_length_study
from headcount.reports.figures.sequence_lengths import draw_accuracy, draw_dilution, draw_heads, mean_over_heads


BASE = {"task": "addition", "trained": [1, 20], "built_in": ["coupled position ids"], "pooling": None}


def accuracy(variant, seed, kind, length, value):
    place = {**BASE, "variant": variant, "seed": seed, "kind": kind, "length": length}
    estimate, margin = None, None
    if value is not None:
        estimate = {"value": value, "n": 100, "interval": [max(0, value - 0.02), min(1, value + 0.02)]}
        margin = {"value": 9 * value - 1, "interval": [9 * value - 2, 9 * value]}
    return row("lengths", "exact_match", estimate, decoding="free-running", margin=margin, **place)


def column(metric, value, **more):
    return row("columns", metric, {"value": value, "n": 8}, **BASE, variant="whole", seed=0, **more)


LENGTHS = [
    *(accuracy("no-jitter", 0, "test", 20, 1.0), accuracy("no-jitter", 0, "random", 50, 0.1)),
    accuracy("no-jitter", 0, "random", 1000, None),
    *(accuracy("whole", seed, "test", 20, 1.0) for seed in (0, 1)),
    *(accuracy("whole", seed, "random", length, 1.0 - seed / 10) for seed in (0, 1) for length in (50, 1000)),
    *(accuracy("alibi", 0, "test", 20, 0.3), accuracy("alibi", 0, "random", 50, 0.0)),
]
READING = {"own column": 0.7, "right column": 0.1, "last digit": 0.1, "<bos>": 0.05, "other": 0.05}
COLUMNS = [
    *(
        column("bias", 3.0 * head - 1, head=f"head {head}", difference=difference)
        for head in (0, 1)
        for difference in (-1, 0, 1, "<bos>")
    ),
    *(
        column("weight", value, head=f"decoder.0.self.{head}", length=length, reads=reads)
        for head in (0, 1)
        for length in (20, 1000)
        for reads, value in READING.items()
    ),
    *(
        column("entropy_share", 0.1 + head / 10, head=f"decoder.0.self.{head}", length=length)
        for head in (0, 1)
        for length in (20, 1000)
    ),
]


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


def in_words_of(task: str, rows: Rows) -> Rows:
    return [{**each, "task": task} for each in rows]


def test_one_function_draws_a_study_of_any_task(tmp_path):
    whole = {"says": "the recipe as it stands"}
    for name, rows in {
        "lengths": LENGTHS,
        "columns": COLUMNS,
        "summary": [row("summary", "exact_match", **BASE, variant=name, **whole) for name in ("whole", "alibi")],
    }.items():
        write_rows(tmp_path / "addition", name, rows)
        write_rows(tmp_path / "reverse", name, in_words_of("reverse", rows))
    for name, rows in {"lengths": length_rows(), "summary": summary_rows()}.items():
        write_rows(tmp_path / "sortedness", name, rows)
    drawn = {name: {path.name for path in draw_length_study(tmp_path / name)} for name in ("addition", "reverse")}
    assert drawn["addition"] == drawn["reverse"]
    assert {"accuracy_by_length.png", "margin_and_entropy.svg", "what_heads_read.png"} <= drawn["addition"]
    labels = {path.name for path in draw_length_study(tmp_path / "sortedness")}
    assert labels == {f"extrapolation_{kind}.{ending}" for kind in ("swap", "shuffle") for ending in ("png", "svg")}
    assert draw_length_study(tmp_path / "nothing") == []


def test_the_figure_is_in_the_words_of_the_task():
    strings = draw_accuracy(in_words_of("reverse", LENGTHS))
    assert strings.get_suptitle().startswith("Reversal beyond the training length")
    assert strings.axes[0].get_xlabel() == "letters" and draw_accuracy(LENGTHS).axes[0].get_xlabel() == "digits"
    assert "+1 is the column being written" in draw_heads(COLUMNS).get_suptitle()
    assert "column" not in draw_heads(in_words_of("reverse", COLUMNS)).get_suptitle().split("built in")[0]


def test_what_was_not_measured_in_distribution_is_not_called_unfitted():
    rows = [each for each in addition_study()["lengths"] if each["kind"] != "test"]
    assert not [text for axis in draw_accuracy(rows).axes for text in axis.texts]


def test_the_mean_over_heads_is_taken_at_each_length():
    rows = [row for row in COLUMNS if row["metric"] == "entropy_share"]
    assert [row["value"] for row in mean_over_heads(rows)] == pytest.approx([0.15, 0.15])
