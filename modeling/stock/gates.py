"""Gates on the heads of any transformers model, through transformers' own attention interface.

For every attention implementation (`eager`, `sdpa`, `flex_attention`, ...) a second one is registered,
`headcount_eager` and so on, with the same mask function: it calls the first and multiplies each head's output by its
gate, before the output projection mixes the heads. `mask_heads` switches the model to it and back.

Gates live in a context variable, keyed by attention module. So another thread that runs the same model meanwhile finds
no gates and gets exactly the plain function. They hold as long as their `with` block runs: not in a task that was
begun inside and runs on later, nor outside of a generator that is suspended inside; see `scopes.py`. What marks a
model as gated (the name of the attention function, hooks) is made so that a copy of the model, or one that is pickled,
comes out plain; see `marks.py`.

Shapes: B rows, Q queries, H heads that are left in a layer, D head dimension.
"""

import inspect
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, PreTrainedModel
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, AttentionMaskInterface
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from ..heads import Head, HeadName, check_gates, pick_heads
from ..modeling_headcount import HeadcountPreTrainedModel
from .changes import Change, rows_for, token_wise
from .finding import AttentionLayer, attention_layers
from .marks import PassingHook, SwitchedName
from .own_code import AT_OUTPUT, TORCH, PlaceGate, TorchGate
from .pruned_parts import whole_config
from .scopes import Scope, find_scope


PREFIX = "headcount_"
Item = TypeVar("Item")

Gates = Iterable[HeadName] | Mapping[HeadName, float | Tensor] | Tensor


@dataclass(eq=False)
class Active:
    """What one `with` block does to heads."""

    changes: dict[nn.Module, Change] = field(default_factory=dict)
    calls: Counter[nn.Module] = field(default_factory=Counter)  # of the modules in `changes`
    recorded: dict[nn.Module, list[Tensor]] | None = None
    maps: dict[nn.Module, list[Tensor]] | None = None
    seen: set[nn.Module] = field(default_factory=set)
    scope: Scope | None = None
    left: bool = False


_ACTIVE: ContextVar[tuple[Active, ...]] = ContextVar("headcount_heads", default=())  # the outermost first


@contextmanager
def _activated(active: Active) -> Iterator[None]:
    """Blocks may be left in any order, as generators are: each takes away itself and no other."""
    _ACTIVE.set((*_ACTIVE.get(), active))
    try:
        yield
    finally:
        active.left = True  # a task that was begun inside has a copy of the context variable
        active.changes, active.recorded, active.maps, active.scope = {}, None, None, None
        _ACTIVE.set(tuple(other for other in _ACTIVE.get() if other is not active))


@contextmanager
def mask_heads(model: PreTrainedModel, heads: Gates, *, allow_any_gate: bool = False) -> Iterator[None]:
    """Within the context, the model runs with these heads switched off or gated, in this thread only.

    >>> import headcount, torch
    >>> model = headcount.HeadcountForConditionalGeneration(headcount.HeadcountConfig())
    >>> with headcount.mask_heads(model, ["decoder.1.cross.0"]):
    ...     tokens = model.generate(torch.tensor([[5, 6, 2]]), max_new_tokens=3)

    Args:
        model: one of headcount's own, or any transformers model whose heads `list_heads` finds.
        heads: names of heads to switch off; or `{name: gate}`, a gate being a number or a tensor () or (batch,); or a
            tensor of gates for all heads in the order of `list_heads`, (heads,) or (batch, heads). 1 keeps a head, 0
            removes it, gradients flow.
        allow_any_gate: take gates below 0 and above 1 too; they have to be finite in any case.

    Returns:
        A context manager. Contexts nest: gates multiply. A copy of the model that is made inside is plain. With a gate
        for every example, a batch that is k times as large is taken as k beams or samples of each example, as
        `generate` lays them out.
    """
    layers = attention_layers(model)
    gates = _gate_table(model, layers, heads, allow_any_gate)
    with change_heads(model, {name: Change(gate) for name, gate in gates.items()}, layers=layers):
        yield


