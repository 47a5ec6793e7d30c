"""Ways to find a circuit on a model of which it is known what counts, and how good estimates are."""

import numpy as np
import pytest
import torch
from circuit_models import COUNTING, counting_model, solved
from small_models import make_inputs, make_model
from stock_models import ids, make_stock

import headcount
from headcount.analysis.circuits.graph import graph_of
from headcount.analysis.circuits.methods import (
    ESTIMATES,
    METHODS,
    attributions,
    scores_by_eap,
    scores_by_gradient,
)
from headcount.analysis.circuits.shortcuts import compare, exact_changes, shortcut_rows
from headcount.analysis.circuits.trials import ChosenData, Trials
from headcount.records.rows import only, read_rows, select, write_rows


EDGES_TOO = [name for name in METHODS if name != "joint"]


def value_of(outputs, batch):
    return outputs.logits[:, -1, 7]


@pytest.fixture(scope="module")
def model():
    return counting_model()


@pytest.mark.parametrize("ablation", ["zero", "mean", "resample"])
@pytest.mark.parametrize("name", [name for name in METHODS if name != "joint"])  # its first steps gain nothing yet
def test_no_method_takes_a_node_that_puts_out_nothing(model, name, ablation):
    circuit = METHODS[name](model, solved(model, 24), ablation=ablation)
    assert circuit.nodes and set(circuit.nodes) <= COUNTING
    assert circuit.edges is None and circuit.ablation == ablation and circuit.rows == []


@pytest.mark.parametrize("name", EDGES_TOO)
def test_edges_come_with_nodes_and_none_leaves_a_silent_node(model, name):
    circuit = METHODS[name](model, solved(model, 24), edges=True)
    assert circuit.edges and set(circuit.edges) <= set(graph_of(model).edges)
    assert {sender for sender, _ in circuit.edges} <= COUNTING | {"decoder.embed"}


@pytest.mark.parametrize("name", ["gradient", "eap", "eap-ig", "joint", "find_circuit"])
def test_a_target_is_reached_on_the_examples_that_are_given(model, name):
    data = solved(model, 24)
    trials = Trials(model, ChosenData.of(model, data, "mean"), "mean")
    for cutoff in (0.6, 1.0):
        edges = name != "joint"
        circuit = METHODS[name](model, data, cutoff=cutoff, edges=edges)
        for level, kept in (("nodes", circuit.nodes), ("edges", circuit.edges)):
            if kept is not None:
                assert trials.faithfulness(level, trials.keep(level, [kept]))[0] >= cutoff


def test_thresholds_are_of_what_each_costs(model):
    data = solved(model, 24)
    trials = Trials(model, ChosenData.of(model, data, "mean"), "mean")
    alone = [[other for other in trials.nodes if other != node] for node in trials.nodes]
    costs = dict(zip(trials.nodes, 1 - trials.faithfulness("nodes", trials.keep_nodes(alone)), strict=True))
    middle = float(np.median([cost for cost in costs.values() if cost > 0]))
    for cutoff in (0.01, middle):
        kept = METHODS["ablation"](model, data, cutoff=cutoff).nodes
        assert list(kept) == [node for node, cost in costs.items() if cost >= cutoff]
    few, many = (METHODS["acdc"](model, data, edges=True, cutoff=cutoff).edges for cutoff in (0.5, 0.0))
    assert len(few) < len(many)


def test_acdc_cuts_what_costs_less_than_its_threshold_at_that_moment(model):
    """Against the rule written out, with every verdict from the whole set of edges."""
    data, threshold = solved(model, 12), 0.3
    trials = Trials(model, ChosenData.of(model, data, "zero"), "zero")
    kept = list(graph_of(model).edges)
    for reader in reversed(graph_of(model).parents):
        for sender in reversed(graph_of(model).parents[reader]):
            without = [edge for edge in kept if edge != (sender, reader)]
            before, after = trials.keep_edges([kept, without]).fine.mean(-1)
            if before - after < threshold:
                kept = without
    found = METHODS["acdc"](model, data, ablation="zero", edges=True, cutoff=threshold)
    assert set(found.edges) == set(graph_of(model).live(kept))


def test_gradients_are_those_of_gradient_importance():
    model, batch = make_model(), make_inputs("encoder-decoder", 4)
    trials = Trials(model, ChosenData.of(model, batch, "mean"), "mean", value_of)
    found = dict(zip(trials.nodes, scores_by_gradient(trials, "nodes"), strict=True))
    for row in headcount.gradient_importance(model, batch, loss=value_of):
        assert found[row["head"]] == pytest.approx(row["value"], abs=1e-4)


