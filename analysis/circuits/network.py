"""The nodes of a model's graph as functions: what each adds to the residual stream, from what it reads alone.

Everything is computed by the model's own modules. A head by itself is a copy of its attention layer from which the
others are pruned, without the bias of the output projection, which belongs to no head.

Shapes: S states side by side, B rows, L tokens, E hidden size.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from ...modeling.attention import HeadcountAttention
from ...modeling.layers import HeadcountLayer
from ...modeling.modeling_headcount import HeadcountPreTrainedModel
from ...modeling.stack import HeadcountStack
from ..interventions.sites import Site
from ..interventions.walk import repeat_rows
from .graph import EMBED, LOGITS, graph_of


SUBLAYERS = ("self", "cross", "mlp")  # of a layer, in the order of computation


@dataclass(frozen=True)
class Prepared:
    """What the stacks make of one batch before their first layers."""

    embeds: dict[str, Tensor]  # `encoder.embed` -> (B, L, E)
    shared: dict[tuple[str, str], dict[str, Any]]  # (stack, "self" or "cross") -> what its attention layers share


class Network:
    """The parts of one of headcount's own models by the names of its graph."""

    def __init__(self, model: HeadcountPreTrainedModel):
        self.model, self.graph = model, graph_of(model)
        stacks = ((name, getattr(model.base_model, name, None)) for name in ("encoder", "decoder"))
        self.stacks: dict[str, HeadcountStack] = {name: stack for name, stack in stacks if stack is not None}
        self.last = list(self.stacks)[-1]
        attention = model.attention_modules()
        self.heads = {site: alone(attention[site.module], site) for site in self.graph.nodes if site.head is not None}
        # reader -> stack that it reads -> the parents there
        self.reads = {reader: _by_stack(read) for reader, read in self.graph.parents.items()}
        self._constants = {(reader, stack): self._constant(reader, stack) for reader, stack in self.inputs()}

    def inputs(self) -> list[tuple[str, str]]:
        """Every sum that is read: by whom, and of which stack's stream."""
        return [(reader, stack) for reader, stacks in self.reads.items() for stack in stacks]

    def constant(self, reader: str, stack: str) -> Tensor:
        """(E,): what attention layers have added to a stream by the biases of their output projections."""
        return self._constants[reader, stack]

    def _constant(self, reader: str, stack: str) -> Tensor:
        total = torch.zeros(self.model.config.hidden_size, device=self.model.device, dtype=self.model.dtype)
        for name, attention in self.model.attention_modules().items():
            if name.split(".")[0] == stack and _comes_before(name, reader):
                total = total + attention.out_proj.bias.detach()
        return total

    def prepare(self, batch: Mapping[str, Tensor]) -> Prepared:
        """For rows of one length, without padding."""
        first = next(iter(self.stacks))
        embeds, ids, own, _ = self.stacks[first].prepare(batch["input_ids"])
        found, shared = {f"{first}.{EMBED}": embeds}, {(first, "self"): own}
        if self.last != first:
            inputs = self.model.prepare_decoder_input_ids_from_labels(batch["labels"])
            decoder = self.stacks[self.last]
            # Of the encoder's states, only their number is looked at here.
            prepared = decoder.prepare(inputs, encoder_hidden_states=embeds, encoder_position_ids=ids)
            found[f"{self.last}.{EMBED}"], _, shared[self.last, "self"], cross = prepared
            shared[self.last, "cross"] = cast(dict, cross)
        return Prepared(found, shared)

    def put_out(self, reader: str, read: Mapping[str, Tensor], prepared: Prepared) -> Tensor:
        """What a node adds to its stream, (S, B, L, E), from the streams that it reads; of `logits`, (S, B, ...)."""
        states = read[self.last if reader == LOGITS else reader.split(".")[0]]
        count, rows = states.shape[:2]
        if reader == LOGITS:
            last = self.stacks[self.last].final_norm(states)
            return self.model.read_out(last.flatten(0, 1)).unflatten(0, (count, rows))
        site = Site(reader)
        layer = cast(HeadcountLayer, self.stacks[site.stack].layers[site.layer])
        if site.head is None:
            return layer.feed_forward(layer.enter(states, layer.feed_forward_norm))
        norm = layer.self_attn_norm if site.kind == "self" else layer.cross_attn_norm
        inputs = {
            name: repeat_rows(value, count, rows) for name, value in prepared.shared[site.stack, site.kind].items()
        }
        if site.kind == "cross":
            inputs["encoder_hidden_states"] = self.stacks["encoder"].final_norm(read["encoder"]).flatten(0, 1)
        head = self.heads[site]
        output, _ = head.attend(layer.enter(states, norm).flatten(0, 1), **inputs)
        return head.merge(output).unflatten(0, (count, rows))


def alone(attention: HeadcountAttention, site: Site) -> HeadcountAttention:
    """A copy of an attention layer with one head, whose output projection has no bias."""
    assert site.head is not None  # asked of heads alone
    own = copy.deepcopy(attention, {id(attention.config): attention.config})
    own.prune([number for number in own.heads if number != site.head.number])
    own.requires_grad_(False)
    own.out_proj.bias.zero_()
    return own


def _by_stack(read: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    stacks = dict.fromkeys(parent.split(".")[0] for parent in read)
    return {stack: tuple(parent for parent in read if parent.split(".")[0] == stack) for stack in stacks}


def _comes_before(attention: str, reader: str) -> bool:
    """Whether a reader finds in its stack what an attention layer has written."""
    stack, layer, kind = attention.split(".")[:3]
    if reader == LOGITS or reader.split(".")[0] != stack:
        return True
    own = Site(reader)
    return (int(layer), SUBLAYERS.index(kind)) < (own.layer, SUBLAYERS.index(own.kind))
