"""What takes the place of a head's output in mean and resample ablation of any transformers model.

Shapes: B rows, Q queries, H heads that are left in a layer, D head dimension.
"""

import torch
from torch import Tensor, nn

from ..data_builders.tokenization import IGNORED
from .stock_versions import Replacements, VersionRunner, batch_rows


def mean_outputs(runner: VersionRunner, batches: list[dict]) -> Replacements:
    """Every head's mean output over the data, place by place, padding left out: (1, Q, H, D)."""
    totals: dict[str, Tensor] = {}
    counts: dict[str, Tensor] = {}
    for batch in batches:
        record: dict[nn.Module, Tensor] = {}
        runner.plain(batch, record)
        for name, layer in runner.layers.items():
            output = record[layer.module].double()
            real = real_places(runner.model, name, batch, output)
            added, seen = (output * real[..., None, None]).sum(0), real.sum(0)
            for table, value in ((totals, added), (counts, seen)):
                known = table.get(name)
                if known is None or len(known) < len(value):
                    table[name] = value if known is None else _add(value, known)
                else:
                    table[name] = _add(known, value)
    return {name: (totals[name] / counts[name].clamp(min=1)[:, None, None])[None] for name in totals}


def _add(longer: Tensor, shorter: Tensor) -> Tensor:
    longer = longer.clone()
    longer[: len(shorter)] += shorter
    return longer


def resampled(runner: VersionRunner, batch: dict, record: dict[nn.Module, Tensor], seed: int) -> Replacements:
    """Every head's output on another example of the batch, (B, Q, H, D)."""
    rows = batch_rows(batch)
    if rows < 2:
        raise ValueError("a batch has one example, so there is none to resample from; expected at least two.")
    order = torch.randperm(rows, generator=torch.Generator().manual_seed(seed))
    partner = torch.empty(rows, dtype=torch.long)
    partner[order] = order.roll(1)
    found = {}
    for name, layer in runner.layers.items():
        output = record[layer.module]
        real = real_places(runner.model, name, batch, output).cpu()
        places = torch.arange(output.shape[1]).repeat(rows, 1)
        for row, other in enumerate(partner.tolist()):
            own, theirs = real[row].nonzero()[:, 0], real[other].nonzero()[:, 0]
            if len(own) and len(theirs):
                places[row, own] = theirs[torch.arange(len(own)) % len(theirs)]
        found[name] = output[partner[:, None].to(output.device), places.to(output.device)]
    return found


def real_places(model, layer: str, batch: dict, output: Tensor) -> Tensor:
    """(B, Q): which queries of a layer are tokens rather than padding, as far as the batch tells."""
    shape = tuple(output.shape[:2])
    masks = ["attention_mask"]
    if layer.startswith("decoder.") and getattr(model.config, "is_encoder_decoder", False):
        masks = ["decoder_attention_mask"]
        if "decoder_attention_mask" not in batch and "labels" in batch:
            batch = {**batch, "decoder_attention_mask": batch["labels"] != IGNORED}
    for name in masks:
        if name in batch and tuple(batch[name].shape) == shape:
            return batch[name].to(output.device).bool()
    return torch.ones(shape, dtype=torch.bool, device=output.device)
