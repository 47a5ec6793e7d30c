"""The parts of which adders are wired: heads that bring digits together, columns, carries, answer digits.

A problem `374+814` has three columns, units 0. In the encoder the token of a's digit is the home of its column, and
<eos> that of the column of thousands, which has no digits. The decoder's place `y2` writes the digit of column 2, from
`y3` down to `y0` or, units first, from `y0` up; at `stop` it writes <eos>.

Attention is sharp: the best key has a score of at least SHARP above any other, so that others get exp(-SHARP) each.
Queries that have nothing to look for rest on the plus sign, where every feature that heads move is zero.
"""

from collections.abc import Iterable, Mapping

from ....data_builders.addition.task import DIGIT_IDS
from ....data_builders.vocabulary import EOS
from .wiring import ONE, Features, HeadPart, NetworkPart, Pairs, Part, Unit, Wiring


SHARP = 40.0
DIGITS = 3
COLUMNS = range(DIGITS)
HOMES = {0: "a0", 1: "a1", 2: "a2", 3: "end"}  # column -> feature of its place in the encoder
PARTNERS = {0: "b0", 1: "b1", 2: "b2"}
WRITERS = {column: f"y{column}" for column in range(DIGITS + 1)}  # column -> feature of its place in the decoder
REST = "plus"


def adder(parts: Iterable[Part], heads: int, units_first: bool = False) -> Wiring:
    """The wiring of an adder: what embeddings write and logits read is the same in all of them."""
    digits: dict[int, Features] = {token: {"digit": float(value)} for value, token in enumerate(DIGIT_IDS)}
    written: dict[int, Features] = {token: {"last": float(value)} for value, token in enumerate(DIGIT_IDS)}
    order = sorted(WRITERS, reverse=not units_first)
    places = [*(f"a{k}" for k in reversed(COLUMNS)), REST, *(f"b{k}" for k in reversed(COLUMNS)), "end"]
    return Wiring(
        task="addition",
        parts=tuple(parts),
        tokens={"encoder": digits, "decoder": written},
        places={
            "encoder": tuple({name: 1.0} for name in places),
            "decoder": tuple({name: 1.0} for name in (*(WRITERS[k] for k in order), "stop")),
        },
        readout={**{(f"is {d}", DIGIT_IDS[d]): 10.0 for d in range(10)}, ("stop", EOS): 30.0},
        heads=heads,
        data={"digits": DIGITS, "answer_order": "reversed" if units_first else "plain"},
    )


def look(targets: Mapping[str, Iterable[str]]) -> Pairs:
    """Each query feature looks at its keys, equally; every other query rests."""
    found: dict[tuple[str, str], float] = {(ONE, REST): SHARP}
    return found | {(query, key): 2 * SHARP for query, keys in targets.items() for key in keys}


def pair_head(site: str, columns: Iterable[int] = COLUMNS) -> HeadPart:
    looks = look({HOMES[k]: [PARTNERS[k]] for k in columns})
    return HeadPart(
        site, "brings the digit of b to the token of a in the same column", looks, {("digit", "partner"): 1}
    )


def column_network(site: str, writes: tuple[str, ...] = ("sum", "propagate", "generate")) -> NetworkPart:
    """Sums x of two digits up to 18: sum x; propagate where x = 9; generate where x > 9; alive where x > 8."""
    kinks: dict[int, Features] = {
        0: {"sum": 1},
        8: {"propagate": 1, "alive": 1},
        9: {"propagate": -2, "alive": -1, "generate": 1},
        10: {"propagate": 1, "generate": -1},
    }
    units = []
    for kink, all_writes in kinks.items():
        chosen = {name: weight for name, weight in all_writes.items() if name in writes}
        if chosen:
            units.append(Unit({"digit": 1, "partner": 1}, -kink, chosen))
    return NetworkPart(site, f"makes of the two digits of a column: {', '.join(writes)}", tuple(units))


def carry_head(
    site: str,
    queries: Mapping[int, str] = HOMES,
    columns: Iterable[int] = (1, 2, 3),
    moves: tuple[str, str] = ("generate", "carry"),
) -> HeadPart:
    """Of the lower columns, the nearest one that does not propagate has the best score; if all do, the plus sign."""
    looks = {(ONE, REST): 2 * SHARP, (ONE, "propagate"): -4 * SHARP}
    looks |= {(queries[j], HOMES[k]): (3 + k) * SHARP for j in columns for k in range(j)}
    job = f"looks at the nearest lower column that does not propagate and brings its {moves[0]} flag: the carry in"
    return HeadPart(site, job, looks, {moves: 1})


def reading_head(
    site: str,
    moves: Mapping[str, str],
    columns: Iterable[int] = WRITERS,
    below: int = 0,
    homes: Mapping[int, str] = HOMES,
) -> HeadPart:
    """A cross head: for the digit of column j, looks at column j - `below`."""
    looks = look({WRITERS[j]: [homes[j - below]] for j in columns if j - below in homes})
    which = "its column" if not below else "the column to the right"
    job = f"brings from {which}, for each answer digit: {', '.join(moves)}"
    return HeadPart(site, job, looks, dict.fromkeys(moves.items(), 1))


def digit_network(site: str, reads: Iterable[str] = ("sum", "carry")) -> NetworkPart:
    """x from 0 to 19 -> the flag `is d` with d = x mod 10: a triangle of three relus around each x."""
    weights = dict.fromkeys(reads, 1.0)
    units = []
    for kink in range(-1, 21):
        writes: dict[str, float] = {}
        for total, weight in ((kink + 1, 1.0), (kink, -2.0), (kink - 1, 1.0)):
            if 0 <= total <= 19:
                name = f"is {total % 10}"
                writes[name] = writes.get(name, 0.0) + weight
        units.append(Unit(weights, -kink, writes))
    return NetworkPart(site, "makes the digit (sum + carry) mod 10", tuple(units))


def step(reads: Features, at: float, writes: str) -> tuple[Unit, Unit]:
    """1 where the weighted sum of whole numbers is at least `at`, else 0."""
    return Unit(reads, 1 - at, {writes: 1}), Unit(reads, -at, {writes: -1})
