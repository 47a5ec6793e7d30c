"""Ways to find a circuit, ours and others', with one signature: `METHODS[name](model, data, ...) -> Circuit`.

Each chooses on all the examples that it is given; who compares them holds others back, for `score_circuit`.

    ablation      what costs enough if it is replaced alone; `cutoff` is how much faithfulness (0.01)
    gradient      the largest |gradient . output|, mean over examples (Michel et al. 2019)
    eap           the largest attributions (Syed et al. 2023); of nodes, attribution patching
    eap-ig        the same with integrated gradients (Hanna et al. 2024)
    acdc          from the output downwards, every edge is cut that costs less than `cutoff` (0.01) at that moment
    joint         nodes alone: the one that brings most is added, until almost all is there
    find_circuit  ours: what costs least is dropped, jointly, then edges

Of a ranking (gradient, eap, eap-ig) the smallest number is kept that reaches the faithfulness `cutoff`, found by
bisection. For gradient, eap, eap-ig, joint and find_circuit `cutoff` is that target, as `find_circuit` sets it.

Estimates and ACDC are of the metric or, without one, of minus the loss; ACDC's own default is a KL divergence
(Conmy et al. 2023, arXiv 2304.14997), of which the cross-entropy takes the place here.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedModel

from ..interventions.intervention import Intervention
from ..interventions.measures import Measure, Metric
from ..interventions.plan import Plan
from ..interventions.sites import Site
from .attribution_patching import estimates
from .circuit import Circuit
from .edge_estimates import IG_STEPS, edge_estimates, minus_loss, node_estimates
from .edge_runs import EdgeRuns
from .edge_search import search_edges
from .find_circuit import TARGETS
from .graph import Edge, graph_of
from .node_search import search_nodes
from .selection import grow
from .trials import EDGES, NODES, ChosenData, Data, Trials


ENOUGH_COST = 0.01  # of faithfulness, alone
ACDC_THRESHOLD = 0.01  # nats of the loss of an example, or units of the metric


class Method(Protocol):
    """How a circuit is found."""

    def __call__(
        self,
        model: PreTrainedModel,
        data: Data,
        *,
        metric: Metric | None = None,
        ablation: str = "mean",
        edges: bool = False,
        cutoff: float | None = None,
        seed: int = 0,
    ) -> Circuit: ...


Found = tuple[Sequence[Site], Sequence[Edge] | None]
Search = Callable[[Trials, bool, float | None], Found]  # trials, whether edges are asked for, cutoff


def _method(search: Search) -> Method:
    def method(
        model: PreTrainedModel,
        data: Data,
        *,
        metric: Metric | None = None,
        ablation: str = "mean",
        edges: bool = False,
        cutoff: float | None = None,
        seed: int = 0,
    ) -> Circuit:
        if edges:
            graph_of(model)  # raises where there are none
        trials = Trials(model, ChosenData.of(model, data, ablation), ablation, metric, seed)
        nodes, chosen = search(trials, edges, cutoff)
        return Circuit(tuple(nodes), None if chosen is None else tuple(chosen), ablation)

    return method


def _each(find: Callable[[Trials, str, float | None], list[Any]]) -> Search:
    """Nodes and edges, each for themselves."""

    def search(trials: Trials, edges: bool, cutoff: float | None) -> Found:
        return find(trials, NODES, cutoff), find(trials, EDGES, cutoff) if edges else None

    return search


def _members(trials: Trials, level: str) -> tuple[Any, ...]:
    return trials.nodes if level == NODES else trials.runs.graph.edges


def _target(trials: Trials, cutoff: float | None) -> float:
    return TARGETS[trials.ablation] if cutoff is None else cutoff


# One at a time


def _by_ablation(trials: Trials, level: str, cutoff: float | None) -> list[Any]:
    every = _members(trials, level)
    found = trials.keep(level, [[other for other in every if other != one] for one in every])
    costs = 1 - trials.faithfulness(level, found)
    least = ENOUGH_COST if cutoff is None else cutoff
    return [one for one, cost in zip(every, costs, strict=True) if cost >= least]


# By estimates


def differentiable(trials: Trials) -> Any:
    """What estimates are of: the metric, or minus the loss where right and wrong are counted."""
    return minus_loss(trials.model) if trials.is_share else trials.metric


def attributions(trials: Trials, replacement: str | None = None) -> NDArray[np.float64]:
    """(nodes, N): attribution patching of every node, for any model."""
    kind = replacement or trials.ablation
    wanted = [Intervention((node,), replacement=kind) for node in trials.nodes]
    sources = trials.data.sources if kind == "source" else None
    metric = differentiable(trials)
    plan = Plan(trials.model, trials.data.batches, wanted, Measure(trials.model, metric), sources, seed=trials.seed)
    return estimates(plan, list(trials.nodes), metric)


def scores_by_gradient(trials: Trials, level: str) -> NDArray[np.float64]:
    """Mean over examples of |gradient . output|: zero in the place of the output, without the sign."""
    if level == NODES:
        return np.abs(attributions(trials, "zero")).mean(-1)
    runs = trials.runs if trials.ablation == "zero" else EdgeRuns(trials.model, trials.data.batches, "zero")
    return np.abs(edge_estimates(runs, differentiable(trials))).mean(-1)


def scores_by_eap(trials: Trials, level: str) -> NDArray[np.float64]:
    """The change that is estimated, with its sign."""
    found = attributions(trials) if level == NODES else edge_estimates(trials.runs, differentiable(trials))
    return found.mean(-1)


def scores_by_eap_ig(trials: Trials, level: str) -> NDArray[np.float64]:
    """The same by integrated gradients; of a node, the sum over its edges."""
    found = edge_estimates(trials.runs, differentiable(trials), IG_STEPS)
    return (node_estimates(trials.runs, found) if level == NODES else found).mean(-1)


Scores = Callable[[Trials, str], NDArray[np.float64]]
ESTIMATES: dict[str, Scores] = {
    "gradient": scores_by_gradient,
    "eap": scores_by_eap,
    "eap-ig": scores_by_eap_ig,
}


def _by_ranking(scores: Scores) -> Callable[[Trials, str, float | None], list[Any]]:
    def find(trials: Trials, level: str, cutoff: float | None) -> list[Any]:
        every, sizes = _members(trials, level), np.abs(scores(trials, level))
        order = [every[number] for number in np.argsort(-sizes, kind="stable")]
        target, low, high = _target(trials, cutoff), 0, len(order)
        while low < high:
            middle = (low + high) // 2
            reached = trials.faithfulness(level, trials.keep(level, [order[:middle]]))[0] >= target
            low, high = (low, middle) if reached else (middle + 1, high)
        return [one for one in every if one in set(order[:high])]

    return find


# Jointly


def _by_acdc(trials: Trials, edges: bool, cutoff: float | None) -> Found:
    graph, threshold = trials.runs.graph, ACDC_THRESHOLD if cutoff is None else cutoff
    kept = list(graph.edges)
    value = float(trials.keep_edges([kept]).fine.mean())
    for edge in reversed(graph.edges):
        if edge not in graph.live(kept):  # its reader is cut off already
            continue
        without = [other for other in kept if other != edge]
        reached = float(trials.keep_edges([without]).fine.mean())
        if value - reached < threshold:
            kept, value = without, reached
    found = graph.live(kept)
    ends = {name for edge in found for name in edge}
    return [node for node in trials.nodes if node in ends], found if edges else None


def _by_growing(trials: Trials, edges: bool, cutoff: float | None) -> Found:
    if edges:
        raise ValueError("joint selection finds nodes alone; expected edges=False.")

    def score(sets: Sequence[tuple[Site, ...]]) -> NDArray[np.float64]:
        return trials.faithfulness(NODES, trials.keep_nodes(sets))

    *_, (found, _) = grow(trials.nodes, score, _target(trials, cutoff))
    return [node for node in trials.nodes if node in found], None


def _by_shrinking(trials: Trials, edges: bool, cutoff: float | None) -> Found:
    target = _target(trials, cutoff)
    nodes, _ = search_nodes(trials, target)
    return nodes, search_edges(trials, nodes, target)[0] if edges else None


METHODS: dict[str, Method] = {
    "ablation": _method(_each(_by_ablation)),
    **{name: _method(_each(_by_ranking(scores))) for name, scores in ESTIMATES.items()},
    "acdc": _method(_by_acdc),
    "joint": _method(_by_growing),
    "find_circuit": _method(_by_shrinking),
}
