"""How much each head matters, estimated for all of them by one backward pass, and whether ablation agrees."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from ...modeling.stock.finding import list_heads
from ...modeling.stock.gates import mask_heads
from ...records.intervals import mean_with_interval, rank_correlation
from ...records.rows import Rows, row, select, values_of
from ..interventions.batches import Batches, as_batches, batch_rows
from ..interventions.measures import labelled, summed_loss
from ..interventions.subject import Subject


def gradient_importance(
    model: PreTrainedModel,
    batches: Batches,
    loss: Callable[..., Tensor] | None = None,
    *,
    run: Callable | None = None,
) -> Rows:
    """An estimate for every head: the mean over examples of |d loss / d gate|, all gates open.

    Michel, Levy and Neubig 2019, "Are sixteen heads really better than one?", without their scaling by layer.

    >>> import headcount, torch
    >>> config = headcount.HeadcountConfig(num_hidden_layers=1, num_attention_heads=2)
    >>> model = headcount.HeadcountForConditionalGeneration(config)
    >>> batch = {"input_ids": torch.tensor([[5, 6, 2]]), "labels": torch.tensor([[6, 5, 2]])}
    >>> [row["head"] for row in headcount.gradient_importance(model, batch)][:2]
    ['encoder.0.self.0', 'encoder.0.self.1']

    Args:
        model: one of headcount's own, or any transformers model whose heads `list_heads` finds.
        batches: one batch, a tensor of input ids, a list of either, or a DataLoader.
        loss: a function of outputs and batch that gives one value per example; without it, the cross-entropy of the
            labels, summed over each example.
        run: called as `run(model, batch)` instead of `model(**batch)`.

    Returns:
        One row for every head, in the order of `list_heads`.
    """
    heads, subject, found = list_heads(model), Subject.of(model, run), []
    was_training = model.training
    model.eval()
    try:
        for batch in as_batches(batches):
            inputs = subject.prepare(batch)
            gates = torch.ones(batch_rows(inputs), len(heads), device=model.device, requires_grad=True)
            with mask_heads(model, gates):
                outputs = subject.call(inputs)
            cost = summed_loss(*labelled(model, outputs, batch)) if loss is None else loss(outputs, batch)
            # The sum, not the mean, over examples: then each example's gradient is its own.
            (gradient,) = torch.autograd.grad(cost.sum(), gates, allow_unused=True)
            if gradient is None:
                raise RuntimeError(f"{type(model).__name__} ignored the gates of its heads; see docs/stock-models.md.")
            found.append(gradient.abs().cpu().numpy())
    finally:
        model.train(was_training)
    values = np.concatenate(found)
    return [
        row("gradient", "gradient_importance", mean_with_interval(values[:, place]), head=head)
        for place, head in enumerate(heads)
    ]


def agreement(ablation: Rows, gradient: Rows) -> Rows:
    """Spearman's rank correlation over heads between the gradient estimate and each measure of zero ablation."""
    estimate = {each["head"]: each["value"] for each in select(gradient, metric="gradient_importance")}
    rows = []
    for metric in sorted(values_of(ablation, "metric")):
        exact = {each["head"]: each["value"] for each in select(ablation, scope={}, metric=metric, mode="zero")}
        if exact:
            value = rank_correlation(list(exact.values()), [estimate[head] for head in exact])
            found = {"value": value, "n": len(exact)}
            rows.append(row("gradient", "rank_correlation", found, compared_with=metric))
    return rows
