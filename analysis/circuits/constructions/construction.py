"""What a construction is: a model, and the truth about its circuit."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any

from ....modeling.modeling_headcount import HeadcountPreTrainedModel
from .weights import build
from .wiring import Edge, Wiring


@dataclass(frozen=True)
class Alternatives:
    """Nodes that do the same work, of which any `needed` suffice: one of a redundant pair, two of a majority of three.

    So under zero ablation; a member that puts out something wrong, as resampling makes it, may outvote the others.
    """

    members: tuple[str, ...]
    needed: int = 1


@dataclass(frozen=True)
class Construction:
    """A model with a known circuit.

    - `says`: what it is, in one sentence; `jobs`: what every true node does, `decoys`: what the others that do
      anything do.
    - `data`: options of the task's corpus, as in a recipe.
    - `nodes`: the circuit. Closing all others together changes nothing; closing one of these, or as many
      `alternatives` as leave too few, makes an answer wrong.
    - `edges`: None where training decided them.
    - `variables`: where each quantity of the algorithm sits.
    """

    name: str
    says: str
    task: str
    data: Mapping[str, Any]
    build: Callable[[], HeadcountPreTrainedModel]
    nodes: tuple[str, ...]
    edges: tuple[Edge, ...] | None
    jobs: Mapping[str, str]
    variables: Mapping[str, str]
    decoys: Mapping[str, str] = field(default_factory=dict)
    alternatives: tuple[Alternatives, ...] = ()

    def versions(self) -> Iterator[tuple[frozenset[str], frozenset[Edge] | None]]:
        """The smallest sets of nodes that do the whole work, each with the edges among them."""
        spare = {node for group in self.alternatives for node in group.members}
        fixed = frozenset(self.nodes) - spare
        for choice in product(*(combinations(group.members, group.needed) for group in self.alternatives)):
            nodes = fixed.union(*choice)
            gone = spare - nodes
            edges = None if self.edges is None else frozenset(edge for edge in self.edges if not gone & set(edge))
            yield nodes, edges


def hand_set(
    name: str,
    says: str,
    wiring: Wiring,
    variables: Mapping[str, str],
    alternatives: tuple[Alternatives, ...] = (),
) -> Construction:
    """The construction of a wiring: nodes, edges and jobs are read off it."""
    return Construction(
        name=name,
        says=says,
        task=wiring.task,
        data=wiring.data,
        build=lambda: build(wiring),
        nodes=wiring.nodes,
        edges=wiring.edges,
        jobs={part.site: part.job for part in wiring.true_parts},
        variables=variables,
        decoys={part.site: part.job for part in wiring.parts if part.idle},
        alternatives=alternatives,
    )
