"""A circuit: the nodes of a model that are enough for what it does, and which of them read which."""

from dataclasses import dataclass, field

from ...records.rows import Rows
from ..interventions.sites import Site
from .graph import Edge, edge_name


@dataclass(frozen=True)
class Circuit:
    """Nodes and, where they were searched for, edges; everything outside of it puts out its replacement.

    >>> circuit = Circuit(("decoder.0.self.1",), (("decoder.embed", "decoder.0.self.1"),), "mean")
    >>> circuit.nodes[0].layer, circuit.edge_names
    (0, ['decoder.embed -> decoder.0.self.1'])
    """

    nodes: tuple[Site, ...]  # heads and feed-forward sublayers
    edges: tuple[Edge, ...] | None  # (from, to), by the names of the model's graph; None: of nodes alone
    ablation: str  # what took the place of everything else when it was found
    rows: Rows = field(default_factory=list, repr=False)  # of study "circuit"

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", tuple(Site(node) for node in self.nodes))
        if self.edges is not None:
            object.__setattr__(self, "edges", tuple((sender, reader) for sender, reader in self.edges))

    @property
    def edge_names(self) -> list[str] | None:
        return None if self.edges is None else [edge_name(edge) for edge in self.edges]
