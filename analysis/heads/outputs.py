"""What every head puts out, before the output projection mixes the heads."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Literal, overload

import torch
from torch import Tensor
from transformers import PreTrainedModel

from ...modeling.heads import Head, HeadName, pick_heads
from ...modeling.stock.finding import list_heads
from ..interventions.batches import Batch, as_batch
from ..interventions.subject import Subject, only_call


@overload
def head_outputs(
    model: PreTrainedModel,
    batch: Batch,
    heads: Iterable[HeadName] | None = None,
    *,
    every_call: Literal[False] = False,
) -> dict[Head, Tensor]: ...


@overload
def head_outputs(
    model: PreTrainedModel, batch: Batch, heads: Iterable[HeadName] | None = None, *, every_call: Literal[True]
) -> dict[Head, list[Tensor]]: ...


@torch.inference_mode()
def head_outputs(
    model: PreTrainedModel, batch: Batch, heads: Iterable[HeadName] | None = None, *, every_call: bool = False
) -> dict[Head, Tensor] | dict[Head, list[Tensor]]:
    """What every head of the intact model puts out on a batch.

    >>> import headcount, torch
    >>> from transformers import GPT2Config, GPT2Model
    >>> model = GPT2Model(GPT2Config(n_layer=1, n_head=2, n_embd=8, vocab_size=9))
    >>> headcount.head_outputs(model, torch.tensor([[5, 6, 7]]))["decoder.0.self.1"].shape
    torch.Size([1, 3, 4])

    Args:
        model: one of headcount's own, or any transformers model whose heads `list_heads` finds.
        batch: the model's inputs by name, or a tensor of input ids; decoder inputs are made from labels.
        heads: names of heads or attention layers, or patterns such as `decoder.*.self.*`; without them, all.
        every_call: of layers that run more than once in a forward, keep every call; without it, they are an error.

    Returns:
        Head -> (batch, queries, head dimension), in the order of `list_heads`; with `every_call`, a list of these.
    """
    subject = Subject.of(model)
    chosen = choose_heads(model, heads)
    was_training = model.training
    model.eval()
    try:
        _, record = subject.read(as_batch(batch), {head.attention for head in chosen})
    finally:
        model.train(was_training)
    column = {head: subject.layers[head.attention].heads.index(head.number) for head in chosen}
    if not every_call:
        once = only_call(record, "every_call=True, which gives a list")
        return {head: once[head.attention][:, :, column[head]].cpu() for head in chosen}
    return {head: [output[:, :, column[head]].cpu() for output in record[head.attention]] for head in chosen}


def choose_heads(model: PreTrainedModel, wanted: Iterable[HeadName] | None) -> list[Head]:
    """Heads by name, by their attention layer, by a pattern or as `(layer, head)`, in the order of `list_heads`.

    >>> from headcount import HeadcountConfig, HeadcountModel
    >>> model = HeadcountModel(HeadcountConfig(num_hidden_layers=1, num_attention_heads=2))
    >>> choose_heads(model, ["decoder.0.cross", "*.self.1"])
    ['encoder.0.self.1', 'decoder.0.self.1', 'decoder.0.cross.0', 'decoder.0.cross.1']
    """
    known = list_heads(model, allow_partial=wanted is not None)
    if wanted is None:
        return known
    if isinstance(wanted, str):
        raise TypeError(f"heads is the string {wanted!r}, expected a list such as [{wanted!r}].")
    found: set[Head] = set()
    for each in wanted:
        fitting = []
        if isinstance(each, str):
            fitting = [head for head in known if fnmatchcase(head, each) or fnmatchcase(head.attention, each)]
        found.update(fitting or pick_heads([each], known, type(model).__name__))
    if not found:
        raise ValueError("there are no heads; expected at least one name or pattern, such as 'decoder.*.self.*'.")
    return [head for head in known if head in found]
