"""Evaluation: free-running first, teacher-forced beside it, every rate with its n and Wilson interval.

For greedy decoding, an answer comes out exactly right if and only if every teacher-forced argmax is right, <eos>
included: as long as all tokens so far are right, the generated prefix IS the teacher-forced one, and the first wrong
argmax is a wrong token. So one parallel pass decides free-running exact match; only the problems it finds wrong are
then really generated, to show what the model writes.
"""

from collections.abc import Iterator

import numpy as np
import torch
from scipy.stats import binomtest
from torch import Tensor

from ..data_builders.carry_groups import name_groups
from ..data_builders.columns import Problems, solve
from ..data_builders.long_problems import PROBLEM_CLASSES
from ..data_builders.tokenization import (
    ADDITION_SYMBOLS,
    EOS,
    FIRST_TOKEN,
    IGNORED,
    PAD,
    encode_prompts,
    encode_sortedness,
)
from .recipe import Recipe
from .training_data import encode_problems, sortedness_rows


TOKENS_PER_BATCH = 16_384
CELLS_PER_BATCH = 2**24  # of the attention maps


def rate(right: int, n: int) -> dict:
    """`{"value": 0.99, "n": 2000, "interval": [0.984, 0.994]}`: a share with its 95 % Wilson interval."""
    interval = binomtest(int(right), int(n)).proportion_ci(method="wilson")
    return {"value": right / n, "n": int(n), "interval": [interval.low, interval.high]}


