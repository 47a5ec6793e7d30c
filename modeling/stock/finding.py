"""The attention layers of any transformers model, found from the model itself, and its heads by name.

A layer counts if its code asks transformers' attention interface for the function that computes it, or if it is known
where its own code has the heads side by side (`own_code.py`). Its name says stack, layer and kind, as for headcount's
own models: `encoder.0.self`, `decoder.1.cross`; models with several towers have a stack for each (`text.0.self`,
`vision.0.self`).
"""

import functools
import inspect
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from torch import nn
from transformers import PreTrainedModel

from ..heads import Head, HeadName, pick_heads
from ..modeling_headcount import HeadcountPreTrainedModel
from .own_code import looks_like_attention, place_of


# Part of a module's path -> the stack it stands for; the first part that says something counts.
STACKS = {
    "vision": "vision",
    "image": "vision",
    "visual": "vision",
    "audio": "audio",
    "text": "text",
    "language": "text",
    "encoder": "encoder",
    "decoder": "decoder",
}
CROSS = ("cross", "encoder_attn", "encdec", "encoder_decoder")
HEAD_COUNTS = ("num_heads", "num_attention_heads", "n_heads", "n_head", "num_attn_heads", "num_v_heads")


@dataclass(frozen=True)
class AttentionLayer:
    """`heads` are the original numbers of the heads that are left; `place` is where they lie side by side in a layer
    with its own attention code, and None in one that asks the attention interface.
    """

    name: str
    path: str
    module: Any = field(repr=False)  # an nn.Module, with whatever else its own code reads
    heads: tuple[int, ...]
    place: str | None = None


def list_heads(model: PreTrainedModel, allow_partial: bool = False) -> list[Head]:
    """The names of all heads that are there, in the order of computation; each knows its stack, layer, kind, number.

    >>> import headcount
    >>> from transformers import GPT2Config, GPT2Model
    >>> headcount.list_heads(GPT2Model(GPT2Config(n_layer=2, n_head=2, n_embd=8)))
    ['decoder.0.self.0', 'decoder.0.self.1', 'decoder.1.self.0', 'decoder.1.self.1']

    Args:
        model: one of headcount's own, or any transformers model.
        allow_partial: go on where some attention layers of the model are not known; without it, that is an error which
            names them.

    Returns:
        `Head`s: strings with `stack`, `layer`, `kind` and `number`, which are those of the unpruned model.
    """
    layers = attention_layers(model).values()
    unknown = {} if allow_partial else unknown_layers(model)
    if unknown:
        kinds = dict.fromkeys(type(module).__name__ for module in unknown.values())
        raise ValueError(
            f"{len(unknown)} attention layers of {type(model).__name__} compute their heads in a way that headcount "
            f"does not know ({', '.join(kinds)}, such as {next(iter(unknown))}); expected list_heads(model, "
            "allow_partial=True), to go on with the others."
        )
    return [Head(f"{layer.name}.{head}") for layer in layers for head in layer.heads]


def as_heads(model: PreTrainedModel, heads: Iterable[HeadName]) -> list[Head]:
    """Heads that are there, from names or, where the model has one stack and kind, `(layer, head)` tuples.

    >>> from transformers import GPT2Config, GPT2Model
    >>> as_heads(GPT2Model(GPT2Config(n_layer=2, n_head=2, n_embd=8)), [(1, 0)])
    ['decoder.1.self.0']
    """
    return pick_heads(heads, list_heads(model, allow_partial=True), type(model).__name__)