@contextmanager
def change_heads(
    model: PreTrainedModel,
    changes: Mapping[str, Change],
    record: dict[nn.Module, list[Tensor]] | None = None,
    layers: dict[str, AttentionLayer] | None = None,
) -> Iterator[None]:
    """`mask_heads` by attention layer, with replacements, for one forward; without them, for any number.

    `record` collects what heads put out at every call, (B, Q, H, D). `layers` are those of the model, if they are
    known already.
    """
    if model.training and getattr(model, "is_gradient_checkpointing", False):
        raise ValueError(
            f"{type(model).__name__} trains with gradient checkpointing, which would compute its heads again without "
            "their gates; expected model.gradient_checkpointing_disable() first."
        )
    layers = layers or attention_layers(model)
    by_module = {layers[name].module: change for name, change in changes.items()}
    active = Active(by_module, recorded=record, scope=find_scope())
    with ExitStack() as stack:
        touched = [layer for layer in layers.values() if layer.module in active.changes or record is not None]
        if isinstance(model, HeadcountPreTrainedModel):
            for layer in touched:
                stack.enter_context(_own_gate(layer))
        else:
            stack.enter_context(_switched(model))
            for layer in touched:
                if layer.place is not None:
                    stack.enter_context(_own_gate(layer))
                stack.callback(layer.module.register_forward_pre_hook(Forget()).remove)
                stack.callback(layer.module.register_forward_hook(Insist(model, layer)).remove)
        stack.enter_context(_activated(active))
        yield
        for name, change in changes.items():
            change.check_calls(active.calls[layers[name].module], name)


@contextmanager
def record_maps(model: PreTrainedModel, maps: dict[nn.Module, list[Tensor]]) -> Iterator[None]:
    """Within the context, attention runs step by step (`eager`), and every call leaves weights (B, H, Q, K)."""
    configs = _configs(model)
    before = {key: getattr(config, "_attn_implementation", None) for key, config in configs.items()}
    for key, config in configs.items():
        plain = before[key]
        if plain is not None:
            config._attn_implementation_internal = SwitchedName(register("eager"), plain)
    try:
        with _activated(Active(maps=maps, scope=find_scope())):
            yield
    finally:
        for key, config in configs.items():
            if before[key] is not None:
                config._attn_implementation_internal = before[key]


def _configs(model: PreTrainedModel) -> dict[int, Any]:
    """All that decide how a layer attends, by id; a pruned layer asks that of the model."""
    found = [getattr(module, "config", None) for module in model.modules()]
    return {id(config): config for config in map(whole_config, found) if config is not None}


def apply(module: nn.Module, output: Tensor) -> Tensor:
    """The heads' outputs (B, Q, H, D) as this thread wants them."""
    every = _active()
    if not every:
        return output
    for active in every:
        active.seen.add(module)
    recorded = _last(active.recorded for active in every)
    if getattr(module, "kept_heads", None) == []:  # what is there is blank, see pruned_parts.NoHeads
        if recorded is not None:
            recorded.setdefault(module, []).append(output[:, :, :0].detach())
        return output
    if recorded is not None:
        recorded.setdefault(module, []).append(output.detach())
    name = type(module).__name__
    for active in every:
        change = active.changes.get(module)
        if change is None:
            continue
        gate = rows_for(change.gate, output, "gates")
        if gate.shape[-1] != output.shape[2]:
            raise ValueError(
                f"{name} puts out {output.shape[2]} heads where {gate.shape[-1]} were found, so they cannot be "
                "masked; expected as many."
            )
        gate = token_wise(gate if gate.ndim == 3 else gate[:, None], output)[..., None]  # (B or 1, Q or 1, H, 1)
        output = change.applied(output, gate, active.calls[module], name)
        if change.replacement is not None:  # gates alone need no count, which a compiled graph would be bound to
            active.calls[module] += 1
    return output


@torch.compiler.disable
def _active() -> tuple[Active, ...]:
    """What holds here and now. A compiled graph breaks here: that is known only when it runs."""
    every = _ACTIVE.get()
    if any(active.left or active.scope is not None for active in every):
        return tuple(active for active in every if not active.left and (active.scope is None or active.scope.holds()))
    return every


