"""From a wiring to a model: the config that is large enough, and every weight set.

Shapes: D slots of a head. Every feature that a head compares with its query has a slot, and every feature it moves.
"""

import math
from typing import Any

import torch
from torch import nn

from ....configuration.configuration_headcount import HeadcountConfig
from ....data_builders.registry import find_task
from ....data_builders.tasks import options_of
from ....data_builders.vocabulary import BOS, EOS, PAD
from ....modeling.attention import HeadcountAttention
from ....modeling.feed_forward import FeedForward
from ....modeling.modeling_headcount import HeadcountPreTrainedModel
from ....trainers.model_building import MODEL_CLASSES
from .wiring import ONE, HeadPart, NetworkPart, Wiring


def model_options(wiring: Wiring) -> dict[str, Any]:
    """What a recipe would say of the model, its sizes as the parts need them."""
    streams = max(len(wiring.features(stack)) for stack in wiring.stacks)
    heads = [part for part in wiring.parts if isinstance(part, HeadPart)]
    slots = [len({key for _, key in part.looks}) for part in heads]
    slots += [len({read for read, _ in part.moves}) for part in heads]
    units = [len(part.units) for part in wiring.parts if isinstance(part, NetworkPart)]
    options: dict[str, Any] = {
        "architecture": "-".join(wiring.stacks),
        "norm_type": "none",
        "num_attention_heads": wiring.heads,
        "hidden_size": wiring.heads * max(*slots, math.ceil(streams / wiring.heads)),
        "intermediate_size": max(units, default=1),
        "num_hidden_layers": wiring.layers(wiring.stacks[0]),
        "position_embedding_type": "learned",
        "max_position_embeddings": max(map(len, wiring.places.values())),
        **wiring.model,
    }
    if len(wiring.stacks) == 2:
        options["decoder_layers"] = wiring.layers("decoder")
    return options


@torch.no_grad()
def build(wiring: Wiring) -> HeadcountPreTrainedModel:
    """The model of a wiring, ready to be used."""
    task, options = find_task(wiring.task), model_options(wiring)
    facts = {"vocab_size": task.vocabulary.size, "pad_token_id": PAD, "bos_token_id": BOS, "eos_token_id": EOS}
    facts |= task.config(options_of(task, wiring.data), options)
    model = MODEL_CLASSES[options["architecture"]](HeadcountConfig(**options, **facts))
    for parameter in model.parameters():
        parameter.zero_()
    features = {stack: wiring.features(stack) for stack in wiring.stacks}
    for stack in wiring.stacks:
        module = getattr(model.model, stack)
        for table, rows in (
            (module.embed_tokens.weight, wiring.tokens[stack]),
            (module.position_encoding.table, dict(enumerate(wiring.places[stack]))),
        ):
            for row, values in rows.items():
                for name, value in values.items():
                    table[row, features[stack][name]] = value
    attention = model.attention_modules()
    for part in wiring.parts:
        stack, layer, kind, *number = part.site.split(".")
        if isinstance(part, NetworkPart):
            set_network(part, getattr(model.model, stack).layers[int(layer)].feed_forward, features[stack])
        else:
            memory = features["encoder" if kind == "cross" else stack]
            set_head(part, attention[f"{stack}.{layer}.{kind}"], int(number[0]), features[stack], memory)
    output = model.classifier if options["architecture"] == "encoder" else model.lm_head
    for (name, target), weight in wiring.readout.items():
        output.weight[target, features[wiring.stacks[-1]][name]] = weight
    for label, bias in wiring.thresholds.items():
        output.bias[label] = bias
    return model.eval()


def set_network(part: NetworkPart, network: FeedForward, features: dict[str, int]) -> None:
    for row, unit in enumerate(part.units):
        network.up_proj.bias[row] = unit.bias
        for name, weight in unit.reads.items():
            read(network.up_proj, row, name, weight, features, part.site)
        for name, weight in unit.writes.items():
            network.down_proj.weight[features[name], row] = weight


def set_head(
    part: HeadPart, attention: HeadcountAttention, number: int, features: dict[str, int], memory: dict[str, int]
) -> None:
    """`features` are those of the stream that the head writes to, `memory` those of the one it looks into."""
    first, scale = number * attention.head_dim, math.sqrt(attention.head_dim)  # attention divides by the same root
    keys = list(dict.fromkeys(key for _, key in part.looks))
    for (query, key), score in part.looks.items():
        slot = first + keys.index(key)
        read(attention.k_proj, slot, key, 1.0, memory, part.site)
        read(attention.q_proj, slot, query, score * scale, features, part.site)
    moved = list(dict.fromkeys(name for name, _ in part.moves))
    for (name, written), weight in part.moves.items():
        slot = first + moved.index(name)
        read(attention.v_proj, slot, name, 1.0, memory, part.site)
        attention.out_proj.weight[features[written], slot] = weight


def read(projection: nn.Linear, row: int, name: str, weight: float, features: dict[str, int], site: str) -> None:
    """Lets one output of a projection read a feature, or the constant."""
    if name == ONE:
        projection.bias[row] = weight
    elif name in features:
        projection.weight[row, features[name]] = weight
    else:
        raise ValueError(f"{site} reads {name!r}, which nobody writes; expected one of {', '.join(features)}.")
