"""Figures of the head study: what is in the rows is in the figure."""

import itertools

import pytest

from headcount.reports.head_figures import draw_maps, draw_pruning


def test_pruning_figure_shows_both_curves_and_every_tested_model():
    def row(split, removed, value, **more):
        interval = [value - 0.01, min(1.0, value + 0.01)]
        return {"metric": "exact_match", "split": split, "removed": removed, "value": value, "n": 100,
                "interval": interval, **more}  # fmt: skip

    rows = [row("validation", k, 1 - 0.1 * k, fine_tuned=False) for k in range(4)]
    rows += [row("validation", k, 1.0, fine_tuned=True, finetune_steps=7) for k in range(4)]
    rows.append({"metric": "harmless_one_at_a_time", "value": 2, "n": 6, "heads": []})
    models = {"intact": 0, "all harmless one at a time": 2, "pruned": 3, "control": 3}
    rows += [row("test", removed, 0.9, model=name) for name, removed in models.items()]
    (axes,) = draw_pruning(rows).axes
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels[:2] == ["removed together", "removed together, 7 steps of fine-tuning after each"]
    assert [label.split(":")[0] for label in labels[2:]] == ["test data"] * 3
    assert "together (90.00 %, n = 100)" in labels[2] and "from scratch" in labels[4]
    assert axes.get_ylabel() == "free-running exact match (%)"
    assert all(float(tick).is_integer() for tick in axes.get_xticks())


@pytest.mark.parametrize(("tokens", "rotation"), [(["5", "+", "<eos>"], 0), (["[CLS]", "the", "baker"], 90)])
def test_words_under_a_map_stand_upright_and_do_not_overlap(tokens, rotation):
    row = {"layer": "encoder.0.self", "heads": [0, 1], "weights": [[[1 / 3] * 3] * 3] * 2, "keys": tokens}
    figure = draw_maps([{**row, "queries": tokens}], "a title")
    figure.canvas.draw()
    for axes in figure.axes[:2]:
        labels = axes.get_xticklabels()
        assert [label.get_rotation() for label in labels] == [rotation] * 3
        boxes = [label.get_window_extent() for label in labels]
        assert not any(first.overlaps(second) for first, second in itertools.pairwise(boxes))
