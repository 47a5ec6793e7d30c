"""How sharp attention is, and whether it finds the decisive neighbour, as sequences grow.

Shapes: N sequences, L tokens, A layers, H heads. In a sequence with one decisive pair, that stands at `place` and
`place + 1`. A head finds it looking back, from the later one to the earlier, or ahead.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


CELLS_PER_BATCH = 2**22
SEQUENCES = 8


@torch.inference_mode()
def maps_in_parts(model: Any, input_ids: Tensor) -> Iterator[Tensor]:
    """Maps (n, A, H, L, L) of an encoder, a few sequences at a time."""
    model.eval()
    size = max(1, CELLS_PER_BATCH // input_ids.shape[1] ** 2)
    for part in input_ids.split(size):
        yield torch.stack(model(part.to(model.device), output_attentions=True).attentions, dim=1).cpu()


def head_entropy(maps: Tensor) -> Tensor:
    """(n, A, H, L, L) -> (n, A, H): entropy of the weights, mean over queries, as a share of log L."""
    return torch.special.entr(maps).sum(-1).mean(-1) / math.log(maps.shape[-1])


def entropy_share(model: Any, input_ids: Tensor, sequences: int = SEQUENCES) -> float:
    """Mean over sequences, layers, heads and queries: 0 = each query sees one key, 1 = all keys alike."""
    return float(torch.cat([head_entropy(maps) for maps in maps_in_parts(model, input_ids[:sequences])]).mean())


def neighbour_weight(maps: Tensor, place: NDArray[np.int64]) -> dict[str, Tensor]:
    """{"back": (n, A, H), "ahead": (n, A, H)}: the weight that one of the decisive pair gives to the other."""
    row, first = torch.arange(len(maps)), torch.from_numpy(np.asarray(place))
    return {"back": maps[row, :, :, first + 1, first], "ahead": maps[row, :, :, first, first + 1]}


def measure_heads(model: Any, input_ids: Tensor, place: NDArray[np.int64]) -> dict[str, NDArray[np.float32]]:
    """{"entropy", "back", "ahead"}: (N, A, H) each."""
    found: dict[str, list[Tensor]] = {"entropy": [], "back": [], "ahead": []}
    start = 0
    for maps in maps_in_parts(model, input_ids):
        found["entropy"].append(head_entropy(maps))
        for direction, weight in neighbour_weight(maps, place[start : start + len(maps)]).items():
            found[direction].append(weight)
        start += len(maps)
    return {name: torch.cat(parts).numpy() for name, parts in found.items()}
