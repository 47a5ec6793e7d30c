"""Swapping directions of a stream: all of them is the engine's swap of the whole site, none is the intact model."""

import numpy as np
import pytest
import torch
from small_models import make_model
from task_examples import sortedness

from headcount.analysis.circuits.subspace import (
    Fixed,
    answers_as_expected,
    features_at,
    logits_from,
    make_swaps,
    random_basis,
    read_streams,
    right_by_place,
    train_basis,
    value_directions,
)
from headcount.analysis.interventions.intervention import Intervention
from headcount.analysis.interventions.sites import Site, sites
from headcount.analysis.interventions.sweep import sweep
from headcount.data_builders.counterfactuals import draw_counterfactuals
from headcount.data_builders.examples import make_pairs
from headcount.data_builders.registry import TASKS


ARCHITECTURES = ["encoder-decoder", "decoder", "encoder"]


def model_and_pairs(architecture, n=40):
    task = TASKS["sortedness" if architecture == "encoder" else "addition"]
    name = "violation" if architecture == "encoder" else "carry"
    options = task.options() if architecture == "encoder" else task.options(digits=3)
    vocab = 103 if architecture == "encoder" else 20
    model = make_model(architecture, vocab_size=vocab)
    problems = task.problems(options, np.random.default_rng(0), n, length=None if architecture == "encoder" else 3)
    drawn = draw_counterfactuals(task, name, problems, np.random.default_rng(1))
    return model, make_pairs(task, options, name, drawn, architecture)


def streams_of(model):
    return [site for site in sites(model) if site.kind == "residual"]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_rest_of_a_pass_gives_the_logits_of_the_whole(architecture):
    model, pairs = model_and_pairs(architecture)
    for site in streams_of(model):
        for own in read_streams(model, pairs):
            memory = own.memory if site.stack == "decoder" else None
            with torch.no_grad():
                found = logits_from(model, own.rows, site, own.base[site], memory)
                whole = model(**own.rows).logits
            assert torch.allclose(found, whole, atol=1e-5)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_all_directions_are_the_swap_of_the_engine_and_none_is_the_intact_model(architecture):
    model, pairs = model_and_pairs(architecture)
    hidden, n = model.config.hidden_size, len(pairs)
    for stream in streams_of(model):
        site = stream.at(pairs.about.place)
        outcomes = sweep(
            model,
            pairs.expected.rows,
            [Intervention([site], replacement="source")],
            sources=pairs.source.rows,
            roles={
                side: pairs.roles(side) for side in ("input", "answer") if architecture != "encoder" or side == "input"
            },
        )
        swaps = make_swaps(read_streams(model, pairs), pairs, [site])
        bases = (torch.zeros(1, 1, hidden, 1), torch.eye(hidden)[None, None])
        found = [answers_as_expected(swaps, basis, n) for basis in bases]
        assert not np.isnan(found).any()
        assert np.array_equal(np.array(found, bool), outcomes.right)


def test_a_basis_is_orthonormal_and_moves_more_than_a_random_one():
    model, pairs = model_and_pairs("encoder-decoder", n=200)
    swaps = make_swaps(read_streams(model, pairs), pairs, [Site("encoder.0.residual@column")])
    weights = [parameter.clone() for parameter in model.parameters()]

    def loss(basis):
        own = swaps[0]
        part = torch.arange(len(own))
        with torch.no_grad():
            logits = own.logits(part, basis)
        return torch.nn.functional.cross_entropy(logits.flatten(0, -2), own.labels(part).flatten(), ignore_index=-100)

    start = random_basis(torch.zeros(1, 1, model.config.hidden_size, 4), 0)
    start[..., 2:] = 0
    basis = train_basis(swaps, start, steps=40)
    assert torch.allclose(basis.mT @ basis, torch.eye(4), atol=1e-5)
    assert loss(basis) < min(loss(random_basis(start, seed)) for seed in range(5))
    assert torch.equal(basis, train_basis(swaps, start, steps=40))
    assert all(map(torch.equal, weights, model.parameters()))
    assert all(parameter.requires_grad and parameter.grad is None for parameter in model.parameters())


