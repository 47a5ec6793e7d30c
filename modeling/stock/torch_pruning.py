"""Heads of torch's own attention layer, `nn.MultiheadAttention`: where they are is known, so nothing is measured."""

import copy
from typing import Any

import torch
from torch import Tensor, nn

from .finding import AttentionLayer
from .own_code import PlaceGate, TorchGate
from .pruned_model import Note, check_note, cut_layer, ranges_of
from .trial_arguments import generator
from .trials import Unfit, random_copy


MATRICES = ("q_proj_weight", "k_proj_weight", "v_proj_weight")


def torch_plan(layer: AttentionLayer, numbers: set[int]) -> Note:
    """What is left of the layer without these heads; a copy that was cut so must do what the masked one does."""
    module = layer.module
    if module.bias_k is not None or module.add_zero_attn:
        raise Unfit("it adds keys and values of its own")
    kept = [head for head in layer.heads if head not in numbers]
    columns = [i for place, head in enumerate(layer.heads) if head in kept for i in _features(module, place)]
    width = len(layer.heads) * module.head_dim
    rows = [part * width + column for part in range(3) for column in columns]
    names = {"in_proj_bias": rows}
    names |= {"in_proj_weight": rows} if module._qkv_same_embed_dim else dict.fromkeys(MATRICES, columns)
    plan = {
        "layer": layer.name,
        "path": layer.path,
        "up": 0,
        "removed": sorted({*getattr(module, "pruned_heads", ()), *numbers}),
        "kept": kept,
        "inputs": {"out_proj": ranges_of(columns)},
        "entries": {name: [0, ranges_of(left)] for name, left in names.items() if getattr(module, name) is not None},
        **{name: {} for name in ("outputs", "blank", "numbers", "config", "given")},
        "key_value_of": None,
        "picks": False,
    }
    if not _agrees(layer, plan, numbers):
        raise Unfit("without them it does not compute what it does with them masked")
    return plan


def _features(module: nn.MultiheadAttention, place: int) -> range:
    return range(place * module.head_dim, (place + 1) * module.head_dim)


def _agrees(layer: AttentionLayer, plan: Note, numbers: set[int]) -> bool:
    holder = nn.Module()
    holder.unit = random_copy(layer.module)
    source = generator()
    query = torch.randn(4, 4, layer.module.embed_dim, generator=source)
    key, value = (torch.randn(4, 4, size, generator=source) for size in (layer.module.kdim, layer.module.vdim))
    gate = torch.tensor([float(head not in numbers) for head in layer.heads])

    def close(module: nn.Module, heads: Tensor) -> Tensor:
        return heads * gate[:, None]

    unit: Any = holder.unit
    if hasattr(unit, "kept_heads"):
        hook = unit.out_proj.register_forward_pre_hook(PlaceGate(close, unit, len(layer.heads), "out_proj"))
    else:
        hook = unit.register_forward_hook(TorchGate(close), with_kwargs=True)
    with torch.no_grad():
        wanted = unit(query, key, value)[0]
        hook.remove()
        smaller: Any = copy.deepcopy(holder)
        check_note(smaller, "unit", plan)
        cut_layer(smaller, "unit", plan)
        return torch.allclose(smaller.unit(query, key, value)[0], wanted, rtol=1e-4, atol=1e-4)
