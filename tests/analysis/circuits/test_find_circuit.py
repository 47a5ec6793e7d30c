"""Circuits of models of which it is known what counts; what comes back; what is refused."""

import numpy as np
import pytest
import torch
from circuit_models import COUNTING, counting_model, solved
from small_models import make_inputs, make_model
from stock_models import ids, make_stock

import headcount
from headcount.analysis.circuits.circuit_scores import areas, commonest_answer, rungs, score_circuit
from headcount.analysis.circuits.graph import graph_of
from headcount.analysis.circuits.selection import halves
from headcount.analysis.circuits.trials import ChosenData, Trials
from headcount.records.rows import only, read_rows, select, write_rows


def value_of(outputs, batch):
    return outputs.logits[:, -1, 7]


@pytest.fixture(scope="module")
def model():
    return counting_model()


@pytest.fixture(scope="module")
def circuit(model):
    return headcount.find_circuit(model, solved(model), target=1.0)


def test_the_nodes_that_count_are_found_and_no_others(model, circuit):
    assert set(circuit.nodes) <= COUNTING and len(circuit.nodes) >= 3
    assert set(circuit.edges) <= set(graph_of(model).between(circuit.nodes))
    assert {edge[0] for edge in circuit.edges} <= {*circuit.nodes, "decoder.embed"}
    for level in ("nodes", "edges"):
        found = only(circuit.rows, metric="faithfulness", level=level, mode="mean", by="exact_match")
        assert found["on_chosen_half"] == {"value": 1.0, "n": 20} and found["goal"] == 1.0
        assert found["n"] == 20 and found["decoding"] == "free-running"


def test_every_node_and_edge_of_it_was_needed_where_it_was_searched(model, circuit):
    choose, _ = halves(40)
    trials = Trials(model, ChosenData.of(model, solved(model), "mean").part(choose), "mean")
    for level, kept in (("nodes", circuit.nodes), ("edges", circuit.edges)):
        assert trials.faithfulness(level, trials.keep(level, [kept]))[0] == 1.0
        less = [[other for other in kept if other != one] for one in kept]
        if level == "nodes":
            assert max(trials.faithfulness(level, trials.keep(level, less))) < 1.0
    whole = trials.keep_edges([graph_of(model).between(circuit.nodes)])
    np.testing.assert_array_equal(whole.good, trials.keep_nodes([circuit.nodes]).good)
    np.testing.assert_allclose(whole.fine, trials.keep_nodes([circuit.nodes]).fine, atol=1e-4)


def test_rows_say_all_of_it_under_every_ablation(model, circuit, tmp_path):
    size, every = len(circuit.nodes), 10
    assert read_rows(write_rows(tmp_path, "circuit", circuit.rows)) == circuit.rows
    for row in circuit.rows:
        assert row["study"] == "circuit" and row["searched_under"] == "mean"
    for mode in ("zero", "mean", "resample"):
        own = select(circuit.rows, mode=mode, level="nodes")
        faithful = only(own, metric="faithfulness", by="exact_match")
        assert faithful["size"] == size and faithful["of"] == every and faithful["nodes"] == list(circuit.nodes)
        assert faithful["random_sets"] == 5
        assert faithful["random_mean"]["value"] <= faithful["random_best"]["value"] + 1e-9
        assert faithful["value"] == pytest.approx(faithful["circuit"]["value"] / faithful["intact"]["value"])
        rest = only(own, metric="complement")
        assert rest["size"] == every - size and rest["empty"]["n"] == 20 and 0 < rest["chance"]["value"] <= 1
        costs = select(own, metric="removal_cost")
        assert [row["site"] for row in costs] == list(circuit.nodes)
        curve = select(own, metric="curve", by="exact_match")
        assert [row["size"] for row in curve] == list(range(every, -1, -1)) and curve[0]["value"] == 1.0
        assert only(curve, size=size)["value"] == faithful["value"]
        for by in ("exact_match", "loss"):
            cpr, cmd = (only(own, metric=metric, by=by) for metric in ("cpr", "cmd"))
            assert cpr["interval"][0] <= cpr["value"] <= cpr["interval"][1] and cmd["value"] >= 0
        edges = only(circuit.rows, metric="faithfulness", level="edges", mode=mode, by="loss")
        assert edges["size"] == len(circuit.edges) and edges["edges"] == circuit.edge_names


def test_scores_are_those_of_sets_that_are_ablated_together(model, circuit):
    """Against `ablate`, which goes another way: everything else as one set, and the circuit as one."""
    _, test = halves(40)
    batch = {name: values[torch.as_tensor(test)] for name, values in solved(model).items()}
    rest = [site for site in headcount.sites(model) if site.kind != "residual" and site not in circuit.nodes]
    for mode in ("zero", "mean", "resample"):
        rows = headcount.ablate(model, batch, mode=mode, sets=[rest, list(circuit.nodes)])
        without_rest, without_circuit = (
            only(rows, metric="exact_match_drop", size=size)["ablated"]["value"]
            for size in (len(rest), len(circuit.nodes))
        )
        own = select(circuit.rows, mode=mode, level="nodes", by="exact_match")
        assert only(own, metric="faithfulness")["circuit"]["value"] == pytest.approx(without_rest)
        assert only(own, metric="complement")["value"] == pytest.approx(without_circuit)


def test_a_sublayer_that_reads_nothing_keeps_no_edge_into_it():
    """Its output is a constant: under zero ablation it counts, but not what it reads."""
    model = counting_model(COUNTING)
    with torch.no_grad():
        model.model.decoder.layers[1].feed_forward.up_proj.weight.zero_()
        model.model.decoder.layers[1].feed_forward.down_proj.bias.add_(torch.randn(32))
    circuit = headcount.find_circuit(model, solved(model), ablation="zero", target=1.0)
    assert not [edge for edge in circuit.edges if edge[1] == "decoder.1.mlp"]
    found = headcount.find_circuit(model, solved(model), ablation="mean", target=1.0, edges=False)
    assert "decoder.1.mlp" not in found.nodes and found.edges is None


