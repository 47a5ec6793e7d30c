"""Dilution: what is left of one decisive pair when the sequence around it grows.

Every measurement compares a sequence with its twin, in which the pair is as it should not be; a task that has such
twins says so by `Task.contrast`. For sortedness: a sorted sequence, and the same with two neighbours exchanged.

- `entropy_share`, `neighbour_weight`: does each head stay sharp, and does it still find the other of the pair?
- `pooled_signal`: how far the change moves the pooled vector (Euclidean); `signal_exponent` is the slope of its
  logarithm against log L: -1 means that it is diluted as 1/L, 0 that it stays;
- `margin`: logit of class 1 minus logit of class 0, for the plain and the changed twins.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...configuration.configuration_headcount import HeadcountConfig
from ...data_builders.corpus import Corpus
from ...data_builders.tasks import Task
from ...records.intervals import mean_with_interval
from ...records.rows import Row, Rows, row
from .measure import LONG, encode, is_testable, why_no_room
from .passes import label_margin
from .spread import CELLS_PER_BATCH, measure_heads


def has_twins(task: Task, config: HeadcountConfig) -> bool:
    """Whether there are twins to compare, read by an encoder, which pools."""
    return task.kind == "label" and type(task).contrast is not Task.contrast and config.architecture == "encoder"


def dilution(model: Any, corpus: Corpus, lengths: Iterable[int], sequences: int = 16) -> Rows:
    """Rows by length, up to 1,024: maps and states of longer sequences do not fit into memory with ease."""
    model.eval()
    rows: Rows = []
    signals: dict[int, float] = {}
    for length in sorted(set(lengths)):
        if length > LONG or not can_contrast(model, corpus, length):
            continue
        plain, changed, place = twins(model, corpus, length, sequences)
        rows += head_rows(model, length, changed["input_ids"], place)
        signal = pooled_signal(model, plain["input_ids"], changed["input_ids"])
        signals[length] = float(signal.mean())
        rows.append(dilution_row("pooled_signal", length, mean_with_interval(signal)))
        for twin, tokens in (("plain", plain), ("changed", changed)):
            margin = mean_with_interval(label_margin(model, tokens))
            label = corpus.task.labels[int(tokens["labels"][0])]
            rows.append(dilution_row("margin", length, margin, twin=twin, label=label))
    return rows + exponent_row(signals)


def dilution_row(metric: str, length: int | None, estimate: dict, **about: Any) -> Row:
    return row("dilution", metric, estimate, length=length, **about)


def can_contrast(model: Any, corpus: Corpus, length: int) -> bool:
    return is_testable(corpus, corpus.task.hardest[0], length) and why_no_room(model, corpus.task, length) is None


def twins(
    model: Any, corpus: Corpus, length: int, count: int
) -> tuple[dict[str, Tensor], dict[str, Tensor], NDArray[np.int64]]:
    """Tokens of `count` plain and changed twins, and the place of the decisive pair, (N,)."""
    found = corpus.task.contrast(corpus.options, length, count)
    if found is None:
        raise ValueError(f"{corpus.task.name} has no twins of length {length}; expected a task with `contrast`.")
    return encode(model, corpus, found.plain), encode(model, corpus, found.changed), found.place


def head_rows(model: Any, length: int, input_ids: Tensor, place: NDArray[np.int64]) -> Rows:
    measured = measure_heads(model, input_ids, place)
    rows: Rows = []
    for layer in range(model.config.num_hidden_layers):
        for head in range(model.config.num_attention_heads):
            name = f"encoder.{layer}.self.{head}"
            entropy = mean_with_interval(measured["entropy"][:, layer, head])
            rows.append(dilution_row("entropy_share", length, entropy, head=name))
            for direction in ("back", "ahead"):
                weight = mean_with_interval(measured[direction][:, layer, head])
                rows.append(dilution_row("neighbour_weight", length, weight, head=name, looks=direction))
    return rows


@torch.inference_mode()
def pooled_signal(model: Any, plain: Tensor, changed: Tensor) -> NDArray[np.float32]:
    """(N,): how far apart the pooled vectors of two twins are."""
    size = max(1, CELLS_PER_BATCH // plain.shape[1] ** 2)

    def pooled(input_ids: Tensor) -> Tensor:
        parts = input_ids.to(model.device).split(size)
        return torch.cat([model.pooler(model.model(part).last_hidden_state) for part in parts])

    return (pooled(changed) - pooled(plain)).norm(dim=-1).cpu().numpy()


def exponent_row(signals: dict[int, float]) -> Rows:
    """The slope of log signal against log length; a signal of zero, or a single length, has none."""
    lengths = [length for length, signal in signals.items() if signal > 0]
    if len(lengths) < 2:
        return []
    slope = np.polyfit(np.log(lengths), np.log([signals[length] for length in lengths]), 1)[0]
    return [dilution_row("signal_exponent", None, {"value": float(slope), "n": len(lengths)}, lengths=lengths)]
