"""The search for edges among the nodes of a circuit: which of them can be cut together, exactly.

From the output downwards, edges into one reader after the other are cut if what is left stays above the target as a
whole: those with the smallest estimates (EAP-IG) first, several at once where that holds, else in halves. A second
pass tries every edge that is left by itself. Estimates give the order alone.
"""

from collections.abc import Collection, Sequence

import numpy as np

from ..interventions.plan import Progress
from .edge_estimates import IG_STEPS, edge_estimates
from .graph import Edge
from .trials import EDGES, Measured, Trials


Edges = tuple[Edge, ...]


def search_edges(
    trials: Trials, nodes: Collection[str], target: float, progress: Progress | None = None
) -> tuple[Edges, Edges]:
    """The edges of the circuit, and all edges of the model, those that matter least first."""
    graph = trials.runs.graph
    sizes = np.abs(edge_estimates(trials.runs, steps=IG_STEPS).mean(-1))
    size = dict(zip(graph.edges, sizes.tolist(), strict=True))
    search = _Search(trials, target, graph.live(graph.between(nodes)))
    search.dropped = sorted(set(graph.edges) - set(search.kept), key=lambda edge: size[edge])
    readers = list(reversed(graph.parents))
    for number, reader in enumerate(readers):
        search.drop_together(sorted(search.into(reader), key=lambda edge: size[edge]))
        if progress is not None:
            progress(number + 1, 2 * len(readers))
    for number, reader in enumerate(readers):
        search.drop_one_by_one(search.into(reader))
        if progress is not None:
            progress(len(readers) + number + 1, 2 * len(readers))
    live = graph.live(search.kept)
    search.dropped += [edge for edge in search.kept if edge not in set(live)]
    return live, (*search.dropped, *search.by_cost(live))


class _Search:
    """The edges that are kept, and those that were dropped, in that order."""

    def __init__(self, trials: Trials, target: float, kept: Edges):
        self.trials, self.target, self.kept = trials, target, kept
        self.dropped: list[Edge] = []

    def into(self, reader: str) -> list[Edge]:
        return [edge for edge in self.kept if edge[1] == reader]

    def drop_together(self, edges: Sequence[Edge]) -> None:
        """As many of these as can go, those that come first before the others."""
        if not edges:
            return
        if self._values([edges])[0] >= self.target:
            self._drop(edges)
        elif len(edges) > 1:
            half = (len(edges) + 1) // 2
            self.drop_together(edges[:half])
            self.drop_together(edges[half:])

    def drop_one_by_one(self, edges: Sequence[Edge]) -> None:
        """Tries each by itself; of those that can go, the cheapest goes, and the others are tried again."""
        while edges:
            values = self._values([[edge] for edge in edges])
            best = int(np.argmax(values))
            if values[best] < self.target:
                return
            self._drop([edges[best]])
            edges = [
                edge for edge, value in zip(edges, values, strict=True) if value >= self.target and edge != edges[best]
            ]

    def by_cost(self, edges: Edges) -> list[Edge]:
        """In the order of what it costs to drop each alone, the cheapest first."""
        if not edges:
            return []
        measured = self._without([[edge] for edge in edges])
        values = self.trials.faithfulness(EDGES, measured).tolist()
        fine = measured.fine.mean(-1).tolist()
        return [edge for _, _, edge in sorted(zip([-v for v in values], [-f for f in fine], edges, strict=True))]

    def _values(self, candidates: Sequence[Sequence[Edge]]) -> list[float]:
        return self.trials.faithfulness(EDGES, self._without(candidates)).tolist()

    def _without(self, candidates: Sequence[Sequence[Edge]]) -> Measured:
        return self.trials.keep_edges([[e for e in self.kept if e not in set(some)] for some in candidates])

    def _drop(self, edges: Sequence[Edge]) -> None:
        self.kept = tuple(edge for edge in self.kept if edge not in set(edges))
        self.dropped += edges
