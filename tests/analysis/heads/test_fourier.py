"""Fourier transforms over residues: known spectra, a model set by hand, and controls that have no frequency."""

import numpy as np
import pytest
import torch
from task_examples import addition

from headcount.analysis.heads.fourier import EMBEDDING, fourier_rows, power_by_frequency
from headcount.analysis.heads.study import StudyData, analyses_for
from headcount.data_builders.examples import make_examples
from headcount.data_builders.registry import TASKS
from headcount.records.rows import only, select
from headcount.reports.figures.fourier import draw_fourier
from headcount.trainers.model_building import make_model
from headcount.trainers.recipe import load_recipe


MODULUS, FREQUENCIES = 31, (3, 7)


@pytest.fixture(scope="module")
def rows():
    """Of a model whose numbers lie on circles, by hand, and of two sums."""
    recipe = load_recipe("modular_addition", [f"data.modulus={MODULUS}", "data.train=100", "data.test=50"])
    torch.manual_seed(0)
    model = make_model(recipe).eval()
    turns = 2 * np.pi * np.arange(MODULUS)[:, None] * np.array(FREQUENCIES) / MODULUS
    circles = torch.zeros(MODULUS, model.config.hidden_size)
    circles[:, : 2 * len(FREQUENCIES)] = torch.from_numpy(np.concatenate([np.cos(turns), np.sin(turns)], 1))
    tokens = recipe.the_task.residues(recipe.options)
    with torch.no_grad():
        model.get_input_embeddings().weight[tokens] = circles
    problems = recipe.the_task.splits(recipe.options).problems("test")
    return fourier_rows(model, make_examples(recipe.the_task, recipe.options, problems, "decoder"))


def test_power_is_where_the_frequency_is_and_adds_up():
    turns = 2 * np.pi * np.arange(12) / 12
    waves = np.stack([np.cos(2 * turns), 3 * np.cos(5 * turns)], 1) + 7.0
    assert np.allclose(power_by_frequency(waves), [0, 0.1, 0, 0, 0.9, 0])
    assert np.isclose(power_by_frequency(np.random.default_rng(0).normal(size=(12, 4))).sum(), 1)
    assert np.allclose(power_by_frequency(np.ones((5, 2))), 0)


def test_numbers_on_circles_have_their_frequencies_and_the_controls_have_none(rows):
    power = {row["frequency"]: row["value"] for row in select(rows, metric="power", subject=EMBEDDING, control="none")}
    assert all(np.isclose(power[k], 0.5 if k in FREQUENCIES else 0, atol=1e-5) for k in range(1, 16))
    top = {c: only(rows, metric="top_five_power", subject=EMBEDDING, control=c)["value"] for c in CONTROLS}
    assert np.isclose(top["none"], 1, atol=1e-5) and top["untrained model"] < 0.6 and top["shuffled residues"] < 0.8


CONTROLS = ("none", "untrained model", "shuffled residues")


def test_heads_are_measured_where_the_answer_is_read(rows):
    heads = {row["subject"] for row in rows} - {EMBEDDING}
    assert heads == {f"decoder.0.self.{number}" for number in range(4)}
    for head in heads:
        share = [only(rows, metric="top_five_power", subject=head, control=control)["value"] for control in CONTROLS]
        assert share[0] > max(share[1:]), "what a head reads of numbers on circles turns with them"


def test_the_picture_has_a_panel_for_the_embedding_and_each_head(rows):
    figure = draw_fourier(rows)
    titles = [axes.get_title().splitlines()[0] for axes in figure.axes if axes.get_title()]
    assert titles == [EMBEDDING, *(f"decoder.0.self.{number}" for number in range(4))]
    assert draw_fourier([]) is None


def test_only_tasks_with_residues_have_the_analysis():
    examples = addition([1, 2], [3, 4])
    model = make_model(load_recipe("addition-tiny"))
    assert "fourier" not in analyses_for(model, StudyData(examples, examples))
    with pytest.raises(ValueError, match="the tokens of addition stand for no residues"):
        fourier_rows(model, examples)
    task = TASKS["modular_addition"]
    own = make_examples(task, task.options(), task.problems(task.options(), np.random.default_rng(0), 4), "decoder")
    assert "fourier" in analyses_for(make_model(load_recipe("modular_addition")), StudyData(own, own))
