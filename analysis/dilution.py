"""Dilution: what is left of one violation when the sequence around it grows.

Every measurement compares a sorted sequence with its twin, the same values with two neighbours exchanged:

- `entropy_share`, `neighbour_weight`: does each head stay sharp, and does it still find the exchanged neighbour?
- `pooled_signal`: how far the exchange moves the pooled vector (Euclidean); `signal_exponent` is the slope of its
  logarithm against log L: -1 means that it is diluted as 1/L, 0 that it stays;
- `margin`: logit of "sorted" minus logit of "unsorted", for both classes.
"""

from collections.abc import Iterable

import numpy as np
import torch
from numpy.typing import NDArray

from ..data_builders.sortedness_corpus import SortednessCorpus
from ..data_builders.tokenization import encode_sortedness
from .attention_spread import CELLS_PER_BATCH, measure_heads
from .length_curve import LONG, is_testable, no_room, sorted_margin, test_rows
from .statistics import mean_with_interval


def dilution(model, corpus: SortednessCorpus, lengths: Iterable[int], sequences: int = 16) -> list[dict]:
    """Rows by length, up to 1,024: maps and states of longer sequences do not fit into memory with ease."""
    model.eval()
    rows, signals = [], {}
    for length in sorted(set(lengths)):
        if length > LONG or not is_testable(corpus, length) or no_room(model.config, length):
            continue
        swapped, position = exchanged_rows(corpus, length, sequences)
        rows += [{"length": length, **row} for row in head_rows(model, swapped, position)]
        ordered = np.sort(swapped, axis=-1)
        signal = pooled_signal(model, ordered, swapped)
        signals[length] = signal.mean()
        rows.append({"metric": "pooled_signal", "length": length, **mean_with_interval(signal)})
        for name, values in (("sorted", ordered), ("swap", swapped)):
            margin = mean_with_interval(sorted_margin(model, values))
            rows.append({"metric": "margin", "class": name, "length": length, **margin})
    return rows + exponent_row(signals)


def exchanged_rows(corpus: SortednessCorpus, length: int, count: int) -> tuple[NDArray, NDArray]:
    """(count, L) sequences with one exchanged pair, and its place (count,)."""
    split = test_rows(corpus, "swap", length, max(2 * count, corpus.options.test))
    chosen = np.flatnonzero(split["position"] >= 0)[:count]
    return split["values"][chosen][:, :length], split["position"][chosen]


def head_rows(model, values: NDArray, position: NDArray) -> list[dict]:
    measured = measure_heads(model, values, position)
    rows = []
    for layer in range(model.config.num_hidden_layers):
        for head in range(model.config.num_attention_heads):
            name = f"encoder.{layer}.self.{head}"
            entropy = mean_with_interval(measured["entropy"][:, layer, head])
            rows.append({"metric": "entropy_share", "head": name, **entropy})
            for direction in ("back", "ahead"):
                weight = mean_with_interval(measured[direction][:, layer, head])
                rows.append({"metric": "neighbour_weight", "head": name, "looks": direction, **weight})
    return rows


@torch.inference_mode()
def pooled_signal(model, ordered: NDArray, swapped: NDArray) -> NDArray:
    """(N,): how far apart the pooled vectors of two twins are."""
    size = max(1, CELLS_PER_BATCH // ordered.shape[1] ** 2)

    def pooled(values: NDArray) -> torch.Tensor:
        parts = torch.from_numpy(encode_sortedness(values)).to(model.device).split(size)
        return torch.cat([model.pooler(model.model(part).last_hidden_state) for part in parts])

    return (pooled(swapped) - pooled(ordered)).norm(dim=-1).cpu().numpy()


def exponent_row(signals: dict[int, float]) -> list[dict]:
    """The slope of log signal against log length; a signal of zero, or a single length, has none."""
    lengths = [length for length, signal in signals.items() if signal > 0]
    if len(lengths) < 2:
        return []
    slope = np.polyfit(np.log(lengths), np.log([signals[length] for length in lengths]), 1)[0]
    return [{"metric": "signal_exponent", "value": float(slope), "n": len(lengths), "lengths": lengths}]