@pytest.mark.parametrize("ablation", ["zero", "mean", "resample"])
def test_attributions_of_nodes_are_summed_over_their_edges(ablation):
    model, batch = make_model(), make_inputs("encoder-decoder", 6)
    trials = Trials(model, ChosenData.of(model, batch, ablation), ablation, value_of, seed=3)
    by_edge = dict.fromkeys(trials.nodes, 0.0)
    for (sender, _), score in zip(trials.runs.graph.edges, scores_by_eap(trials, "edges"), strict=True):
        if sender in by_edge:
            by_edge[sender] += score
    found = dict(zip(trials.nodes, attributions(trials).mean(-1), strict=True))
    assert found == pytest.approx(by_edge, abs=1e-4)


def test_what_a_method_cannot_do_is_said(model):
    with pytest.raises(ValueError, match="joint selection finds nodes alone"):
        METHODS["joint"](model, solved(model, 8), edges=True)
    stock, batch = make_stock("GPT-2"), {"input_ids": ids(6, 5)}
    for name in ("acdc", "eap-ig"):
        with pytest.raises(ValueError, match="edges cannot be told apart"):
            METHODS[name](stock, batch, metric=value_of)
    for name in ("ablation", "gradient", "eap", "joint", "find_circuit"):
        circuit = METHODS[name](stock, batch, metric=value_of)
        assert circuit.nodes and set(circuit.nodes) <= set(headcount.sites(stock))


def test_shortcuts_stand_beside_exact_changes(model, tmp_path):
    data = solved(model, 16)
    circuit = METHODS["find_circuit"](model, data, edges=True)
    rows = shortcut_rows(model, data, circuit=circuit)
    assert read_rows(write_rows(tmp_path, "shortcuts", rows)) == rows
    for row in rows:
        assert row["study"] == "shortcuts" and row["by"] == "loss" and row["mode"] == "mean"
    assert {row["method"] for row in rows} == set(ESTIMATES)
    for level, size, every in (
        ("nodes", len(circuit.nodes), 10),
        ("edges", len(circuit.edges), len(graph_of(model).edges)),
    ):
        for name in ESTIMATES:
            own = select(rows, level=level, method=name)
            f1 = only(own, metric="circuit_f1")
            assert f1["size"] == size and f1["by_chance"] == pytest.approx(size / every) and 0 <= f1["value"] <= 1
            assert only(own, metric="correlation")["n"] == every
            assert (only(own, metric="sign_agreement") is None) == (name == "gradient")
    trials = Trials(model, ChosenData.of(model, data, "mean"), "mean")
    silent = [node not in COUNTING for node in trials.nodes]
    np.testing.assert_allclose(exact_changes(trials, "nodes")[silent], 0.0, atol=1e-4)


def test_estimates_of_a_step_that_is_small_agree_with_what_is_exact():
    """Nodes that put out little: then the first order is nearly all there is."""
    model, batch = make_model("decoder"), make_inputs("decoder", 8)
    with torch.no_grad():
        for layer in model.model.decoder.layers:
            for weights in (layer.self_attn.out_proj.weight, *layer.feed_forward.down_proj.parameters()):
                weights.mul_(0.05)
    rows = shortcut_rows(model, batch, value_of, "zero")
    for name in ("eap", "eap-ig"):
        assert only(rows, metric="correlation", level="nodes", method=name)["value"] > 0.9
    assert only(rows, metric="correlation", level="nodes", method="eap")["value"] > 0.999


def test_comparison_of_estimates_by_hand():
    exact, guessed = np.array([4.0, -3.0, 0.0, 1.0, 0.5, -0.5, 0.2, 0.1]), np.array([2.0, 3.0, 1.0, 0.5, 0, 0, 0, 0.1])
    found = compare(guessed, exact)
    assert found["sign_agreement"] == {"value": pytest.approx(3 / 7), "n": 7}
    assert found["top_found"] == {"value": 1.0, "n": 2}
    assert found["correlation"]["value"] == pytest.approx(np.corrcoef(guessed, exact)[0, 1])
    same = compare(np.zeros(8), exact)
    assert same["correlation"]["value"] is None and same["rank_correlation"]["value"] is None
