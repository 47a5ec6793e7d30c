"""The feed-forward sublayers and the residual stream of a model: found, read and replaced.

`encoder.0.mlp` is what the feed-forward sublayer of a layer puts out before it is added to the stream;
`encoder.0.residual` is the stream after that layer, which only headcount's own models tell for certain.

In a transformers model the feed-forward sublayer is found from the module graph: outside of attention, a layer has
exactly one projection back to the hidden size from another size, and one from the hidden size to that. Where there are
several (a mixture of experts) or none, the layer is left out rather than guessed.

Shapes: B rows, L tokens, E hidden size.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from ..modeling_headcount import HeadcountPreTrainedModel
from ..stack import HeadcountStack
from .finding import attention_layers
from .gates import Change, rows_for, token_wise


def sublayer_paths(model: PreTrainedModel) -> dict[str, str]:
    """Name -> path of the module whose output it is: `encoder.0.mlp`, and of own models `encoder.0.residual`.

    >>> from transformers import GPT2Config, GPT2LMHeadModel
    >>> sublayer_paths(GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=2, n_embd=8)))
    {'decoder.0.mlp': 'transformer.h.0.mlp.c_proj'}
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
        down = None if block is None else _down_projection(model, block, [each.path for each in layers])
        if down is not None:
            found[f"{layer.name.removesuffix('.self')}.mlp"] = f"{block}.{down}"
    return found


def block_of(path: str, attention: list[str]) -> str | None:
    """The path of the layer around an attention module: the largest numbered one that holds no other such module."""
    parts = path.split(".")
    for place, part in enumerate(parts):
        block = ".".join(parts[: place + 1])
        if part.isdigit() and sum(_is_within(other, block) for other in attention) == 1:
            return block
    return None


def _down_projection(model: PreTrainedModel, block: str, attention: list[str]) -> str | None:
    module = model.get_submodule(block)
    parents = (path.rpartition(".")[0] for path in attention)  # BERT has its output projection beside the attention
    apart = [*attention, *(path for path in parents if path != block and _is_within(path, block))]
    rest = {
        path: part
        for path, part in module.named_modules()
        if path and not any(_is_within(f"{block}.{path}", other) for other in apart)
    }
    sizes = {part.weight.shape[0] for part in rest.values() if _is_norm(part)}
    if len(sizes) != 1:
        return None
    (hidden,) = sizes
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
    record: dict[str, Tensor] | None = None,
) -> Iterator[None]:
    """Within the context, sublayers put out something else; `record` collects what all of them put out, (B, L, E).

    A change has a gate (B or 1, L or 1) and a replacement (B or 1, L, E).
    """
    with ExitStack() as stack:
        for name, path in paths.items():
            if name in changes or record is not None:
                hook = _changing(name, changes.get(name), record)
                stack.callback(model.get_submodule(path).register_forward_hook(hook).remove)
        yield


def _changing(name: str, change: Change | None, record: dict[str, Tensor] | None) -> Callable:
    def hook(module: nn.Module, inputs: tuple, output: Tensor | tuple) -> Tensor | tuple:
        states = output[0] if isinstance(output, tuple) else output
        if states.ndim != 3:
            raise ValueError(
                f"{name} puts out a tensor of shape {tuple(states.shape)}; expected (batch, tokens, hidden size)."
            )
        if record is not None:
            if name in record:
                raise ValueError(f"{name} runs more than once in a forward; expected zero ablation for this model.")
            record[name] = states.detach()
        if change is None:
            return output
        gate = token_wise(rows_for(change.gate, states, "gates"), states)[..., None]
        changed = states * gate
        if change.replacement is not None:
            changed = changed + (1 - gate) * token_wise(rows_for(change.replacement, states, "replacements"), states)
        return (changed, *output[1:]) if isinstance(output, tuple) else changed

    return hook
