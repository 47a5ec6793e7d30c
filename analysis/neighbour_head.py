"""The head that looks at the neighbour: found at a training length, then shown there and far beyond."""

from collections.abc import Iterable

import numpy as np
import torch

from ..data_builders.sortedness_corpus import SortednessCorpus
from .attention_spread import attention_maps, measure_heads
from .dilution import exchanged_rows
from .length_curve import is_testable, no_room


REACH = 8  # distances on each side
SHOWN = 16  # tokens of the map around the violation


def neighbour_head(
    model, corpus: SortednessCorpus, lengths: Iterable[int] = (16, 256), sequences: int = 16
) -> list[dict]:
    """Rows by length: the head's mean weight by distance, and a piece of one map around the exchanged pair.

    The head is the one that gives most weight to the exchanged neighbour, chosen at the first of the lengths.
    """
    lengths = [n for n in lengths if is_testable(corpus, n) and not no_room(model.config, n)]
    if not lengths:
        return []
    values, position = exchanged_rows(corpus, lengths[0], sequences)
    measured = measure_heads(model, values, position)
    means = {direction: measured[direction].mean(0) for direction in ("back", "ahead")}  # (A, H)
    direction = max(means, key=lambda name: means[name].max())
    layer, head = np.unravel_index(means[direction].argmax(), means[direction].shape)
    rows = []
    for length in lengths:
        values, position = exchanged_rows(corpus, length, sequences)
        maps = torch.cat([part[:, layer, head] for part in attention_maps(model, values)])  # (N, L, L)
        first = int(np.clip(position[0] + 1 - SHOWN // 2, 0, length - min(SHOWN, length)))
        piece = slice(first, first + SHOWN)
        at_pair = neighbour_mean(maps, position, direction)
        rows.append(
            {
                "metric": "neighbour_head",
                "head": f"encoder.{layer}.self.{head}",
                "looks": direction,
                "length": length,
                "value": at_pair,
                "n": len(maps),
                "by_distance": weight_by_distance(maps),
                "map": maps[0, piece, piece].numpy().round(4).tolist(),
                "map_starts_at": first,
                "map_values": values[0, piece].tolist(),
                "position": int(position[0]),
            }
        )
    return rows


def neighbour_mean(maps: torch.Tensor, position: np.ndarray, direction: str) -> float:
    row, first = torch.arange(len(maps)), torch.from_numpy(position)
    query, key = (first + 1, first) if direction == "back" else (first, first + 1)
    return float(maps[row, query, key].mean())


def weight_by_distance(maps: torch.Tensor) -> dict[str, float]:
    """Mean weight on the key `distance` ahead (negative: behind), over all queries that have one; and on the rest."""
    length = maps.shape[-1]
    reach = min(REACH, length - 1)
    near = {
        str(distance): float(maps.diagonal(distance, dim1=-2, dim2=-1).mean()) for distance in range(-reach, reach + 1)
    }
    within = sum(maps.diagonal(distance, dim1=-2, dim2=-1).sum() for distance in range(-reach, reach + 1))
    return {**near, "further": float(1 - within / maps.shape[0] / length)}
