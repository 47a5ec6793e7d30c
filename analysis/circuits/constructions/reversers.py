"""Models that write strings of up to 16 letters backwards: a cross head looks at the mirrored place.

As in sorters.py places are numbers, and a head looks at the key whose number is nearest to the one it asks for. The
<eos> of a string of n letters stands at place n, which is how a model knows n; letters are numbers from 1 to 26, and 0
is none.
"""

from collections.abc import Iterable, Mapping

from ....data_builders.letters import LETTERS, VOCABULARY
from ....data_builders.vocabulary import EOS
from .construction import Alternatives, Construction, hand_set
from .decoys import diffuse, excess_network, silent, unread
from .wiring import ONE, Features, HeadPart, NetworkPart, Pairs, Part, Unit, Wiring


SHARP = 40.0
LONGEST = 16
LETTER_IDS = {number: VOCABULARY.id_of(letter) for number, letter in enumerate(LETTERS, start=1)}


def reverser(parts: Iterable[Part], heads: int = 2, readout: Mapping[tuple[str, int], float] | None = None) -> Wiring:
    letters = {token: {"letter": float(number)} for number, token in LETTER_IDS.items()}
    places = tuple({"place": float(i), "square": float(i * i)} for i in range(LONGEST + 1))
    flags = {(f"is {number}", token): 10.0 for number, token in LETTER_IDS.items()}
    return Wiring(
        task="reverse",
        parts=tuple(parts),
        tokens={"encoder": {**letters, EOS: {"ends": 1.0}}, "decoder": {}},
        places={"encoder": places, "decoder": tuple({"step": float(t), "ready": 1.0} for t in range(LONGEST + 1))},
        readout=readout or {**flags, ("finished", EOS): 30.0},
        heads=heads,
        data={"min_length": 5, "max_length": 10, "test_lengths": [12, LONGEST]},
    )


def nearest(asked: str, number: str, square: str) -> Pairs:
    """Scores that are best where the key's number is the one that is asked for, by SHARP at least."""
    return {(asked, number): 2 * SHARP, (ONE, square): -SHARP}


def squares(reads: Features, bias: float, written: str) -> list[Unit]:
    """The square of a whole number from 0 to LONGEST: straight pieces that meet it at each, of slopes 1, 3, 5, ..."""
    return [Unit(reads, bias - x, {written: 2.0 if x else 1.0}) for x in range(LONGEST)]


LENGTH = HeadPart(
    "encoder.0.self.0", "brings the place of <eos> to every letter", {(ONE, "ends"): SHARP}, {("place", "length"): 1}
)


def mirror_network(site: str) -> NetworkPart:
    """From place i and length n: n - 1 - i for letters, n for <eos>, and its square: the step that is to read it."""
    mirrored: Features = {"length": 1, "place": -1, "ends": -100}
    own: Features = {"place": 1, "ends": 100}
    units = [Unit(mirrored, -1, {"turn": 1}), Unit(own, -100, {"turn": 1})]
    units += squares(mirrored, -1, "turn squared") + squares(own, -100, "turn squared")
    return NetworkPart(site, "makes of place and length the step at which a token is to be written", tuple(units))


def letter_network(site: str, reads: tuple[str, ...] = ("letter",)) -> NetworkPart:
    """The flag of a letter for each number that is read; 0 has none."""
    units = []
    for name in reads:
        for number in range(1, len(LETTERS) + 1):
            for kink, weight in ((number - 1, 1.0), (number, -2.0), (number + 1, 1.0)):
                units.append(Unit({name: 1}, -kink, {f"is {number}": weight}))
    return NetworkPart(site, "makes the flag of the letter", tuple(units))


MIRROR = mirror_network("encoder.0.mlp")
TURN = nearest("step", "turn", "turn squared")
READS = {("letter", "letter"): 1.0, ("ends", "finished"): 1.0}
READER = HeadPart("decoder.0.cross.0", "looks at the token whose turn it is and brings its letter", TURN, READS)
WRITE = letter_network("decoder.0.mlp")


FORWARD = HeadPart("decoder.0.cross.1", "looks at the place of its step", nearest("step", "place", "square"), READS)


def plain() -> Construction:
    parts: tuple[Part, ...] = (
        LENGTH,
        MIRROR,
        READER,
        WRITE,
        unread(FORWARD),
        silent(LENGTH, "encoder.0.self.1"),
        excess_network("encoder.1.mlp", "letter", 13),
    )
    says = "the encoder works out when each letter is due; a cross head looks at the one whose turn it is"
    variables = {"length": "encoder.0.self.0", "turn": "encoder.0.mlp", "letter": "decoder.0.cross.0"}
    return hand_set("reverser", says, reverser(parts), variables)


