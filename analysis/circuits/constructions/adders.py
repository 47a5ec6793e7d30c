"""Adders of two numbers of three digits, each by another mechanism, all of them exact on every problem."""

import math

from .adder_parts import (
    COLUMNS,
    HOMES,
    PARTNERS,
    SHARP,
    WRITERS,
    adder,
    carry_head,
    column_network,
    digit_network,
    look,
    pair_head,
    reading_head,
    step,
)
from .construction import Alternatives, Construction, hand_set
from .decoys import cancelling, cancelling_networks, diffuse, parity_network, silent, unread
from .wiring import ONE, HeadPart, NetworkPart, Part, Unit


BOTH = {"sum": "sum", "carry": "carry"}
LOOKAHEAD = {
    "column sum": "encoder.0.mlp",
    "propagate": "encoder.0.mlp",
    "generate": "encoder.0.mlp",
    "carry": "encoder.1.self.0",
    "digit": "decoder.0.mlp",
}
PAIR, COLUMN = pair_head("encoder.0.self.0"), column_network("encoder.0.mlp")
CARRY, READER = carry_head("encoder.1.self.0"), reading_head("decoder.0.cross.0", BOTH)
DIGIT = digit_network("decoder.0.mlp")
BASE = (PAIR, COLUMN, CARRY, READER, DIGIT)


def plain() -> Construction:
    parts: tuple[Part, ...] = (
        *BASE,
        silent(PAIR, "encoder.0.self.1"),
        unread(READER, "decoder.0.cross.1"),
        parity_network("encoder.1.mlp", {"sum": 1}),
    )
    says = "the encoder adds columns and looks ahead for carries; one cross head reads both; the decoder writes"
    return hand_set("adder", says, adder(parts, heads=2), LOOKAHEAD)


def units_first() -> Construction:
    parts: tuple[Part, ...] = (
        *BASE,
        unread(PAIR, "encoder.0.self.1"),
        silent(CARRY, "encoder.1.self.1"),
        diffuse("decoder.0.self.0", "last"),
    )
    says = "as `adder`, with the answer written units first"
    return hand_set("adder-units-first", says, adder(parts, heads=2, units_first=True), LOOKAHEAD)


def cross_carry() -> Construction:
    reader = reading_head("decoder.0.cross.0", {"sum": "sum"})
    carry = carry_head("decoder.0.cross.2", queries=WRITERS)
    parts: tuple[Part, ...] = (
        PAIR,
        COLUMN,
        reader,
        carry,
        DIGIT,
        silent(carry, "decoder.0.cross.1"),
        unread(PAIR, "encoder.0.self.2"),
        diffuse("encoder.0.self.1", "digit"),
    )
    says = "the encoder adds columns only; a cross head looks for the carry of each answer digit by itself"
    variables = {**LOOKAHEAD, "carry": "decoder.0.cross.2"}
    return hand_set("adder-cross-carry", says, adder(parts, heads=3), variables)


def own_digits() -> Construction:
    reader = reading_head("decoder.0.cross.0", {"sum": "sum"})
    right = reading_head("decoder.0.cross.1", {"sum": "right sum"}, below=1)
    job = "compares the sum to the right with the digit that was written for it: nine more or over is a carry"
    carry = NetworkPart("decoder.0.mlp", job, step({"right sum": 1, "last": -1}, 9, "carry"))
    parts: tuple[Part, ...] = (
        PAIR,
        column_network("encoder.0.mlp", ("sum",)),
        reader,
        right,
        carry,
        digit_network("decoder.1.mlp"),
        silent(PAIR, "encoder.0.self.1"),
        unread(reader, "decoder.1.cross.0"),
        diffuse("decoder.1.self.1", "last"),
    )
    says = "units first; the carry comes from the digit that was written last, and the sum of its column"
    variables = {"column sum": "encoder.0.mlp", "carry": "decoder.0.mlp", "digit": "decoder.1.mlp"}
    return hand_set("adder-own-digits", says, adder(parts, heads=2, units_first=True), variables)


