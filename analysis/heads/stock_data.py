"""What `headcount heads` can measure on models that are not headcount's own: data in, batches and metric out.

To add a task: one function that makes a batch from texts and labels, one line in STOCK_TASKS.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from ...data_builders.vocabulary import IGNORED


@dataclass(frozen=True)
class StockTask:
    """`columns`: what data must have, each by any of its names. `metric`: as for `ablate`; None = labels decide."""

    auto_class: str
    columns: dict[str, tuple[str, ...]]
    make_batch: Callable[[Any, Any, dict[str, list]], dict[str, Tensor]]
    metric: Callable | None
    loss: Callable | None
    description: str


TEXT = ("text", "sentence", "input", "question")
TARGET = ("target", "answer", "summary", "output", "label", "labels")


def encode(tokenizer: Any, texts: list[str]) -> dict[str, Tensor]:
    if tokenizer.pad_token is None:
        if tokenizer.eos_token is None:
            raise ValueError("the tokenizer has neither a padding nor an end token; expected one to fill up batches.")
        tokenizer.pad_token = tokenizer.eos_token
    try:
        found = dict(tokenizer(texts, return_tensors="pt", padding=True, truncation=True))
    except (TypeError, OverflowError) as error:  # of numbers in tokenizer_config.json, which nobody has checked
        raise ValueError("the tokenizer cannot read the texts; expected its files as they were saved.") from error
    empty = next((text for text, mask in zip(texts, found["attention_mask"], strict=True) if not mask.any()), None)
    if empty is not None:
        raise ValueError(f"the text {empty!r} has no tokens; expected some in every row.")
    return found


def classification_batch(model: PreTrainedModel, tokenizer: Any, columns: dict[str, list]) -> dict[str, Tensor]:
    known = {str(name): number for name, number in model.config.label2id.items()}
    labels = [label if isinstance(label, int) else known.get(str(label)) for label in columns["label"]]
    wrong = [
        given
        for given, label in zip(columns["label"], labels, strict=True)
        if label is None or not 0 <= label < model.config.num_labels
    ]
    if wrong:
        raise ValueError(f"the label {wrong[0]!r} is not one of the model's; expected one of {', '.join(known)}.")
    return {**encode(tokenizer, columns["text"]), "labels": torch.tensor(labels)}


def answer_batch(model: PreTrainedModel, tokenizer: Any, columns: dict[str, list]) -> dict[str, Tensor]:
    answers = tokenizer(text_target=[str(answer) for answer in columns["target"]], return_tensors="pt", padding=True)
    labels = answers["input_ids"].masked_fill(answers["attention_mask"] == 0, IGNORED)
    return {**encode(tokenizer, columns["text"]), "labels": labels}


def continuation_batch(model: PreTrainedModel, tokenizer: Any, columns: dict[str, list]) -> dict[str, Tensor]:
    batch = encode(tokenizer, columns["text"])
    return {**batch, "labels": batch["input_ids"].masked_fill(batch["attention_mask"] == 0, IGNORED)}


@torch.no_grad()
def embedding_batch(model: PreTrainedModel, tokenizer: Any, columns: dict[str, list]) -> dict[str, Tensor]:
    """The labels are the intact model's own embeddings: an ablated head is judged by how far it moves them."""
    model.eval()
    batch = encode(tokenizer, columns["text"])
    inputs = {name: value.to(model.device) for name, value in batch.items()}
    return {**batch, "labels": mean_embedding(model(**inputs), batch)}


def mean_embedding(outputs: Any, batch: Mapping[str, Tensor]) -> Tensor:
    """Hidden states, averaged over the tokens of each text."""
    states = outputs["last_hidden_state"]
    real = batch["attention_mask"].to(states)[..., None]
    return (states * real).sum(1) / real.sum(1)


def embedding_cosine(outputs: Any, batch: Mapping[str, Tensor]) -> Tensor:
    """Cosine between an embedding and the intact model's."""
    return nn.functional.cosine_similarity(mean_embedding(outputs, batch), batch["labels"].to(outputs[0]), dim=-1)


def embedding_projection(outputs: Any, batch: Mapping[str, Tensor]) -> Tensor:
    """The embedding on a random direction. The cosine has no slope at the intact model; this has, and by how much the
    embedding moves as a whole: for random signs r, the mean of (r . movement)^2 is the squared length of the movement.
    """
    embedding = mean_embedding(outputs, batch)
    signs = torch.randint(0, 2, embedding.shape, generator=torch.Generator().manual_seed(0)) * 2 - 1
    return (embedding * signs.to(embedding)).sum(-1)


def token_log_likelihood(outputs: Any, batch: Mapping[str, Tensor]) -> Tensor:
    """Mean log-likelihood of an example's tokens, each given those before it."""
    logits, labels = outputs["logits"][:, :-1], batch["labels"][:, 1:].to(outputs["logits"].device)
    real = labels != IGNORED
    chosen = logits.log_softmax(-1).gather(-1, labels.clamp(min=0)[..., None])[..., 0]
    return (chosen * real).sum(-1) / real.sum(-1).clamp(min=1)


STOCK_TASKS: dict[str, StockTask] = {
    "text-classification": StockTask(
        auto_class="AutoModelForSequenceClassification",
        columns={"text": TEXT, "label": ("label", "labels", "target")},
        make_batch=classification_batch,
        metric=None,
        loss=None,
        description="accuracy of a text classifier",
    ),
    "text2text": StockTask(
        auto_class="AutoModelForSeq2SeqLM",
        columns={"text": TEXT, "target": TARGET},
        make_batch=answer_batch,
        metric=None,
        loss=None,
        description="exact match of an encoder-decoder's answers, every token given the right ones before it",
    ),
    "text-generation": StockTask(
        auto_class="AutoModelForCausalLM",
        columns={"text": TEXT},
        make_batch=continuation_batch,
        metric=token_log_likelihood,
        loss=None,
        description="mean log-likelihood of a text's tokens under a decoder",
    ),
    "feature-extraction": StockTask(
        auto_class="AutoModel",
        columns={"text": TEXT},
        make_batch=embedding_batch,
        metric=embedding_cosine,
        loss=embedding_projection,
        description="cosine between a text's mean embedding and the intact model's",
    ),
}