def _last(found: Iterable[dict[nn.Module, Item] | None]) -> dict[nn.Module, Item] | None:
    """Of the innermost block that asks for it."""
    return next((each for each in reversed([*found]) if each is not None), None)


def _gated(plain: str) -> Callable:
    def attention(
        module: nn.Module, query: Tensor, key: Tensor, value: Tensor, *arguments: Any, **options: Any
    ) -> tuple[Tensor, Tensor | None]:
        output, weights = plain_function(type(module), plain)(module, query, key, value, *arguments, **options)
        maps = _last(active.maps for active in _active())
        if maps is not None and weights is not None:
            kept = getattr(module, "kept_heads", None)
            maps.setdefault(module, []).append((weights if kept != [] else weights[:, :0]).detach())
        return apply(module, output), weights

    return attention


_PLAIN: dict[tuple[type, str], Callable] = {}


def plain_function(kind: type, name: str) -> Callable:
    """The attention function that a module class would use by itself: `eager` lives in its modeling file."""
    if (kind, name) not in _PLAIN:
        _PLAIN[kind, name] = _find_plain(kind, name)
    return _PLAIN[kind, name]


def _find_plain(kind: type, name: str) -> Callable:
    files = [sys.modules[parent.__module__] for parent in kind.__mro__ if parent.__module__ in sys.modules]
    if name == "eager":
        known = ("eager_attention_forward", *_named_in(kind, "eager_attention_forward"))
        found = next((own for each in reversed(known) for file in files if (own := getattr(file, each, None))), None)
    else:
        # A modeling file may have an interface of its own, with other functions under the same names.
        own = next((file.ALL_ATTENTION_FUNCTIONS for file in files if hasattr(file, "ALL_ATTENTION_FUNCTIONS")), None)
        found = (own or ALL_ATTENTION_FUNCTIONS).get(name)
    if found is None:
        raise ValueError(
            f"{kind.__name__} has no attention function {name!r} that headcount knows of, so its heads cannot be "
            "masked; expected another attn_implementation."
        )
    return found


def _named_in(kind: type, ending: str) -> list[str]:
    """The names with this ending that the forward of a module class calls: some files have two eager functions."""
    code = getattr(inspect.unwrap(kind.forward), "__code__", None)  # type: ignore[attr-defined]
    return [name for name in getattr(code, "co_names", ()) if name.endswith(ending)]


_switch_lock = threading.Lock()
_switched_configs: dict[int, list] = {}  # id of a config -> [config, its own implementation, contexts that need it]


@contextmanager
def _switched(model: PreTrainedModel) -> Iterator[None]:
    """The model's configs name the gated implementations until the last context, of any thread, is left."""
    configs = _configs(model)
    entered = []
    with _switch_lock:
        for key, config in configs.items():
            plain = getattr(config, "_attn_implementation", None)
            if key in _switched_configs:
                _switched_configs[key][2] += 1
            elif plain is None or plain.startswith(PREFIX):
                continue
            else:
                config._attn_implementation_internal = SwitchedName(register(plain), plain)
                _switched_configs[key] = [config, plain, 1]
            entered.append(key)
    try:
        yield
    finally:
        with _switch_lock:
            for key in entered:
                _switched_configs[key][2] -= 1
                config, plain, needed = _switched_configs[key]
                if not needed:
                    del _switched_configs[key]
                    if config._attn_implementation == PREFIX + plain:
                        config._attn_implementation_internal = plain


def register(plain: str) -> str:
    """Registers the gated twin of an attention implementation, with its mask function, and returns its name."""
    name = PREFIX + plain
    if name not in ALL_ATTENTION_FUNCTIONS:
        AttentionInterface.register(name, _gated(plain))
        if plain in ALL_MASK_ATTENTION_FUNCTIONS:
            AttentionMaskInterface.register(name, ALL_MASK_ATTENTION_FUNCTIONS[plain])
    return name


_own_gates: dict[nn.Module, list] = {}  # attention module -> [its hook, contexts that need it]


