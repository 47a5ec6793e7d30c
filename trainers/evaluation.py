"""Evaluation: free-running first, teacher-forced beside it, every rate with its n and Wilson interval.

For greedy decoding, an answer comes out exactly right if and only if every teacher-forced argmax is right, <eos>
included: as long as all tokens so far are right, the generated prefix IS the teacher-forced one, and the first wrong
argmax is a wrong token. So one parallel pass decides free-running exact match; only the problems it finds wrong are
then really generated, to show what the model writes.

Shapes: N examples, T labelled places.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..data_builders.corpus import Corpus
from ..data_builders.examples import Examples, make_examples, tensors
from ..data_builders.tasks import Problems, SplitTest
from ..data_builders.vocabulary import IGNORED
from ..metrics.answers import breakdown, compute_place_accuracy
from ..metrics.classes import class_rates
from ..records.intervals import rate
from ..records.rows import Row, Rows, row
from .recipe import Recipe
from .training_data import style_of


TOKENS_PER_BATCH = 16_384
MOST_SHOWN = 20  # wrong answers of a split


def slices(count: int, width: int, shared: bool = False) -> Iterator[slice]:
    """Parts of `count` rows, each of `width` tokens, that fit into memory. Attention bounds its own: see `ScoreTerms`.

    `shared`: all rows have the same position ids, and so one position bias, which then costs less per row.
    """
    size = max(1, (4 if shared else 1) * TOKENS_PER_BATCH // width)
    return (slice(start, start + size) for start in range(0, count, size))


@torch.inference_mode()
def teacher_forced_tokens(model: Any, rows: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """The argmax for every label, and the labels, both (N, places); places without a label hold -100."""
    if any(module.training for module in model.modules()):  # to set it each time would cost a fifth of a short pass
        model.eval()
    predicted, device, labels = [], model.device, rows["labels"]
    inputs = {name: values for name, values in rows.items() if name != "labels"}  # nobody asks for the loss
    width, both = rows["input_ids"].shape[1], model.config.is_encoder_decoder
    if both:
        inputs["decoder_input_ids"] = model.prepare_decoder_input_ids_from_labels(labels)
        width += labels.shape[1]
    for part in slices(len(labels), width, shared="attention_mask" not in rows):
        batch = {name: values[part].to(device) for name, values in inputs.items()}
        predicted.append(model(**batch, use_cache=False).logits.argmax(-1).cpu())
    tokens = torch.cat(predicted)
    if not both:  # a causal model predicts the token after the one it reads
        tokens, labels = tokens[:, :-1], labels[:, 1:]
    return tokens.masked_fill(labels == IGNORED, IGNORED), labels


@torch.inference_mode()
def predicted_labels(model: Any, rows: dict[str, Tensor]) -> Tensor:
    """(N,): the class with the largest logit. Rows of one length go together, so that none is padded."""
    model.eval()
    ids, mask = rows["input_ids"], rows.get("attention_mask")
    lengths = torch.full((len(ids),), ids.shape[1]) if mask is None else mask.sum(-1)
    found = torch.empty(len(ids), dtype=torch.long)
    for length in lengths.unique().tolist():
        own = (lengths == length).nonzero()[:, 0]
        for part in slices(len(own), length):
            logits = model(ids[own[part], :length].to(model.device)).logits
            found[own[part]] = logits.argmax(-1).cpu()
    return found


def outcomes(model: Any, examples: Examples) -> NDArray[np.bool_]:
    """(N,): what the model gets right: greedy generation gives exactly the labels, or the class is right."""
    if examples.task.kind == "label":
        return (predicted_labels(model, examples.rows) == examples.rows["labels"]).numpy()
    tokens, labels = teacher_forced_tokens(model, examples.rows)
    return (tokens == labels).all(-1).numpy()


@torch.inference_mode()
def generate_tokens(model: Any, examples: Examples) -> list[list[int]]:
    """What the model writes after each question, token by token with its cache, <eos> and padding included."""
    model.eval()
    task, rows = examples.task, examples.rows
    longest = int((rows["labels"] != IGNORED).sum(-1).max())
    if model.config.is_encoder_decoder:
        inputs: dict[str, Tensor] = {name: rows[name] for name in ("input_ids", "attention_mask") if name in rows}
        skip = 1
    else:
        inputs = tensors(task.prompts(examples.problems, examples.options))
        skip = inputs["input_ids"].shape[1]
    written: list[list[int]] = []
    width = inputs["input_ids"].shape[1] + longest
    for part in slices(len(examples), width, shared="attention_mask" not in inputs):
        batch = {name: values[part].to(model.device) for name, values in inputs.items()}
        written += model.generate(**batch, max_new_tokens=longest + 1, do_sample=False)[:, skip:].tolist()
    return written


def generate_answers(model: Any, examples: Examples) -> list[str]:
    """What the model writes, token by token, as text."""
    return [examples.task.vocabulary.text(tokens) for tokens in generate_tokens(model, examples)]


def right_answers(examples: Examples) -> list[str]:
    """The labels as text; rows that are alike are written once."""
    labels = examples.rows["labels"].numpy()
    different, which = np.unique(labels, axis=0, return_inverse=True)
    texts = [examples.task.vocabulary.text(answer) for answer in different.tolist()]
    return [texts[number] for number in which.reshape(-1).tolist()]


def evaluate_answers(model: Any, examples: Examples, test: SplitTest) -> Rows:
    """Exact match overall and by every fact, accuracy by place, and some wrong answers."""
    tokens, labels = teacher_forced_tokens(model, examples.rows)
    counted = labels != IGNORED
    right = (tokens == labels).all(-1).numpy()
    hits = ((tokens == labels) & counted).numpy()
    about: dict[str, Any] = {"task": examples.task.name, **_place(test)}
    rows = [_whole_row(examples, right, test)]
    if test.kind is not None:
        return rows
    forced = rate(hits.sum(), int(counted.sum()))
    rows.append(row("evaluation", "token_accuracy", forced, decoding="teacher-forced", **about))
    for fact, values in examples.facts.items():
        for value, share in breakdown(right, values):
            rows.append(row("evaluation", "exact_match", share, scope={fact: value}, decoding="free-running", **about))
    wrong = np.flatnonzero(~right)
    targets = right_answers(examples)
    written = list(targets)
    for index, text in zip(wrong, generate_answers(model, examples[wrong]) if len(wrong) else [], strict=True):
        written[index] = text
    by_place = compute_place_accuracy(written, targets, place_zero(examples))["by_place"]
    for found in by_place:
        estimate = {name: found[name] for name in ("value", "n", "interval")}
        scope = {"place": found["place"]}
        rows.append(row("evaluation", "place_accuracy", estimate, scope=scope, decoding="free-running", **about))
    questions = _questions(examples[wrong[:MOST_SHOWN]])
    for index, question in zip(wrong, questions, strict=False):
        texts: dict[str, Any] = {"input": question, "target": targets[index], "generated": written[index]}
        rows.append(row("evaluation", "wrong_answer", {"n": 1}, decoding="free-running", **about, **texts))
    return rows


def place_zero(examples: Examples) -> str:
    """Which end of a written answer is its place 0, "first" or "last"."""
    plain, order = examples.task.place_zero, examples.task.answer_order(examples.options)
    return plain if order == "plain" else {"first": "last", "last": "first"}[plain]


def _questions(examples: Examples) -> list[str]:
    vocabulary = examples.task.vocabulary
    texts = [vocabulary.text([t for t in ids if t >= vocabulary.first]) for ids in examples.rows["input_ids"].tolist()]
    return [vocabulary.question(text) for text in texts]


def evaluate_labels(model: Any, examples: Examples, test: SplitTest) -> Rows:
    """Accuracy with the rates that show how it came about, and what always guessing one class would give."""
    label = examples.rows["labels"].numpy()
    rates = class_rates(predicted_labels(model, examples.rows).numpy(), label, len(examples.task.labels))
    return [row("evaluation", "accuracy", rates, task=examples.task.name, **_place(test))]


def _whole_row(examples: Examples, right: NDArray[np.bool_], test: SplitTest) -> Row:
    share = rate(right.sum(), len(right))
    return row("evaluation", "exact_match", share, decoding="free-running", task=examples.task.name, **_place(test))


def _place(test: SplitTest) -> dict[str, Any]:
    """`kind` and `length` are None in the rows about a split that is no class of problems at one length."""
    return {"split": test.split, "kind": test.kind, "length": test.length}


def split_examples(recipe: Recipe, corpus: Corpus, problems: Problems) -> Examples:
    return make_examples(recipe.the_task, corpus.options, problems, style_of(recipe))


def validate(model: Any, recipe: Recipe, corpus: Corpus) -> dict:
    """The one figure that is watched while training, on validation data: `rate` of the task's metric."""
    right = outcomes(model, split_examples(recipe, corpus, corpus.problems("validation")))
    return rate(int(right.sum()), len(right))


def evaluate_model(model: Any, recipe: Recipe, corpus: Corpus, progress: Callable[[Row], None] | None = None) -> Rows:
    """All rows of the corpus' tests."""
    rows: Rows = []
    measure = evaluate_labels if recipe.the_task.kind == "label" else evaluate_answers
    for test in corpus.tests():
        examples = split_examples(recipe, corpus, corpus.problems(test.split, test.config))
        rows += measure(model, examples, test)
        if progress is not None:
            progress(rows[-1])
    return rows
