"""Decoys: parts that look like those of a circuit, and on which nothing hangs."""

from dataclasses import replace

from .wiring import Features, HeadPart, NetworkPart, Unit


def silent(part: HeadPart, site: str) -> HeadPart:
    """A decoy: looks where the real one looks, and writes nothing."""
    return replace(part, site=site, job="decoy: looks as a real head does, writes nothing", moves={}, idle=True)


def unread(part: HeadPart, site: str | None = None) -> HeadPart:
    """A decoy: does what the real one does, there or at another site, but writes where nobody reads."""
    site = site or part.site
    moves = {(read, f"unread {written} of {site}"): weight for (read, written), weight in part.moves.items()}
    return replace(
        part, site=site, job="decoy: moves what a real head moves to where nobody reads", moves=moves, idle=True
    )


def diffuse(site: str, reads: str) -> HeadPart:
    """A decoy: looks at all keys alike."""
    moves = {(reads, f"unread mean of {site}"): 1.0}
    return HeadPart(site, "decoy: averages over all tokens, for nobody", {}, moves, idle=True)


def cancelling(part: HeadPart, first: str, second: str, written: str) -> tuple[HeadPart, HeadPart]:
    """Two decoys: both write what the real one moves into a feature that is read, once with either sign."""
    (read,) = {name for name, _ in part.moves}
    job = "decoy: writes into a feature that is read, and another head takes it away again"
    return (
        HeadPart(first, job, part.looks, {(read, written): 1.0}, idle=True),
        HeadPart(second, job, part.looks, {(read, written): -1.0}, idle=True),
    )


def parity_network(site: str, reads: Features) -> NetworkPart:
    """A decoy: the parity of a whole number up to 19, for nobody."""
    units = [Unit(reads, 0.0, {f"unread parity of {site}": 1.0})]
    units += [Unit(reads, -kink, {f"unread parity of {site}": -2.0 * (-1) ** (kink + 1)}) for kink in range(1, 19)]
    return NetworkPart(site, "decoy: makes a parity, for nobody", tuple(units), idle=True)


def cancelling_networks(first: str, second: str, reads: Features, written: str) -> tuple[NetworkPart, NetworkPart]:
    """Two decoys in two layers: the second takes away what the first has written."""
    job = "decoy: writes into a feature that is read, and another layer takes it away again"
    return (
        NetworkPart(first, job, (Unit(reads, 0.0, {written: 1.0}),), idle=True),
        NetworkPart(second, job, (Unit(reads, 0.0, {written: -1.0}),), idle=True),
    )


def excess_network(site: str, reads: str, above: float) -> NetworkPart:
    """A decoy: by how much a feature is above a bound, for nobody."""
    unit = Unit({reads: 1.0}, -above, {f"unread excess of {site}": 1.0})
    return NetworkPart(site, f"decoy: how far {reads} is above {above:g}, for nobody", (unit,), idle=True)
