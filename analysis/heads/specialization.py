"""What each head attends to, as numbers between 0 and 1, beside the value that a head without preference would have.

A relation says which keys belong to which query (N, Q, K). The score of a head is the attention weight on those keys,
averaged first over the queries of an example that have any such key, then over examples. A uniform head spreads its
weight evenly over the keys that it may see; its score stands beside every score.

Relations by slot hold for any model; a task adds its own, by what tokens stand for. In the decoder a query stands for
the token that is predicted there. So in addition "same column" is the column of the digit to be written, "carry
source" the column to the right of it, and the token written last is the query's own slot.

Shapes: N examples, H heads, Q queries, K keys.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...data_builders.examples import Examples, is_labelled
from ...data_builders.tasks import NOT_A_PLACE
from ...modeling.modeling_headcount import HeadcountPreTrainedModel
from ...records.intervals import mean_with_interval
from ...records.rows import Rows, row
from ..interventions.plan import Progress
from .maps import attention_maps


TOP_K = 2

SLOT_RELATIONS = {
    "diagonal": "the key in the query's own slot",
    "previous_slot": "the key one slot before the query's",
    "next_slot": "the key one slot after the query's",
    "first_token": "the first key",
    "previous_output": "the token that was written last (decoder self-attention; there it is the diagonal)",
}
SHAPES = {
    "entropy_bits": "entropy of the weights in bits",
    "normalized_entropy": "entropy divided by that of the uniform head; queries that see one key only are left out",
    "top_2_share": "share of the weight on the two heaviest keys",
    "hoyer": "Hoyer's sparsity index: 0 for uniform weights, 1 for one key alone",
}


def specialization(
    model: HeadcountPreTrainedModel, examples: Examples, batch_size: int = 256, progress: Progress | None = None
) -> Rows:
    """Rows for every head and measure: value with n and interval, and the uniform head's value."""
    scores: dict[tuple[str, str], list[Tensor]] = {}
    baselines: dict[tuple[str, str], list[Tensor]] = {}
    for start in range(0, len(examples), batch_size):
        part = examples[np.arange(start, min(start + batch_size, len(examples)))]
        for layer, maps in attention_maps(model, part.rows).items():
            real, visible, relations = relations_of(model, layer, part, maps.shape)
            uniform = visible / visible.sum(-1, keepdim=True).clamp(min=1)
            for measure, score in score_maps(maps, real, visible, relations).items():
                scores.setdefault((layer, measure), []).append(score)
            for measure, score in score_maps(uniform[:, None], real, visible, relations).items():
                baselines.setdefault((layer, measure), []).append(score)
        if progress is not None:
            progress(min(start + batch_size, len(examples)), len(examples))
    rows = []
    for (layer, measure), parts in scores.items():
        values, baseline = torch.cat(parts), torch.cat(baselines[layer, measure])
        for place, number in enumerate(model.attention_modules()[layer].heads):
            own = values[:, place][~values[:, place].isnan()]
            if len(own):
                found = mean_with_interval(own.numpy())
                even = float(baseline[~baseline.isnan()].mean())
                rows.append(row("specialization", measure, found, head=f"{layer}.{number}", uniform=even))
    return rows


def relations_of(
    model: HeadcountPreTrainedModel, layer: str, examples: Examples, shape: tuple[int, ...]
) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Which queries are real (N, Q), which keys each may see (N, Q, K), and the relations that exist in this layer."""
    stack, _, kind = layer.split(".")
    config, rows = model.config, examples.rows
    count, _, queries, keys = shape
    q_slots, k_slots = torch.arange(queries)[:, None], torch.arange(keys)[None]
    mask = rows.get("attention_mask", torch.ones(rows["input_ids"].shape, dtype=torch.long)).bool()
    reads_encoder = stack == "decoder" and config.is_encoder_decoder
    real = is_labelled(rows["labels"]) if reads_encoder else mask
    key_real = mask if kind == "cross" or not reads_encoder else torch.ones(count, keys, dtype=torch.bool)
    visible = key_real[:, None].expand(count, queries, keys).clone()
    if kind == "self" and (stack == "decoder" or config.attention_direction == "causal"):
        visible &= k_slots <= q_slots
    if kind == "self" and config.attention_window is not None:
        visible &= (k_slots - q_slots).abs() <= config.attention_window

    relations = {"diagonal": q_slots == k_slots, "first_token": (k_slots == 0).expand(queries, keys)}
    if kind == "self":
        relations["previous_slot"] = k_slots == q_slots - 1
        relations["next_slot"] = k_slots == q_slots + 1
    if kind == "self" and stack == "decoder":
        relations["previous_output"] = relations["diagonal"]
    relations = {name: relation.expand(count, queries, keys) for name, relation in relations.items()}
    if kind == "cross" or not reads_encoder:  # the keys are those of the input
        relations |= _task_relations(model, examples, _query_index(model, stack, examples))
    return real, visible, {name: relation & visible & real[..., None] for name, relation in relations.items()}


def _query_index(model: HeadcountPreTrainedModel, stack: str, examples: Examples) -> NDArray[np.int64]:
    """(N, Q): the index of the token that a query stands for: in a decoder, of the one that is predicted there."""
    if stack == "encoder":
        return examples.roles("input").index
    index = examples.roles("answer").index
    if not model.config.is_encoder_decoder:  # the token after the one that is read
        index = np.concatenate([index[:, 1:], np.full_like(index[:, :1], NOT_A_PLACE)], axis=1)
    return index


def _task_relations(
    model: HeadcountPreTrainedModel, examples: Examples, query_index: NDArray[np.int64]
) -> dict[str, Tensor]:
    roles, found = examples.roles("input"), {}
    for name, relation in examples.task.relations.items():
        keys = np.any([roles.where(role) for role in relation.keys], axis=0)[:, None]  # (N, 1, K)
        belongs = np.broadcast_to(keys, (len(keys), query_index.shape[1], keys.shape[-1]))
        if relation.offset is not None:
            has_index = (roles.index >= 0)[:, None] & (query_index >= 0)[..., None]
            belongs = belongs & has_index & (roles.index[:, None] == query_index[..., None] + relation.offset)
        found[name] = torch.from_numpy(np.ascontiguousarray(belongs))
    return found


def score_maps(maps: Tensor, real: Tensor, visible: Tensor, relations: dict[str, Tensor]) -> dict[str, Tensor]:
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
