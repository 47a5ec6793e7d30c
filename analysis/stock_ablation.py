"""`headcount.ablate`: what any transformers model loses without each of its heads.

>>> rows = headcount.ablate(model, batches, metric=lambda outputs, batch: outputs.logits[:, 0, 7])

Batches are what the model is called with, by name. Rows are those of headcount's own models, so that the same figures
and report work. headcount's own models, without a metric, go through their own engine (ablation.py).
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..data_builders.tokenization import IGNORED
from ..modeling.modeling_headcount import HeadcountPreTrainedModel
from ..modeling.stock.finding import Head, list_heads
from ..modeling.stock.gates import mask_heads
from .ablation import MODES
from .ablation import ablate as ablate_own
from .stock_metrics import Measure, Values
from .stock_progress import FinishedBatches
from .stock_replacements import mean_outputs, resampled
from .stock_versions import VersionRunner, batch_rows, numbers


logger = logging.getLogger(__name__)
ENGINE = "headcount's own engine"


def ablate(
    model,
    batches: Iterable[Mapping[str, Any]],
    metric: Callable | Any | None = None,
    mode: str = "zero",
    heads: Iterable[str] | None = None,
    run: Callable | None = None,
    way: str | None = None,
    seed: int = 0,
    resume: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[dict]:
    """Rows for every head (or `heads`), the one that costs most first, each with n, interval and the way it was run.

    `metric`: a function of outputs and batch that gives one value per example, the higher the better; or an `evaluate`
    metric; without one, the share of examples with every label right, and the rise of the loss.
    `mode`: what takes the place of a head's output: `zero`; `mean`, its mean over the data, place by place;
    `resample`, what it puts out on another example of the batch, its places repeated if it is shorter.
    `run(model, batch)`: instead of `model(**batch)`, for example a generation; its result goes to the metric.
    `way`: `prefix reuse`, `folding` or `loop`; without it, the first of them that gives what the loop gives.
    `resume`: a folder in which every finished batch is kept; called again, the sweep goes on from there.
    """
    batches = [dict(batch) for batch in batches]
    known = list_heads(model)
    chosen = known if heads is None else [Head(head) for head in heads]
    _check(model, batches, known, chosen, mode, run)
    measure = Measure(model, metric)
    was_training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            if isinstance(model, HeadcountPreTrainedModel) and metric is None and run is None and way is None:
                if resume is not None:
                    raise ValueError(f"resume has no effect with {ENGINE}; expected none, or a way such as 'folding'.")
                versions, ways = _by_engine(model, batches, chosen, mode, seed, progress), [ENGINE]
                measure.decoding = "free-running"  # one pass decides it: see ablation.py
            else:
                runner = VersionRunner(model, run, way)
                self_check(runner, batches[0])
                parts = FinishedBatches(resume, model, batches, chosen, mode, measure, seed)
                versions, ways = _by_batches(runner, batches, chosen, mode, seed, measure, parts, progress)
    finally:
        model.train(was_training)
    rows = measure.rows(chosen, versions, mode)
    return [{**row, "way": ", ".join(ways)} for row in rows]


def self_check(runner: VersionRunner, batch: Mapping[str, Any]) -> None:
    """Closes one head of every layer and sees that something changes; open gates must change nothing."""
    model, name = runner.model, type(runner.model).__name__
    plain = numbers(runner.plain(batch))
    with mask_heads(model, []):
        opened = numbers(runner.plain(batch))
    with mask_heads(model, [f"{layer.name}.{layer.heads[0]}" for layer in runner.layers.values() if layer.heads]):
        closed = numbers(runner.plain(batch))
    for key, value in plain.items():
        if not torch.allclose(opened[key], value, rtol=1e-4, atol=1e-4, equal_nan=True):
            raise RuntimeError(f"{name} gives another {key} through the attention interface; its heads are not gated.")
    if runner.run is None and all(torch.equal(closed[key], value) for key, value in plain.items()):
        raise RuntimeError(
            f"{name} gives the same outputs with heads masked; expected a change: see docs/stock-models.md for the "
            "models that can be masked."
        )


def _check(model, batches: list[dict], known: list[Head], chosen: list[Head], mode: str, run) -> None:
    if not batches:
        raise ValueError("there are no batches; expected at least one.")
    if mode not in MODES:
        raise ValueError(f"mode={mode!r} is not known; expected one of {', '.join(MODES)}.")
    if mode != "zero" and run is not None:
        raise ValueError(f"mode={mode!r} needs the model's own forward; expected mode='zero' with `run`.")
    with mask_heads(model, chosen):  # raises for a name that does not exist
        pass
    if not chosen or len(set(chosen)) < len(chosen):
        raise ValueError(f"heads are {list(chosen)}; expected some, each once.")


def _by_batches(runner, batches, heads, mode, seed, measure, parts, progress) -> tuple[list[Values], list[str]]:
    """Values of every version, the intact model first, and the ways that were used."""
    means = mean_outputs(runner, batches) if mode == "mean" and parts.missing(len(batches)) else None
    found: list[list[Values]] = []
    for number, batch in enumerate(batches):
        known = parts.load(number)
        if known is None:
            record: dict[nn.Module, Tensor] = {}
            intact = runner.plain(batch, record if mode == "resample" else None)
            replacements = resampled(runner, batch, record, seed + number) if mode == "resample" else means
            rows = batch_rows(batch)
            values = {head: measure.values(outputs, batch, rows)
                      for head, outputs in runner.versions(batch, heads, replacements)}  # fmt: skip
            known = [measure.values(intact, batch, rows), *(values[head] for head in heads)]
            parts.save(number, known, runner.way)
            if runner.reason:
                logger.warning("%s", runner.reason)
                runner.reason = None
        found.append(known)
        if progress is not None:
            progress(number + 1, len(batches))
    versions = [
        {name: _join([part[version][name] for part in found]) for name in found[0][version]}
        for version in range(len(heads) + 1)
    ]
    return versions, parts.ways


def _join(values: list[np.ndarray]) -> np.ndarray:
    """Batches one after the other; those of fewer places are filled up with places without a label."""
    if values[0].ndim == 1:
        return np.concatenate(values)
    width = max(value.shape[1] for value in values)
    return np.concatenate(
        [np.pad(value, ((0, 0), (0, width - value.shape[1])), constant_values=IGNORED) for value in values]
    )


def _by_engine(model, batches, heads, mode, seed, progress) -> list[Values]:
    width = {name: max(batch[name].shape[1] for batch in batches) for name in batches[0] if batches[0][name].ndim > 1}

    def joined(name: str) -> Tensor:
        filler = IGNORED if name == "labels" else 0
        return torch.cat([
            batch[name] if batch[name].ndim == 1 else
            nn.functional.pad(batch[name], (0, width[name] - batch[name].shape[1]), value=filler) for batch in batches
        ])  # fmt: skip

    if len({batch["input_ids"].shape[1] for batch in batches}) > 1:
        batches = [{"attention_mask": torch.ones_like(batch["input_ids"]), **batch} for batch in batches]
        width["attention_mask"] = width["input_ids"]
    rows = {name: joined(name) for name in batches[0]}
    outcomes = ablate_own(model, rows, [{}, *({head: 0.0} for head in heads)], mode, seed=seed, progress=progress)
    return [{"right": right, "loss": loss} for right, loss in zip(outcomes.right, outcomes.loss, strict=True)]