def self_attention() -> Construction:
    reader = reading_head("decoder.0.cross.0", {"sum": "sum"})
    looks = {(WRITERS[j], WRITERS[j - 1]): SHARP for j in range(1, len(WRITERS))}
    right = HeadPart(
        "decoder.1.self.1", "brings the sum that the place before has read", looks, {("sum", "right sum"): 1}
    )
    job = "compares the sum to the right with the digit that was written for it; the units have no carry"
    carry = NetworkPart("decoder.1.mlp", job, step({"right sum": 1, "last": -1, WRITERS[0]: -100}, 9, "carry"))
    parts: tuple[Part, ...] = (
        PAIR,
        column_network("encoder.0.mlp", ("sum",)),
        reader,
        right,
        carry,
        digit_network("decoder.2.mlp"),
        silent(right, "decoder.1.self.0"),
        unread(reader, "decoder.0.cross.1"),
        parity_network("decoder.0.mlp", {"sum": 1}),
    )
    says = "units first; decoder self-attention brings the last column's sum, whose digit tells the carry"
    variables = {"column sum": "encoder.0.mlp", "carry": "decoder.1.mlp", "digit": "decoder.2.mlp"}
    return hand_set("adder-self-attention", says, adder(parts, heads=2, units_first=True), variables)


def two_readers() -> Construction:
    first = reading_head("decoder.0.cross.0", {"digit": "first"}, columns=COLUMNS)
    second = reading_head("decoder.0.cross.1", {"digit": "second"}, columns=COLUMNS, homes=PARTNERS)
    carried = reading_head("decoder.0.cross.3", {"carry": "carry"})
    parts: tuple[Part, ...] = (
        PAIR,
        column_network("encoder.0.mlp", ("propagate", "generate")),
        CARRY,
        first,
        second,
        carried,
        digit_network("decoder.0.mlp", ("first", "second", "carry")),
        unread(second, "decoder.0.cross.2"),
        silent(CARRY, "encoder.1.self.3"),
        diffuse("encoder.0.self.2", "digit"),
    )
    says = "three cross heads read the digit of a, the digit of b and the carry; the decoder adds all three"
    variables = {
        "first digit": "decoder.0.cross.0",
        "second digit": "decoder.0.cross.1",
        "carry": "encoder.1.self.0",
        "digit": "decoder.0.mlp",
    }
    return hand_set("adder-two-readers", says, adder(parts, heads=4), variables)


def split_carry() -> Construction:
    low = carry_head("encoder.1.self.0", columns=(1, 2))
    high = carry_head("encoder.1.self.1", columns=(3,))
    parts: tuple[Part, ...] = (
        PAIR,
        COLUMN,
        low,
        high,
        READER,
        DIGIT,
        silent(low, "encoder.1.self.2"),
        unread(PAIR, "encoder.0.self.2"),
    )
    says = "as `adder`, with the carry split: one head for tens and hundreds, one for the thousands"
    variables = {**LOOKAHEAD, "carry": "encoder.1.self.0", "carry into the thousands": "encoder.1.self.1"}
    return hand_set("adder-split-carry", says, adder(parts, heads=3), variables)


def copies(name: str, says: str, count: int, job: str, units: tuple[Unit, ...], needed: int) -> Construction:
    """Several heads find the carry; a network makes one of them."""
    carries = [carry_head(f"encoder.1.self.{i}", moves=("generate", f"carry {i}")) for i in range(count)]
    parts: tuple[Part, ...] = (
        PAIR,
        COLUMN,
        *carries,
        NetworkPart("encoder.1.mlp", job, units),
        READER,
        DIGIT,
        silent(PAIR, "encoder.0.self.1"),
        unread(READER, "decoder.0.cross.1"),
    )
    group = Alternatives(tuple(part.site for part in carries), needed)
    variables = {**LOOKAHEAD, "carry": "encoder.1.mlp"}
    return hand_set(name, says, adder(parts, heads=max(count, 2)), variables, (group,))


def redundant() -> Construction:
    says = "two heads find the same carry; a saturating network takes it from either"
    units = step({"carry 0": 1, "carry 1": 1}, 1, "carry")
    return copies("adder-redundant", says, 2, "a carry if either head brings one", units, needed=1)


def majority() -> Construction:
    says = "three heads find the same carry; a network takes what two of them say"
    units = step({f"carry {i}": 1 for i in range(3)}, 2, "carry")
    return copies("adder-majority", says, 3, "a carry if two of three heads bring one", units, needed=2)


