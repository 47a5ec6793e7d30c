"""What each head attends to, as numbers between 0 and 1, beside the value that a head without preference would have.

A relation says which keys belong to which query (N, Q, K). The score of a head is the attention weight on those keys,
averaged first over the queries of an example that have any such key, then over examples. A uniform head spreads its
weight evenly over the keys that it may see; its score stands beside every score.

In the decoder a query stands for the token that is predicted there. So "same column" is the column of the digit to be
written, "carry source" the column to the right of it, and the token written last is the query's own slot.

Shapes: N examples, H heads, Q queries, K keys.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from ..data_builders.tokenization import PLUS_ID
from .ablation import IGNORED
from .examples import Examples, input_columns, label_columns
from .maps import attention_maps
from .statistics import mean_with_interval


TOP_K = 2

RELATIONS = {
    "diagonal": "the key in the query's own slot",
    "previous_slot": "the key one slot before the query's",
    "next_slot": "the key one slot after the query's",
    "first_token": "the first key",
    "same_column": "the digits of both operands in the query's column",
    "carry_source": "the digits of both operands one column to the right of the query's",
    "operator": "the plus sign",
    "previous_output": "the token that was written last (decoder self-attention; there it is the diagonal)",
}
SHAPES = {
    "entropy_bits": "entropy of the weights in bits",
    "normalized_entropy": "entropy divided by that of the uniform head; queries that see one key only are left out",
    "top_2_share": "share of the weight on the two heaviest keys",
    "hoyer": "Hoyer's sparsity index: 0 for uniform weights, 1 for one key alone",
}


def specialization(model, examples: Examples, batch_size: int = 256, progress: Callable | None = None) -> list[dict]:
    """Rows for every head and measure: value with n and interval, and the uniform head's value."""
    scores: dict[tuple[str, str], list[Tensor]] = {}
    for start in range(0, len(examples), batch_size):
        part = examples[np.arange(start, min(start + batch_size, len(examples)))]
        for layer, maps in attention_maps(model, part.rows).items():
            real, visible, relations = relations_of(model, layer, part, maps.shape)
            uniform = visible / visible.sum(-1, keepdim=True).clamp(min=1)
            for measure, score in _scores(maps, real, visible, relations).items():
                scores.setdefault((layer, measure), []).append(score)
            for measure, score in _scores(uniform[:, None], real, visible, relations).items():
                scores.setdefault((layer, f"uniform/{measure}"), []).append(score)
        if progress is not None:
            progress(min(start + batch_size, len(examples)), len(examples))
    rows = []
    for (layer, measure), parts in scores.items():
        if measure.startswith("uniform/"):
            continue
        values, baseline = torch.cat(parts), torch.cat(scores[layer, f"uniform/{measure}"])
        for place, number in enumerate(model.attention_modules()[layer].heads):
            own = values[:, place][~values[:, place].isnan()]
            if not len(own):
                continue
            rows.append({
                "analysis": "specialization", "head": f"{layer}.{number}", "metric": measure,
                **mean_with_interval(own.numpy()), "uniform": float(baseline[~baseline.isnan()].mean()),
            })  # fmt: skip
    return rows


def relations_of(model, layer: str, examples: Examples, shape) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Which queries are real (N, Q), which keys each may see (N, Q, K), and the relations that exist in this layer."""
    stack, _, kind = layer.split(".")
    config, rows = model.config, examples.rows
    count, _, queries, keys = shape
    q_slots, k_slots = torch.arange(queries)[:, None], torch.arange(keys)[None]
    mask = rows.get("attention_mask", torch.ones(rows["input_ids"].shape, dtype=torch.long)).bool()
    seq2seq_decoder = stack == "decoder" and config.is_encoder_decoder
    real = (rows["labels"] != IGNORED) if seq2seq_decoder else mask
    key_real = mask if kind == "cross" or not seq2seq_decoder else torch.ones(count, keys, dtype=torch.bool)
    visible = key_real[:, None].expand(count, queries, keys).clone()
    if kind == "self" and (stack == "decoder" or config.attention_direction == "causal"):
        visible &= k_slots <= q_slots
    if kind == "self" and config.attention_window is not None:
        visible &= (k_slots - q_slots).abs() <= config.attention_window

    relations = {"diagonal": q_slots == k_slots, "first_token": (k_slots == 0).expand(queries, keys)}
    if kind == "self":
        relations["previous_slot"] = k_slots == q_slots - 1
        relations["next_slot"] = k_slots == q_slots + 1
    relations = {name: relation.expand(count, queries, keys) for name, relation in relations.items()}
    if examples.task == "addition":
        relations |= _addition_relations(config, kind, seq2seq_decoder, examples, relations)
    return real, visible, {name: relation & visible & real[..., None] for name, relation in relations.items()}


def _addition_relations(config, kind: str, seq2seq_decoder: bool, examples: Examples, known: dict) -> dict:
    input_ids, labels = examples.rows["input_ids"], examples.rows["labels"]
    operands = input_columns(input_ids)
    if seq2seq_decoder:
        predicted = label_columns(labels, examples.answer_order)
    elif config.architecture == "decoder":
        answer = label_columns(labels, examples.answer_order)
        predicted = torch.full_like(answer, -1)
        predicted[:, :-1] = answer[:, 1:]  # the token after the one that is read
    else:
        predicted = operands
    found = {}
    if kind == "cross" or not seq2seq_decoder:
        is_digit = (operands >= 0)[:, None] & (predicted >= 0)[..., None]
        found["same_column"] = is_digit & (operands[:, None] == predicted[..., None])
        found["carry_source"] = is_digit & (operands[:, None] == predicted[..., None] - 1)
        found["operator"] = (input_ids == PLUS_ID)[:, None].expand(-1, predicted.shape[1], -1)
    if kind == "self" and (seq2seq_decoder or config.architecture == "decoder"):
        found["previous_output"] = known["diagonal"]
    return found


def _scores(maps: Tensor, real: Tensor, visible: Tensor, relations: dict[str, Tensor]) -> dict[str, Tensor]:
    """Measure -> (N, H), NaN where an example has no query to measure it on."""
    found = {}
    for name, relation in relations.items():
        has_any = relation.any(-1)
        weight = (maps * relation[:, None]).sum(-1)  # (N, H, Q)
        found[name] = _mean_over(weight, has_any)
    weights = maps * visible[:, None]
    entropy = -(weights * weights.clamp(min=1e-30).log2()).sum(-1)
    seen = visible.sum(-1)
    found["entropy_bits"] = _mean_over(entropy, real)
    several = real & (seen > 1)
    found["normalized_entropy"] = _mean_over(entropy / seen.clamp(min=2).log2()[:, None], several)
    found["top_2_share"] = _mean_over(weights.topk(min(TOP_K, maps.shape[-1]), dim=-1).values.sum(-1), real)
    root = seen.clamp(min=2).sqrt()[:, None]
    hoyer = (root - 1 / weights.square().sum(-1).sqrt().clamp(min=1e-12)) / (root - 1)
    found["hoyer"] = _mean_over(hoyer, several)
    return found


def _mean_over(values: Tensor, chosen: Tensor) -> Tensor:
    """(N, H) from (N, H, Q): the mean over the chosen queries (N, Q)."""
    chosen = chosen[:, None]
    return (values * chosen).sum(-1) / chosen.sum(-1).where(chosen.any(-1), torch.nan)
