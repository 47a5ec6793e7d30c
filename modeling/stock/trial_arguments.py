"""Ways to call an attention layer by the names of its arguments, with random states: for `trials.py` to try."""

import inspect
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D


STATES = ("key_value_state", "encoder_hidden_state", "encoder_state", "cross_attention_state", "context")
ROTARY: tuple[str, ...] = ("position_embeddings", "relative_position_embeddings", "cos", "sin", "pos_emb")
ROTARY += ("freqs_cis", "freqs_ci", "freqs")
# What layers with their own code are handed for every head.
HEAD_WISE = ("alibi", "position_bias", "relative_position_bias", "rel_pos", "rel_2d_pos")
LENGTH = "length"


@dataclass(frozen=True)
class HeadWise:
    """Arguments that have something for every head, and their shape; `LENGTH` stands for the tokens."""

    names: tuple[str, ...]
    sizes: tuple[Any, ...]

    def values(self, length: int) -> dict[str, Tensor]:
        shape = [length if size == LENGTH else size for size in self.sizes]
        return {name: torch.randn(shape, generator=generator()) for name in self.names}


def head_wise_shapes(unit: nn.Module, heads: int) -> list[HeadWise | None]:
    """What such arguments may look like; None leaves them out."""
    names = tuple(name for name in inspect.signature(unit.forward).parameters if name in HEAD_WISE)
    if not names:
        return [None]
    return [HeadWise(names, (1, heads, LENGTH, LENGTH)), HeadWise(names, (heads, 1, LENGTH)), None]


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def arguments_of(
    unit: nn.Module, module: Any, is_cross: bool, own_code: bool = False, head_wise: HeadWise | None = None
) -> Iterator[dict[str, Any]]:
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
    unknown = [name for name in required if name not in {*states, *rotary} and "mask" not in name]
    levels = [module.n_levels] if type(getattr(module, "n_levels", None)) is int else []
    for length, size, state_size, with_states, mask, fill, shape in itertools.product(
        dict.fromkeys([*(16 * count for count in levels), 4, *areas]),
        sizes,
        sizes,
        (is_cross, not is_cross),
        (0, 1, 2) if own_code else (0, 1),
        (True, False) if own_code else (False, True),
        ((1, -1), (-1,), (1, 2, -1)),
    ):
        if ((size != state_size or with_states != is_cross) and not states) or (fill and not unknown):
            continue  # nothing that has not been tried
        shape = (*shape[:-1], length // math.prod(shape[:-1]))
        for tables in _tables(module, length, size) if rotary else [()]:
            source = generator()
            known: dict[str, Any] = {
                "position_ids": torch.arange(length)[None],
                "cu_seqlens": torch.tensor([0, length], dtype=torch.int32),
                "attention_mask": torch.zeros(1, mask, length, length) if mask else None,
                "shared_kv_states": {},
            }
            if own_code:
                known |= _own_code(module, length, size, mask)
            if head_wise is not None:
                known |= head_wise.values(length)
            if with_states:
                known |= dict.fromkeys(states, torch.randn(*shape, state_size, generator=source))
            for name in rotary:
                known[name] = tables[name == "sin"] if name in ("cos", "sin") else tables
            if fill:
                known = dict.fromkeys(unknown, torch.randn(*shape, size, generator=source)) | known
            found = {name: known.get(name) for name in others if name in known or name in required}
            if is_taken and mask == 1:
                found["attention_mask"] = None
            yield {first: torch.randn(*shape, size, generator=source), **found}


def _own_code(module: Any, length: int, size: int, mask: int) -> dict[str, Any]:
    """What layers with their own code ask for; ones hide nothing, whether they are added or say what is seen."""
    side, levels = math.isqrt(length), getattr(module, "n_levels", 1)
    span: int = getattr(module, "pos_ebd_size", 0) or getattr(module, "max_relative_positions", length)
    shown = torch.ones(1, length)
    return {
        "attention_mask": [None, torch.ones(1, 1, length, length), shown][mask],
        "mask": shown,
        "height": side,
        "width": side,
        "relative_pos": torch.arange(length)[:, None] - torch.arange(length),
        "rel_embeddings": torch.randn(2 * span, size, generator=generator()),
        # Of deformable attention: maps of four by four places.
        "reference_points": torch.full((1, length, levels, 2), 0.5),
        "spatial_shapes": torch.full((levels, 2), 4),
        "spatial_shapes_list": [(4, 4)] * levels,
        "level_start_index": 16 * torch.arange(levels),
    }


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
        yield torch.randn(1, rows, size, generator=generator())


def _window_area(part: nn.Module) -> int:
    """Tokens of a window of attention, if the layer has a fixed one."""
    window = getattr(part, "window_size", None)
    sides = (window, window) if type(window) is int else window
    return sides[0] * sides[1] if isinstance(sides, (tuple, list)) and len(sides) == 2 else 0