def backup() -> Construction:
    first = carry_head("encoder.1.self.0", moves=("generate", "carry 0"))
    first = HeadPart(
        first.site, f"{first.job}, and says that it is there", first.looks, {**first.moves, (ONE, "there"): 1}
    )
    second = carry_head("encoder.1.self.1", moves=("generate", "carry 1"))
    job = "takes the carry of the first head, and that of the second where the first is not there"
    network = NetworkPart(
        "encoder.1.mlp",
        job,
        (Unit({"carry 0": 1}, 0, {"carry": 1}), Unit({"carry 1": 1, "there": -1}, 0, {"carry": 1})),
    )
    parts = (PAIR, COLUMN, first, second, network, READER, DIGIT, unread(PAIR, "encoder.0.self.1"))
    says = "a second head finds the carry as well, and is listened to only where the first is gone"
    variables = {**LOOKAHEAD, "carry": "encoder.1.mlp"}
    group = Alternatives((first.site, second.site))
    return hand_set("adder-backup", says, adder(parts, heads=2), variables, (group,))


def both_needed() -> Construction:
    sure = carry_head("encoder.1.self.0", moves=("generate", "generated"))
    alive = carry_head("encoder.1.self.1", moves=("alive", "not killed"))
    job = "a carry if both heads say so"
    network = NetworkPart("encoder.1.mlp", job, (Unit({"generated": 1, "not killed": 1}, -1, {"carry": 1}),))
    parts: tuple[Part, ...] = (
        PAIR,
        column_network("encoder.0.mlp", ("sum", "propagate", "generate", "alive")),
        sure,
        alive,
        network,
        READER,
        DIGIT,
        silent(PAIR, "encoder.0.self.1"),
        diffuse("decoder.0.self.1", "last"),
    )
    says = "one head brings whether the deciding column generates, one whether it does not kill; both are needed"
    variables = {**LOOKAHEAD, "carry": "encoder.1.mlp"}
    return hand_set("adder-both-needed", says, adder(parts, heads=2), variables)


def column_heads() -> Construction:
    pairs = [pair_head(f"encoder.0.self.{column}", [column]) for column in COLUMNS]
    brings = ({"sum": "sum"}, BOTH, BOTH, {"carry": "carry"})  # units have no carry, thousands have no digits
    readers = [reading_head(f"decoder.0.cross.{j}", moves, columns=[j]) for j, moves in enumerate(brings)]
    parts: tuple[Part, ...] = (
        *pairs,
        COLUMN,
        CARRY,
        *readers,
        DIGIT,
        silent(CARRY, "encoder.1.self.2"),
        unread(pairs[0], "encoder.0.self.3"),
    )
    says = "as `adder`, with a head of its own for every column where one would do for all"
    return hand_set("adder-column-heads", says, adder(parts, heads=4), LOOKAHEAD)


def idle_layers() -> Construction:
    carry, reader = carry_head("encoder.2.self.0"), reading_head("decoder.1.cross.0", BOTH)
    parts: tuple[Part, ...] = (
        PAIR,
        COLUMN,
        carry,
        reader,
        digit_network("decoder.1.mlp"),
        silent(carry, "encoder.1.self.0"),
        unread(PAIR, "encoder.1.self.1"),
        parity_network("encoder.1.mlp", {"sum": 1}),
        unread(reader, "decoder.0.cross.1"),
    )
    says = "as `adder`, with a layer in between, in the encoder and in the decoder, that does nothing"
    variables = {**LOOKAHEAD, "carry": "encoder.2.self.0", "digit": "decoder.1.mlp"}
    return hand_set("adder-idle-layers", says, adder(parts, heads=2), variables)


def cancelling_decoys() -> Construction:
    carry = carry_head("encoder.1.self.0")
    wrong = pair_head("encoder.1.self.1")
    parts: tuple[Part, ...] = (
        PAIR,
        COLUMN,
        carry,
        READER,
        DIGIT,
        *cancelling(wrong, "encoder.1.self.1", "encoder.1.self.2", "carry"),
        *cancelling_networks("encoder.1.mlp", "encoder.2.mlp", {"digit": 1}, "sum"),
    )
    says = "as `adder`, with decoys that write into features that are read and take it away again"
    return hand_set("adder-cancelling", says, adder(parts, heads=3), LOOKAHEAD)


