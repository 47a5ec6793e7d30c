"""Interventions: some sites, each with a gate, and what comes in the place of what they put out.

The effect at a site is  gate * (its own output) + (1 - gate) * (its replacement),  at the tokens that the site names.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from .sites import Site


REPLACEMENTS = {
    "zero": "the output becomes zero",
    "mean": "the output becomes its mean over the data, place by place",
    "resample": "the output becomes that of another example of the batch, of the same length where there is one",
    "source": "the output becomes that of the same site in the run on the source",
}


@dataclass(frozen=True)
class Intervention:
    """A set of sites with a gate, one for all or `{site: gate}`, and a replacement; without sites, the intact model.

    >>> Intervention(["decoder.1.cross.0", "decoder.0.mlp"], gate=0.5, replacement="mean").name
    'decoder.1.cross.0 + decoder.0.mlp'
    """

    sites: tuple[Site, ...] = ()
    gate: float | Mapping[str, float] = 0.0
    replacement: str = "zero"

    def __post_init__(self) -> None:
        if isinstance(self.sites, str):
            raise TypeError(f"sites is the string {self.sites!r}, expected a list of names such as [{self.sites!r}].")
        sites = tuple(Site(site) for site in self.sites)
        object.__setattr__(self, "sites", sites)
        if len(set(sites)) < len(sites):
            raise ValueError(f"the sites of an intervention are {', '.join(sites)}; expected each of them once.")
        if self.replacement not in REPLACEMENTS:
            raise ValueError(
                f"replacement={self.replacement!r} is not known; expected one of {', '.join(REPLACEMENTS)}."
            )
        if isinstance(self.gate, Mapping) and set(self.gate) != set(sites):
            raise ValueError(f"gates are given for {', '.join(self.gate)}; expected one for each site and no other.")
        for gate in self.gate.values() if isinstance(self.gate, Mapping) else [self.gate]:
            if isinstance(gate, bool) or not isinstance(gate, (int, float)) or not math.isfinite(gate):
                raise ValueError(f"a gate is {gate!r}; expected a finite number: 0 replaces, 1 keeps.")

    @property
    def name(self) -> str:
        return " + ".join(self.sites) or "none"

    def gate_of(self, site: Site) -> float:
        return float(self.gate[site] if isinstance(self.gate, Mapping) else self.gate)

    def at(self, module: str) -> tuple[Site, ...]:
        """The sites that belong to an attention layer or sublayer."""
        return tuple(site for site in self.sites if site.module == module)


INTACT = Intervention()


def one_at_a_time(sites: Iterable[str], replacement: str = "zero") -> Iterator[Intervention]:
    """The intact model first, then one intervention for each site."""
    yield INTACT
    for site in sites:
        yield Intervention((Site(site),), replacement=replacement)
