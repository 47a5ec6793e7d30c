"""Figures of sites and sets: what is in the rows is in the figure, and what was not tested is not drawn."""

import pytest
from small_study import figure

from headcount.records.rows import Row, Rows, row
from headcount.reports.figures.atlas import draw_atlas, draw_atlas_by_seed
from headcount.reports.figures.selection import draw_selection
from headcount.reports.figures.sets import draw_sets, draw_swaps
from headcount.reports.figures.signature import draw_signature


def texts(axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def labels(axes) -> list[str]:
    return [label.get_text() for label in axes.get_yticklabels()]


def legend(drawn) -> list[str]:
    return [text.get_text() for found in drawn.legends for text in found.get_texts()]


def lost(site, size, mode, right) -> Row:
    about = {"site": site, "size": size, "mode": mode, "ablated": figure(right), "intact": figure(0.99)}
    return row("sets", "exact_match_drop", figure(0.99 - right), **about)


def test_every_set_has_a_line_with_every_mode_and_its_complement_beside_it():
    names = {"encoder.0.mlp": 1, "decoder.0.cross.*": 4, "all but decoder.0.cross.*": 20, "encoder.0.self.*": 4}
    modes = ("zero", "mean", "resample")
    drawn = draw_sets([lost(name, size, mode, 0.5) for mode in modes for name, size in names.items()])
    left, right = drawn.axes
    assert labels(left) == ["encoder.0.self.*  (4 sites)", "decoder.0.cross.*  (4 sites)", "encoder.0.mlp"]
    assert texts(right) == ["not tested", "not tested"] and texts(left) == []
    marks = [line for line in left.lines if line.get_label() in legend(drawn)]
    assert len(marks) == 9 and legend(drawn) == ["set to zero", "set to its mean", "from another example"]
    assert all(line.get_xdata()[0] == 50 for line in marks)


def test_swaps_show_every_measure_with_control_pairs_and_complement_and_no_single_head():
    def swapped(site, size, metric, value, pairs="minimal"):
        return row("interchange", metric, figure(value), site=site, size=size, pairs=pairs, variable="carry")

    names = {"none": 0, "decoder.0.cross.1": 1, "decoder.0.cross.*": 4, "all but decoder.0.cross.*": 20}
    names |= {"encoder.0.residual@column": 1}
    measures = ("carry_flip", "carry_moved", "whole_answer_flip", "carry_recovered")
    rows = [swapped(name, size, metric, 0.6) for name, size in names.items() for metric in measures]
    rows += [swapped(name, size, "carry_false_flip", 0.01, "control") for name, size in names.items()]
    rows += [swapped("decoder.0.cross.*", 4, "carry_flip", 0.1, "random")]
    drawn = draw_swaps(rows)
    left, right = drawn.axes
    assert labels(left) == ["decoder.0.cross.*  (4 sites)", "encoder.0.residual@column"]
    assert texts(right) == ["not tested"] and len(legend(drawn)) == 5
    assert "200 minimal pairs and 200 control pairs" in drawn.get_supxlabel()
    without = draw_swaps([each for each in rows if each["pairs"] == "minimal"])
    assert len(legend(without)) == 4 and "control" not in without.get_supxlabel()


def signature(site, typical, n, size=1) -> Rows:
    about = {"site": site, "size": size, "variable": "carry", "mode": "resample"}
    rows = [row("signature", "carry_errors", figure(typical, n, 0.01), **about)]
    shares = {offset: typical / 2 if offset in (1, 9) else (1 - typical) / 7 for offset in range(1, 10)}
    return rows + [
        row("signature", "error_offset", figure(value, n), scope={"offset": offset}, **about)
        for offset, value in shares.items()
    ]


def test_signatures_have_two_spikes_beside_the_gap_at_zero():
    rows = signature("none", 1.0, 50, 0) + signature("reader", 0.3, 60) + signature("mover", 0.98, 141)
    rows += signature("few", 1.0, 19) + signature("all.*", 0.4, 500, 4)
    panels = [axes for axes in draw_signature(rows).axes if axes.get_visible()]
    titles = [axes.get_title() for axes in panels]
    assert titles == [
        "mover\n141 errors, 98 % off by one",
        "reader\n60 errors, 30 % off by one",
        "all.*\n500 errors, 40 % off by one",
    ], "single sites first, the most typical first, with enough errors only"
    bars = {round(bar.get_x() + bar.get_width() / 2): bar for bar in panels[0].patches}
    assert sorted(bars) == [-4, -3, -2, -1, 1, 2, 3, 4, 5]
    assert bars[-1].get_height() == bars[1].get_height() == pytest.approx(49)
    assert bars[1].get_facecolor() == bars[-1].get_facecolor() != bars[2].get_facecolor()
    assert draw_signature(signature("few", 1.0, 19)) is None


def atlas(site, role="other", errors=None) -> Row:
    about = {"variable": "carry", "moved": figure(0.3), "errors": errors, "settings": 81, "agreeing": 54}
    return row("atlas", "role", site=site, role=role, drops={}, weights_on={}, **about)


def test_the_atlas_has_every_site_and_says_how_many_errors_and_thresholds():
    rows = [atlas("decoder.0.cross.1", "carry mover", figure(0.98, 210)), atlas("decoder.0.mlp", errors=figure(1, 2))]
    drawn = draw_atlas([*rows, atlas("encoder.0.self.0", "reader")])
    moved, errors = drawn.axes
    assert labels(moved) == ["decoder.0.cross.1", "decoder.0.mlp", "encoder.0.self.0"]
    assert legend(drawn) == ["carry mover (1)", "reader (1)", "other (1)"]
    assert len(moved.patches) == 3 and len(errors.patches) == 1, "two errors are no share"
    assert texts(errors)[:4] == ["210", "54 of 81", "2", "54 of 81"]


def test_the_atlas_of_every_seed_stands_side_by_side():
    mover = atlas("decoder.0.cross.1", "carry mover", figure(0.98, 210))
    drawn = draw_atlas_by_seed({"a-0": [mover], "a-1": [atlas("decoder.0.mlp"), mover], "a-2": []})
    assert [axes.get_title() for axes in drawn.axes] == ["a-0", "a-1"]
    assert labels(drawn.axes[0]) == ["decoder.0.cross.1", "decoder.0.mlp"]
    places = [round(bar.get_y() + bar.get_height() / 2) for bar in drawn.axes[1].patches]
    assert places == [1, 0], "a site is on the same line for every seed"
    assert draw_atlas_by_seed({}) is draw_atlas_by_seed({"a": []}) is None


def test_searches_have_a_panel_each_and_random_sets_beside_them():
    def found(searched, method, size, value):
        about = {
            "searched": searched,
            "method": method,
            "size": size,
            "pool": 8,
            "random_sets": 5,
            "variable": "carry",
        }
        about |= {"random_mean": {"value": 0.2, "n": 200}, "random_best": {"value": 0.4, "n": 200}}
        return row("selection", "carry_flip", figure(value), **about)

    rows = [found("carry, cross", "all subsets", size, size / 8) for size in range(1, 9)]
    rows += [found("answers, heads", method, size, 0.5) for method in ("greedy", "backwards") for size in (3, 1, 2)]
    drawn = draw_selection(rows)
    assert [axes.get_title() for axes in drawn.axes] == ["carry:\ncross", "answers:\nheads"]
    lines = {line.get_label(): list(line.get_xdata()) for line in drawn.axes[1].lines}
    assert lines["greedy"] == lines["backwards"] == lines["random sets of that size, mean"] == [1, 2, 3]
    assert {"all subsets", "greedy", "backwards", "up to the best of them"} < set(legend(drawn))


def test_no_rows_no_figure():
    for draw in (draw_atlas, draw_selection, draw_sets, draw_signature, draw_swaps):
        assert draw([]) is None