def test_directions_of_values_hold_what_tells_them_apart():
    model, pairs = model_and_pairs("encoder-decoder", n=200)
    swaps = make_swaps(read_streams(model, pairs), pairs, [Site("encoder.0.residual@column")])
    values = pairs.about.values(pairs.base.problems)[np.arange(len(pairs)), pairs.index]
    basis = value_directions(swaps, values, 1, 3)[0, 0]
    assert basis.shape == (32, 3) and not basis[:, 1:].any()  # two values: one direction
    features, known, _ = features_at(swaps, values)
    apart = features[known == 1].mean(0) - features[known == 0].mean(0)
    assert torch.allclose((basis @ basis.T) @ apart, apart, atol=1e-4)


def test_places_have_directions_of_their_own():
    model, pairs = model_and_pairs("encoder-decoder", n=200)
    site, hidden = Site("encoder.0.residual@column"), model.config.hidden_size
    swaps = make_swaps(read_streams(model, pairs), pairs, [site], by_place=True)
    n, mixed = len(pairs), torch.zeros(3, 1, hidden, hidden)
    mixed[1, 0] = torch.eye(hidden)  # everything is swapped in the tens alone
    none, whole = (torch.zeros(1, 1, hidden, 1), torch.eye(hidden)[None, None])
    found, kept, moved = (answers_as_expected(swaps, basis, n) for basis in (mixed, none, whole))
    assert np.array_equal(found, np.where(pairs.index == 1, moved, kept))
    start = torch.zeros(3, 1, hidden, 4)
    trained = _loss_by_place(swaps, train_basis(swaps, start, steps=60))
    assert all((trained < _loss_by_place(swaps, random_basis(start, seed))).all() for seed in range(3))
    assert right_by_place(swaps, whole, 3).tolist() == [moved[pairs.index == place].mean() for place in range(3)]


def _loss_by_place(swaps, basis):
    (own,) = swaps
    with torch.no_grad():
        logits = own.logits(torch.arange(len(own)), basis)
    labels = own.labels(torch.arange(len(own)))
    losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2), labels, reduction="none").sum(-1)
    return np.array([losses[own.places == place].mean() for place in range(3)])


def test_sites_of_a_spot_are_swapped_together():
    model, pairs = model_and_pairs("encoder-decoder")
    spot = [Site("encoder.0.residual@column"), Site("encoder.0.residual@left")]
    swaps = make_swaps(read_streams(model, pairs), pairs, spot)
    assert swaps[0].spot.name == "encoder.0.residual@column+left"
    outcomes = sweep(
        model,
        pairs.expected.rows,
        [Intervention(spot, replacement="source")],
        sources=pairs.source.rows,
        roles={side: pairs.roles(side) for side in ("input", "answer")},
    )
    basis = torch.eye(model.config.hidden_size).expand(1, 2, -1, -1)
    found = answers_as_expected(swaps, basis, len(pairs))
    assert np.array_equal(found[~np.isnan(found)], outcomes.right[1][pairs.index < 2])


def test_a_model_is_as_it_was_after_an_error():
    model = make_model().train()
    with pytest.raises(RuntimeError), Fixed(model):
        assert not model.training
        raise RuntimeError
    assert model.training and all(parameter.requires_grad for parameter in model.parameters())


def test_pairs_without_such_tokens_are_left_out():
    model, pairs = model_and_pairs("encoder-decoder")
    swaps = make_swaps(read_streams(model, pairs), pairs, [Site("encoder.0.residual@left")])
    found = answers_as_expected(swaps, torch.eye(model.config.hidden_size)[None, None], len(pairs))
    assert np.array_equal(np.isnan(found), pairs.index == 2)  # to the left of the hundreds there is no column


def test_there_is_no_place_before_the_first():
    examples = sortedness([[1, 2, 3], [3, 2, 1]])
    task = examples.task
    values = task.variables["violation"].values(examples.problems)
    assert values.tolist() == [[-1, 0, 0], [-1, 1, 1]]
    _, pairs = model_and_pairs("encoder-decoder")
    right = pairs.roles("input").where("right")
    assert np.array_equal(right.any(-1), pairs.index > 0)
