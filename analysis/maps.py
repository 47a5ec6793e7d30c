"""Where every head looks: attention maps with their tokens, for chosen examples and averaged over many.

A query of the decoder is labelled with the token that is being predicted there, because that is what the head works
for; the tokens are those that the model really generates, so that maps of failures show the failing model.

Shapes: B rows, H heads, Q queries, K keys.
"""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from .ablation import IGNORED, row_lengths
from .examples import Examples, token_names


@torch.inference_mode()
def attention_maps(model, rows: dict[str, Tensor]) -> dict[str, Tensor]:
    """Layer name -> (B, H, Q, K), heads as they are left after pruning; decoder inputs are made from the labels."""
    model.eval()
    outputs = model(**{name: values.to(model.device) for name, values in rows.items()}, output_attentions=True)
    if not model.config.is_encoder_decoder:
        stack = "encoder" if model.config.architecture == "encoder" else "decoder"
        return {f"{stack}.{i}.self": maps.cpu() for i, maps in enumerate(outputs.attentions)}
    maps = {f"encoder.{i}.self": maps.cpu() for i, maps in enumerate(outputs.encoder_attentions)}
    maps |= {f"decoder.{i}.self": maps.cpu() for i, maps in enumerate(outputs.decoder_attentions)}
    maps |= {f"decoder.{i}.cross": maps.cpu() for i, maps in enumerate(outputs.cross_attentions)}
    return maps


@torch.inference_mode()
def generated_rows(model, examples: Examples, masks: dict[str, Tensor] | None = None) -> dict[str, Tensor]:
    """The rows, with the model's own greedy answers in place of the right ones; `masks` are head masks."""
    masks = masks or {}
    rows = dict(examples.rows)
    if examples.task != "addition":
        return rows
    model.eval()
    longest = int((rows["labels"] != IGNORED).sum(-1).max())
    pad = model.config.pad_token_id
    if model.config.is_encoder_decoder:
        inputs = {name: rows[name].to(model.device) for name in ("input_ids", "attention_mask") if name in rows}
        written = model.generate(**inputs, **masks, max_new_tokens=longest, do_sample=False)[:, 1:].cpu()
        labels = torch.full((len(written), longest), pad)
        labels[:, : written.shape[1]] = written
        after_end = (labels == model.config.eos_token_id).int().cumsum(-1) - (
            labels == model.config.eos_token_id
        ).int()
        rows["labels"] = labels.masked_fill((labels == pad) | (after_end > 0), IGNORED)
        return rows
    parts = []
    for index in range(len(examples)):  # prompts of different lengths; there are only a few examples to look at
        prompt = rows["input_ids"][index : index + 1, : int((rows["labels"][index] != IGNORED).int().argmax())]
        prompt = prompt.to(model.device)
        written = model.generate(prompt, **masks, max_new_tokens=longest, do_sample=False)[0].cpu()
        parts.append(written)
    width = max(map(len, parts))
    ids = torch.full((len(parts), width), pad)
    for index, written in enumerate(parts):
        ids[index, : len(written)] = written
    return {"input_ids": ids, "attention_mask": (ids != pad).long(), "labels": torch.where(ids == pad, IGNORED, ids)}


def map_rows(model, examples: Examples) -> list[dict]:
    """One row per example and attention layer: tokens on both axes and the weights of every head, to four decimals."""
    rows = generated_rows(model, examples)
    maps = attention_maps(model, rows)
    found = []
    for index in range(len(examples)):
        inputs, written = axis_tokens(model, rows, index)
        title = "".join(inputs) if examples.task == "addition" else " ".join(inputs)
        for name, weights in maps.items():
            queries, keys = axes_of(model, name, inputs, written)
            shown = weights[index, :, : len(queries), : len(keys)]
            found.append({
                "analysis": "maps", "example": index, "input": title, "answer": "".join(written), "layer": name,
                "heads": model.attention_modules()[name].heads, "queries": queries, "keys": keys,
                "weights": _rounded(shown),
            })  # fmt: skip
    return found


def average_rows(model, examples: Examples, batch_size: int = 128) -> list[dict]:
    """One row per attention layer: maps averaged over all examples, which must be of one length."""
    if len(row_lengths(examples.rows).unique(dim=0)) > 1:
        raise ValueError("the examples differ in length; expected examples of one length to average their maps.")
    total: dict[str, Tensor] = {}
    for batch in _batches(examples.rows, batch_size):
        for name, maps in attention_maps(model, batch).items():
            total[name] = total.get(name, 0) + maps.double().sum(0)
    inputs, written = axis_tokens(model, examples.rows, 0)
    places = _place_names(inputs), [f"y{i}" for i in range(len(written))]
    rows = []
    for name, weights in total.items():
        queries, keys = axes_of(model, name, *places)
        mean = weights[:, : len(queries), : len(keys)] / len(examples)
        rows.append({
            "analysis": "average_maps", "layer": name, "heads": model.attention_modules()[name].heads,
            "n": len(examples), "queries": queries, "keys": keys, "weights": _rounded(mean),
        })  # fmt: skip
    return rows


def axis_tokens(model, rows: dict[str, Tensor], index: int) -> tuple[list[str], list[str]]:
    """The input tokens of a row, and the tokens that its decoder predicts."""
    ids = rows["input_ids"][index]
    mask = rows.get("attention_mask")
    inputs = token_names(
        ids[mask[index].bool()].tolist() if mask is not None else ids.tolist(), model.config.vocab_size
    )
    if not model.config.is_encoder_decoder:
        return inputs, []
    labels = rows["labels"][index]
    return inputs, token_names(labels[labels != IGNORED].tolist(), model.config.vocab_size)


def axes_of(model, name: str, inputs: list[str], written: list[str]) -> tuple[list[str], list[str]]:
    """Labels of the queries and keys of an attention layer."""
    stack, _, kind = name.split(".")
    if stack == "encoder" or not model.config.is_encoder_decoder:
        return inputs, inputs
    return [f"→{token}" for token in written], inputs if kind == "cross" else ["start", *written[:-1]]


def _place_names(inputs: list[str]) -> list[str]:
    """Operand digits by operand and column (`a2 a1 a0 + b2 b1 b0`), anything else by itself or its number."""
    if "+" not in inputs:
        return [f"x{i}" for i in range(len(inputs))]
    plus = inputs.index("+")
    digits = [i for i, token in enumerate(inputs) if token.isdigit()]
    second = [i for i in digits if i > plus and all(inputs[j].isdigit() for j in range(plus + 1, i))]
    names = list(inputs)
    first = [i for i in digits if i < plus]
    for operand, places in (("a", first), ("b", second)):
        for i in places:
            names[i] = f"{operand}{places[-1] - i}"
    answer = [i for i in digits if i not in first and i not in second]
    for number, i in enumerate(answer):
        names[i] = f"y{number}"
    return names


def _batches(rows: dict[str, Tensor], size: int) -> Iterator[dict[str, Tensor]]:
    for start in range(0, len(rows["input_ids"]), size):
        yield {name: values[start : start + size] for name, values in rows.items()}


def _rounded(weights: Tensor) -> list:
    return np.round(weights.double().numpy(), 4).tolist()