def attention_layers(model: PreTrainedModel) -> dict[str, AttentionLayer]:
    """Name -> layer; a model without a layer that can be gated is an error."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"model is a {type(model).__name__}, expected a transformers model.")
    if isinstance(model, HeadcountPreTrainedModel):
        paths = {id(module): path for path, module in model.named_modules()}
        return {
            name: AttentionLayer(name, paths[id(module)], module, tuple(module.heads))
            for name, module in model.attention_modules().items()
        }
    found = _known_modules(model)
    if not found:
        unknown = dict.fromkeys(type(module).__name__ for module in unknown_layers(model).values())
        if not unknown:
            raise ValueError(f"{type(model).__name__} has no attention heads; expected a model with attention.")
        raise ValueError(
            f"{type(model).__name__} computes its attention in a way that headcount does not know "
            f"({', '.join(unknown)}), so its heads cannot be masked; expected another model: see docs/stock-models.md."
        )
    names = _names([(stack_of(path, module), _layer_of(path), kind_of(path)) for path, module in found])
    layers = {}
    for name, (path, module) in zip(names, found, strict=True):
        kept = getattr(module, "kept_heads", None)  # of a pruned layer
        heads = tuple(range(_head_count(model, path, module)) if kept is None else kept)
        place = None if asks_interface(type(module)) else place_of(module)  # type: ignore[arg-type]
        layers[name] = AttentionLayer(name, path, module, heads, place)
    return layers


def _known_modules(model: PreTrainedModel) -> list[tuple[str, nn.Module]]:
    """Every attention module whose heads can be reached, with its path, in the order of the modules."""
    asking = {path for path, module in model.named_modules() if asks_interface(type(module))}  # type: ignore[arg-type]
    found = []
    for path, module in model.named_modules():
        if path in asking or (place_of(module) is not None and not any(_nested(path, other) for other in asking)):
            found.append((path, module))
    return found


def unknown_layers(model: PreTrainedModel) -> dict[str, nn.Module]:
    """Path -> attention module, of those whose heads cannot be reached."""
    if isinstance(model, HeadcountPreTrainedModel):
        return {}
    known = [path for path, _ in _known_modules(model)]
    alike = {path: module for path, module in model.named_modules() if path and looks_like_attention(module)}
    return {
        path: module
        for path, module in alike.items()
        if not any(_nested(path, other) for other in known)
        and not any(other != path and f"{other}.".startswith(f"{path}.") for other in alike)
    }


def _nested(path: str, other: str) -> bool:
    """Whether one of the two is within the other."""
    return f"{path}.".startswith(f"{other}.") or f"{other}.".startswith(f"{path}.")


@functools.cache
def asks_interface(kind: type) -> bool:
    """Whether the code of a module class looks into `ALL_ATTENTION_FUNCTIONS`; whole models do, but only to check."""
    if issubclass(kind, PreTrainedModel):
        return False
    for parent in kind.__mro__:
        for function in vars(parent).values():
            function = inspect.unwrap(function) if callable(function) else None
            if "ALL_ATTENTION_FUNCTIONS" in getattr(getattr(function, "__code__", None), "co_names", ()):
                return True
    return False


def stack_of(path: str, module: nn.Module) -> str:
    """The first part of the path that names one; BERT as a decoder still calls its stack `encoder`."""
    # A layer with a place in the cache, which cannot be anything but a decoder's.
    has_cache = getattr(module, "layer_idx", None) is not None and not hasattr(module, "is_decoder")
    is_decoder = (
        getattr(module, "is_decoder", False) or getattr(module, "is_causal", has_cache) or kind_of(path) == "cross"
    )
    for part in path.lower().split("."):
        stack = next((stack for word, stack in STACKS.items() if word in part), None)
        # `encoder_attn` is the decoder's attention to the encoder, not a stack.
        if stack is not None and "attn" not in part and "attention" not in part:
            return "decoder" if stack == "encoder" and is_decoder else stack
    return "decoder" if is_decoder else "encoder"


def kind_of(path: str) -> str:
    own = ".".join(part for part in path.lower().split(".")[-3:] if "att" in part)
    return "cross" if any(word in own for word in CROSS) else "self"


def _layer_of(path: str) -> int:
    return next((int(part) for part in path.split(".") if part.isdigit()), 0)


def _names(places: list[tuple[str, int, str]]) -> list[str]:
    """Names that differ. Where a stack numbers its layers anew in every stage, they are counted through instead."""
    crowded = {stack for stack, layer, kind in places if places.count((stack, layer, kind)) > 1}
    names = []
    counts: dict[tuple[str, str], int] = {}
    for stack, layer, kind in places:
        if stack in crowded:
            layer = counts[stack, kind] = counts.get((stack, kind), -1) + 1
        names.append(f"{stack}.{layer}.{kind}")
    return names


def _head_count(model: PreTrainedModel, path: str, module: nn.Module) -> int:
    for owner in (module, getattr(module, "config", None)):
        for name in HEAD_COUNTS:
            if isinstance(getattr(owner, name, None), int):
                return getattr(owner, name)
    size, width = getattr(module, "head_dim", None), getattr(getattr(module, "o_proj", None), "in_features", None)
    if isinstance(size, int) and isinstance(width, int) and width % size == 0:
        return width // size
    if isinstance(groups := getattr(module, "groups", None), int):  # of channels, which attend to one another
        return groups
    raise ValueError(
        f"{type(model).__name__} does not tell how many heads {path} has; expected one of {', '.join(HEAD_COUNTS)} "
        "on the module or its config."
    )
