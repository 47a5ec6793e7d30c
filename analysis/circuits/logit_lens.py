"""What a model would answer if it ended after each of its layers (nostalgebraist 2020, "the logit lens").

The residual stream after a layer takes the place of the stream after the last one, and the model itself goes on from
there: its final norm, its output layer and whatever else it does at the end. So nothing has to be known about the
architecture, and the last layer's logits are the model's own.

Shapes: B rows, L tokens, T labelled places.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from ...data_builders.vocabulary import IGNORED
from ...modeling.stock.changes import Change
from ...records.intervals import mean_with_interval
from ...records.rows import Rows, row
from ..interventions.batches import Batch, as_batch
from ..interventions.measures import labelled
from ..interventions.sites import Site
from ..interventions.subject import Subject, only_call


@dataclass(frozen=True)
class Lens:
    """`logits`: residual stream -> logits, in the order of layers; `rows`: what they say of labels, if any."""

    logits: dict[Site, Tensor]
    rows: Rows = field(default_factory=list)


@torch.inference_mode()
def logit_lens(model: PreTrainedModel, batch: Batch) -> Lens:
    """The logits after every layer.

    >>> import headcount, torch
    >>> from transformers import GPT2Config, GPT2LMHeadModel
    >>> config = GPT2Config(n_layer=2, n_head=2, n_embd=8, vocab_size=9, bos_token_id=0, eos_token_id=0)
    >>> model = GPT2LMHeadModel(config)
    >>> ids = torch.tensor([[5, 6, 7]])
    >>> lens = headcount.logit_lens(model, {"input_ids": ids, "labels": ids})
    >>> list(lens.logits), lens.logits["decoder.0.residual"].shape
    (['decoder.0.residual', 'decoder.1.residual'], torch.Size([1, 3, 9]))
    >>> [(row["metric"], row["layer"]) for row in lens.rows][:2]
    [('label_probability', 0), ('label_rank', 0)]

    Args:
        model: one of headcount's own, or any transformers model with logits whose residual streams are among `sites`.
        batch: the model's inputs by name, or a tensor of input ids; decoder inputs are made from labels.

    Returns:
        `logits` by residual stream, those of the last being the model's own, and, if the batch has labels, `rows`:
        `label_probability` and `label_rank` (1 is the best) of the labels by layer, the mean over each example's.
    """
    subject, given = Subject.of(model), as_batch(batch)
    was_training = model.training
    model.eval()
    try:
        streams = answering_streams(subject)
        outputs, record = subject.read(given, set(streams))
        states = only_call(record, "a model whose layers run once")
        if "logits" not in outputs:
            raise ValueError(f"{type(model).__name__} gives no logits; expected a model with an output layer.")
        found = {Site(name): _read_from(subject, given, streams[-1], states[name]) for name in streams}
    finally:
        model.train(was_training)
    own = outputs["logits"]
    if not torch.allclose(found[Site(streams[-1])], own, rtol=1e-3, atol=1e-3):
        raise ValueError(
            f"{type(model).__name__} gives other logits with {streams[-1]} replaced by itself; expected a last layer "
            "that alone leads to the logits."
        )
    found[Site(streams[-1])] = own
    return Lens({site: logits.cpu() for site, logits in found.items()}, _label_rows(model, found, given))


def answering_streams(subject: Subject) -> list[str]:
    """The residual streams of the stack that leads to the logits, in the order of layers."""
    by_stack: dict[str, list[str]] = {}
    for name in subject.paths:
        if name.endswith(".residual"):
            by_stack.setdefault(name.split(".")[0], []).append(name)
    if getattr(subject.model.config, "is_encoder_decoder", False):
        by_stack = {stack: own for stack, own in by_stack.items() if stack == "decoder"}
    if len(by_stack) != 1:
        raise ValueError(
            f"{type(subject.model).__name__} has residual streams in {len(by_stack)} stacks that may lead to its "
            "logits; expected one."
        )
    (own,) = by_stack.values()
    layers = {name.rpartition(".")[0] for name in subject.layers if name.split(".")[0] == own[0].split(".")[0]}
    if len(own) != len(layers):
        raise ValueError(f"{type(subject.model).__name__} has layers without a residual stream; expected one in each.")
    return sorted(own, key=lambda name: int(name.split(".")[1]))


def _read_from(subject: Subject, batch: dict[str, Any], last: str, states: Tensor) -> Tensor:
    with subject.changed({last: Change(torch.zeros(1, 1, device=states.device), (states,))}):
        return subject.call(subject.prepare(batch))["logits"]


def _label_rows(model: PreTrainedModel, found: Mapping[Site, Tensor], batch: dict[str, Any]) -> Rows:
    rows: Rows = []
    if "labels" not in batch:
        return rows
    for site, own in found.items():
        logits, labels = labelled(model, {"logits": own}, batch)
        there = labels != IGNORED
        some = there.any(-1)
        chosen = logits.float().gather(-1, labels.clamp(min=0)[..., None])
        rank = (logits.float() > chosen).sum(-1) + 1.0
        probability = logits.float().softmax(-1).gather(-1, labels.clamp(min=0)[..., None])[..., 0]
        for metric, values in (("label_probability", probability), ("label_rank", rank)):
            mean = ((values * there).sum(-1) / there.sum(-1).clamp(min=1))[some]
            rows.append(
                row("logit_lens", metric, mean_with_interval(mean.cpu().numpy()), site=str(site), layer=site.layer)
            )
    return rows
