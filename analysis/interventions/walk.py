"""One way through the stacks of headcount's own models for many interventions at once: see shared_states.py.

Shapes: V interventions, S distinct states, P patterns at a module, B rows, L tokens, E hidden size, H heads,
D head dimension.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn

from ...modeling.attention import HeadcountAttention
from ...modeling.layers import HeadcountLayer
from ...modeling.modeling_headcount import HeadcountPreTrainedModel
from ...modeling.stack import HeadcountStack
from .intervention import Intervention
from .sites import Site


Masks = Mapping[Site, Tensor]  # (B, L or more): the tokens that a site with a role means
Replacements = dict[str, dict[str, Tensor]]  # kind -> module -> (B or 1, H, L or more, D), or (B or 1, L or more, E)


@dataclass(frozen=True)
class Pattern:
    """What an intervention does at one attention layer or sublayer."""

    gates: tuple[tuple[Site, float], ...]
    replacement: str


@dataclass(frozen=True)
class States:
    """Distinct states (S, B, L, E), or one that all share; `of` (V,) is the state in which each intervention is."""

    values: Tensor
    of: Tensor


def modules_of(model: HeadcountPreTrainedModel) -> list[str]:
    """All attention layers and sublayers at which interventions may part, in the order of computation."""
    found: list[str] = []
    for name in model.attention_modules():
        layer = name.rpartition(".")[0]
        after = [f"{layer}.mlp", f"{layer}.residual"]
        found = [*(other for other in found if other not in after), name, *after]
    return found


class Walk:
    """Goes through the stacks with all interventions at once.

    Where they part depends on the interventions alone, so a walk that is taken again, over other rows, knows the way.
    """

    def __init__(self, interventions: list[Intervention]):
        self.count = len(interventions)
        self.modules = {site.module for each in interventions for site in each.touched}
        self._patterns = {name: _patterns_at(name, interventions) for name in self.modules}
        self._partings: dict[str, tuple[Tensor, Tensor, Tensor]] = {}

    def pattern_of(self, module: str) -> Tensor:
        """(V,): which pattern each intervention has at a module; interventions of one pattern do the same there."""
        return self._patterns[module][1] if module in self._patterns else torch.zeros(self.count, dtype=torch.long)

    def logits(
        self,
        model: HeadcountPreTrainedModel,
        batch: dict[str, Tensor],
        replacements: Replacements | None = None,
        masks: Masks | None = None,
        record: dict[str, Tensor] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Logits of the distinct states (S, B, ...), and in which of them each intervention ends (V,).

        `record` receives, for the modules that it names, what they put out in the first state.
        """
        stacks, start = model.base_model, torch.zeros(self.count, dtype=torch.long)
        through = partial(self._through, how=_How(replacements or {}, masks or {}, record))
        if not model.config.is_encoder_decoder:
            states = through(stacks.first_stack, stacks.first_stack.prepare(batch["input_ids"]), start)
        else:
            prepared = stacks.encoder.prepare(batch["input_ids"])
            memory = through(stacks.encoder, prepared, start)
            decoder_input_ids = model.prepare_decoder_input_ids_from_labels(batch["labels"])
            decoder_prepared = stacks.decoder.prepare(
                decoder_input_ids, encoder_hidden_states=memory.values[0], encoder_position_ids=prepared[1]
            )
            states = through(stacks.decoder, decoder_prepared, start, memory=memory)
        distinct, size = states.values.shape[:2]
        logits = model.read_out(states.values.flatten(0, 1)).unflatten(0, (distinct, size))
        return logits, states.of

    def _through(
        self, stack: HeadcountStack, prepared: tuple, start: Tensor, how: "_How", memory: States | None = None
    ) -> States:
        """The last states of a stack. `memory` are the encoder's."""
        hidden_states, _, self_inputs, cross_inputs = prepared
        states = States(hidden_states[None], start)
        for index, layer in enumerate(cast(Iterable[HeadcountLayer], stack.layers)):
            states = self._attention(layer, layer.self_attn, layer.self_attn_norm, states, self_inputs, how)
            if layer.cross_attn is not None:
                assert memory is not None and cross_inputs is not None  # such a stack reads an encoder
                # From here on a state is what the decoder holds together with what it reads from the encoder.
                held, read_from, of = self._part(f"memory of {layer.cross_attn.name}", states.of, memory.of)
                states = States(states.values if len(held) == len(states.values) else states.values[held], of)
                keys_and_values = _read(layer.cross_attn, memory.values, read_from, cross_inputs)
                inputs = {**cross_inputs, "keys_and_values": keys_and_values}
                states = self._attention(layer, layer.cross_attn, layer.cross_attn_norm, states, inputs, how)
            states = self._feed(layer, f"{stack.stack}.{index}.mlp", states, how)
            states, _ = self._intervene(f"{stack.stack}.{index}.residual", states, states.values, how)
        return States(stack.final_norm(states.values), states.of)

    def _attention(
        self,
        layer: HeadcountLayer,
        attention: HeadcountAttention,
        norm: nn.Module,
        states: States,
        inputs: dict,
        how: "_How",
    ) -> States:
        """One attention sublayer: heads put out the same for all in a state, who then part by what is done to them."""
        distinct, size = states.values.shape[:2]
        entered = layer.enter(states.values, norm).flatten(0, 1)
        output, _ = attention.attend(entered, **{n: repeat_rows(v, distinct, size) for n, v in inputs.items()})
        output = output.unflatten(0, (distinct, size))  # (S, B, H, L, D)
        parted, residual = self._intervene(
            attention.name, States(output, states.of), states.values, how, attention.heads
        )
        merged = attention.merge(parted.values.flatten(0, 1)).unflatten(0, (len(parted.values), size))
        return States(layer.leave(residual, merged, norm), parted.of)

    def _feed(self, layer: HeadcountLayer, name: str, states: States, how: "_How") -> States:
        if name not in self._patterns and name not in (how.record or ()):
            return States(layer.feed(states.values), states.of)
        output = layer.feed_forward(layer.enter(states.values, layer.feed_forward_norm))
        parted, residual = self._intervene(name, States(output, states.of), states.values, how)
        return States(layer.leave(residual, parted.values, layer.feed_forward_norm), parted.of)

    def _intervene(
        self, name: str, outputs: States, residual: Tensor, how: "_How", heads: list[int] | None = None
    ) -> tuple[States, Tensor]:
        """What a module puts out after the interventions there, and the residual stream, parted alike."""
        if how.record is not None and name in how.record:
            how.record[name] = outputs.values[0]
        if name not in self._patterns:
            return outputs, residual
        patterns, pattern_of = self._patterns[name]
        source, pattern, of = self._part(name, outputs.of, pattern_of)
        values = outputs.values
        if len(values) > 1:  # a single state is broadcast
            values, residual = values[source], residual[source]
        gate = how.gate(patterns, heads, values)[pattern]
        changed = values * gate
        replacement = how.replacement(name, patterns, pattern, values)
        if replacement is not None:
            changed += (1 - gate) * replacement
        return States(changed, of), residual

    def _part(self, name: str, state_of: Tensor, kind_of: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Parts those in a state by their kind: of every new state the old one and the kind, and who is in which."""
        if name not in self._partings:
            kinds = int(kind_of.max()) + 1
            keys, of = (state_of * kinds + kind_of).unique(return_inverse=True)
            self._partings[name] = keys // kinds, keys % kinds, of
        return self._partings[name]


@dataclass(frozen=True)
class _How:
    """What a walk does on the rows of one batch."""

    replacements: Replacements
    masks: Masks
    record: dict[str, Tensor] | None

    def gate(self, patterns: list[Pattern], heads: list[int] | None, output: Tensor) -> Tensor:
        """(P, B or 1, H, L or 1, 1) for the heads of an attention layer, (P, B or 1, L or 1, 1) for a sublayer."""
        size, length = output.shape[1], output.shape[-2]
        has_roles = any(site.role is not None for pattern in patterns for site, _ in pattern.gates)
        shape = (size, length) if has_roles else (1, 1)
        gate = torch.ones(len(patterns), *shape, 1 if heads is None else len(heads))
        for number, pattern in enumerate(patterns):
            for site, value in pattern.gates:
                column = 0 if heads is None or site.head is None else heads.index(site.head.number)
                chosen = gate[number, ..., column]
                chosen *= value if site.role is None else 1 + (value - 1) * self._tokens(site, length)
        gate = gate.to(output)
        return gate if heads is None else gate.transpose(-1, -2)[..., None]

    def _tokens(self, site: Site, length: int) -> Tensor:
        mask = self.masks[site]
        if mask.shape[1] < length:
            raise ValueError(f"roles are known for {mask.shape[1]} tokens at {site}; expected {length}, one for each.")
        return mask[:, :length]

    def replacement(self, name: str, patterns: list[Pattern], chosen: Tensor, output: Tensor) -> Tensor | None:
        """What closed gates let through, for all states alike or for each; None stands for zero."""
        length = output.shape[-2]
        kinds = {pattern.replacement for pattern in patterns if pattern.gates}
        found = {kind: self.replacements[kind][name][..., :length, :] for kind in kinds - {"zero"}}
        if not found:
            return None
        if len(kinds) == 1:
            return next(iter(found.values()))
        each = [found.get(pattern.replacement) for pattern in patterns]
        zero = output.new_zeros(output.shape[1:])
        return torch.stack([zero if one is None else one.expand_as(zero) for one in each])[chosen]


def _patterns_at(module: str, interventions: list[Intervention]) -> tuple[list[Pattern], Tensor]:
    """The different patterns at a module, and which of them each intervention has; the empty one comes last."""
    own = []
    for each in interventions:
        gates = tuple(sorted((site, each.gate_of(site)) for site in each.at(module) if each.gate_of(site) != 1.0))
        own.append(Pattern(gates, each.replacement_at(module) if gates else "zero"))
    patterns = sorted(set(own), key=lambda pattern: (not pattern.gates, pattern.gates, pattern.replacement))
    number = {pattern: index for index, pattern in enumerate(patterns)}
    return patterns, torch.tensor([number[pattern] for pattern in own])


def _read(attention: HeadcountAttention, memory: Tensor, memory_of: Tensor, inputs: dict) -> tuple[Tensor, ...]:
    """Keys and values (S * B, H, K, D) for every state: computed once for each of the encoder's states."""
    known, size = memory.shape[:2]
    ids = repeat_rows(inputs["k_ids"], known, size)
    found = attention.keys_and_values(memory.flatten(0, 1), inputs["position_encoding"], ids)
    return tuple(value.unflatten(0, (known, size))[memory_of].flatten(0, 1) for value in found)


def repeat_rows(value: Any, times: int, size: int) -> Any:
    """A tensor of one entry per row, repeated for every state; what all rows share stays as it is."""
    per_row = isinstance(value, Tensor) and value.ndim > 0 and value.shape[0] == size and times > 1 and size > 1
    return value.repeat(times, *[1] * (value.ndim - 1)) if per_row else value