@contextmanager
def _own_gate(layer: AttentionLayer) -> Iterator[None]:
    """Layers that do not ask the interface: one hook where their heads lie side by side, for all contexts."""
    module = layer.module
    with _switch_lock:
        if module not in _own_gates:
            _own_gates[module] = [_hook(layer), 0]
        _own_gates[module][1] += 1
    try:
        yield
    finally:
        with _switch_lock:
            _own_gates[module][1] -= 1
            if not _own_gates[module][1]:
                _own_gates.pop(module)[0].remove()


def _hook(layer: AttentionLayer) -> Any:
    module = layer.module
    if layer.place == TORCH:
        return module.register_forward_hook(TorchGate(apply), with_kwargs=True)
    place = "out_proj" if layer.place is None else layer.place  # headcount's own models have it there
    gate = PlaceGate(apply, module, len(layer.heads), place)
    if place in AT_OUTPUT:
        return module.register_forward_hook(gate)
    return module.get_submodule(place).register_forward_pre_hook(gate)


class Forget(PassingHook):
    """Before an attention layer of a stock model: nobody has asked for its gates yet."""

    def __call__(self, module: nn.Module, inputs: tuple) -> None:
        for active in _active():
            active.seen.discard(module)


class Insist(PassingHook):
    """After it: if its gates were not asked for, the mask was ignored, and that is an error."""

    def __init__(self, model: PreTrainedModel, layer: AttentionLayer):
        self.model_name, self.layer_name, self.path = type(model).__name__, layer.name, layer.path

    def __call__(self, module: nn.Module, inputs: tuple, output: Any) -> None:
        for active in _active():
            if module not in active.seen and (module in active.changes or active.recorded is not None):
                raise RuntimeError(
                    f"{self.model_name} computed {self.layer_name} ({self.path}) without asking the attention "
                    "interface, so the head mask had no effect; expected a model whose layers do: see "
                    "docs/stock-models.md."
                )


def _gate_table(
    model: PreTrainedModel, layers: dict[str, AttentionLayer], gates: Gates, allow_any: bool
) -> dict[str, Tensor]:
    """Attention layer -> (B or 1, H), for the layers that have a gate at all."""
    known = [Head(f"{layer.name}.{head}") for layer in layers.values() for head in layer.heads]
    if isinstance(gates, Tensor):
        if gates.ndim not in (1, 2) or gates.shape[-1] != len(known):
            raise ValueError(
                f"gates have shape {tuple(gates.shape)}, expected ({len(known)},) or (batch, {len(known)}): one for "
                f"every head of {type(model).__name__}, in the order of list_heads."
            )
        check_gates(gates, "the tensor of gates", allow_any)
        sizes = [len(layer.heads) for layer in layers.values()]
        parts = (gates if gates.ndim == 2 else gates[None]).split(sizes, dim=-1)
        return {name: part for name, part in zip(layers, parts, strict=True) if part.shape[-1]}
    values = list(gates.values()) if isinstance(gates, Mapping) else None
    heads = pick_heads(gates, known, type(model).__name__)
    named: dict[str, Tensor] = {
        head: gate if isinstance(gate, Tensor) else torch.tensor(float(gate))
        for head, gate in zip(heads, values or [0.0] * len(heads), strict=True)
    }
    for head, gate in named.items():
        check_gates(gate, head, allow_any)
    table = {}
    for layer in layers.values():
        columns = {number: named[name] for number in layer.heads if (name := f"{layer.name}.{number}") in named}
        if not columns:
            continue
        shapes = {tuple(gate.shape) for gate in columns.values() if gate.ndim}
        if any(gate.ndim > 1 for gate in columns.values()) or len(shapes) > 1:
            raise ValueError(
                f"gates of {layer.name} have shapes {sorted(shapes)}; expected () or one (batch,) for all."
            )
        rows = next(iter(shapes), (1,))[0]
        device = next(iter(columns.values())).device
        ones = torch.ones(rows, device=device)
        table[layer.name] = torch.stack(
            [columns[n].to(device).expand(rows) if n in columns else ones for n in layer.heads], dim=-1
        )
    return table