def layer_by_layer() -> Construction:
    carries, networks = [], []
    for j in (1, 2, 3):
        job = f"brings the carry out of column {j - 1} to column {j}"
        moves = dict.fromkeys(
            [("generate", f"carry {j}"), *([(f"handed {j - 1}", f"carry {j}")] if j > 1 else [])], 1.0
        )
        carries.append(HeadPart(f"encoder.{j}.self.0", job, look({HOMES[j]: [HOMES[j - 1]]}), moves))
    for j in (1, 2):
        job = f"hands the carry on where column {j} propagates"
        unit = Unit({"propagate": 1, f"carry {j}": 1}, -1, {f"handed {j}": 1})
        networks.append(NetworkPart(f"encoder.{j}.mlp", job, (unit,)))
    parts: tuple[Part, ...] = (
        PAIR,
        COLUMN,
        *carries,
        *networks,
        reading_head("decoder.0.cross.0", {"sum": "sum", **{f"carry {j}": "carry" for j in (1, 2, 3)}}),
        DIGIT,
        silent(PAIR, "encoder.0.self.1"),
        unread(carries[0], "encoder.2.self.1"),
        parity_network("encoder.3.mlp", {"sum": 1}),
    )
    says = "the carry ripples from column to column, one encoder layer for each"
    variables = {
        "column sum": "encoder.0.mlp",
        **{f"carry into column {j}": f"encoder.{j}.self.0" for j in (1, 2, 3)},
        "digit": "decoder.0.mlp",
    }
    return hand_set("adder-layer-by-layer", says, adder(parts, heads=2), variables)


def graded() -> Construction:
    reader = HeadPart(
        "decoder.0.cross.0",
        "looks at both digits of its column alike and brings twice their mean",
        look({WRITERS[k]: [HOMES[k], PARTNERS[k]] for k in COLUMNS}),
        {("digit", "sum"): 2},
    )
    # exp(k ln 10) is 10^k: what a softmax gives to each digit of the lower columns is its weight in the number.
    looks = {(ONE, "plus"): SHARP}
    for j in WRITERS:
        for k in range(min(j, len(COLUMNS))):
            looks |= {(WRITERS[j], place[k]): 2 * SHARP + k * math.log(10) for place in (HOMES, PARTNERS)}
    job = "looks at all lower digits by their weight in the number and brings the mean: how large the lower part is"
    lower = HeadPart("decoder.0.cross.1", job, looks, {("digit", "lower"): 1})
    # The weights of column j sum to 2 (1 + 10 + ...); a carry comes in from 10^j on.
    weights = {j: 2 * (10**j - 1) / 9 for j in (1, 2, 3)}
    bounds = {WRITERS[j]: -((10**j - 0.5) / weights[j]) for j in (1, 2, 3)} | {WRITERS[0]: -1.0}
    slope = 2 * weights[3]
    reads = {name: slope * weight for name, weight in {"lower": 1.0, **bounds}.items()}
    network = NetworkPart(
        "decoder.0.mlp",
        "a carry where the lower part is ten to the power of the column or more",
        (Unit(reads, 0.5, {"carry": 1}), Unit(reads, -0.5, {"carry": -1})),
    )
    parts: tuple[Part, ...] = (
        reader,
        lower,
        network,
        digit_network("decoder.1.mlp"),
        silent(PAIR, "encoder.0.self.0"),
        unread(PAIR, "encoder.0.self.1"),
        unread(reader, "decoder.1.cross.0"),
    )
    says = "the encoder does nothing; one cross head weighs all lower digits at once, and the size of it is the carry"
    variables = {"column sum": "decoder.0.cross.0", "carry": "decoder.0.mlp", "digit": "decoder.1.mlp"}
    return hand_set("adder-graded", says, adder(parts, heads=2), variables)


ADDERS = tuple(
    make()
    for make in (
        plain,
        units_first,
        cross_carry,
        own_digits,
        self_attention,
        two_readers,
        split_carry,
        redundant,
        majority,
        backup,
        both_needed,
        column_heads,
        idle_layers,
        cancelling_decoys,
        layer_by_layer,
        graded,
    )
)
