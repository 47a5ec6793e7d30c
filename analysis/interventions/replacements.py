"""What takes the place of a site's output, for the runners that go batch by batch: call by call of a forward.

A module may work on several rows of each example: the windows of an image, the choices of a question. Mean and
resample ask which rows belong to which example. That they lie together, the first W of them being the first example's,
is not believed but tried: with the examples in another order, what the module puts out must be in that order, too.

Shapes: B examples, W rows of each, Q places of a module, then whatever it puts out at each.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from ...data_builders.vocabulary import IGNORED
from .batches import batch_rows, partners
from .subject import Outputs, Subject


TOLERANCE = 1e-4  # of the largest output


def mean_outputs(subject: Subject, batches: list[dict[str, Any]], modules: set[str]) -> Outputs:
    """The mean output of these modules over the examples, place by place, padding left out: (W, Q, ...)."""
    totals: dict[str, list[Tensor]] = {}
    counts: dict[str, list[Tensor]] = {}
    for batch in batches:
        _, record = subject.read(batch, modules)
        check_rows(subject, batch, record)
        for name, calls in record.items():
            sums, sizes = [], []
            for output in calls:
                real = real_places(subject.model, name, batch, output)
                weights = real.reshape(*real.shape, *[1] * (output.ndim - 2))
                sums.append(_by_example(output.double() * weights, batch).sum(0))
                sizes.append(_by_example(weights, batch).sum(0))
            totals[name] = _added(name, totals.get(name), sums)
            counts[name] = _added(name, counts.get(name), sizes)
    return {
        name: tuple(total / count.clamp(min=1) for total, count in zip(totals[name], counts[name], strict=True))
        for name in totals
    }


def _by_example(values: Tensor, batch: Mapping[str, Any]) -> Tensor:
    return values.unflatten(0, (batch_rows(batch), -1))


def _added(name: str, first: list[Tensor] | None, second: list[Tensor]) -> list[Tensor]:
    """Both, call by call."""
    if first is None:
        return second
    if [len(total) for total in first] != [len(total) for total in second]:
        raise ValueError(
            f"{name} runs {len(first)} and {len(second)} times in a forward, on {len(first[0])} and {len(second[0])} "
            "rows of each example, from batch to batch, so that it has no mean; expected as many in every batch."
        )
    return [_sum(*pair) for pair in zip(first, second, strict=True)]


def _sum(first: Tensor, second: Tensor) -> Tensor:
    """Both (W, Q, ...), of which either may have more places."""
    longer, shorter = (first, second) if first.shape[1] >= second.shape[1] else (second, first)
    longer = longer.clone()
    longer[:, : shorter.shape[1]] += shorter
    return longer


def for_rows(means: Outputs, rows: int) -> Outputs:
    """Means (W, Q, ...) for a batch of B examples: (1, Q, ...) where W is 1, else (B * W, Q, ...)."""
    return {
        name: tuple(mean if len(mean) == 1 else mean.repeat(rows, *[1] * (mean.ndim - 1)) for mean in calls)
        for name, calls in means.items()
    }


def resampled(subject: Subject, batch: Mapping[str, Any], record: Outputs, seed: int) -> Outputs:
    """The outputs on another example of the batch, (B * W, Q, ...), its places repeated if it is shorter."""
    check_rows(subject, batch, record)
    partner = partners(batch, seed)
    return {
        name: tuple(_on_others(output, real_places(subject.model, name, batch, output), partner) for output in calls)
        for name, calls in record.items()
    }


def _on_others(output: Tensor, real: Tensor, partner: Tensor) -> Tensor:
    each = len(output) // len(partner)
    other = (partner[:, None] * each + torch.arange(each)).flatten()  # (B * W,)
    real = real.cpu()
    places = torch.arange(output.shape[1]).repeat(len(other), 1)
    for row, theirs in enumerate(other.tolist()):
        own, there = real[row].nonzero()[:, 0], real[theirs].nonzero()[:, 0]
        if len(own) and len(there):
            places[row, own] = there[torch.arange(len(own)) % len(there)]
    return output[other[:, None].to(output.device), places.to(output.device)]


def real_places(model: PreTrainedModel, module: str, batch: Mapping[str, Any], output: Tensor) -> Tensor:
    """(B * W, Q): which places of a module are tokens rather than padding, as far as the batch tells."""
    shape = tuple(output.shape[:2])
    mask = batch.get("attention_mask")
    if module.startswith("decoder.") and getattr(model.config, "is_encoder_decoder", False):
        mask = batch.get("decoder_attention_mask")
        if mask is None and "labels" in batch:
            mask = batch["labels"] != IGNORED
    if mask is not None and mask.ndim == 3:  # of every choice
        mask = mask.flatten(0, 1)
    if mask is not None and tuple(mask.shape) == shape:
        return mask.to(output.device).bool()
    return torch.ones(shape, dtype=torch.bool, device=output.device)


def check_rows(subject: Subject, batch: Mapping[str, Any], record: Outputs) -> None:
    """Raises unless every output has a row for each example, or W that lie together."""
    rows = batch_rows(batch)
    several = {name: calls for name, calls in record.items() if any(len(output) != rows for output in calls)}
    if not several:
        return
    again: Outputs = {}
    if all(len(value) == rows for value in batch.values() if isinstance(value, Tensor) and value.ndim):
        turned = {n: v.roll(1, 0) if isinstance(v, Tensor) and v.ndim else v for n, v in batch.items()}
        again = subject.read(turned, set(several))[1]
    for name, calls in several.items():
        if name not in again or not _are_turned(calls, again[name], rows):
            sizes = " and ".join(map(str, dict.fromkeys(map(len, calls))))
            raise ValueError(
                f"{name} of this {type(subject.model).__name__} works on {sizes} rows where the batch has {rows} "
                "examples, and they do not belong to one example after the other; expected zero ablation for it."
            )


def _are_turned(calls: tuple[Tensor, ...], again: tuple[Tensor, ...], rows: int) -> bool:
    """Whether the outputs `again` are those of calls with the last example first."""
    if [output.shape for output in calls] != [output.shape for output in again]:
        return False
    if any(len(output) % rows for output in calls):
        return False
    for output, other in zip(calls, again, strict=True):
        turned = output.unflatten(0, (rows, -1)).roll(1, 0).flatten(0, 1)
        allowed = TOLERANCE * max(1e-6, float(output.abs().max()) if output.numel() else 0.0)
        if not torch.allclose(turned, other, rtol=0, atol=allowed):
            return False
    return True


def check_same_shapes(record: Outputs, source: Outputs) -> None:
    """Raises unless what modules put out on a source can stand, call by call, where they put out their own."""
    for name, calls in source.items():
        own, theirs = ([tuple(output.shape) for output in each] for each in (record[name], calls))
        if own != theirs:
            raise ValueError(
                f"{name} puts out {_shown(theirs)} on the source and {_shown(own)} on the base; expected the same "
                "shapes, call by call."
            )


def _shown(shapes: list[tuple[int, ...]]) -> str:
    return ", ".join("x".join(map(str, shape)) for shape in shapes)
