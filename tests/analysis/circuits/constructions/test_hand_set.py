"""Models set by hand do what is said of them: exact answers, and every node and edge of the circuit is needed."""

from functools import cache
from itertools import combinations

import numpy as np
import pytest
import torch
from edge_cuts import contributions, run_without

from headcount.analysis.circuits.constructions.adders import ADDERS
from headcount.analysis.circuits.constructions.reversers import REVERSERS
from headcount.analysis.circuits.constructions.sorters import SORTERS
from headcount.analysis.circuits.constructions.weights import build
from headcount.analysis.circuits.constructions.wiring import HeadPart, NetworkPart, Unit, Wiring
from headcount.analysis.interventions.intervention import REPLACEMENTS, Intervention
from headcount.analysis.interventions.sites import Site, sites
from headcount.analysis.interventions.subject import Subject, only_call
from headcount.analysis.interventions.sweep import sweep
from headcount.data_builders.addition.columns import AdditionProblems
from headcount.data_builders.registry import find_task
from headcount.data_builders.tasks import options_of


BY_NAME = {each.name: each for each in (*ADDERS, *SORTERS, *REVERSERS)}
EVERY = pytest.mark.parametrize("name", BY_NAME)
ROWS = 150  # of every class and length


@cache
def material(name: str):
    """The model, and batches of one length each: all classes of the task, at every length where it is exact."""
    construction = BY_NAME[name]
    task, model = find_task(construction.task), construction.build()
    options = options_of(task, construction.data)
    lengths = {"addition": (3,)}.get(task.name, (3, 5, 8, 16))
    batches = []
    for length in lengths:
        parts = [
            task.problems(options, np.random.default_rng([length, number]), ROWS, length, kind)
            for number, kind in enumerate([None, *task.classes])
        ]
        encoded = [task.encode(part, model.config.architecture, options) for part in parts]
        batches.append(
            {key: torch.tensor(np.concatenate([e[key] for e in encoded])) for key in ("input_ids", "labels")}
        )
    return model, batches


def all_right(logits: torch.Tensor, labels: torch.Tensor) -> bool:
    return bool((logits.argmax(-1) == labels).all())


def others(construction, model) -> list[Site]:
    return [site for site in sites(model) if site.kind != "residual" and site not in construction.nodes]


@EVERY
def test_answers_are_exact_at_every_length(name):
    model, batches = material(name)
    for batch in batches:
        with torch.inference_mode():
            assert all_right(model(**batch).logits, batch["labels"])


@EVERY
def test_without_a_padding_mask_or_with_one_answers_are_the_same(name):
    """Rows of several lengths in one batch."""
    model, _ = material(name)
    task, options = find_task(BY_NAME[name].task), options_of(find_task(BY_NAME[name].task), BY_NAME[name].data)
    encoded = task.encode(task.problems(options, np.random.default_rng(5), 200), model.config.architecture, options)
    batch = {key: torch.tensor(value) for key, value in encoded.items()}
    with torch.inference_mode():
        found = model(**batch).logits.argmax(-1)
    assert ((found == batch["labels"]) | (batch["labels"] == -100)).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["adder", "adder-graded"])  # the first, and the one with the smallest margins
