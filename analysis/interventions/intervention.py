"""Interventions: some sites, each with a gate, and what comes in the place of what they put out.

The effect at a site is  gate * (its own output) + (1 - gate) * (its replacement),  at the tokens that the site names.
Sites may also be frozen: whatever is changed below them, they put out what they do in the intact run.
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
FROZEN = "frozen"  # at frozen sites: the output stays that of the intact run on the same example


@dataclass(frozen=True)
class Intervention:
    """A set of sites with a gate, one for all or `{site: gate}`, and a replacement; without sites, the intact model.

    >>> Intervention(["decoder.1.cross.0", "decoder.0.mlp"], gate=0.5, replacement="mean").name
    'decoder.1.cross.0 + decoder.0.mlp'

    `title` names a set that is too large to list; `frozen` sites keep what they put out in the intact run.
    """

    sites: tuple[Site, ...] = ()
    gate: float | Mapping[str, float] = 0.0
    replacement: str = "zero"
    title: str | None = None
    frozen: tuple[Site, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.sites, str):
            raise TypeError(f"sites is the string {self.sites!r}, expected a list of names such as [{self.sites!r}].")
        sites, frozen = (tuple(Site(site) for site in some) for some in (self.sites, self.frozen))
        object.__setattr__(self, "sites", sites)
        object.__setattr__(self, "frozen", frozen)
        shared = {site.module for site in sites} & {site.module for site in frozen}
        if shared:
            raise ValueError(f"{shared.pop()} is changed and frozen; expected frozen sites in other modules.")
        if len({*sites, *frozen}) < len(sites) + len(frozen):
            raise ValueError(f"the sites of an intervention: {', '.join(self.touched)}; expected each of them once.")
        whole = {site.place for site in self.touched if site.role is None}
        within = next((site for site in self.touched if site.role is not None and site.place in whole), None)
        if within is not None:
            raise ValueError(f"{within} is a part of {within.place}, which is named, too; expected one of them.")
        if frozen and not sites:
            raise ValueError("sites are frozen, but none is changed; expected one whose effect they keep out.")
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
        found = self.title or " + ".join(self.sites) or "none"
        return f"{found}, frozen: {' + '.join(self.frozen)}" if self.frozen and self.title is None else found

    @property
    def touched(self) -> tuple[Site, ...]:
        """The sites at which this run may differ from one that nobody touches."""
        return self.sites + self.frozen

    def gate_of(self, site: Site) -> float:
        if site in self.frozen:
            return 0.0
        return float(self.gate[site] if isinstance(self.gate, Mapping) else self.gate)

    def at(self, module: str) -> tuple[Site, ...]:
        """The sites that belong to an attention layer or sublayer."""
        return tuple(site for site in self.touched if site.module == module)

    def replacement_at(self, module: str) -> str:
        """What comes in the place of outputs there; `zero` where nothing is done."""
        found = self.at(module)
        return "zero" if not found else FROZEN if found[0] in self.frozen else self.replacement

    @property
    def replacements(self) -> set[str]:
        """All kinds that it needs."""
        return ({self.replacement} if self.sites else set()) | ({FROZEN} if self.frozen else set())


INTACT = Intervention()


def one_at_a_time(sites: Iterable[str], replacement: str = "zero") -> Iterator[Intervention]:
    """The intact model first, then one intervention for each site."""
    yield INTACT
    for site in sites:
        yield Intervention((Site(site),), replacement=replacement)
