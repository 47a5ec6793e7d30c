"""Which features of which projections belong to which head, measured on a layer rather than read from its names.

A copy of the layer with random weights runs on random states. What depends on a head's output shows where it enters
the output projection; what that depends on, by its gradient, shows which features of the projections before it make
that head: its query, its key and value (which other heads of its group may share), a gate. So it does not matter
whether projections are separate or one, whether heads lie in it side by side or interleaved, and how they are called.

Shapes: B rows, T tokens, H heads that are left in the layer, D head dimension.
"""

import copy
import inspect
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, PreTrainedModel
from transformers.pytorch_utils import Conv1D

from .finding import AttentionLayer
from .gates import plain_function
from .pruned_model import output_size, whole_config


PROBE = "headcount_probe"
STATES = ("key_value_state", "encoder_hidden_state", "encoder_state", "cross_attention_state", "context")
ROTARY = ("position_embeddings", "relative_position_embeddings", "cos", "sin", "freqs_cis", "freqs_ci", "freqs")


@dataclass(frozen=True)
class Layout:
    """Of one attention layer. Paths lead from the unit, which is the layer or the module around it."""

    up: int  # 1 if the output projection is not in the layer itself but beside it
    outputs: dict[str, list[frozenset[int]]]  # projection -> the heads that each of its output features makes
    inputs: dict[str, list[frozenset[int]]]  # output projection -> the heads that write to each of its input features
    key_value_of: list[int]  # head -> the key/value head that it reads
    head_size: int
    value_size: int


class Unfit(Exception):
    """Why heads of a layer cannot be removed."""


class Trial:
    """A copy of a layer that runs by itself; its parameters are random, so that every head matters."""

    def __init__(self, model: PreTrainedModel, layer: AttentionLayer, up: int):
        path = layer.path.split(".")
        place = ".".join(path[: len(path) - up])
        self.unit = _random_copy(model.get_submodule(place))
        self.module: Any = self.unit.get_submodule(".".join(path[len(path) - up :]))
        self.name, self.up = ".".join(path[len(path) - up :]), up
        for part in self.unit.modules():
            if getattr(part, "config", None) is not None:
                whole_config(part.config)._attn_implementation_internal = PROBE
        self.heads, self.is_cross = len(layer.heads), layer.name.endswith(".cross")
        self.gate: Tensor | None = None  # (H,): what heads' outputs are multiplied by
        self.calls: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []  # query, key, value, output
        self.plain = "eager"
        self.module.trial = self
        self.arguments: dict[str, Any] = {}

    def attend(self, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, *rest: Any, **options: Any) -> Any:
        output, weights = plain_function(type(module), self.plain)(module, query, key, value, *rest, **options)
        self.calls.append((query, key, value, output))
        if self.gate is not None:
            output = output * self.gate[:, None]
        return output, weights

    def run(self) -> Tensor:
        """What the unit puts out, with arguments that it was found to run with."""
        self.calls.clear()
        return _first_tensor(self.unit(**self.arguments))

    def find_arguments(self) -> None:
        reasons = []
        ways = list(_arguments(self.unit, self.module, self.heads, self.is_cross))
        for self.plain, self.arguments in itertools.product(("eager", "sdpa"), ways):
            try:
                with torch.no_grad():
                    self.run()
            except Exception as error:  # arguments that do not fit fail in any way they like
                reasons.append(f"{type(error).__name__}: {error}")
                continue
            if len(self.calls) == 1:
                return
            raise Unfit(f"its attention function is called {len(self.calls)} times where 1 is expected")
        raise Unfit(f"it does not run by itself ({reasons[0].splitlines()[0] if reasons else 'no way to call it'})")


def _attend(module: Any, *arguments: Any, **options: Any) -> Any:
    return module.trial.attend(module, *arguments, **options)


AttentionInterface.register(PROBE, _attend)


def find_layout(model: PreTrainedModel, layer: AttentionLayer) -> tuple[Layout, Trial]:
    """Where the heads of a layer are, and the trial that showed it; raises `Unfit` if that cannot be told."""
    problem = None
    for up in (0, 1) if "." in layer.path else (0,):
        try:
            trial = Trial(model, layer, up)
            trial.find_arguments()
            found = _layout(trial, len(layer.heads))
        except Unfit as error:
            problem = problem or error
            continue
        if found is not None:
            return found, trial
    raise problem or Unfit("no linear projection reads what its heads put out")