def test_a_metric_and_pairs_decide_instead_of_labels():
    model = counting_model()
    base, source = make_inputs("decoder", 12), make_inputs("decoder", 12, seed=5)
    seen = []
    circuit = headcount.find_circuit(
        model, (base, source), value_of, "source", target=0.999, progress=lambda *done: seen.append(done)
    )
    assert set(circuit.nodes) <= COUNTING and circuit.ablation == "source"
    assert {row["mode"] for row in circuit.rows} == {"zero", "mean", "resample", "source"}
    assert {row["by"] for row in circuit.rows} == {"value_of"}
    whole = only(circuit.rows, metric="curve", level="edges", size=len(graph_of(model).edges), mode="source")
    assert whole["value"] == pytest.approx(1.0, abs=1e-4)
    assert seen[-1] == (100, 100) and seen == sorted(seen)


@pytest.mark.parametrize("name", ["GPT-2", "BERT", "T5"])
def test_stock_models_have_circuits_of_nodes(name):
    model, batch = make_stock(name), {"input_ids": ids(8, 6)}
    if name == "T5":
        batch["decoder_input_ids"] = ids(8, 3, seed=2)
    circuit = headcount.find_circuit(model, batch, value_of, target=0.9)
    nodes = [site for site in headcount.sites(model) if site.kind != "residual"]
    assert circuit.edges is None and 0 < len(circuit.nodes) < len(nodes) and set(circuit.nodes) < set(nodes)
    assert {row["level"] for row in circuit.rows} == {"nodes"}
    with pytest.raises(ValueError, match="is not a model of headcount's own with an output layer"):
        headcount.find_circuit(model, batch, value_of, edges=True)


def test_many_batches_are_one_set_of_examples(model):
    batch = solved(model)
    parts = [{name: values[start : start + 8] for name, values in batch.items()} for start in range(0, 40, 8)]
    whole, parted = (headcount.find_circuit(model, data, ablation="resample", edges=False) for data in (batch, parts))
    assert whole.nodes == parted.nodes
    assert [row["value"] for row in whole.rows] == pytest.approx([row["value"] for row in parted.rows], nan_ok=True)


def test_what_makes_no_sense_is_refused_in_a_sentence(model):
    batch = solved(model, 12)
    wrong = {**batch, "labels": (batch["labels"] + 1).masked_fill(batch["labels"] < 0, -100)}
    with pytest.raises(ValueError, match="the model gets none of 6 examples right"):
        headcount.find_circuit(model, wrong)
    with pytest.raises(ValueError, match="value_of is the same with every node replaced"):
        headcount.find_circuit(counting_model(set()), batch, value_of)
    with pytest.raises(ValueError, match="ablation='noise' is not known"):
        headcount.find_circuit(model, batch, ablation="noise")
    with pytest.raises(ValueError, match=r"the data are a pair \(base, source\) with ablation='mean'"):
        headcount.find_circuit(model, (batch, batch))
    with pytest.raises(ValueError, match=r"expected a pair \(base, source\)"):
        headcount.find_circuit(model, batch, ablation="source")
    with pytest.raises(ValueError, match="there are 3 examples; expected at least 4"):
        headcount.find_circuit(model, {name: values[:3] for name, values in batch.items()})
    with pytest.raises(ValueError, match=r"target=1\.5; expected a share"):
        headcount.find_circuit(model, batch, target=1.5)
    with pytest.raises(ValueError, match="the residual stream is not a sum"):
        headcount.find_circuit(make_model("decoder", norm_position="post"), batch, value_of, edges=True)


def test_areas_are_those_of_hand_made_curves():
    shares, whole, empty = np.array([0.0, 0.25, 1.0]), np.array([1.0, 3.0]), np.array([0.0, 0.0])
    values = np.array([[0.0, 0.0], [1.0, 3.0], [1.0, 3.0]])  # all of it is there from a quarter on
    found = areas(shares, values, empty, whole)
    assert found["cpr"]["value"] == pytest.approx(0.875) and found["cmd"]["value"] == pytest.approx(0.125)
    above = areas(shares, values * 2, empty, whole)
    assert above["cpr"]["value"] == pytest.approx(1.75) and above["cmd"]["value"] == pytest.approx(0.875)


def test_rungs_and_the_commonest_answer():
    sets = [tuple(range(size)) for size in range(40, -1, -1)]
    chosen = [len(some) for some in rungs(sets, 17)]
    assert chosen[0] == 40 and chosen[-1] == 0 and 17 in chosen and len(chosen) == 12
    labels = torch.tensor([[1, 2, -100], [1, 2, -100], [1, 3, 4], [1, 2, 4]])
    assert commonest_answer(ChosenData([{"labels": labels}])) == {"value": 0.5, "n": 4}
    assert commonest_answer(ChosenData([{"input_ids": labels}])) is None


def test_any_circuit_can_be_scored(model):
    circuit = headcount.Circuit(tuple(sorted(COUNTING)), graph_of(model).edges, "zero")
    rows = score_circuit(model, solved(model), circuit)
    for level in ("nodes", "edges"):
        for by in ("exact_match", "loss"):
            found = only(rows, metric="faithfulness", level=level, mode="zero", by=by)
            assert found["value"] == pytest.approx(1.0, abs=1e-4)
    assert not select(rows, metric="curve") and not select(rows, metric="cpr")
