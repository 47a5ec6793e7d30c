"""How much each head of any transformers model matters, estimated for all of them by one backward pass."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import torch

from ..modeling.stock.finding import list_heads
from ..modeling.stock.gates import mask_heads
from .statistics import mean_with_interval
from .stock_metrics import labelled, summed_loss
from .stock_versions import VersionRunner, batch_rows


def gradient_importance(
    model, batches: Iterable[Mapping[str, Any]], loss: Callable | None = None, run: Callable | None = None
) -> list[dict]:
    """An estimate for every head from one backward pass: the mean over examples of |d loss / d gate|, all gates open.

    `loss` is a function of outputs and batch that gives one value per example; without it, the cross-entropy of the
    labels, summed over each example. Michel, Levy and Neubig 2019, without their scaling by layer.
    """
    heads = list_heads(model)
    was_training = model.training
    model.eval()
    runner, found = VersionRunner(model, run), []
    try:
        for batch in batches:
            inputs = runner.prepare(batch)
            gates = torch.ones(batch_rows(inputs), len(heads), device=model.device, requires_grad=True)
            with mask_heads(model, gates):
                outputs = runner.plain(batch)
            cost = summed_loss(*labelled(model, outputs, batch)) if loss is None else loss(outputs, batch)
            (gradient,) = torch.autograd.grad(cost.sum(), gates, allow_unused=True)
            if gradient is None:
                raise RuntimeError(f"{type(model).__name__} ignored the gates of its heads; see docs/stock-models.md.")
            found.append(gradient.abs().cpu().numpy())
    finally:
        model.train(was_training)
    if not found:
        raise ValueError("there are no batches; expected at least one.")
    values = np.concatenate(found)
    return [
        {"analysis": "gradient", "head": head, "metric": "gradient_importance", **mean_with_interval(values[:, i])}
        for i, head in enumerate(heads)
    ]
