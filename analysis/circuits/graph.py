"""The graph of a model: who reads what from the residual stream.

A node is a site: a head `decoder.1.cross.0` or a feed-forward sublayer `encoder.0.mlp`. The inputs of the graph are
`encoder.embed` and `decoder.embed`, token and position embedding together, and its output is `logits`. An edge
`(from, to)` is what `from` adds to the residual stream, as read by `to`:

    encoder.0.mlp -> decoder.0.cross.1

A cross-attention head reads the decoder's stream by its query and the encoder's output by its keys and values, so it
has edges from nodes of both stacks. Heads that share keys and values (`num_key_value_heads`) share the weights of them
and not what they read: an edge into one of these heads changes its own keys and values, and the others of its group
go on as they were. The bias of an attention layer's output projection, and those of norms, are constants that belong
to no node; a feed-forward sublayer is a site with its bias, as everywhere.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from transformers import PreTrainedModel

from ...modeling.modeling_headcount import HeadcountPreTrainedModel
from ..interventions.sites import Site, sites


LOGITS = "logits"
EMBED = "embed"

Edge = tuple[str, str]


@dataclass(frozen=True)
class Graph:
    """Every reader, in the order of computation, with all that it reads.

    >>> from headcount import HeadcountConfig, HeadcountForCausalLM
    >>> config = HeadcountConfig(architecture="decoder", num_hidden_layers=1, num_attention_heads=2)
    >>> graph = graph_of(HeadcountForCausalLM(config))
    >>> graph.parents["decoder.0.mlp"]
    ('decoder.embed', 'decoder.0.self.0', 'decoder.0.self.1')
    >>> len(graph.edges), edge_name(graph.edges[-1])
    (9, 'decoder.0.mlp -> logits')
    """

    parents: dict[str, tuple[str, ...]]

    @property
    def nodes(self) -> tuple[Site, ...]:
        return tuple(Site(name) for name in self.parents if name != LOGITS)

    @property
    def writers(self) -> tuple[str, ...]:
        """The inputs and the nodes: whoever adds to a stream."""
        return tuple(dict.fromkeys(parent for read in self.parents.values() for parent in read))

    @property
    def edges(self) -> tuple[Edge, ...]:
        return tuple((parent, reader) for reader, read in self.parents.items() for parent in read)

    def between(self, nodes: Iterable[str]) -> tuple[Edge, ...]:
        """The edges among these nodes, the inputs and the output: the other nodes then put out their replacements."""
        kept = set(nodes)
        there = {name for name in self.parents if name in kept} | {LOGITS}
        inputs = {parent for parent, _ in self.edges if is_embed(parent)}
        return tuple(edge for edge in self.edges if edge[0] in kept | inputs and edge[1] in there)

    def live(self, edges: Iterable[Edge]) -> tuple[Edge, ...]:
        """Those of the edges from which a way leads to the output; the others have no effect."""
        given = set(edges)
        reached, found = {LOGITS}, []
        for edge in reversed(self.edges):  # readers come after all that they read
            if edge in given and edge[1] in reached:
                reached.add(edge[0])
                found.append(edge)
        return tuple(reversed(found))


def edge_name(edge: Edge) -> str:
    return " -> ".join(edge)


def is_embed(name: str) -> bool:
    return name.endswith(f".{EMBED}")


def edge_obstacle(model: PreTrainedModel) -> str | None:
    """Why a model has no graph of edges; None if it has."""
    if not isinstance(model, HeadcountPreTrainedModel) or not hasattr(model, "read_out"):
        return f"{type(model).__name__} is not a model of headcount's own with an output layer"
    if model.config.norm_position != "pre":
        return f"with norm_position={model.config.norm_position!r} the residual stream is not a sum"
    return None


def graph_of(model: PreTrainedModel) -> Graph:
    """The graph of one of headcount's own models with norm_position="pre"; an error for any other."""
    reason = edge_obstacle(model)
    if reason is not None:
        raise ValueError(
            f"edges cannot be told apart: {reason}; expected one of headcount's own, with norm_position='pre'."
        )
    streams: dict[str, list[str]] = {}  # stack -> all that has been added to its stream
    parents: dict[str, tuple[str, ...]] = {}
    written: list[str] = []  # by heads of the layer that is being read; they do not see one another
    module = ""
    for site in (site for site in sites(model) if site.kind != "residual"):
        stream = streams.setdefault(site.stack, [f"{site.stack}.{EMBED}"])
        if site.module != module:
            streams.get(module.split(".")[0], []).extend(written)
            module, written = site.module, []
        memory = streams["encoder"] if site.kind == "cross" else []
        parents[site] = (*memory, *stream)
        written.append(site)
    streams[module.split(".")[0]].extend(written)
    parents[LOGITS] = tuple(streams[module.split(".")[0]])
    return Graph(parents)
