"""Where every head of any transformers model looks."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ..modeling.modeling_headcount import HeadcountPreTrainedModel
from ..modeling.stock.finding import attention_layers
from ..modeling.stock.gates import record_maps
from . import maps as own_maps
from .stock_versions import VersionRunner


@torch.inference_mode()
def attention_maps(model, batch: Mapping[str, Any]) -> dict[str, Tensor]:
    """Attention layer -> weights (batch, heads that are left, queries, keys), for one call of the model on the batch.

    >>> headcount.attention_maps(model, inputs)["decoder.1.cross"].shape
    torch.Size([3, 4, 5, 9])

    Within `mask_heads`, the maps are those of the masked model. A layer that did not run is left out.
    """
    if isinstance(model, HeadcountPreTrainedModel):
        return own_maps.attention_maps(model, dict(batch))
    was_training = model.training
    model.eval()
    found: dict[nn.Module, Tensor] = {}
    try:
        with record_maps(model, found):
            VersionRunner(model).plain(batch)
    finally:
        model.train(was_training)
    return {
        name: found[layer.module].cpu() for name, layer in attention_layers(model).items() if layer.module in found
    }


def map_rows(model, batch: Mapping[str, Any], tokens: dict[str, list[list[str]]], titles: list[str]) -> list[dict]:
    """One row per example and layer, as for headcount's own models; `tokens` names those of inputs and answers."""
    rows = []
    layers = attention_layers(model)
    maps = attention_maps(model, batch)
    for example, title in enumerate(titles):
        inputs = tokens["input_ids"][example]
        written = tokens.get("labels", [[]] * len(titles))[example]
        for name, weights in maps.items():
            reads_answer = name.startswith("decoder.") and model.config.is_encoder_decoder
            queries = written if reads_answer else inputs
            keys = inputs if ".cross" in name or not reads_answer else ["start", *written[:-1]]
            shown = weights[example, :, : len(queries), : len(keys)]
            rows.append({
                "analysis": "maps", "example": example, "input": title, "answer": " ".join(written), "layer": name,
                "heads": list(layers[name].heads), "queries": queries, "keys": keys,
                "weights": shown.double().numpy().round(4).tolist(),
            })  # fmt: skip
    return rows