def test_all_million_problems_are_right(name):
    model, construction = material(name)[0], BY_NAME[name]
    task, options = find_task("addition"), options_of(find_task("addition"), construction.data)
    numbers = np.arange(1000, dtype=np.int64)
    digits = np.stack([numbers // 10**k % 10 for k in range(3)], axis=1).astype(np.uint8)
    for first in range(0, 1000, 20):
        a, b = np.repeat(digits[first : first + 20], 1000, axis=0), np.tile(digits, (20, 1))
        encoded = task.encode(AdditionProblems(a, b, np.full(len(a), 3)), "encoder-decoder", options)
        batch = {key: torch.tensor(value) for key, value in encoded.items()}
        with torch.inference_mode():
            assert all_right(model(**batch).logits, batch["labels"]), first


@EVERY
def test_everything_outside_of_the_circuit_together_does_nothing(name):
    construction, (model, batches) = BY_NAME[name], material(name)
    closed = others(construction, model)
    assert len(construction.decoys) and set(construction.decoys) <= set(closed)
    subject = Subject.of(model)
    for batch in batches:
        changes = subject.changes_for([Intervention(tuple(closed))], len(batch["labels"]), {}, {})
        with torch.inference_mode():
            plain = model(**batch).logits
            with subject.changed(changes):
                changed = model(**batch).logits
        assert (plain - changed).abs().max() < 1e-4
    kinds = [kind for kind in REPLACEMENTS if kind != "source"]
    outcomes = sweep(model, batches, [Intervention(tuple(closed), replacement=kind) for kind in kinds])
    assert outcomes.right.all()


@EVERY
def test_decoys_do_something(name):
    """They attend or compute: a method that looks at maps or activations alone is led astray."""
    construction, (model, batches) = BY_NAME[name], material(name)
    subject = Subject.of(model)
    decoys = [Site(site) for site in construction.decoys]
    outputs = only_call(subject.read(batches[-1], {site.module for site in decoys})[1], "layers that run once")
    maps = model(**batches[-1], output_attentions=True)
    for site in decoys:
        if site.head is None:
            assert outputs[site.module].abs().max() > 0.5
            continue
        kind = {"cross": "cross_attentions", "self": f"{site.stack}_attentions"}[site.kind]
        weights = (getattr(maps, kind, None) or maps.attentions)[site.layer][:, site.head.number]
        sharp = weights[:, 1:].amax() > 0.9  # a causal head sees one key at the first place
        assert sharp or outputs[site.module][:, :, site.head.number].abs().max() > 0.5


@EVERY
def test_every_node_is_needed_and_of_alternatives_as_many_as_is_said(name):
    construction, (model, batches) = BY_NAME[name], material(name)
    spare = {node for group in construction.alternatives for node in group.members}
    needed = [(node,) for node in construction.nodes if node not in spare]
    enough = []
    for group in construction.alternatives:
        left_over = len(group.members) - group.needed
        enough += list(combinations(group.members, left_over))
        needed += list(combinations(group.members, left_over + 1))
    outcomes = sweep(model, batches, [Intervention(each) for each in (*enough, *needed)])
    right = outcomes.right[1:]
    assert right[: len(enough)].all()
    for closed, own in zip(needed, right[len(enough) :], strict=True):
        assert not own.all(), closed


@EVERY
def test_every_edge_is_needed(name):
    """An edge is needed if cutting it (its reader gets zeros in the place of what its writer has added) makes an
    answer wrong. Where alternatives are at one end of it, it is cut together with the same edges of the others.
    """
    construction, (model, batches) = BY_NAME[name], material(name)
    twins = {node: set(group.members) for group in construction.alternatives for node in group.members}
    wrong = dict.fromkeys(construction.edges, False)
    for batch in batches:
        added = contributions(model, batch)
        assert all_right(run_without(model, batch, [], added), batch["labels"])
        for writer, reader in construction.edges:
            cut = [
                (a, b)
                for a, b in construction.edges
                if a in twins.get(writer, {writer}) and b in twins.get(reader, {reader})
            ]
            wrong[writer, reader] |= not all_right(run_without(model, batch, cut, added), batch["labels"])
    assert [edge for edge, is_wrong in wrong.items() if not is_wrong] == []


@EVERY
def test_all_other_edges_together_do_nothing(name):
    """Every edge between any two nodes, decoys included, but those of the circuit."""
    construction, (model, batches) = BY_NAME[name], material(name)
    idle = {str(site) for site in others(construction, model)}
    for batch in batches:
        added = contributions(model, batch)
        truth = set(construction.edges)
        cut = []
        for reader in (*construction.nodes, "logits"):
            for writer in added:
                if writer not in idle and (writer, reader) not in truth and _comes_before(writer, reader, model):
                    cut.append((writer, reader))
        assert torch.allclose(run_without(model, batch, cut, added), run_without(model, batch, [], added), atol=1e-4)


def _comes_before(writer: str, reader: str, model) -> bool:
    order = [str(site) for site in sites(model)]
    same_stack = reader == "logits" or writer.split(".")[0] == reader.split(".")[0]
    if reader == "logits":
        return writer.startswith("decoder") or model.config.architecture == "encoder"
    if not same_stack:
        return ".cross." in reader and writer.startswith("encoder")
    if writer.endswith(".embed"):
        return True
    return Site(writer).module != Site(reader).module and order.index(writer) < order.index(reader)


@EVERY
def test_jobs_and_variables_are_about_the_circuit(name):
    construction = BY_NAME[name]
    assert list(construction.jobs) == list(construction.nodes) and all(construction.jobs.values())
    assert set(construction.variables.values()) <= set(construction.nodes)


def test_there_are_enough_of_each():
    assert len(ADDERS) >= 10 and len(SORTERS) >= 4 and len(REVERSERS) >= 4


def small(parts) -> Wiring:
    return Wiring(
        task="sortedness",
        parts=parts,
        tokens={"encoder": {3: {"x": 1.0}}},
        places={"encoder": ({"p": 1.0},)},
        readout={("y", 1): 1.0},
        heads=1,
    )


def test_edges_follow_what_is_read_and_in_which_order():
    early = NetworkPart("encoder.0.mlp", "", (Unit({"x": 1}, 0, {"y": 1}),))
    late = HeadPart("encoder.1.self.0", "", {("p", "y"): 1.0}, {("x", "y"): 1.0})
    embed, head, network = "encoder.embed", "encoder.1.self.0", "encoder.0.mlp"
    assert small((early, late)).edges == (
        (embed, network), (embed, head), (network, head), (network, "logits"), (head, "logits"),
    )  # fmt: skip


def test_a_feature_that_nobody_writes_is_a_sentence():
    part = NetworkPart("encoder.0.mlp", "", (Unit({"z": 1}, 0, {"y": 1}),))
    head = HeadPart("encoder.0.self.0", "", {("p", "x"): 1.0}, {("x", "y"): 1.0})
    with pytest.raises(ValueError, match=r"encoder.0.mlp reads 'z', which nobody writes; expected one of x, p, y"):
        build(small((head, part)))
