"""Which features of which projections belong to which head, measured on a layer rather than read from its names.

A copy of the layer with random weights runs on random states (`trials.py`). What depends on a head's output shows
where it enters the output projection; what that depends on, by its gradient, shows which features of the projections
before it make that head: its query, its key and value (which other heads of its group may share), a gate. So it does
not matter whether projections are separate or one, whether heads lie in it side by side or interleaved, and how they
are called.

Shapes: B rows, T tokens, H heads that are left in the layer, D head dimension.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from .finding import AttentionLayer
from .own_code import AT_OUTPUT
from .pruned_model import output_size
from .trial_arguments import generator
from .trials import Call, Trial, Unfit


@dataclass(frozen=True)
class Layout:
    """Of one attention layer. Paths lead from the unit, which is the layer or the module around it."""

    up: int  # 1 if the output projection is not in the layer itself but beside it
    outputs: dict[str, list[frozenset[int]]]  # projection -> the heads that each of its output features makes
    inputs: dict[str, list[frozenset[int]]]  # output projection -> the heads that write to each of its input features
    entries: dict[
        str, tuple[int, list[frozenset[int]]]
    ]  # other parameter -> dimension, the heads of its entries there
    key_value_of: list[int]  # head -> the key/value head that it reads
    head_size: int
    value_size: int


def find_layout(model: PreTrainedModel, layer: AttentionLayer) -> tuple[Layout, Trial]:
    """Where the heads of a layer are, and the trial that showed it; raises `Unfit` if that cannot be told."""
    problem = None
    if layer.place is not None:
        ups: tuple[int, ...] = (1,) if layer.place in AT_OUTPUT else (0,)
    else:
        ups = (0, 1) if "." in layer.path else (0,)
    for up in ups:
        try:
            trial = Trial(model, layer, up)
            trial.find_ways()
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
        def record(projection: nn.Module, inputs: tuple, output: Tensor) -> Tensor:
            seen.append((path, inputs[0], output, len(trial.calls)))
            return output.clone()  # what the layer goes on with, perhaps in place

        return record

    parts = [(path, part) for path, part in trial.unit.named_modules() if isinstance(part, (nn.Linear, Conv1D))]
    hooks = [part.register_forward_hook(watch(path)) for path, part in parts]
    try:
        trial.run()
        ran, call = list(seen), trial.calls[0]
        if call.heads != heads:
            raise Unfit(f"its attention function gets {call.heads} heads where {heads} were found")
        written = _written(trial, seen, heads)
    finally:
        for hook in hooks:
            hook.remove()
    if written is None:
        return None
    out, columns = written
    last = next(i for i, (path, _, _, calls) in enumerate(ran) if path == out and calls)
    before = [(path, output) for path, _, output, _ in ran[:last] if output.requires_grad]
    used, sizes, mixed = {path for path, *_ in ran}, {output.shape[-1] for _, output in before}, ran[last][1]
    for path, part in parts:
        if (
            path.startswith(trial.name)
            and path not in used
            and (trial.place is not None or output_size(part) in sizes)
        ):
            raise Unfit(f"its projection {path} is used only at times")
    if any(len(column) > 1 for column in columns):
        raise Unfit("its heads are mixed before the output projection, by a norm for instance")
    others = [(name, tensor) for name, tensor in trial.unit.named_parameters() if name.rpartition(".")[0] not in used]
    outputs: dict[str, list[set[int]]] = {path: [set() for _ in range(y.shape[-1])] for path, y in before}
    entries: dict[tuple[str, int], list[set[int]]] = {
        (name, dim): [set() for _ in range(size)] for name, tensor in others for dim, size in enumerate(tensor.shape)
    }
    weights = torch.randn(mixed.shape, generator=generator())
    tensors = [tensor for _, tensor in before + others]
    for head in range(heads):
        own = torch.tensor([head in column for column in columns])
        goal = (mixed * weights)[..., own].sum()
        grads = torch.autograd.grad(goal, tensors, retain_graph=True, allow_unused=True)
        for (path, _), grad in zip(before, grads, strict=False):
            _add(head, outputs[path], grad, -1)
        for (name, tensor), grad in zip(others, grads[len(before) :], strict=True):
            for dim in range(tensor.ndim):
                _add(head, entries[name, dim], grad, dim)
    return Layout(
        trial.up,
        {path: [*map(frozenset, features)] for path, features in outputs.items() if any(features)},
        {out: columns},
        _apart(entries, heads),
        _key_value_heads(trial, call, heads, outputs),
        call.head_size,
        call.value_size,
    )


def _add(head: int, owners: list[set[int]], grad: Tensor | None, dim: int) -> None:
    """Says of a head which entries along a dimension its output depends on."""
    if grad is not None:
        for entry in grad.movedim(dim, 0).reshape(grad.shape[dim], -1).abs().sum(1).nonzero().flatten().tolist():
            owners[entry].add(head)


def _apart(entries: dict[tuple[str, int], list[set[int]]], heads: int) -> dict[str, tuple[int, list[frozenset[int]]]]:
    """The parameters that have something for every head, or for every group, and the dimension in which they have."""
    found: dict[str, tuple[int, list[frozenset[int]]]] = {}
    for (name, dim), owners in entries.items():
        if name not in found and len({*map(frozenset, owners)}) > 1 and all(0 < len(each) < heads for each in owners):
            found[name] = dim, [*map(frozenset, owners)]
    return found


def _key_value_heads(trial: Trial, call: Call, heads: int, outputs: dict[str, list[set[int]]]) -> list[int]:
    """Head -> the key/value head that it reads; in a layer with its own code, heads of a group share features."""
    if getattr(trial.module, "key_value_of", None) is not None:
        return list(trial.module.key_value_of)
    count = call.key_value_heads
    if count is None:
        shared = {frozenset(owners) for features in outputs.values() for owners in features if len(owners) > 1}
        in_order = sorted(map(sorted, shared))
        apart = [*itertools.chain(*in_order)] == [*range(heads)] and len({*map(len, in_order)}) == 1
        count = len(in_order) if apart else heads
    if heads % count:
        raise Unfit(f"it has {heads} heads for {count} of keys and values")
    return [head // (heads // count) for head in range(heads)]


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
