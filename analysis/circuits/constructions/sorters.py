"""Classifiers of sortedness, exact on sequences of 3 to 16 values: some head finds a neighbour, some network a fall.

Places are numbers here: a query at i looks at the key k with k = i - 1 where -(k - (i - 1))^2 is largest, of which
only 2 k (i - 1) - k^2 depends on the key: two products.
"""

from collections.abc import Iterable, Mapping

from ....data_builders.sortedness.task import VOCABULARY
from .construction import Alternatives, Construction, hand_set
from .decoys import diffuse, excess_network, silent, unread
from .wiring import ONE, Features, HeadPart, NetworkPart, Pairs, Part, Unit, Wiring


SHARP = 40.0
LONGEST = 16


def sorter(
    parts: Iterable[Part],
    pooling: str,
    heads: int = 2,
    collects: str = "fall",
    threshold: float = 0.5,
    model: Mapping[str, str] | None = None,
) -> Wiring:
    values = {VOCABULARY.id_of(symbol): {"value": float(symbol)} for symbol in VOCABULARY.symbols}
    places = tuple({"place": float(i), "square": float(i * i)} for i in range(LONGEST))
    return Wiring(
        task="sortedness",
        parts=tuple(parts),
        tokens={"encoder": values},
        places={"encoder": places},
        readout={(collects, 0): 10 / threshold},
        thresholds={1: 10.0},
        heads=heads,
        data={"min_length": 8, "max_length": LONGEST, "test_lengths": [8, 12, LONGEST], "test": 200},
        model={"pooling_type": pooling, **(model or {})},
    )


def neighbour(shift: int) -> Pairs:
    """Scores that are best where key = query + shift, by SHARP at least."""
    return {("place", "place"): 2 * SHARP, (ONE, "place"): 2 * SHARP * shift, (ONE, "square"): -SHARP}


def neighbour_head(site: str, shift: int, written: str) -> HeadPart:
    """At an end of the sequence, where there is no such neighbour, it looks at its own token."""
    which = "before" if shift < 0 else "after"
    return HeadPart(site, f"brings the value of the token {which}", neighbour(shift), {("value", written): 1})


def fall_units(larger: str, smaller: str, written: str = "fall") -> tuple[Unit, Unit]:
    """1 where one whole number is larger than the other, else 0."""
    reads: Features = {larger: 1, smaller: -1}
    return Unit(reads, 0, {written: 1}), Unit(reads, -1, {written: -1})


PREVIOUS, NEXT = neighbour_head("encoder.0.self.0", -1, "previous"), neighbour_head("encoder.0.self.0", 1, "next")
FOUND = NetworkPart("encoder.0.mlp", "a fall where the value before is larger", fall_units("previous", "value"))


def previous() -> Construction:
    parts = (
        PREVIOUS,
        FOUND,
        unread(neighbour_head("encoder.0.self.1", 1, "other")),
        excess_network("encoder.1.mlp", "value", 50),
    )
    says = "every token compares itself with the one before it; max pooling collects falls"
    return hand_set("sorter", says, sorter(parts, "max"), {"fall": "encoder.0.mlp"})


def following() -> Construction:
    network = NetworkPart("encoder.0.mlp", "a fall where the value after is smaller", fall_units("value", "next"))
    parts = (NEXT, network, silent(NEXT, "encoder.0.self.1"), unread(neighbour_head("encoder.1.self.0", -1, "other")))
    says = "every token compares itself with the one after it; max pooling collects falls"
    return hand_set("sorter-next", says, sorter(parts, "max"), {"fall": "encoder.0.mlp"})


def by_mean() -> Construction:
    parts = (PREVIOUS, FOUND, diffuse("encoder.0.self.1", "value"), unread(PREVIOUS, "encoder.0.self.2"))
    says = "as `sorter`, with mean pooling and a threshold below one fall in sixteen"
    wiring = sorter(parts, "mean", heads=3, threshold=0.5 / LONGEST)
    return hand_set("sorter-mean", says, wiring, {"fall": "encoder.0.mlp"})


def collected() -> Construction:
    job = "looks at falls wherever they are, and brings one to the first token"
    collector = HeadPart("encoder.1.self.1", job, {(ONE, "fall"): SHARP}, {("fall", "any fall"): 1})
    parts = (
        PREVIOUS,
        FOUND,
        collector,
        silent(collector, "encoder.1.self.0"),
        unread(neighbour_head("encoder.0.self.1", 2, "other")),
    )
    says = "as `sorter`, with a second head that collects falls at the first token, the only one that is read"
    variables = {"fall": "encoder.0.mlp", "any fall": "encoder.1.self.1"}
    return hand_set("sorter-collector", says, sorter(parts, "first", collects="any fall"), variables)


def both_sides() -> Construction:
    # A head that is gone brings zeros, which after any value would look like a fall: this one says that it is there.
    after = neighbour_head("encoder.0.self.1", 1, "next")
    after = HeadPart(after.site, after.job, after.looks, {**after.moves, (ONE, "next is there"): 1})
    guard = {"value": 1, "next": -1, "next is there": 100}
    units = (
        *fall_units("previous", "value"),
        Unit(guard, -100, {"fall": 1}),
        Unit(guard, -101, {"fall": -1}),
    )
    network = NetworkPart("encoder.0.mlp", "a fall where a neighbour on either side is out of order", units)
    parts = (
        PREVIOUS,
        after,
        network,
        unread(neighbour_head("encoder.0.self.2", 2, "other")),
        excess_network("encoder.1.mlp", "value", 50),
    )
    says = "tokens compare themselves with both neighbours, so that every fall is seen twice; either head suffices"
    group = Alternatives((PREVIOUS.site, after.site))
    return hand_set("sorter-redundant", says, sorter(parts, "max", heads=3), {"fall": "encoder.0.mlp"}, (group,))


def running_maximum() -> Construction:
    job = "looks at the largest value so far and brings it"
    largest = HeadPart("encoder.0.self.1", job, {(ONE, "value"): SHARP}, {("value", "largest"): 1})
    network = NetworkPart("encoder.0.mlp", "a fall where a value before is larger", fall_units("largest", "value"))
    parts = (
        largest,
        network,
        unread(neighbour_head("encoder.0.self.0", -1, "other")),
        silent(largest, "encoder.1.self.0"),
    )
    says = "causal attention finds the largest value so far, without any positions; a smaller one after it is a fall"
    wiring = sorter(parts, "max", model={"attention_direction": "causal"})
    return hand_set("sorter-maximum", says, wiring, {"largest so far": "encoder.0.self.1", "fall": "encoder.0.mlp"})


SORTERS = tuple(make() for make in (previous, following, by_mean, collected, both_sides, running_maximum))
