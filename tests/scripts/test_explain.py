"""`headcount explain` on a model whose circuit is known: what it finds, what it writes, and what it refuses."""

import json

import pytest
from command_line import run

from headcount.analysis.circuits.constructions.catalogue import find_construction, save
from headcount.records.rows import only, read_rows, select, values_of


@pytest.fixture(scope="module")
def adder(tmp_path_factory):
    return save("adder", tmp_path_factory.mktemp("models") / "adder")


@pytest.fixture(scope="module")
def account(adder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("accounts") / "adder"
    answer = run("explain", adder, "--output", folder, "--variable", "column_sum")
    return folder, answer


def test_the_known_circuit_and_the_place_of_the_column_sum_are_found(account):
    folder, _ = account
    known = find_construction("adder")
    circuit = read_rows(folder / "results" / "circuit.json")
    found = only(circuit, metric="faithfulness", level="nodes", mode="mean")
    assert set(found["nodes"]) == set(known.nodes) and found["value"] == 1
    cuts = select(circuit, metric="removal_cost", level="edges", mode="mean")
    assert {cut["edge"] for cut in cuts} <= {f"{sender} -> {reader}" for sender, reader in known.edges}
    assert min(cut["value"] for cut in cuts) > 0.5
    variables = read_rows(folder / "results" / "variables.json")
    best = only(variables, stage="account", control="none", scope={})
    assert best["site"] == "encoder.0.residual@column" and best["value"] == 1  # made by encoder.0.mlp
    assert known.variables["column sum"] == "encoder.0.mlp"
    for control in ("no swap", "random directions", "wrong place", "untrained model"):
        assert only(variables, stage="account", control=control)["value"] < 0.3
    assert only(variables, metric="answer_kept")["value"] == 1
    probes = {row["shuffled"]: row for row in select(variables, metric="probe_accuracy", site=best["site"])}
    # The sum is a size in one direction, of which a linear map tells little more than the ends.
    assert probes[False]["value"] > 2 * probes[True]["value"]


def test_tables_figures_and_rows_are_there(account):
    folder, answer = account
    for words in (
        "5 of 11 nodes",
        "column_sum",
        "encoder.0.residual@column",
        "wrong place",
        "eap-ig",
        "(random pairs",
        "Readout: a program predicts the answers",
        "all encoder streams at a column",
    ):
        assert words in answer.stdout
    for name in ("circuit", "variables", "variables_and_controls", "readout"):
        assert (folder / "figures" / f"{name}.png").stat().st_size > 10_000
    assert values_of(read_rows(folder / "results" / "shortcuts.json"), "level") == ["nodes", "edges"]


def test_finished_parts_are_read_and_other_questions_are_refused(account, adder):
    folder, first = account
    before = (folder / "results" / "circuit.json").stat().st_mtime_ns
    again = run("explain", adder, "--output", folder, "--variable", "column_sum")
    assert again.stdout == first.stdout and (folder / "results" / "circuit.json").stat().st_mtime_ns == before
    said = run("explain", adder, "--output", folder, "--variable", "carry", code=2).stderr
    assert "holds results for variables=['column_sum']" in said


def test_methods_are_scored_on_constructions(tmp_path):
    words = ("explain", "--constructions", "--construction", "sorter", "--output", tmp_path / "known")
    rows = json.loads(run(*words, "--json").stdout)
    ours = select(rows, method="find_circuit", mode="zero")
    assert {row["metric"]: row["value"] for row in ours}["edge_f1"] == 1
    assert len(values_of(rows, "method")) == 7
    assert "1 of 1" in run(*words).stdout


@pytest.mark.parametrize(
    "words, said",
    [
        ((), "MODEL is missing; expected a run to explain, or --constructions"),
        (("nowhere",), "nowhere"),
        (("MODEL", "--variable", "mood"), "the variable 'mood' is not known; expected one of carry, tri_state"),
        (("MODEL", "--constructions"), "a MODEL has no effect with --constructions"),
        (("MODEL", "--construction", "adder"), "--construction has no effect without --constructions"),
        (("--constructions", "--construction", "addder"), "there is no construction 'addder'"),
        (("MODEL", "MODEL"), "two models have the same name"),
    ],
)
def test_what_cannot_be_explained_is_one_sentence(words, said, adder, tmp_path):
    words = tuple(adder if word == "MODEL" else word for word in words)
    assert said in run("explain", *words, "--output", tmp_path / "out", code=2).stderr
