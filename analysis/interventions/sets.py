"""Sets of sites by name, and what stands beside each: its complement.

decoder.*.cross.*                      every site whose name fits
encoder.0.mlp + decoder.0.mlp          several together
all but decoder.0.cross.*              every other head; of feed-forward sublayers, every other one of these
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from transformers import PreTrainedModel

from ...modeling.heads import Head, HeadName
from ...modeling.stock.finding import list_heads
from .intervention import Intervention
from .sites import Site, as_sites, match_sites, sites


ALL_BUT = "all but "
AND = " + "

SetName = HeadName | Iterable[HeadName]


@dataclass(frozen=True)
class SiteSet:
    """Sites that are changed together, by a name that `find_set` understands."""

    name: str
    sites: tuple[Site, ...]

    def swapped(self, replacement: str, frozen: tuple[Site, ...] = ()) -> Intervention:
        """The intervention that replaces what all of them put out."""
        title = self.name if not frozen else f"{self.name}, frozen: {AND.join(frozen)}"
        return Intervention(self.sites, replacement=replacement, title=title, frozen=frozen)


def find_set(model: PreTrainedModel, wanted: SetName) -> SiteSet:
    """One set: a name or pattern, several joined by ` + `, `all but` one of these, or a list of names.

    >>> from headcount import HeadcountConfig, HeadcountModel
    >>> model = HeadcountModel(HeadcountConfig(num_hidden_layers=1, num_attention_heads=2))
    >>> find_set(model, "decoder.*.cross.* + encoder.0.mlp").sites
    ('decoder.0.cross.0', 'decoder.0.cross.1', 'encoder.0.mlp')
    >>> find_set(model, "all but decoder.0.cross.*").sites
    ('encoder.0.self.0', 'encoder.0.self.1', 'decoder.0.self.0', 'decoder.0.self.1')
    """
    if isinstance(wanted, str):
        if wanted.startswith(ALL_BUT):
            name = wanted.removeprefix(ALL_BUT)
            named = tuple(site for site in find_set(model, name).sites if site.kind != "residual")
            if not named or any(site.role is not None for site in named):
                raise ValueError(
                    f"{wanted!r} has no meaning, because {name} names residual states alone, or some tokens only; "
                    "expected heads or feed-forward sublayers at all tokens."
                )
            found = complement(model, SiteSet(name, named))
            if found is None:
                raise ValueError(f"{wanted!r} leaves nothing; expected a set that has others beside it.")
            return found
        return SiteSet(wanted, tuple(match_sites(model, wanted.split(AND))))
    if isinstance(wanted, tuple) and len(wanted) == 2 and all(isinstance(part, int) for part in wanted):
        (site,) = as_sites(model, [cast(tuple[int, int], wanted)])
        return SiteSet(str(site), (site,))
    if isinstance(wanted, bytes) or not isinstance(wanted, Iterable):
        raise TypeError(f"a set is {wanted!r}; expected a name such as 'decoder.0.mlp', a pattern or a list of names.")
    each = [find_set(model, one) for one in cast(Iterable[HeadName], wanted)]
    if not each:
        raise ValueError("a set has no sites; expected at least one, such as 'decoder.0.mlp'.")
    members = tuple(dict.fromkeys(site for own in each for site in own.sites))
    return SiteSet(AND.join(own.name for own in each), members)


def find_sets(model: PreTrainedModel, wanted: Iterable[SetName], complements: bool = False) -> list[SiteSet]:
    """Some sets, each once, and beside each its complement if asked for."""
    if isinstance(wanted, str):
        raise TypeError(f"sets is the string {wanted!r}, expected a list such as [{wanted!r}].")
    if not isinstance(wanted, Iterable):
        raise TypeError(f"sets is {wanted!r}; expected a list such as ['decoder.0.mlp'].")
    found = [find_set(model, each) for each in wanted]
    if not found:
        raise ValueError("there are no sites; expected at least one set of them, such as 'decoder.0.mlp'.")
    names = [each.name for each in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"the set {twice!r} is named twice; expected every set once.")
    if not complements:
        return found
    if all(complement(model, each) is None for each in found):
        raise ValueError(
            f"complements have no effect: {', '.join(names)} leave nothing, or are residual states or some tokens "
            "only; expected heads or feed-forward sublayers that have others beside them."
        )
    return with_complements(model, found)


def find_frozen(model: PreTrainedModel, wanted: Iterable[SetName]) -> tuple[Site, ...]:
    """All sites of the sets that are frozen; there may be none."""
    chosen = wanted if isinstance(wanted, str) else list(wanted)
    sites_of_each = [each.sites for each in find_sets(model, chosen)] if chosen else []
    return tuple(dict.fromkeys(site for own in sites_of_each for site in own))


def complement(model: PreTrainedModel, given: SiteSet) -> SiteSet | None:
    """Every other head, every other feed-forward sublayer, or both, as the set has them; None if nothing is left."""
    if any(site.role is not None or site.kind == "residual" for site in given.sites):
        return None
    kinds = {site.head is not None for site in given.sites}
    pool = [site for site in sites(model) if site.kind != "residual" and (site.head is not None) in kinds]
    left = tuple(site for site in pool if site not in given.sites)
    return SiteSet(f"{ALL_BUT}{given.name}", left) if left else None


def standard_sets(model: PreTrainedModel) -> list[SiteSet]:
    """The heads of every attention layer, of every kind of attention, of every layer; the feed-forward sublayers."""
    heads: list[Head] = list_heads(model)
    layers = dict.fromkeys(head.attention for head in heads)
    kinds = dict.fromkeys((head.stack, head.kind) for head in heads)
    numbers = dict.fromkeys(head.layer for head in heads)
    patterns = [f"{layer}.*" for layer in layers]
    patterns += [f"{stack}.*.{kind}.*" for stack, kind in kinds]
    patterns += [AND.join(f"*.{number}.{kind}.*" for kind in dict.fromkeys(k for _, k in kinds)) for number in numbers]
    stacks = dict.fromkeys(site.stack for site in sites(model) if site.kind == "mlp")
    patterns += [*(f"{stack}.*.mlp" for stack in stacks), *(["*.mlp"] if stacks else [])]
    found: dict[frozenset, SiteSet] = {}
    everything = {str(head) for head in heads}
    for pattern in patterns:
        own = find_set(model, pattern)
        if len(own.sites) > 1 and set(map(str, own.sites)) != everything:
            found.setdefault(frozenset(own.sites), own)
    return list(found.values())


def with_complements(model: PreTrainedModel, given: Iterable[SiteSet]) -> list[SiteSet]:
    """Each set and, beside it, what it leaves, where there is anything; a set may be the complement of another."""
    found: dict[str, SiteSet] = {}
    for each in given:
        for one in (each, complement(model, each)):
            if one is not None:
                found.setdefault(one.name, one)
    return list(found.values())
