"""What takes the place of a site's output, for the runners that go batch by batch.

Shapes: B rows, Q places of a module, then whatever it puts out at each.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from ...data_builders.vocabulary import IGNORED
from .batches import batch_rows, partners
from .subject import Outputs, Subject


def mean_outputs(subject: Subject, batches: list[dict[str, Any]], modules: set[str]) -> Outputs:
    """The mean output of these modules over the data, place by place, padding left out: (1, Q, ...)."""
    totals: dict[str, Tensor] = {}
    counts: dict[str, Tensor] = {}
    for batch in batches:
        _, record = subject.read(batch, modules)
        for name, output in record.items():
            real = real_places(subject.model, name, batch, output)
            weights = real.reshape(*real.shape, *[1] * (output.ndim - 2))
            totals[name] = _sum(totals.get(name), (output.double() * weights).sum(0))
            counts[name] = _sum(counts.get(name), weights.sum(0))
    return {name: (totals[name] / counts[name].clamp(min=1))[None] for name in totals}


def _sum(first: Tensor | None, second: Tensor) -> Tensor:
    """Both, of which either may have more places."""
    if first is None:
        return second
    longer, shorter = (first, second) if len(first) >= len(second) else (second, first)
    longer = longer.clone()
    longer[: len(shorter)] += shorter
    return longer


def resampled(model: PreTrainedModel, batch: Mapping[str, Any], record: Outputs, seed: int) -> Outputs:
    """The outputs on another example of the batch, (B, Q, ...), its places repeated if it is shorter."""
    partner = partners(batch, seed)
    found = {}
    for name, output in record.items():
        real = real_places(model, name, batch, output).cpu()
        places = torch.arange(output.shape[1]).repeat(len(partner), 1)
        for row, other in enumerate(partner.tolist()):
            own, theirs = real[row].nonzero()[:, 0], real[other].nonzero()[:, 0]
            if len(own) and len(theirs):
                places[row, own] = theirs[torch.arange(len(own)) % len(theirs)]
        found[name] = output[partner[:, None].to(output.device), places.to(output.device)]
    return found


def real_places(model: PreTrainedModel, module: str, batch: Mapping[str, Any], output: Tensor) -> Tensor:
    """(B, Q): which places of a module are tokens rather than padding, as far as the batch tells."""
    shape, rows = tuple(output.shape[:2]), batch_rows(batch)
    if shape[0] != rows:  # windows of an image, choices, packed texts
        raise ValueError(
            f"{module} of this {type(model).__name__} works on {shape[0]} rows where the batch has {rows} examples, "
            "so that no place of it belongs to one example; expected zero ablation for it."
        )
    mask = batch.get("attention_mask")
    if module.startswith("decoder.") and getattr(model.config, "is_encoder_decoder", False):
        mask = batch.get("decoder_attention_mask")
        if mask is None and "labels" in batch:
            mask = batch["labels"] != IGNORED
    if mask is not None and tuple(mask.shape) == shape:
        return mask.to(output.device).bool()
    return torch.ones(shape, dtype=torch.bool, device=output.device)
