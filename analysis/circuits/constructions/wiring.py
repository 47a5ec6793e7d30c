"""Models set by hand: a wiring says which part reads and writes which feature; weights and circuit follow from it.

The residual stream of a stack is a sum of named features, one dimension each, and no norm stands between the parts, so
that a part reads exactly what was written. There is an edge of the circuit wherever a part reads a feature that an
earlier part, or an embedding, writes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


ONE = "one"  # read like a feature, it is the constant 1: the bias of a projection, which belongs to no node
LOGITS = "logits"
KINDS = ("self", "cross", "mlp")  # in the order of computation within a layer

Features = Mapping[str, float]
Pairs = Mapping[tuple[str, str], float]
Edge = tuple[str, str]


@dataclass(frozen=True)
class HeadPart:
    """A head: `looks` are scores by (feature of the query, feature of the key), `moves` weights by (feature read at
    the key, feature written at the query). An idle part is a decoy: it works, but nothing hangs on it.
    """

    site: str
    job: str
    looks: Pairs
    moves: Pairs
    idle: bool = False

    @property
    def writes(self) -> set[str]:
        return {written for _, written in self.moves}

    def reads(self, stack: str) -> set[str]:
        """The features that it reads from the stream of a stack; a cross head reads keys and values in the encoder."""
        own = self.site.split(".")[0]
        memory = "encoder" if ".cross." in self.site else own
        asked = {query for query, _ in self.looks} if stack == own else set()
        seen = {key for _, key in self.looks} | {read for read, _ in self.moves} if stack == memory else set()
        return (asked | seen) - {ONE}


@dataclass(frozen=True)
class Unit:
    """One neuron: the relu of a weighted sum and a bias, written with weights."""

    reads: Features
    bias: float
    writes: Features


@dataclass(frozen=True)
class NetworkPart:
    """A feed-forward sublayer."""

    site: str
    job: str
    units: tuple[Unit, ...]
    idle: bool = False

    @property
    def writes(self) -> set[str]:
        return {name for unit in self.units for name in unit.writes}

    def reads(self, stack: str) -> set[str]:
        return {name for unit in self.units for name in unit.reads} if self.site.startswith(stack) else set()


Part = HeadPart | NetworkPart


@dataclass(frozen=True)
class Wiring:
    """A whole model.

    - `tokens`, `places`: what the embeddings of each stack write, by token id and by position.
    - `readout`: weights by (feature of the last stream, token or label); `thresholds`: the biases of a classifier.
    - `heads`: of every attention layer; those without a part are all zeros. `model`: further fields of the config.
    """

    task: str
    parts: tuple[Part, ...]
    tokens: Mapping[str, Mapping[int, Features]]
    places: Mapping[str, tuple[Features, ...]]
    readout: Mapping[tuple[str, int], float]
    heads: int
    data: Mapping[str, Any] = field(default_factory=dict)
    model: Mapping[str, Any] = field(default_factory=dict)
    thresholds: Mapping[int, float] = field(default_factory=dict)

    @property
    def stacks(self) -> tuple[str, ...]:
        return tuple(self.tokens)

    def features(self, stack: str) -> dict[str, int]:
        """The features of a stream in the order in which they are first written, with their dimensions."""
        written = [name for table in self._tables(stack) for name in table]
        written += [name for part in self.parts if part.site.startswith(stack) for name in sorted(part.writes)]
        return {name: number for number, name in enumerate(dict.fromkeys(written))}

    def layers(self, stack: str) -> int:
        return 1 + max((rank(part.site)[0] for part in self.parts if part.site.startswith(stack)), default=0)

    @property
    def true_parts(self) -> list[Part]:
        return [part for part in self.parts if not part.idle]

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(part.site for part in self.true_parts)

    @property
    def edges(self) -> tuple[Edge, ...]:
        """(writer, reader) wherever a feature joins the two, from the embeddings to the logits."""
        found: list[Edge] = []
        for part in self.true_parts:
            for stack in self.stacks:
                found += [(writer, part.site) for writer in self._writers(stack, part.reads(stack), part.site)]
        last = {feature for feature, _ in self.readout}
        found += [(writer, LOGITS) for writer in self._writers(self.stacks[-1], last, LOGITS)]
        return tuple(dict.fromkeys(found))

    def _tables(self, stack: str) -> tuple[Features, ...]:
        return (*self.tokens[stack].values(), *self.places[stack])

    def _writers(self, stack: str, features: set[str], reader: str) -> list[str]:
        """The embedding and the parts of a stack that write any of these features before the reader reads them."""
        found = [f"{stack}.embed"] if any(features & set(table) for table in self._tables(stack)) else []
        for part in self.true_parts:
            before = not reader.startswith(stack) or rank(part.site) < rank(reader)
            if part.site.startswith(stack) and before and features & part.writes:
                found.append(part.site)
        return found


def rank(site: str) -> tuple[int, int]:
    """When a site computes within its stack: layer, then kind; the heads of one attention layer are simultaneous.

    >>> rank("encoder.1.self.0") < rank("encoder.1.mlp")
    True
    """
    _, layer, kind, *_ = site.split(".")
    return int(layer), KINDS.index(kind)
