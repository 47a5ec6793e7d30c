"""What a model is called with: one batch, a tensor of input ids, a list of either, or a DataLoader.

Shapes: B rows of a batch, N rows of all batches, L tokens, T labelled places.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ...data_builders.vocabulary import IGNORED


ANSWERS = "answers"  # (B, 2) in a batch: tokens to tell apart, which the model is not called with

Batch = Mapping[str, Any] | Tensor
Batches = Batch | Iterable[Batch]


def as_batch(batch: Batch) -> dict[str, Any]:
    """One batch by the names of the model's inputs."""
    if isinstance(batch, Tensor):
        if batch.ndim != 2 or batch.is_floating_point():
            raise ValueError(
                f"a batch is a tensor of {batch.dtype} and shape {tuple(batch.shape)}; expected input ids (batch, "
                "tokens), or the model's inputs by name."
            )
        return {"input_ids": batch}
    if not isinstance(batch, Mapping):
        raise TypeError(
            f"a batch is a {type(batch).__name__}; expected the model's inputs by name, or a tensor of input ids."
        )
    return dict(batch)


def as_batches(batches: Batches) -> list[dict[str, Any]]:
    """All batches, each by the names of the model's inputs.

    >>> import torch
    >>> as_batches(torch.zeros(2, 5, dtype=torch.long))[0].keys()
    dict_keys(['input_ids'])
    """
    if isinstance(batches, (Tensor, Mapping)):
        return [as_batch(batches)]
    if isinstance(batches, str) or not isinstance(batches, Iterable):
        raise TypeError(
            f"batches is a {type(batches).__name__}; expected a batch, a list of batches or a DataLoader: the model's "
            "inputs by name, or a tensor of input ids."
        )
    found = [as_batch(batch) for batch in batches]
    if not found:
        raise ValueError("there are no batches; expected at least one.")
    return found


def batch_rows(batch: Mapping[str, Any]) -> int:
    sizes = [value.shape[0] for value in batch.values() if isinstance(value, Tensor) and value.ndim]
    if not sizes:
        raise ValueError("a batch has no tensors; expected the model's inputs by name, such as input_ids.")
    return sizes[0]


def row_lengths(batch: Mapping[str, Any]) -> Tensor:
    """(B, 2): tokens of every row without padding, and places up to its last label."""
    count = batch_rows(batch)
    mask, ids, labels = batch.get("attention_mask"), batch.get("input_ids"), batch.get("labels")
    tokens = torch.full((count,), 0 if ids is None else ids.shape[1])
    if mask is not None and mask.ndim == 2:
        if len(mask) != count:  # MusicGen has a row for every codebook of an example
            raise ValueError(
                f"attention_mask has {len(mask)} rows where the batch has {count}, so that its rows are not examples; "
                "expected zero ablation for it."
            )
        tokens = mask.sum(-1).cpu()
    places = torch.ones(count, dtype=torch.long)
    if labels is not None and labels.ndim == 2 and not labels.is_floating_point():
        slots = torch.arange(1, labels.shape[1] + 1)
        places = ((labels.cpu() != IGNORED) * slots).amax(-1)
    return torch.stack([tokens, places], 1)


def read_tokens(batch: Mapping[str, Any], by_decoder: bool = False) -> Tensor:
    """(B, L): which places of a batch are tokens rather than padding; of a decoder that reads an encoder, its own."""
    prefix = "decoder_" if by_decoder else ""
    ids, mask = (batch.get(f"{prefix}{name}") for name in ("input_ids", "attention_mask"))
    if ids is None and by_decoder:
        ids = batch.get("labels")
        mask = None if ids is None else (ids != IGNORED if mask is None else mask)
    if mask is not None and mask.ndim == 2:
        return mask.bool().cpu()
    if ids is None:
        what = f"{prefix}input_ids or labels" if by_decoder else "input_ids or an attention_mask"
        raise ValueError(f"a batch has {', '.join(batch)}, so its tokens cannot be counted; expected {what}.")
    return torch.ones(ids.shape[:2], dtype=torch.bool)


def token_at(batch: Mapping[str, Any], position: int, by_decoder: bool = False) -> Tensor:
    """(B,): the place of a token in every row, counted from 0, or from the end by -1, without padding."""
    mask = read_tokens(batch, by_decoder)
    counts = mask.sum(-1)
    short = ((counts <= position) if position >= 0 else (counts < -position)).nonzero()
    if len(short):
        raise ValueError(
            f"a row has {int(counts[short[0]])} tokens and none at position {position}; expected a position that "
            "every row has."
        )
    wanted = torch.full_like(counts, position) if position >= 0 else counts + position
    return (mask & (mask.cumsum(-1) - 1 == wanted[:, None])).int().argmax(-1)


def with_answers(batches: list[dict[str, Any]], answers: Any) -> list[dict[str, Any]]:
    """The batches, each with its rows of the answers: (N, 2), or two of N token ids."""
    pair = answers if isinstance(answers, Tensor) else [torch.as_tensor(each) for each in answers]
    table = pair if isinstance(pair, Tensor) else torch.stack(pair, -1) if len(pair) == 2 else torch.empty(0)
    rows = [batch_rows(batch) for batch in batches]
    if table.shape != (sum(rows), 2) or table.is_floating_point():
        raise ValueError(
            f"answers have shape {tuple(table.shape)} and are {table.dtype}; expected token ids, ({sum(rows)}, 2): of "
            "every example the base's and the source's."
        )
    return [{**batch, ANSWERS: own} for batch, own in zip(batches, table.split(rows), strict=True)]


def join_batches(batches: list[dict[str, Any]]) -> dict[str, Tensor]:
    """All rows in one batch; what is shorter is filled up on the right."""
    if len(batches) == 1:
        return batches[0]
    if len({batch["input_ids"].shape[1] for batch in batches}) > 1:
        batches = [{"attention_mask": torch.ones_like(batch["input_ids"]), **batch} for batch in batches]

    def joined(name: str) -> Tensor:
        values = [batch[name] for batch in batches]
        if values[0].ndim == 1:
            return torch.cat(values)
        width, filler = max(value.shape[1] for value in values), IGNORED if name == "labels" else 0
        return torch.cat([nn.functional.pad(value, (0, width - value.shape[1]), value=filler) for value in values])

    return {name: joined(name) for name in batches[0]}


def partners(batch: Mapping[str, Any], seed: int) -> Tensor:
    """(B,): another row for every row, of the same length if there is one, else any; drawn by the seed."""
    lengths = row_lengths(batch)
    if len(lengths) < 2:
        raise ValueError("a batch has one example, so there is none to resample from; expected at least two.")
    _, group_of, counts = lengths.unique(dim=0, return_inverse=True, return_counts=True)
    found = torch.zeros(len(lengths), dtype=torch.long)
    for number, count in enumerate(counts.tolist()):
        group = (group_of == number).nonzero()[:, 0]
        if count > 1:
            shuffled = group[torch.randperm(count, generator=torch.Generator().manual_seed(seed))]
            found[shuffled] = shuffled.roll(1)
        else:
            others = torch.cat([torch.arange(int(group)), torch.arange(int(group) + 1, len(lengths))])
            draw = torch.randint(len(others), (1,), generator=torch.Generator().manual_seed(seed + int(group)))
            found[group] = others[draw]
    return found
