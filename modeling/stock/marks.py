"""What marks a model as gated, made so that it passes: a copy of the model, or a pickled one, comes out plain."""

from typing import Any

from torch import nn


class SwitchedName(str):
    """The name of a gated attention function in a config; copied or pickled, it is that of the plain one again.

    Models ask for the name to decide what mask they make (`name in ("eager", "sdpa")`): it answers as the plain one,
    and is still another key in the table of functions. `!=` stays as it is: with `name != "eager"` they ask whether to
    look into that table.
    """

    plain: str

    def __new__(cls, gated: str, plain: str) -> "SwitchedName":
        name = super().__new__(cls, gated)
        name.plain = plain.plain if isinstance(plain, SwitchedName) else plain  # blocks nest
        return name

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other) is True or self.plain == other

    __ne__ = str.__ne__
    __hash__ = str.__hash__

    def __deepcopy__(self, memo: dict) -> str:
        return self.plain

    def __reduce__(self) -> tuple[type, tuple]:
        return str, (self.plain,)


class PassingHook:
    """A hook of a module for as long as a block runs; in a copy of the module it does nothing."""

    def __deepcopy__(self, memo: dict) -> "Inert":
        return Inert()

    def __reduce__(self) -> tuple[type, tuple]:
        return Inert, ()


class Inert:
    """What is left of such a hook in a copy: it takes itself away when it is first called."""

    def __call__(self, module: nn.Module, *arguments: Any) -> None:
        for hooks in (module._forward_pre_hooks, module._forward_hooks):
            for key in [key for key, hook in hooks.items() if hook is self]:
                del hooks[key]
