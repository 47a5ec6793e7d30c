"""Interchange intervention training: what its parts mean, worked out by hand, and that it teaches what it says."""

import pytest
import torch

from headcount.analysis.circuits.constructions.site_outputs import Mix, read_and_mix
from headcount.analysis.circuits.constructions.trained import (
    CIRCUITS,
    TRAINED,
    VARIABLES,
    Columns,
    check_circuit,
    questions,
    reached,
    train_circuit,
    trained_model,
)
from headcount.analysis.interventions.sites import Site
from headcount.data_builders.addition.columns import AdditionProblems
from headcount.data_builders.registry import find_task
from headcount.data_builders.tasks import options_of


def text(tokens: torch.Tensor) -> str:
    return find_task("addition").vocabulary.text(tokens.tolist())


def test_problems_are_written_as_the_task_writes_them():
    first, second = torch.randint(100, (2, 300), generator=torch.Generator().manual_seed(0))
    task = find_task("addition")
    encoded = task.encode(
        AdditionProblems.from_integers(first.tolist(), second.tolist(), 2),
        "encoder-decoder",
        options_of(task, TRAINED[0].data),
    )
    assert torch.equal(questions(first, second), torch.tensor(encoded["input_ids"]))
    assert torch.equal(Columns.of(first, second).answer(), torch.tensor(encoded["labels"]))


def test_counterfactual_answers_by_hand():
    """37+85: sums 12 and 11, carries into tens 1 and hundreds 1. 20+14: sums 4 and 3, no carries."""
    own, source = (
        Columns.of(torch.tensor([37]), torch.tensor([85])),
        Columns.of(torch.tensor([20]), torch.tensor([14])),
    )
    assert text(own.answer()[0]) == "122" and text(source.answer()[0]) == "034"
    assert text(VARIABLES["carry"](own, source)[0]) == "012"
    assert text(VARIABLES["carry"](source, own)[0]) == "144"
    assert text(VARIABLES["column sum"](own, source)[0]) == "144"


@pytest.mark.parametrize("site", ["encoder.0.self.1", "encoder.0.mlp", "decoder.0.cross.0", "decoder.0.self.1"])
def test_mixing_takes_the_rows_it_says_and_gradients_flow_to_both(site):
    model = CIRCUITS[0].new_model().eval()
    inputs = questions(torch.tensor([12, 99, 45]), torch.tensor([34, 1, 45]))
    labels = Columns.of(torch.tensor([12, 99, 45]), torch.tensor([34, 1, 45])).answer()
    with read_and_mix(model, {}) as outputs:
        plain = model(input_ids=inputs, labels=labels).logits
    mix = Mix(torch.tensor([1.0, 0.0, 1.0]), torch.tensor([1, 0, 2]))
    with read_and_mix(model, {Site(site): mix}, outputs) as changed:
        mixed = model(input_ids=inputs, labels=labels).logits
    assert not torch.allclose(plain[0], mixed[0], atol=1e-5)  # another row's output
    torch.testing.assert_close(plain[1:], mixed[1:])  # its own, kept or put in
    module = Site(site).module
    torch.testing.assert_close(changed[module], outputs[module])  # what it computed itself, before the mix
    (gradient,) = torch.autograd.grad(mixed[0].sum(), outputs[module])
    assert gradient[1].abs().sum() > 0
    with torch.no_grad():
        torch.testing.assert_close(model(input_ids=inputs, labels=labels).logits, plain)  # hooks are gone


@pytest.mark.parametrize("circuit", CIRCUITS, ids=lambda circuit: circuit.name)
def test_circuits_name_sites_of_their_model(circuit):
    model = circuit.new_model()
    idle = circuit.idle(model)
    assert idle and not set(idle) & set(circuit.jobs)
    assert set(circuit.variables.values()) <= set(circuit.jobs)


def test_a_model_that_misses_its_aim_is_refused(monkeypatch):
    monkeypatch.setattr(
        "headcount.analysis.circuits.constructions.trained.train_circuit",
        lambda circuit, seed: train_circuit(circuit, seed, steps=1),
    )
    with pytest.raises(RuntimeError, match=r"trained-cross-carry with seed 0 missed its aim \(intact 0"):
        trained_model(CIRCUITS[0], 0)


def test_each_part_of_the_aim_counts():
    good = {"intact": 1.0, "idle resampled": 1.0, "encoder.0.mlp resampled": 0.3, "interchange": 1.0}
    assert reached(good)
    for name, bad in (
        ("intact", 0.98),
        ("idle resampled", 0.99),
        ("encoder.0.mlp resampled", 1.0),
        ("interchange", 0.9),
    ):
        assert not reached({**good, name: bad})


@pytest.mark.slow
def test_training_makes_the_circuit_that_was_asked_for():
    """The same seed gives the same model; nothing hangs on what is outside, everything on what is inside."""
    model = TRAINED[0].build()
    figures = check_circuit(CIRCUITS[0], model)
    assert reached(figures)
