"""The feed-forward sublayers and the residual stream of a model: found, read and replaced.

`encoder.0.mlp` is what the feed-forward sublayer of a layer puts out before it is added to the stream;
`encoder.0.residual` is the stream after that layer.

In a transformers model both are found from the module graph. The feed-forward sublayer: outside of attention, a layer
has exactly one projection back to the hidden size from another size, and one from the hidden size to that. Where there
are several (a mixture of experts) or none, it is left out rather than guessed. The stream: the layer around the
attention stands in a list of layers that hand hidden states on to each other, by transformers' own
`GradientCheckpointingLayer`, and all its norms are of one size. Layers that are run by something else (ALBERT) are
left out. `analysis.interventions.subject.self_check` then looks at it in a run.

Shapes: B rows, L tokens, E hidden size.
"""

import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import cast

from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.pytorch_utils import Conv1D

from ..modeling_headcount import HeadcountPreTrainedModel
from ..stack import HeadcountStack
from .changes import Change, rows_for, token_wise
from .finding import attention_layers


def sublayer_paths(model: PreTrainedModel) -> dict[str, str]:
    """Name -> path of the module whose output it is: `encoder.0.mlp`, `encoder.0.residual`.

    >>> from transformers import GPT2Config, GPT2LMHeadModel
    >>> sublayer_paths(GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=2, n_embd=8)))
    {'decoder.0.mlp': 'transformer.h.0.mlp.c_proj', 'decoder.0.residual': 'transformer.h.0'}
    """
    found = {}
    if isinstance(model, HeadcountPreTrainedModel):
        for path, stack in model.named_modules():
            if isinstance(stack, HeadcountStack):
                for i in range(len(stack.layers)):
                    found[f"{stack.stack}.{i}.mlp"] = f"{path}.layers.{i}.feed_forward"
                    found[f"{stack.stack}.{i}.residual"] = f"{path}.layers.{i}"
        return found
    layers = attention_layers(model).values()
    own = [layer.path for layer in layers if layer.name.endswith(".self")]
    for layer in layers:
        block = block_of(layer.path, own) if layer.path in own else None
        if block is None:
            continue
        name, rest = layer.name.removesuffix(".self"), _outside_attention(model, block, [each.path for each in layers])
        down = _down_projection(rest)
        if down is not None:
            found[f"{name}.mlp"] = f"{block}.{down}"
        if _hands_on_a_stream(model, block, rest):
            found[f"{name}.residual"] = block
    return found


def block_of(path: str, attention: list[str]) -> str | None:
    """The path of the layer around an attention module: the largest numbered one that holds no other such module."""
    parts = path.split(".")
    for place, part in enumerate(parts):
        block = ".".join(parts[: place + 1])
        if part.isdigit() and sum(_is_within(other, block) for other in attention) == 1:
            return block
    return None


def _outside_attention(model: PreTrainedModel, block: str, attention: list[str]) -> dict[str, nn.Module]:
    """The parts of a layer that are in none of its attention modules, by their paths in it."""
    module = model.get_submodule(block)
    parents = (path.rpartition(".")[0] for path in attention)  # BERT has its output projection beside the attention
    apart = [*attention, *(path for path in parents if path != block and _is_within(path, block))]
    return {
        path: part
        for path, part in module.named_modules()
        if path and not any(_is_within(f"{block}.{path}", other) for other in apart)
    }


def _hidden_size(rest: dict[str, nn.Module]) -> int | None:
    """That of all norms of a layer, if it is one."""
    sizes = {int(cast(Tensor, part.weight).shape[0]) for part in rest.values() if _is_norm(part)}
    return sizes.pop() if len(sizes) == 1 else None


def _hands_on_a_stream(model: PreTrainedModel, block: str, rest: dict[str, nn.Module]) -> bool:
    layers = model.get_submodule(block.rpartition(".")[0])
    if not isinstance(layers, nn.ModuleList) or not all(isinstance(own, GradientCheckpointingLayer) for own in layers):
        return False
    first = next(iter(inspect.signature(model.get_submodule(block).forward).parameters), None)
    return first == "hidden_states" and _hidden_size(rest) is not None


def _down_projection(rest: dict[str, nn.Module]) -> str | None:
    hidden = _hidden_size(rest)
    if hidden is None:
        return None
    shapes = {path: _shape(part) for path, part in rest.items() if isinstance(part, (nn.Linear, Conv1D))}
    down = [path for path, (inputs, outputs) in shapes.items() if outputs == hidden != inputs]
    if len(down) != 1 or (hidden, shapes[down[0]][0]) not in shapes.values():
        return None
    return down[0]


def _is_within(path: str, outer: str) -> bool:
    return f"{path}.".startswith(f"{outer}.")


def _is_norm(module: nn.Module) -> bool:
    weight = getattr(module, "weight", None)
    return "norm" in type(module).__name__.lower() and isinstance(weight, Tensor) and weight.ndim == 1


def _shape(projection: nn.Linear | Conv1D) -> tuple[int, int]:
    """Input and output features."""
    first, second = projection.weight.shape
    return (first, second) if isinstance(projection, Conv1D) else (second, first)


@contextmanager
def change_sublayers(
    model: PreTrainedModel,
    paths: Mapping[str, str],
    changes: Mapping[str, Change],
    record: dict[str, list[Tensor]] | None = None,
) -> Iterator[None]:
    """Within the context, which is one forward, sublayers put out something else.

    `record` collects what all of them put out at every call, (B, L, E). A change has a gate (B or 1, L or 1) and
    replacements (B or 1, L, E).
    """
    calls: Counter[str] = Counter()
    with ExitStack() as stack:
        for name, path in paths.items():
            if name in changes or record is not None:
                hook = _changing(name, changes.get(name), record, calls)
                stack.callback(model.get_submodule(path).register_forward_hook(hook).remove)
        yield
    for name, count in calls.items():
        changes[name].check_calls(count, name)


def _changing(
    name: str, change: Change | None, record: dict[str, list[Tensor]] | None, calls: Counter[str]
) -> Callable:
    def hook(module: nn.Module, inputs: tuple, output: Tensor | tuple) -> Tensor | tuple:
        states = output[0] if isinstance(output, tuple) else output
        if states.ndim != 3:
            raise ValueError(
                f"{name} puts out a tensor of shape {tuple(states.shape)}; expected (batch, tokens, hidden size)."
            )
        if record is not None:
            record.setdefault(name, []).append(states.detach())
        if change is None:
            return output
        gate = token_wise(rows_for(change.gate, states, "gates"), states)[..., None]
        changed = change.applied(states, gate, calls[name], name)
        calls[name] += 1
        return (changed, *output[1:]) if isinstance(output, tuple) else changed

    return hook
