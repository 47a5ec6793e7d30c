"""Sites: places in a model where something is read or replaced, by name.

    decoder.1.cross.0              a head: what it puts out before the output projection mixes the heads
    encoder.0.mlp                  what a feed-forward sublayer puts out, before it is added to the residual stream
    decoder.0.residual             the residual stream after a layer
    encoder.1.residual@first(1)    one of these at some tokens only: those of role `first` with index 1
    decoder.0.mlp@position(3)      at the fourth token; position(-1) is the last, padding left out

At a query of a decoder that reads an encoder, a role is that of the token that is predicted there; anywhere else, that
of the token that is read. Every model has the role `position`; a task may have others.
"""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

from transformers import PreTrainedModel

from ...configuration.rules import nearest
from ...modeling.heads import Head, HeadName, pick_heads
from ...modeling.stock.finding import attention_layers, list_heads
from ...modeling.stock.sublayers import sublayer_paths


GRAMMAR = re.compile(
    r"(?P<stack>\w+)\.(?P<layer>\d+)\.((?P<attention>self|cross)\.(?P<number>\d+)|(?P<sublayer>mlp|residual))"
    r"(@(?P<role>[A-Za-z_]\w*)(\((?P<index>-?\d+)\))?)?"
)


POSITION = "position"  # the role that tokens have by their place alone


class Site(str):
    """The name of a site, which also knows its parts.

    >>> site = Site("encoder.1.residual@first(1)")
    >>> site.place, site.kind, site.role, site.index
    ('encoder.1.residual', 'residual', 'first', 1)
    """

    __slots__ = ()

    def __new__(cls, name: str) -> "Site":
        if GRAMMAR.fullmatch(name) is None:
            raise ValueError(
                f"{name!r} is not a site; expected a head such as 'decoder.1.cross.0', 'encoder.0.mlp' or "
                "'encoder.0.residual', with '@role' or '@role(index)' for some tokens only."
            )
        site = super().__new__(cls, name)
        if site.role == POSITION and site.index is None:
            raise ValueError(f"{name!r} does not say which position; expected '@position(0)', or (-1) for the last.")
        return site

    def _part(self, name: str) -> str | None:
        found = GRAMMAR.fullmatch(self)
        return None if found is None else found[name]

    @property
    def place(self) -> str:
        """The site at all tokens."""
        return self.partition("@")[0]

    @property
    def stack(self) -> str:
        return self.split(".")[0]

    @property
    def layer(self) -> int:
        return int(self.split(".")[1])

    @property
    def kind(self) -> str:
        """self, cross, mlp or residual."""
        return self.place.split(".")[2]

    @property
    def head(self) -> Head | None:
        """The head that it is, if it is one."""
        return Head(self.place) if self._part("number") is not None else None

    @property
    def module(self) -> str:
        """The attention layer of a head, `decoder.1.cross`; any other site by itself."""
        return self.place if self.head is None else self.head.attention

    @property
    def role(self) -> str | None:
        return self._part("role")

    @property
    def index(self) -> int | None:  # type: ignore[override]
        index = self._part("index")
        return None if index is None else int(index)

    def at(self, role: str, index: int | None = None) -> "Site":
        """The same place at the tokens of a role."""
        return Site(f"{self.place}@{role}" if index is None else f"{self.place}@{role}({index})")


def sites(model: PreTrainedModel) -> list[Site]:
    """All sites of a model, in the order of computation: heads, feed-forward sublayers and residual streams.

    >>> import headcount
    >>> from transformers import GPT2Config, GPT2LMHeadModel
    >>> headcount.sites(GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=2, n_embd=8)))
    ['decoder.0.self.0', 'decoder.0.self.1', 'decoder.0.mlp', 'decoder.0.residual']

    Args:
        model: one of headcount's own, or any transformers model whose heads `list_heads` finds.

    Returns:
        `Site`s: strings with `stack`, `layer`, `kind`, `head`; `site.at(role)` is the same place at some tokens only.
    """
    list_heads(model)  # raises where it does not know them all
    attention = {name: layer.heads for name, layer in attention_layers(model).items()}
    paths = sublayer_paths(model)
    found: list[Site] = []
    for stack, layer in dict.fromkeys(tuple(name.split(".")[:2]) for name in (*attention, *paths)):
        for kind in ("self", "cross"):
            name = f"{stack}.{layer}.{kind}"
            found += [Site(f"{name}.{number}") for number in attention.get(name, ())]
        found += [Site(name) for kind in ("mlp", "residual") if (name := f"{stack}.{layer}.{kind}") in paths]
    return found


def match_sites(model: PreTrainedModel, patterns: str | Iterable[str]) -> list[Site]:
    """The sites whose names fit any of the patterns, in which `*` stands for anything; a role comes after them.

    >>> from headcount import HeadcountConfig, HeadcountModel
    >>> model = HeadcountModel(HeadcountConfig(num_hidden_layers=1, num_attention_heads=2))
    >>> match_sites(model, ["decoder.*.cross.*", "encoder.*.mlp@digit(0)"])
    ['decoder.0.cross.0', 'decoder.0.cross.1', 'encoder.0.mlp@digit(0)']
    """
    known = sites(model)
    found: list[Site] = []
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        place, mark, role = pattern.partition("@")
        fitting = [Site(f"{site}{mark}{role}") for site in known if fnmatchcase(site, place)]
        if not fitting:
            raise ValueError(
                f"no site of this {type(model).__name__} is named {place!r}; expected names from {known[0]!r} to "
                f"{known[-1]!r}, or '*' for any part.{nearest(place, known)}"
            )
        found += fitting
    return list(dict.fromkeys(found))


def as_sites(model: PreTrainedModel, wanted: Iterable[HeadName]) -> list[Site]:
    """Sites by name, or heads as `(layer, head)`; what the model does not have is an error."""
    if isinstance(wanted, str):
        raise TypeError(f"sites is the string {wanted!r}, expected a list of names such as [{wanted!r}].")
    heads, paths = list_heads(model, allow_partial=True), sublayer_paths(model)
    found = []
    for each in wanted:
        if isinstance(each, tuple):
            found += [Site(head) for head in pick_heads([each], heads, type(model).__name__)]
            continue
        site = Site(each)
        if site.head is not None:
            pick_heads([site.head], heads, type(model).__name__)
        elif site.place not in paths:
            what = ", ".join(paths) or "heads alone"
            raise ValueError(
                f"{site.place!r} is not a site of this {type(model).__name__}; expected {what}.{nearest(site, paths)}"
            )
        found.append(site)
    return found
