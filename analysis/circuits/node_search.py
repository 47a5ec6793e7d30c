"""The search for nodes that are enough together: everything outside of them is replaced, and every verdict is exact.

It starts from all nodes and drops, again and again, the one that costs least. Each step tries the nodes that were
cheapest when they were last tried; where none of these can go, it tries all others too. So the circuit is the first
set above the target from which no single node can be dropped, and each of its nodes was tried in just that set. Below
the target the search goes on to the empty set, for the curve of what circuits of every size can do.
"""

from collections.abc import Sequence

from ..interventions.plan import Progress
from ..interventions.sites import Site
from .trials import NODES, Trials


SHORTLIST = 6  # nodes that a step tries first

Nodes = tuple[Site, ...]
Cost = tuple[float, float]  # what is lost by the measure and, among equals, by the loss


def search_nodes(trials: Trials, target: float, progress: Progress | None = None) -> tuple[Nodes, list[Nodes]]:
    """The circuit, and the sets of every size that the search came by, from all nodes to none."""
    kept, circuit = trials.nodes, trials.nodes
    path, found = [kept], False
    costs: dict[Site, Cost] = {}
    while kept:
        order = sorted(kept, key=lambda node: costs.get(node, (-1.0, 0.0)))
        first = order if len(costs) < len(trials.nodes) else order[:SHORTLIST]
        values = _tried(trials, kept, first, costs)
        if not found and max(values.values()) < target and len(first) < len(order):
            values |= _tried(trials, kept, order[len(first) :], costs)
        best = min(values, key=lambda node: costs[node])
        if not found and values[best] < target:
            circuit, found = kept, True
        kept = tuple(node for node in kept if node != best)
        path.append(kept)
        if progress is not None:
            progress(len(path) - 1, len(trials.nodes))
    return circuit if found else (), path


def _tried(trials: Trials, kept: Nodes, candidates: Sequence[Site], costs: dict[Site, Cost]) -> dict[Site, float]:
    """Faithfulness without each candidate; what each costs is noted."""
    measured = trials.keep_nodes([[other for other in kept if other != node] for node in candidates])
    values = trials.faithfulness(NODES, measured).tolist()
    for node, value, fine in zip(candidates, values, measured.fine.mean(-1).tolist(), strict=True):
        costs[node] = (-value, -fine)
    return dict(zip(candidates, values, strict=True))
