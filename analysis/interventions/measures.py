"""What is measured of a model's outputs, one value for every example.

A metric is a function of outputs and batch that gives one value per example, (B,): booleans (right or wrong) or
numbers, the higher the better. Without one, and for an `evaluate` metric, labels decide: every label has a place where
the model predicts it, and what counts there is its argmax, given the labels before it.

Shapes: B rows, T labelled places.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from ...data_builders.vocabulary import IGNORED
from ...modeling.modeling_headcount import HeadcountPreTrainedModel
from .batches import ANSWERS, token_at


Metric = Callable[[Any, Mapping[str, Any]], Tensor] | Any
Values = dict[str, Tensor]


def predicts_next(model: PreTrainedModel) -> bool:
    """A decoder without encoder predicts, at each place, the token of the next one."""
    name = type(model).__name__
    return not getattr(model.config, "is_encoder_decoder", False) and name.endswith(("ForCausalLM", "LMHeadModel"))


def is_sequence_model(model: PreTrainedModel) -> bool:
    """Whether an example has many labels; a classifier of whole examples has one."""
    name = type(model).__name__
    return not name.endswith("Classification") or name.endswith("TokenClassification")


def labels_in_place(model: PreTrainedModel, labels: Tensor) -> Tensor:
    """(B, T): each label in the place where the model predicts it."""
    if labels.ndim == 1:
        return labels[:, None]
    return labels[:, 1:] if predicts_next(model) else labels


def labelled(model: PreTrainedModel, outputs: Any, batch: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
    """Logits (B, T, classes) and labels (B, T), each label in the place where the model predicts it."""
    if "labels" not in batch or "logits" not in outputs:
        raise ValueError(
            f"{type(model).__name__} gives no logits, or the batch has no labels; expected both, or a metric: a "
            "function of outputs and batch that gives one value per example."
        )
    logits = outputs["logits"]
    labels = labels_in_place(model, batch["labels"].to(logits.device))
    if logits.ndim == 2:
        logits = logits[:, None]
    elif predicts_next(model):
        logits = logits[:, :-1]
    if logits.shape[:2] != labels.shape or labels.is_floating_point():
        raise ValueError(
            f"logits for {tuple(logits.shape[:2])} places and labels of {labels.dtype} and shape "
            f"{tuple(labels.shape)} do not match; expected the number of a class for every place, or a metric of your "
            "own."
        )
    return logits, labels


def summed_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """(B,): the cross-entropy of an example's labels, summed."""
    loss = nn.functional.cross_entropy(
        logits.flatten(0, 1).float(), labels.flatten(), ignore_index=IGNORED, reduction="none"
    )
    return loss.view(labels.shape).sum(-1)


def margins_of(logits: Tensor, labels: Tensor, contrasts: Tensor) -> Tensor:
    """Of logits (..., T, classes): that of the label minus that of the token beside it; 0 where there is no label."""
    if contrasts.shape != labels.shape:
        raise ValueError(
            f"contrasts have shape {tuple(contrasts.shape)}; expected that of the labels, {tuple(labels.shape)}."
        )
    there = (labels != IGNORED) & (contrasts != IGNORED)
    pairs = torch.stack([labels, contrasts], -1).clamp(min=0).expand(*logits.shape[:-1], 2)
    chosen = logits.gather(-1, pairs)
    return (chosen[..., 0] - chosen[..., 1]).masked_fill(~there, 0.0)


def logits_at(model: PreTrainedModel, outputs: Any, batch: Mapping[str, Any], at: int = -1) -> Tensor:
    """(B, classes): the logits at one position of every row, padding left out; a classifier has no others."""
    if "logits" not in outputs:
        raise ValueError(f"{type(model).__name__} gives no logits; expected a model with an output layer.")
    logits = outputs["logits"]
    if logits.ndim == 2:
        return logits
    places = token_at(batch, at, bool(getattr(model.config, "is_encoder_decoder", False))).to(logits.device)
    return logits[torch.arange(len(logits), device=logits.device), places]


def answer_margin(model: PreTrainedModel, at: int = -1) -> Callable[[Any, Mapping[str, Any]], Tensor]:
    """A metric: the logit of a batch's first answers minus that of its second ones, at one position."""

    def logit_difference(outputs: Any, batch: Mapping[str, Any]) -> Tensor:
        logits = logits_at(model, outputs, batch, at)
        answers = batch[ANSWERS].to(logits.device)
        if int(answers.min()) < 0 or int(answers.max()) >= logits.shape[-1]:
            raise ValueError(f"an answer is not one of {logits.shape[-1]} tokens; expected ids from 0 to below that.")
        chosen = logits.float().gather(-1, answers)
        return chosen[:, 0] - chosen[:, 1]

    return logit_difference


def decoding_of(model: PreTrainedModel, labels: Tensor) -> str | None:
    """How a share of right answers comes about.

    In a model of headcount's own, one pass decides what greedy decoding writes: exactly the labels, if and only if
    every argmax is right given the labels before it. So it counts as free-running, provided that the labels (B, T) of
    an example are one piece. Other models may decode in other ways; theirs are teacher-forced. A classifier decodes
    nothing.
    """
    if not is_sequence_model(model):
        return None
    there = labels != IGNORED
    pieces = there[:, :1].sum(-1) + (there[:, 1:] & ~there[:, :-1]).sum(-1)
    whole = isinstance(model, HeadcountPreTrainedModel) and bool((pieces <= 1).all())
    return "free-running" if whole else "teacher-forced"


class Measure:
    """A metric, by whichever way it was given: `name` is None where labels decide."""

    def __init__(self, model: PreTrainedModel, metric: Metric | None):
        self.model, self.metric = model, metric
        self.is_module = hasattr(metric, "compute")
        if metric is not None and not self.is_module and not callable(metric):
            raise TypeError(
                f"metric is a {type(metric).__name__}, expected a function of outputs and batch or an evaluate metric."
            )
        name = getattr(metric, "name", None) or getattr(metric, "__name__", type(metric).__name__)
        self.name: str | None = None if metric is None else name

    @property
    def by_labels(self) -> bool:
        return self.metric is None or self.is_module

    def values(self, outputs: Any, batch: Mapping[str, Any], rows: int, contrasts: Tensor | None = None) -> Values:
        """`tokens` and `labels` (B, T) with `loss` (B,) and, with contrasts, `margins` (B, T); or `values` (B,)."""
        if self.metric is not None and not self.is_module:
            value = torch.as_tensor(self.metric(outputs, batch))
            if value.shape != (rows,):
                raise ValueError(
                    f"metric {self.name} gave shape {tuple(value.shape)}, expected ({rows},): one value per example."
                )
            found = {"values": value}
        else:
            logits, labels = labelled(self.model, outputs, batch)
            tokens = logits.argmax(-1).masked_fill(labels == IGNORED, IGNORED)
            found = {"tokens": tokens, "labels": labels, "loss": summed_loss(logits, labels)}
            if contrasts is not None:
                found["margins"] = margins_of(logits, labels, labels_in_place(self.model, contrasts.to(labels.device)))
        return {name: (v.float() if v.is_floating_point() else v).detach().cpu() for name, v in found.items()}