def direct() -> Construction:
    # -(x - l)^2 is largest for the letter l that was read; of it only 2 x l - l^2 depends on l.
    readout = {("letter", token): 2.0 * number for number, token in LETTER_IDS.items()}
    readout |= {("ready", token): -float(number**2) for number, token in LETTER_IDS.items()} | {
        ("finished", EOS): 30.0
    }
    parts: tuple[Part, ...] = (
        LENGTH,
        MIRROR,
        READER,
        silent(READER, "decoder.0.cross.1"),
        unread(LENGTH, "encoder.1.self.0"),
    )
    says = "as `reverser`, with logits that read the letter's number themselves, without a network in the decoder"
    variables = {"length": "encoder.0.self.0", "turn": "encoder.0.mlp", "letter": "decoder.0.cross.0"}
    return hand_set("reverser-direct", says, reverser(parts, readout=readout), variables)


def in_the_decoder() -> Construction:
    length = HeadPart(
        "decoder.0.cross.1", "brings the place of <eos>", {(ONE, "ends"): SHARP}, {("place", "length"): 1}
    )
    difference: Features = {"length": 1, "step": -1}
    target = NetworkPart(
        "decoder.0.mlp",
        "makes the mirrored place n - 1 - t, and says when the string is finished",
        (Unit(difference, -1, {"asked": 1}), Unit(difference, 0, {"finished": -1}), Unit({}, 1, {"finished": 1})),
    )
    reader = HeadPart(
        "decoder.1.cross.0",
        "looks at the mirrored place and brings its letter",
        nearest("asked", "place", "square"),
        {("letter", "letter"): 1},
    )
    parts: tuple[Part, ...] = (
        length,
        target,
        reader,
        letter_network("decoder.1.mlp"),
        silent(FORWARD, "decoder.0.cross.0"),
        unread(LENGTH),
        excess_network("encoder.0.mlp", "letter", 13),
    )
    says = "the encoder does nothing; the decoder reads the length, works out the mirrored place and looks there"
    variables = {"length": "decoder.0.cross.1", "mirrored place": "decoder.0.mlp", "letter": "decoder.1.cross.0"}
    return hand_set("reverser-decoder", says, reverser(parts), variables)


def twice() -> Construction:
    readers = [
        HeadPart(f"decoder.0.cross.{i}", READER.job, TURN, {("letter", f"letter {i}"): 1, ("ends", "finished"): 1})
        for i in range(2)
    ]
    parts: tuple[Part, ...] = (
        LENGTH,
        MIRROR,
        *readers,
        letter_network("decoder.0.mlp", ("letter 0", "letter 1")),
        unread(LENGTH, "encoder.0.self.1"),
        silent(READER, "decoder.0.cross.2"),
    )
    says = "as `reverser`, with two cross heads that bring the same letter; either suffices"
    variables = {"length": "encoder.0.self.0", "turn": "encoder.0.mlp"}
    group = Alternatives(tuple(part.site for part in readers))
    return hand_set("reverser-redundant", says, reverser(parts, heads=3), variables, (group,))


def two_parts() -> Construction:
    early = HeadPart(
        "decoder.0.cross.0",
        "brings letters from places up to 4",
        TURN,
        {("early", "letter"): 1, ("ends", "finished"): 1},
    )
    late = HeadPart("decoder.0.cross.1", "brings letters from places after 4", TURN, {("late", "letter"): 1})
    reads = {"place": 1.0}
    flags = (
        Unit(reads, -4, {"is late": 1, "is early": -1}),
        Unit(reads, -5, {"is late": -1, "is early": 1}),
        Unit({}, 1, {"is early": 1}),
    )
    sorted_letters = NetworkPart(
        "encoder.1.mlp",
        "parts letters by their place: up to 4, or after",
        tuple(Unit({"letter": 1, f"is {name}": 100}, -100, {name: 1}) for name in ("early", "late")),
    )
    mirror = NetworkPart(MIRROR.site, f"{MIRROR.job}, and whether its place is after 4", (*MIRROR.units, *flags))
    parts: tuple[Part, ...] = (
        LENGTH,
        mirror,
        sorted_letters,
        early,
        late,
        WRITE,
        unread(LENGTH, "encoder.1.self.0"),
        diffuse("decoder.0.self.0", "step"),
    )
    says = "as `reverser`, with two cross heads: one brings the letters of the first five places, one the others"
    variables = {"length": "encoder.0.self.0", "turn": "encoder.0.mlp"}
    return hand_set("reverser-split", says, reverser(parts), variables)


REVERSERS = tuple(make() for make in (plain, direct, in_the_decoder, twice, two_parts))