def _layout(trial: Trial, heads: int) -> Layout | None:
    seen: list[tuple[str, Tensor, Tensor, int]] = []  # projection, input, output, attention calls before it

    def watch(path: str) -> Callable:
        def record(projection: nn.Module, inputs: tuple, output: Tensor) -> None:
            seen.append((path, inputs[0], output, len(trial.calls)))

        return record

    parts = [(path, part) for path, part in trial.unit.named_modules() if isinstance(part, (nn.Linear, Conv1D))]
    hooks = [part.register_forward_hook(watch(path)) for path, part in parts]
    try:
        trial.run()
        before = [(path, output) for path, _, output, calls in seen if calls == 0 and output.requires_grad]
        after = [(path, inputs) for path, inputs, _, calls in seen if calls]
        query, key, value, _ = trial.calls[0]
        if query.shape[1] != heads:
            raise Unfit(f"its attention function gets {query.shape[1]} heads where {heads} were found")
        written = _written(trial, seen, heads)
    finally:
        for hook in hooks:
            hook.remove()
    if written is None:
        return None
    out, columns = written
    ran = {path for path, _ in before + after}
    sizes = {output.shape[-1] for path, output in before}
    for path, part in parts:
        if path.startswith(trial.name) and path not in ran and output_size(part) in sizes:
            raise Unfit(f"its projection {path} is used only at times")
    mixed = next((inputs for path, inputs in after if path == out))
    if any(len(column) > 1 for column in columns):
        raise Unfit("its heads are mixed before the output projection, by a norm for instance")
    outputs: dict[str, list[set[int]]] = {path: [set() for _ in range(y.shape[-1])] for path, y in before}
    weights = torch.randn(mixed.shape, generator=_generator())
    for head in range(heads):
        own = torch.tensor([head in column for column in columns])
        grads = torch.autograd.grad(
            (mixed * weights)[..., own].sum(), [y for _, y in before], retain_graph=True, allow_unused=True
        )
        for (path, _), grad in zip(before, grads, strict=True):
            if grad is not None:
                for feature in grad.flatten(0, -2).abs().sum(0).nonzero().flatten().tolist():
                    outputs[path][feature].add(head)
    group = heads // key.shape[1] if heads % key.shape[1] == 0 else 0
    shared = getattr(trial.module, "key_value_of", None)
    if shared is None and not group:
        raise Unfit(f"it has {heads} heads for {key.shape[1]} of keys and values")
    return Layout(
        trial.up,
        {path: [*map(frozenset, features)] for path, features in outputs.items() if any(features)},
        {out: columns},
        list(shared) if shared is not None else [head // group for head in range(heads)],
        query.shape[-1],
        value.shape[-1],
    )


def _written(trial: Trial, seen: list, heads: int) -> tuple[str, list[frozenset[int]]] | None:
    """The first projection after the attention that a head writes to, and the heads of each of its input features."""
    columns: dict[str, list[set[int]]] = {}
    for head in range(heads):
        seen.clear()
        trial.gate = torch.ones(heads).index_fill(0, torch.tensor(head), float("nan"))
        with torch.no_grad():
            trial.run()
        trial.gate = None
        for path, inputs, _, calls in seen:
            reached = inputs.flatten(0, -2).isnan().any(0)
            if calls and reached.any():
                found = columns.setdefault(path, [set() for _ in range(inputs.shape[-1])])
                for column in reached.nonzero().flatten().tolist():
                    found[column].add(head)
                break
    if not columns:
        return None
    if len(columns) > 1:
        raise Unfit("its heads are written out by several projections")
    out, features = next(iter(columns.items()))
    return out, [*map(frozenset, features)]


# ------------------------------------------------------------------------------------------------ running a layer


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def _random_copy(unit: nn.Module) -> Any:
    """On the CPU, in float32, in evaluation mode, without hooks; buffers keep what they hold."""
    generator = _generator()
    memo: dict[int, Any] = {}  # what deepcopy takes for what is there
    for parameter in unit.parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        scale = max(parameter.shape[-1], 1) ** -0.5 if parameter.ndim > 1 else 0.2
        memo[id(parameter)] = nn.Parameter(noise * scale + (0.5 if parameter.ndim < 2 else 0.0))
    for buffer in unit.buffers():
        real = torch.ones(buffer.shape, dtype=buffer.dtype) if buffer.is_meta else buffer.detach().cpu().clone()
        memo[id(buffer)] = real.float() if real.is_floating_point() else real
    found = copy.deepcopy(unit, memo).eval()
    for part in found.modules():
        for hooks in (part._forward_hooks, part._forward_pre_hooks, part._backward_hooks, part._backward_pre_hooks):
            hooks.clear()
    return found


def _first_tensor(output: Any) -> Tensor:
    return output if isinstance(output, Tensor) else next(part for part in output if isinstance(part, Tensor))


def _arguments(unit: nn.Module, module: Any, heads: int, is_cross: bool) -> Iterator[dict[str, Any]]:
    """Ways to call a layer by the names of its arguments, the likeliest first."""
    signature = inspect.signature(unit.forward).parameters
    first, *others = [name for name, p in signature.items() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    required = [name for name in others if signature[name].default is inspect.Parameter.empty]
    states = [name for name in others if any(word in name for word in STATES) and "mask" not in name]
    linears = [part for part in unit.modules() if isinstance(part, (nn.Linear, Conv1D))]
    sizes = list(dict.fromkeys(part.in_features if isinstance(part, nn.Linear) else part.nx for part in linears))
    areas = [area for part in module.modules() if 0 < (area := _window_area(part)) <= 4096]
    rotary = [name for name in others if name in ROTARY]
    is_taken = any(p.kind is p.VAR_KEYWORD for p in signature.values()) and "attention_mask" not in others
    unknown = [name for name in required if name not in {*states, *rotary}]
    for length, size, state_size, with_states, mask, fill, shape in itertools.product(
        dict.fromkeys([4, *areas]),
        sizes,
        sizes,
        (is_cross, not is_cross),
        # Of cross-attention, the mask may be one for every head, as in SAM 3.
        (*([heads] if is_cross else []), 0, 1),
        (False, True),
        ((1, -1), (-1,), (1, 2, -1)),
    ):
        if ((size != state_size or with_states != is_cross) and not states) or (fill and not unknown):
            continue  # nothing that has not been tried
        shape = (*shape[:-1], length // math.prod(shape[:-1]))
        for tables in _tables(module, length, size) if rotary else [()]:
            generator = _generator()
            known: dict[str, Any] = {
                "position_ids": torch.arange(length)[None],
                "cu_seqlens": torch.tensor([0, length], dtype=torch.int32),
                "attention_mask": torch.zeros(1, mask, length, length) if mask else None,
                "shared_kv_states": {},
            }
            if with_states:
                known |= dict.fromkeys(states, torch.randn(*shape, state_size, generator=generator))
            for name in rotary:
                known[name] = tables[name == "sin"] if name in ("cos", "sin") else tables
            if fill:
                known = dict.fromkeys(unknown, torch.randn(*shape, size, generator=generator)) | known
            found = {name: known.get(name) for name in others if name in known or name in required}
            if is_taken and mask == 1:
                found["attention_mask"] = None
            yield {first: torch.randn(*shape, size, generator=generator), **found}


def _tables(module: Any, length: int, size: int) -> Iterator[Any]:
    """Positions that leave queries and keys as they are: cosines and sines, complex numbers, or states to be added.

    A table of width 1 fits heads of any width, where the code does not ask for its own.
    """
    names = ("head_dim", "qk_rope_head_dim", "attention_head_size")
    widths = [1, *dict.fromkeys(value for name in names if type(value := getattr(module, name, None)) is int)]
    for shape in [(1, length), (length,)]:
        for width in widths:
            yield torch.ones(*shape, width), torch.zeros(*shape, width)
    for width in widths:
        yield torch.ones(1, length, width // 2, dtype=torch.complex64)
    for rows in (length, 2 * length - 1):
        yield torch.zeros(1, rows, size)


def _window_area(part: nn.Module) -> int:
    """Tokens of a window of attention, if the layer has a fixed one."""
    window = getattr(part, "window_size", None)
    sides = (window, window) if type(window) is int else window
    return sides[0] * sides[1] if isinstance(sides, (tuple, list)) and len(sides) == 2 else 0
