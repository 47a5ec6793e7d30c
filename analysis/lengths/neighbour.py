"""The head that looks at the neighbour: found at a training length, then shown there and far beyond."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...data_builders.corpus import Corpus
from ...records.rows import Rows, row
from .dilution import can_contrast, twins
from .spread import maps_in_parts, measure_heads


REACH = 8  # distances on each side
SHOWN = 16  # tokens of the map around the decisive pair
TIMES = 16  # how far beyond training the head is shown again


def neighbour_head(model: Any, corpus: Corpus, lengths: Iterable[int] | None = None, sequences: int = 16) -> Rows:
    """Rows by length: the head's mean weight by distance, and a piece of one map around the decisive pair.

    The head is the one that gives most weight to the other of the pair, chosen at the first of the lengths; by default
    the longest of training, and sixteen times that.
    """
    longest = corpus.task.trained_lengths(corpus.options)[1]
    lengths = [n for n in lengths or (longest, TIMES * longest) if can_contrast(model, corpus, n)]
    if not lengths:
        return []
    _, changed, place = twins(model, corpus, lengths[0], sequences)
    measured = measure_heads(model, changed["input_ids"], place)
    means = {direction: measured[direction].mean(0) for direction in ("back", "ahead")}  # (A, H)
    direction = max(means, key=lambda name: means[name].max())
    layer, head = np.unravel_index(means[direction].argmax(), means[direction].shape)
    rows: Rows = []
    for length in lengths:
        _, changed, place = twins(model, corpus, length, sequences)
        tokens = changed["input_ids"]
        maps = torch.cat([part[:, layer, head] for part in maps_in_parts(model, tokens)])  # (N, L, L)
        first = int(np.clip(place[0] + 1 - SHOWN // 2, 0, length - min(SHOWN, length)))
        piece = slice(first, first + SHOWN)
        rows.append(
            row(
                "neighbour",
                "neighbour_head",
                {"value": neighbour_mean(maps, place, direction), "n": len(maps)},
                head=f"encoder.{layer}.self.{head}",
                looks=direction,
                length=length,
                by_distance=weight_by_distance(maps),
                map=maps[0, piece, piece].numpy().round(4).tolist(),
                map_starts_at=first,
                map_values=corpus.task.vocabulary.names(tokens[0, piece].tolist()),
                position=int(place[0]),
            )
        )
    return rows


def neighbour_mean(maps: Tensor, place: NDArray[np.int64], direction: str) -> float:
    each, first = torch.arange(len(maps)), torch.from_numpy(place)
    query, key = (first + 1, first) if direction == "back" else (first, first + 1)
    return float(maps[each, query, key].mean())


def weight_by_distance(maps: Tensor) -> dict[str, float]:
    """Mean weight on the key `distance` ahead (negative: behind), over all queries that have one; and on the rest."""
    length = maps.shape[-1]
    reach = min(REACH, length - 1)
    near = {
        str(distance): float(maps.diagonal(distance, dim1=-2, dim2=-1).mean()) for distance in range(-reach, reach + 1)
    }
    within = sum(maps.diagonal(distance, dim1=-2, dim2=-1).sum() for distance in range(-reach, reach + 1))
    return {**near, "further": float(1 - within / maps.shape[0] / length)}
