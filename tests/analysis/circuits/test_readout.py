"""The readout: tables find rules that were planted, and predict a model whose circuit is known."""

import numpy as np
import pytest

from headcount.analysis.circuits.constructions.catalogue import save
from headcount.analysis.circuits.readout import Tampering, readout_rows, tamperings
from headcount.analysis.circuits.readout_program import fit_program, run_program
from headcount.analysis.circuits.readout_scene import make_scene
from headcount.analysis.circuits.variable_pairs import training_problems
from headcount.analysis.interventions.sites import Site
from headcount.records.rows import only, select
from headcount.trainers.trained_run import load_run


@pytest.fixture(scope="module")
def adder(tmp_path_factory):
    return load_run(save("adder", tmp_path_factory.mktemp("models") / "adder"))


@pytest.fixture(scope="module")
def scenes(adder):
    fitted_on = make_scene(adder, training_problems(adder, 1200), "training")
    return fitted_on, make_scene(adder, adder.corpus.sample("test", 300), "test")


def planted(scene):
    """Where the problem's own column sums to nine, the digit with the source's carry, else the right one."""
    written = scene.right.copy()
    for token, rules in enumerate(scene.rules):
        nine = scene.columns(token, written).get("base's column_sum", np.zeros(len(scene))) == 9
        written[nine, token] = rules["base, source's carry 1 below"][nine]
    return written


def test_a_planted_rule_is_found_and_holds_on_other_problems(scenes):
    fitted_on, tested_on = scenes
    program = fit_program(fitted_on, planted(fitted_on))
    wrong = (planted(tested_on) != tested_on.right).any(-1)
    assert 20 < wrong.sum() < 200
    assert np.array_equal(run_program(program, tested_on), planted(tested_on))


def test_a_program_that_knows_nothing_of_it_does_not_predict_errors(scenes):
    fitted_on, tested_on = scenes
    program = fit_program(fitted_on, fitted_on.right)
    predicted = run_program(program, tested_on)
    assert np.array_equal(predicted, tested_on.right)
    wrong = (planted(tested_on) != tested_on.right).any(-1)
    assert not (predicted == planted(tested_on)).all(-1)[wrong].any()


def test_rules_are_the_tasks_own_answers(scenes):
    scene = scenes[1]
    units = scene.right.shape[1] - 2  # before <eos>
    a, b = scene.base.problems, scene.source.problems
    sums = (b.a[:, 0] + b.b[:, 0]) % 10
    first = scene.base.task.vocabulary.first
    assert np.array_equal(scene.rules[units]["base, source's digit_sum"] - scene.rules[units]["base"].min(), sums)
    assert np.array_equal(scene.rules[units]["base"] - scene.right[:, units].min(), (a.a[:, 0] + a.b[:, 0]) % 10)
    assert first <= scene.rules[units]["base"].min()


def test_a_stream_at_a_place_is_tampered_with_there_alone(scenes):
    scene = scenes[1]
    tampering = Tampering(Site("encoder.0.residual@column"), 2)
    assert tampering in tamperings(scene) and tampering.name == "encoder.0.residual@column(2)"
    written = tampering.written(scene)
    lower = scene.index[0] < 2
    assert np.array_equal(written[:, lower], scene.right[:, lower])  # the digits below it stay
    assert (written != scene.right).any(-1).mean() > 0.8


def test_errors_of_a_hand_set_adder_are_predicted(adder):
    rows = readout_rows(adder, fit=1200, test=300)
    streams = select(rows, level="encoder streams at a column")
    whole = only([row for row in streams if "site" not in row], metric="errors_predicted")
    assert whole["n"] > 500 and whole["value"] > 0.97
    column = select(rows, site="encoder.0.residual@column(1)")
    assert only(column, metric="errors_predicted")["value"] > only(column, metric="errors_by_source")["value"] + 0.5
    assert only(column, metric="answers_by_default")["value"] < 0.2
    program = only(column, metric="program")
    assert program["n"] == 5 and "units: base" in program["lines"]
