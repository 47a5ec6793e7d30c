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
from .own_code import OUTPUT
from .pruned_model import output_size
from .trial_arguments import generator
from .trials import Call, Trial, Unfit


@dataclass(frozen=True)
class Layout:
    """Of one attention layer. Paths lead from the unit, which is the layer or the module around it."""

    up: int  # 1 if the output projection is not in the layer itself but beside it
    outputs: dict[str, list[frozenset[int]]]  # projection -> the heads that each of its output features makes
    inputs: dict[str, list[frozenset[int]]]  # output projection -> the heads that write to each of its input features
    key_value_of: list[int]  # head -> the key/value head that it reads
    head_size: int
    value_size: int


def find_layout(model: PreTrainedModel, layer: AttentionLayer) -> tuple[Layout, Trial]:
    """Where the heads of a layer are, and the trial that showed it; raises `Unfit` if that cannot be told."""
    problem = None
    if layer.place is not None:
        ups: tuple[int, ...] = (1,) if layer.place == OUTPUT else (0,)
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
        def record(projection: nn.Module, inputs: tuple, output: Tensor) -> None:
            seen.append((path, inputs[0], output, len(trial.calls)))

        return record

    parts = [(path, part) for path, part in trial.unit.named_modules() if isinstance(part, (nn.Linear, Conv1D))]
    hooks = [part.register_forward_hook(watch(path)) for path, part in parts]
    try:
        trial.run()
        before = [(path, output) for path, _, output, calls in seen if calls == 0 and output.requires_grad]
        after = [(path, inputs) for path, inputs, _, calls in seen if calls]
        call = trial.calls[0]
        if call.heads != heads:
            raise Unfit(f"its attention function gets {call.heads} heads where {heads} were found")
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
    weights = torch.randn(mixed.shape, generator=generator())
    for head in range(heads):
        own = torch.tensor([head in column for column in columns])
        grads = torch.autograd.grad(
            (mixed * weights)[..., own].sum(), [y for _, y in before], retain_graph=True, allow_unused=True
        )
        for (path, _), grad in zip(before, grads, strict=True):
            if grad is not None:
                for feature in grad.flatten(0, -2).abs().sum(0).nonzero().flatten().tolist():
                    outputs[path][feature].add(head)
    return Layout(
        trial.up,
        {path: [*map(frozenset, features)] for path, features in outputs.items() if any(features)},
        {out: columns},
        _key_value_heads(trial, call, heads, outputs),
        call.head_size,
        call.value_size,
    )


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
