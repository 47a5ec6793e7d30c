"""Figures of the head study: what is in the rows is in the figure."""

import itertools

import pytest

from headcount.records.rows import row
from headcount.reports.figures.heads import draw_ablation, draw_atlas, draw_specialization, draw_subsets
from headcount.reports.figures.maps import draw_maps, map_sheets
from headcount.reports.figures.pruning import draw_pruning


def test_pruning_figure_shows_both_curves_and_every_tested_model():
    def step(split, removed, value, **more):
        estimate = {"value": value, "n": 100, "interval": [value - 0.01, min(1.0, value + 0.01)]}
        about = {"split": split, "removed": removed, **more}
        return row("pruning", "exact_match", estimate, decoding="free-running", **about)

    rows = [step("validation", k, 1 - 0.1 * k, fine_tuned=False, kept=True) for k in range(4)]
    rows += [step("validation", k, 1.0, fine_tuned=True, kept=True, finetune_steps=7) for k in range(4)]
    rows.append(step("validation", 5, 0.1, fine_tuned=True, kept=False, finetune_steps=7))
    rows.append(row("pruning", "harmless_one_at_a_time", {"value": 2, "n": 6}, split="validation", heads=[]))
    models = {"intact": 0, "all harmless one at a time": 2, "pruned": 3, "control": 3}
    rows += [step("test", removed, 0.9, model=name) for name, removed in models.items()]
    (axes,) = draw_pruning(rows).axes
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels[:2] == ["removed together", "removed together, 7 steps of fine-tuning after each"]
    assert [label.split(":")[0] for label in labels[2:]] == ["test data"] * 3
    assert "together (90.00 %, n = 100)" in labels[2] and "from scratch" in labels[4]
    assert axes.get_ylabel() == "free-running exact match (%)"
    assert max(axes.lines[1].get_xdata()) == 3, "a head that was put back is not gone"
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


def test_no_rows_no_figure():
    for draw in (draw_ablation, draw_specialization, draw_atlas, draw_subsets, draw_pruning):
        assert draw([]) is None


def test_relations_of_a_task_stand_between_slots_and_spread():
    names = ("hoyer", "entropy_bits", "source", "diagonal")
    rows = [
        row("specialization", name, {"value": 0.5, "n": 9}, head="encoder.0.self.0", uniform=0.2) for name in names
    ]
    labels = [label.get_text() for label in draw_specialization(rows).axes[0].get_xticklabels()]
    assert labels == ["diagonal", "source", "sparsity (Hoyer)"]


def test_sheets_of_maps_for_examples_and_averages():
    layer = {"layer": "encoder.0.self", "heads": [0], "keys": ["1"], "queries": ["1"], "weights": [[[1.0]]]}
    texts = {"input": "1<eos>", "answer": "2<eos>"}
    rows = [row("maps", "attention_weights", {"n": 1}, example=number, **texts, **layer) for number in range(3)]
    sheets = map_sheets([*rows, row("maps", "mean_attention_weights", {"n": 500}, **layer)], 1)
    titles = {name: figure.get_suptitle() for name, figure in sheets.items()}
    average = "average over 500 examples"
    assert titles == {"maps_example_0_encoder_self": "1 → 2", "maps_average_encoder_self": average}
