"""Masks checked without headcount's own means: by the weights of a layer, and by plain hooks.

A head puts out nothing if its values are zero. So a model in which the value projection of a head (of a group of heads
that share it) is set to zero answers as the model in which that head (all heads of the group) is masked. Where values
are not the only thing that a head puts out (relative positions may be added to them), a plain hook on the output
projection takes over.
"""

from collections.abc import Callable, Iterator

from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D


VALUES = ("v_proj", "value", "v_lin", "value_proj", "linear_v", "v", "v_head", "projection_value", "project_v", "wv")
FUSED = (
    *("qkv", "c_attn", "query_key_value", "qkv_proj", "Wqkv", "queries_keys_values", "att_proj", "in_proj"),
    *("kv", "to_kv", "key_value", "kv_proj", "keys_values", "in_proj_qkv", "wkv"),
)
OUTPUTS = (
    *("out_proj", "o_proj", "out_lin", "dense", "proj", "c_proj", "o", "out", "to_out", "projection", "wo"),
    *("post_proj", "output_proj", "linear_out", "attention_out", "post", "output"),
)

Rows = Callable[[int], slice | list[int]]


def projection(module: nn.Module, names: tuple[str, ...]) -> nn.Module | None:
    """The first linear map of one of these names, or within such a part."""
    for name in names:
        part = getattr(module, name, None)
        if isinstance(part, nn.Module):
            found = next((each for each in part.modules() if is_linear(each)), None)
            if found is not None:
                return found
    return None


def is_linear(module: nn.Module) -> bool:
    weight = getattr(module, "weight", None)
    return isinstance(weight, Tensor) and (
        isinstance(module, (nn.Linear, Conv1D, nn.Conv1d)) or type(module).__name__.endswith("Linear")
    )


def layouts(is_fused: bool, size: int, heads: int) -> Iterator[tuple[int, Rows]]:
    """How the outputs of a value projection may belong to heads: how many groups, and the rows of each."""
    for groups in [heads, *(count for count in range(heads - 1, 0, -1) if heads % count == 0)]:
        if not is_fused and size % groups == 0:
            width = size // groups
            yield groups, lambda g, width=width: slice(g * width, (g + 1) * width)
        together = groups * (heads // groups + 2)  # queries, a key and a value of every group
        if is_fused and size % together == 0:
            width, each = size // together, heads // groups + 2
            first = (heads + groups) * width
            yield groups, lambda g, first=first, width=width: slice(first + g * width, first + (g + 1) * width)
            yield groups, lambda g, each=each, width=width: slice(((g + 1) * each - 1) * width, (g + 1) * each * width)
        if is_fused and size % (2 * groups) == 0:  # keys and values alone
            width = size // (2 * groups)
            yield groups, lambda g, n=groups, width=width: slice((n + g) * width, (n + g + 1) * width)
            yield groups, lambda g, width=width: slice((2 * g + 1) * width, (2 * g + 2) * width)


class WithoutValues:
    """A context in which some outputs of a value projection are zero."""

    def __init__(self, values: nn.Module, rows: slice | list[int]):
        self.values, self.rows = values, rows

    def __enter__(self) -> None:
        self.before = {name: each.data.clone() for name, each in self.values.named_parameters(recurse=False)}
        for name, each in self.values.named_parameters(recurse=False):
            if name == "weight" and isinstance(self.values, Conv1D):
                each.data[:, self.rows] = 0.0
            else:
                each.data[self.rows] = 0.0

    def __exit__(self, *error: object) -> None:
        for name, each in self.values.named_parameters(recurse=False):
            each.data.copy_(self.before[name])


class TorchValues:
    """The values of torch's own attention layer, as if they were a projection."""

    def __init__(self, module: nn.MultiheadAttention):
        self.module = module

    def without(self, rows: slice) -> WithoutValues:
        if not self.module._qkv_same_embed_dim:
            raise LookupError("separate projections")
        width = self.module.embed_dim
        part = nn.Linear(width, 3 * width, bias=self.module.in_proj_bias is not None)
        part.weight, part.bias = self.module.in_proj_weight, self.module.in_proj_bias
        return WithoutValues(part, slice(2 * width + rows.start, 2 * width + rows.stop))


def ways(module: nn.Module, heads: int) -> Iterator[tuple[int, WithoutValues]]:
    """Every way to remove the last group of heads by its values: how many groups there are, and the context."""
    if isinstance(module, nn.MultiheadAttention):
        width = module.embed_dim // heads
        yield heads, TorchValues(module).without(slice((heads - 1) * width, heads * width))
        return
    for names, is_fused in ((VALUES, False), (FUSED, True)):
        values = projection(module, names)
        if values is None:
            continue
        size = values.weight.shape[1] if isinstance(values, Conv1D) else values.weight.shape[0]
        for groups, rows in layouts(is_fused, size, heads):
            yield groups, WithoutValues(values, rows(groups - 1))


def hook_places(model: nn.Module, path: str) -> Iterator[nn.Module]:
    """Output projections that the heads of a layer may go into: of the layer, or of the module around it."""
    module, parent = model.get_submodule(path), model.get_submodule(path.rpartition(".")[0])
    for owner in (module, parent, getattr(parent, "output", None)):
        found = None if owner is None else projection(owner, OUTPUTS)
        if found is not None and found is not module:
            yield found


def closing_hook(place: nn.Module, head: int, heads: int):
    """The usual way to ablate: a hook that zeroes a head's part of the input of the output projection."""

    def close(module: nn.Module, inputs: tuple) -> tuple:
        parts = inputs[0].unflatten(-1, (heads, -1)).clone()
        parts[..., head, :] = 0.0
        return (parts.flatten(-2), *inputs[1:])

    return place.register_forward_pre_hook(close)
