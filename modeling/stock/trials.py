"""A copy of one attention layer that runs by itself, outside of its model, with random weights on random states.

How a layer is called is found by trying, the likeliest first. Where its heads are seen is known: the attention
interface hands them over, and in a layer with its own code they lie side by side in a known place (`own_code.py`).

Shapes: B rows, T tokens, H heads that are left in the layer, D head dimension.
"""

import copy
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, PreTrainedModel

from .finding import AttentionLayer
from .gates import plain_function
from .own_code import AT_OUTPUT, PlaceGate
from .pruned_parts import is_own_part, whole_config
from .trial_arguments import HeadWise, arguments_of, generator, head_wise_shapes


PROBE = "headcount_probe"


class Unfit(Exception):
    """Why heads of a layer cannot be removed."""


@dataclass(frozen=True)
class Call:
    """What was seen of the heads when they attended; in a layer with its own code, what they put out."""

    heads: int
    head_size: int
    value_size: int
    key_value_heads: int | None  # None if that was not seen
    keys: int | None = None  # tokens that are attended to


class Trial:
    """A copy of a layer; `up` is 1 if the module around it runs, which has the output projection."""

    def __init__(self, model: PreTrainedModel, layer: AttentionLayer, up: int):
        path = layer.path.split(".")
        place = ".".join(path[: len(path) - up])
        self.unit = random_copy(model.get_submodule(place))
        self.module: Any = self.unit.get_submodule(".".join(path[len(path) - up :]))
        self.name, self.up, self.place = ".".join(path[len(path) - up :]), up, layer.place
        self.heads, self.is_cross = len(layer.heads), layer.name.endswith(".cross")
        self.heads_ever = self.heads + len(getattr(layer.module, "pruned_heads", ()))
        self.gate: Tensor | None = None  # (H,): what heads' outputs are multiplied by
        self.calls: list[Call] = []
        self.plain = "eager"
        self.module.trial = self
        self.ways: list[dict[str, Any]] = []  # arguments that it was found to run with, one after the other
        self.given: dict[str, int] = {}  # arguments with something for every head, and how many dimensions they have
        if self.place is None:
            for part in self.unit.modules():
                if getattr(part, "config", None) is not None:
                    whole_config(part.config)._attn_implementation_internal = PROBE

    def attend(self, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, *rest: Any, **options: Any) -> Any:
        """In the place of the attention function that a layer asks the interface for."""
        output, weights = plain_function(type(module), self.plain)(module, query, key, value, *rest, **options)
        sizes = {query.shape[1], output.shape[-2]}
        heads = sizes.pop() if len(sizes) == 1 else 0
        self.calls.append(Call(heads, query.shape[-1], value.shape[-1], key.shape[1], key.shape[2]))
        return output if self.gate is None else output * self.gate[:, None], weights

    def put_out(self, module: nn.Module, heads: Tensor) -> Tensor:
        """What heads (B, Q, H, D) of a layer with its own code put out."""
        self.calls.append(Call(heads.shape[-2], heads.shape[-1], heads.shape[-1], None))
        return heads if self.gate is None else heads * self.gate[:, None]

    def run(self, way: int = 0) -> Tensor:
        """What the unit puts out."""
        return self._run(self.ways[way])

    def _run(self, arguments: dict[str, Any]) -> Tensor:
        self.calls.clear()
        with self._watched():
            return _first_tensor(self.unit(**arguments))

    @contextmanager
    def _watched(self) -> Iterator[None]:
        if self.place is None:
            yield
            return
        heads = len(getattr(self.module, "kept_heads", range(self.heads))) or 1  # an empty layer has a blank one
        gate = PlaceGate(self.put_out, self.module, heads, self.place)
        if self.place in AT_OUTPUT:
            hook = self.module.register_forward_hook(gate)
        else:
            hook = self.module.get_submodule(self.place).register_forward_pre_hook(gate)
        try:
            yield
        finally:
            hook.remove()

    def find_ways(self) -> None:
        """Ways to call the layer, with what is given for every head and without: what is left has to do for all."""
        reasons: list[str] = []
        shapes = [None] if self.place is None else head_wise_shapes(self.unit, self.heads_ever)
        for plain in ("eager", "sdpa") if self.place is None else ("eager",):
            self.plain = plain
            for shape in shapes:
                if self.given and shape is not None:
                    continue  # of the shapes, one is right
                way = next((way for way in self._candidates(shape) if self._runs(way, reasons)), None)
                if way is not None:
                    self.ways.append(way)
                    self.given |= {name: len(shape.sizes) for name in shape.names} if shape is not None else {}
            if self.ways:
                break
        else:
            raise Unfit(
                f"it does not run by itself ({reasons[0].splitlines()[0] if reasons else 'no way to call it'})"
            )
        self._try_masks_for_heads(reasons)

    def _candidates(self, shape: HeadWise | None) -> Iterator[dict[str, Any]]:
        return arguments_of(self.unit, self.module, self.is_cross, self.place is not None, shape)

    def _try_masks_for_heads(self, reasons: list[str]) -> None:
        """A mask may be made for every head, outside of the layer."""
        states, mask = (self.ways[0].get(name) for name in (next(iter(self.ways[0])), "attention_mask"))
        if "attention_mask" not in _names(self.unit) & _names(self.module) or states is None:
            return
        length = mask.shape[-1] if isinstance(mask, Tensor) else states.shape[-2]
        bias = torch.randn(1, self.heads_ever, length, length, generator=generator())
        way = self.ways[0] | {"attention_mask": bias}
        if self._runs(way, reasons):
            self.ways.append(way)
            self.given["attention_mask"] = 4

    def _runs(self, way: dict[str, Any], reasons: list[str]) -> bool:
        try:
            with torch.no_grad():
                self._run(way)
        except Exception as error:  # arguments that do not fit fail in any way they like
            reasons.append(f"{type(error).__name__}: {error}")
            return False
        if len(self.calls) != 1:
            raise Unfit(f"its attention function is called {len(self.calls)} times where 1 is expected")
        return self.calls[0].keys != 1  # a softmax over one token does not depend on queries and keys


def _attend(module: Any, *arguments: Any, **options: Any) -> Any:
    return module.trial.attend(module, *arguments, **options)


AttentionInterface.register(PROBE, _attend)


def random_copy(unit: nn.Module) -> Any:
    """On the CPU, in float32, in evaluation mode, without others' hooks; buffers keep what they hold."""
    source = generator()
    memo: dict[int, Any] = {}  # what deepcopy takes for what is there
    for parameter in unit.parameters():
        noise = torch.randn(parameter.shape, generator=source)
        scale = max(parameter.shape[-1], 1) ** -0.5 if parameter.ndim > 1 else 0.2
        memo[id(parameter)] = nn.Parameter(noise * scale + (0.5 if parameter.ndim < 2 else 0.0))
    for buffer in unit.buffers():
        real = torch.ones(buffer.shape, dtype=buffer.dtype) if buffer.is_meta else buffer.detach().cpu().clone()
        memo[id(buffer)] = real.float() if real.is_floating_point() else real
    found = copy.deepcopy(unit, memo)
    found.eval()
    for part in found.modules():
        for hooks in (part._forward_hooks, part._forward_pre_hooks, part._backward_hooks, part._backward_pre_hooks):
            for key in [key for key, hook in hooks.items() if not is_own_part(hook)]:
                del hooks[key]
    return found


def _first_tensor(output: Any) -> Tensor:
    return output if isinstance(output, Tensor) else next(part for part in output if isinstance(part, Tensor))


def _names(module: nn.Module) -> set[str]:
    return {*inspect.signature(module.forward).parameters}
