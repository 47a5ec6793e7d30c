"""A head mask that a transformers model would take and ignore is told.

transformers 5 has no `head_mask`, but `BertModel(ids, head_mask=zeros)` runs: `**kwargs` takes the mask, and nobody
reads it. Once headcount is imported, such a call warns, or raises, and names `mask_heads`.

The check is one method of one class, `PreTrainedModel.__call__`, put there when transformers has loaded that class and
taken away again by "off". It compares the names of the arguments with three words and then calls what was there
before. Models, their forwards and their hooks are not touched, so copies and pickles know nothing of it. Nothing heavy
is imported here: `import headcount` stays quick.
"""

import inspect
import sys
import warnings
from contextvars import ContextVar
from typing import Any


MASKS = frozenset({"head_mask", "decoder_head_mask", "cross_attn_head_mask"})
ACTIONS = {"warn": "one warning", "error": "a TypeError", "off": "nothing"}
HOME = "transformers.modeling_utils"  # the module that defines PreTrainedModel

_action = "warn"
_told: ContextVar[bool] = ContextVar("headcount_ignored_mask_told", default=False)  # of a model inside another


class IgnoredHeadMaskWarning(UserWarning):
    """A model was given a head mask that has no effect."""


def warn_on_ignored_head_mask(action: str = "warn") -> None:
    """Says what happens when a transformers model is given a head mask that it would ignore; at first, it warns.

    >>> import headcount, torch
    >>> from transformers import GPT2Config, GPT2Model
    >>> model = GPT2Model(GPT2Config(n_layer=1, n_head=2, n_embd=8, vocab_size=9))
    >>> headcount.warn_on_ignored_head_mask("error")
    >>> model(torch.tensor([[5, 6]]), head_mask=torch.zeros(2))
    Traceback (most recent call last):
    ...
    TypeError: GPT2Model ignores head_mask; expected `with headcount.mask_heads(model, heads):` around the call.
    >>> headcount.warn_on_ignored_head_mask("warn")

    Args:
        action: "warn", "error" or "off". It holds for all models of this process.

    Returns:
        None. Models that name the mask among the arguments of their forward, as headcount's own do, are left alone.
    """
    global _action
    if action not in ACTIONS:
        raise ValueError(f"action={action!r} is not known; expected one of {', '.join(ACTIONS)}.")
    _action = action
    if HOME in sys.modules:
        install()


def install() -> None:
    """Puts the check in its place, or takes it away, as was asked; done again, it changes nothing."""
    model_class = getattr(sys.modules[HOME], "PreTrainedModel", None)
    if model_class is None:  # half imported
        return
    there = vars(model_class).get("__call__")
    is_ours = getattr(there, "checks_head_masks", False)
    if _action == "off":
        if is_ours:
            _take_away(model_class, there)
    elif not is_ours:
        model_class.__call__ = _checking(there)


def _take_away(model_class: Any, ours: Any) -> None:
    if ours.before is None:
        del model_class.__call__
    else:
        model_class.__call__ = ours.before


def _checking(before: Any) -> Any:
    """`__call__` with the check; `before` is what PreTrainedModel had of its own, which is usually nothing."""
    from torch import nn

    def __call__(self: Any, *arguments: Any, **options: Any) -> Any:
        if MASKS.isdisjoint(options) or getattr(self, "takes_head_masks", False):
            # nn.Module's is looked up now, not before: tracers put theirs in its place for a while.
            return (before or nn.Module.__call__)(self, *arguments, **options)
        ignored = [] if _told.get() else ignored_masks(self, options)
        if not ignored:
            return (before or nn.Module.__call__)(self, *arguments, **options)
        _tell(type(self).__name__, ignored)
        token = _told.set(True)
        try:
            return (before or nn.Module.__call__)(self, *arguments, **options)
        finally:
            _told.reset(token)

    __call__.checks_head_masks, __call__.before = True, before  # type: ignore[attr-defined]
    return __call__


def ignored_masks(model: Any, options: dict[str, Any]) -> list[str]:
    """The masks that neither the model nor a part of it has among its named arguments.

    None is not a mask. A model whose forward takes no `**kwargs` raises by itself.
    """
    given = [name for name in options if name in MASKS and options[name] is not None]
    if not given or not _takes_anything(type(model)):
        return []
    named = {name for kind in {type(part) for part in model.modules()} for name in _arguments(kind)}
    return [name for name in given if name not in named]


def _arguments(kind: type) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(kind.forward).parameters)  # type: ignore[attr-defined]
    except (TypeError, ValueError):  # a forward that Python cannot look into
        return {}


def _takes_anything(kind: type) -> bool:
    return any(each.kind is inspect.Parameter.VAR_KEYWORD for each in _arguments(kind).values())


def _tell(model: str, names: list[str]) -> None:
    said = (
        f"{model} ignores {' and '.join(names)}; expected `with headcount.mask_heads(model, heads):` around the call."
    )
    if _action == "error":
        raise TypeError(said)
    warnings.warn(said, IgnoredHeadMaskWarning, stacklevel=3)