def slices(count: int, width: int, shared: bool = False) -> Iterator[slice]:
    """Parts of `count` rows, each of `width` tokens, that fit into memory.

    `shared`: all rows have the same position ids, and so one position bias, which takes most of the memory.
    """
    tokens, cells = (4 * TOKENS_PER_BATCH, 16 * CELLS_PER_BATCH) if shared else (TOKENS_PER_BATCH, CELLS_PER_BATCH)
    size = max(1, min(tokens // width, cells // width**2))
    return (slice(start, start + size) for start in range(0, count, size))


@torch.inference_mode()
def teacher_forced_tokens(model, rows: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
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


def exactly_right(model, rows: dict[str, Tensor]) -> Tensor:
    """(N,): whether greedy generation gives exactly the labels, decided in one parallel pass."""
    tokens, labels = teacher_forced_tokens(model, rows)
    return (tokens == labels).all(-1)


@torch.inference_mode()
def generate_answers(model, problems: Problems, recipe: Recipe) -> list[str]:
    """What the model writes, token by token, as text."""
    model.eval()
    rows = encode_problems(problems, recipe)
    longest = int((rows["labels"] != IGNORED).sum(-1).max())
    if model.config.is_encoder_decoder:
        inputs = {name: rows[name] for name in ("input_ids", "attention_mask") if name in rows}
        skip = 1
    else:
        zero_pad = recipe.data.get("zero_pad", True)
        inputs = {name: torch.from_numpy(values) for name, values in encode_prompts(problems, zero_pad).items()}
        skip = inputs["input_ids"].shape[1]
    texts = []
    for part in slices(len(problems), inputs["input_ids"].shape[1] + longest):
        batch = {name: values[part].to(model.device) for name, values in inputs.items()}
        generated = model.generate(**batch, max_new_tokens=longest + 1, do_sample=False)[:, skip:]
        texts += ["".join(_symbols(row)) for row in generated.tolist()]
    return texts


def _symbols(tokens: list[int]) -> Iterator[str]:
    for token in tokens:
        if token == EOS:
            return
        if token != PAD:
            yield ADDITION_SYMBOLS[token - FIRST_TOKEN] if token >= FIRST_TOKEN else "?"


def evaluate_addition(model, problems: Problems, recipe: Recipe, split: str, most_shown: int = 20) -> list[dict]:
    """Rows: exact match overall and by group and carry chain, digit accuracy by place, and the wrong answers."""
    encoded = encode_problems(problems, recipe)
    tokens, labels = teacher_forced_tokens(model, encoded)
    counted = labels != IGNORED
    right = (tokens == labels).all(-1).numpy()
    hits = ((tokens == labels) & counted).numpy()
    base = {"task": "addition", "split": split}
    rows = [
        {**base, "metric": "exact_match", "decoding": "free-running", **rate(right.sum(), len(right))},
        {**base, "metric": "token_accuracy", "decoding": "teacher-forced", **rate(hits.sum(), int(counted.sum()))},
    ]
    solution = solve(problems.a, problems.b)
    for by, values in (("group", name_groups(problems)), ("longest_chain", solution.longest_chain)):
        for value in np.unique(values.astype(str) if by == "group" else values):
            own = values == value
            rows.append({**base, "metric": "exact_match", "decoding": "free-running", by: _plain(value),
                         **rate(right[own].sum(), own.sum())})  # fmt: skip
    wrong = np.flatnonzero(~right)
    written = (
        dict(zip(wrong.tolist(), generate_answers(model, problems[wrong], recipe), strict=True)) if len(wrong) else {}
    )
    rows += _digit_rows(base, labels, right, written, recipe)
    for index in wrong[:most_shown]:
        question, answer = _texts(encoded, labels, int(index))
        rows.append(
            {**base, "metric": "wrong_answer", "input": question, "target": answer, "generated": written[int(index)]}
        )
    return rows


def evaluate_long_addition(model, corpus, recipe: Recipe, progress=None) -> list[dict]:
    """Rows: exact match by class of problems and by digits, beyond those of training."""
    rows = []
    for kind, splits in corpus.splits().items():
        for split in splits if kind in PROBLEM_CLASSES else ():
            right = exactly_right(model, encode_problems(corpus.long_problems(kind, split), recipe))
            place = {"split": split, "length": int(split.removeprefix("test_")), "kind": kind}
            rows.append({"task": "addition", "metric": "exact_match", "decoding": "free-running", **place,
                         **rate(int(right.sum()), len(right))})  # fmt: skip
            if progress is not None:
                progress(rows[-1])
    return rows


def _plain(value):
    return value.item() if isinstance(value, np.generic) else value


def _texts(encoded: dict[str, Tensor], labels: Tensor, index: int) -> tuple[str, str]:
    question = "".join(_symbols([t for t in encoded["input_ids"][index].tolist() if t > EOS]))
    answer = "".join(_symbols([t for t in labels[index].tolist() if t != IGNORED]))
    return question.split("=")[0], answer


def _digit_rows(base: dict, labels: Tensor, right, written: dict[int, str], recipe: Recipe) -> list[dict]:
    """Free-running digit accuracy by place, units first. Right answers are right everywhere; wrong ones are read."""
    is_reversed = recipe.data.get("answer_order", "plain") == "reversed"
    asked, hit = {}, {}
    lengths = ((labels != IGNORED) & (labels != EOS)).sum(-1).numpy()
    for length in np.unique(lengths):
        for place in range(int(length)):
            asked[place] = asked.get(place, 0) + int((lengths == length).sum())
            hit[place] = hit.get(place, 0) + int(((lengths == length) & right).sum())
    for index, text in written.items():
        answer = "".join(_symbols([t for t in labels[index].tolist() if t != IGNORED]))
        ours, theirs = (t if is_reversed else t[::-1] for t in (text, answer))
        for place, digit in enumerate(theirs):
            hit[place] += place < len(ours) and ours[place] == digit
    return [
        {
            **base,
            "metric": "digit_accuracy",
            "decoding": "free-running",
            "place": place,
            **rate(hit[place], asked[place]),
        }
        for place in sorted(asked)
    ]


@torch.inference_mode()
def predict_sorted(model, values: np.ndarray) -> np.ndarray:
    """(N,) 1 = sorted, for sequences (N, L) of values."""
    model.eval()
    length = values.shape[1]
    # attention costs length squared; this keeps the memory of a batch about the same at every length
    size = max(1, min(TOKENS_PER_BATCH // length, CELLS_PER_BATCH // length**2))
    input_ids = torch.from_numpy(encode_sortedness(values))
    parts = [model(part.to(model.device)).logits.argmax(-1).cpu() for part in input_ids.split(size)]
    return torch.cat(parts).numpy()


def sortedness_rates(predicted: np.ndarray, label: np.ndarray) -> dict:
    """Accuracy with the rates that show how it came about, and what always guessing one class would give."""
    right, positive = predicted == label, label == 1
    return {
        **rate(right.sum(), len(right)),
        "true_positive_rate": float(right[positive].mean()) if positive.any() else None,
        "true_negative_rate": float(right[~positive].mean()) if (~positive).any() else None,
        "majority_class_rate": float(max(positive.mean(), 1 - positive.mean())),
        "one_class_only": bool((predicted == predicted[0]).all()),
    }


def evaluate_sortedness(
    model, corpus, kinds: list[str] | None = None, lengths: list[int] | None = None, progress=None
):
    """Rows: accuracy for every length and kind of negative, each against as many sorted sequences."""
    rows = []
    for kind, splits in corpus.splits().items():
        if kind == "default" or (kinds is not None and kind not in kinds):
            continue
        for split in splits:
            if not split.startswith("test_") or (lengths is not None and int(split[5:]) not in lengths):
                continue
            (group,) = sortedness_rows(corpus, kind, split)
            predicted = predict_sorted(model, group["values"])
            place = {"split": split, "length": int(split[5:]), "kind": kind}
            rates = sortedness_rates(predicted, group["label"])
            rows.append({"task": "sortedness", "metric": "accuracy", **place, **rates})
            if progress is not None:
                progress(rows[-1])
    return rows


def validate_sortedness(model, corpus) -> tuple[int, int]:
    right = total = 0
    for group in sortedness_rows(corpus, "default", "validation"):
        predicted = predict_sorted(model, group["values"])
        right, total = right + int((predicted == group["label"]).sum()), total + len(predicted)
    return right, total


def validate(model, recipe: Recipe, corpus) -> dict:
    """The one figure that is watched while training, on validation data: `rate` of the task's metric."""
    if recipe.task == "addition":
        right = exactly_right(model, encode_problems(corpus.problems("validation"), recipe))
        return rate(int(right.sum()), len(right))
    return rate(*validate_sortedness(model, corpus))


def evaluate_model(model, recipe: Recipe, corpus, progress=None) -> list[dict]:
    """All rows of the recipe's test splits."""
    if recipe.task == "sortedness":
        return evaluate_sortedness(model, corpus, progress=progress)
    rows = []
    for split in corpus.splits()["default"]:
        if split in ("test", "hard"):
            rows += evaluate_addition(model, corpus.problems(split), recipe, split)
            if progress is not None:
                progress(rows[-1])
    rows += evaluate_long_addition(model, corpus, recipe, progress)
    if corpus.options.exhaustive:
        rows += evaluate_addition(model, corpus.problems("exhaustive"), recipe, "exhaustive")
    return rows
