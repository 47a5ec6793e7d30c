"""A stack of layers: the encoder, the decoder, or the only stack of a model.

Shapes: B batch, Q tokens of this call, K keys (with a cache: past and present), H heads, E hidden size.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers.cache_utils import Cache, DynamicCache, EncoderDecoderCache
from transformers.utils import ModelOutput, can_return_tuple

from ..configuration.configuration_headcount import HeadcountConfig
from .embeddings import EMBEDDINGS
from .heads import expand_head_mask
from .layers import HeadcountLayer, make_dropout
from .masking import as_padding, whole_mask, without_effect
from .normalizers import NORMALIZERS
from .norms import NORMS
from .position_encodings import POSITION_ENCODINGS, PositionEncoding
from .position_schemes import POSITION_SCHEMES
from .score_terms import ScoreTerms


@dataclass
class StackOutput(ModelOutput):
    last_hidden_state: Tensor | None = None
    past_key_values: Cache | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None
    cross_attentions: tuple[Tensor, ...] | None = None
    position_ids: Tensor | None = None  # (B, Q): the decoder needs the encoder's, if cross-attention sees positions


class HeadcountStack(nn.Module):
    """Embeds tokens, works out who sees whom from where, and passes the states through its layers.

    Masks and biases are made once here, not in every layer.
    """

    def __init__(self, config: HeadcountConfig, stack: str):
        super().__init__()
        self.config = config
        self.stack = stack
        self.causal = stack == "decoder" or config.attention_direction == "causal"
        self.has_cross_attention = stack == "decoder" and config.is_encoder_decoder
        num_layers = (self.has_cross_attention and config.decoder_layers) or config.num_hidden_layers

        self.embed_tokens: nn.Module = EMBEDDINGS[config.embedding_type](config)
        encoding = POSITION_ENCODINGS[config.position_embedding_type]
        self.position_encoding = encoding(config, causal=self.causal)
        self.normalizer = NORMALIZERS[config.attention_normalizer](config)
        self.cross_position_encoding = self.cross_normalizer = None
        if self.has_cross_attention:
            self.cross_normalizer = NORMALIZERS[config.attention_normalizer](config)
            cross_encoding = encoding if config.cross_attention_positions else PositionEncoding
            self.cross_position_encoding = cross_encoding(config)
        self.dropout = make_dropout(config)
        self.layers = nn.ModuleList(HeadcountLayer(config, stack, i) for i in range(num_layers))
        pre_norm = config.norm_position == "pre"
        self.final_norm: nn.Module = NORMS[config.norm_type](config) if pre_norm else nn.Identity()

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        head_mask: Tensor | None = None,
        encoder_hidden_states: Tensor | None = None,
        encoder_attention_mask: Tensor | None = None,
        encoder_position_ids: Tensor | None = None,
        cross_attn_head_mask: Tensor | None = None,
        past_key_values: Cache | None = None,
        use_cache: bool = False,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
    ) -> StackOutput:
        """`attention_mask` (B, K) and `position_ids` (B, K) cover past and present tokens, where there is a past.

        An `attention_mask` (B, 1 or H, Q, K) takes the place of padding, direction and window: see `whole_mask`.
        """
        if use_cache and past_key_values is None:
            past_key_values = self._new_cache()
        if cross_attn_head_mask is not None and not self.has_cross_attention:
            raise ValueError("cross_attn_head_mask has no effect on a stack without cross-attention; expected None.")
        hidden_states, q_ids, self_attn_inputs, cross_attn_inputs = self.prepare(
            input_ids,
            attention_mask,
            position_ids,
            inputs_embeds,
            encoder_hidden_states,
            encoder_attention_mask,
            encoder_position_ids,
            past_key_values,
            may_divide=not (output_attentions or torch.is_grad_enabled() or torch.compiler.is_compiling()),
        )

        own_mask = "decoder_head_mask" if self.has_cross_attention else "head_mask"
        self_gates = self._gates(head_mask, own_mask, hidden_states)
        cross_gates = self._gates(cross_attn_head_mask, "cross_attn_head_mask", hidden_states)

        all_hidden, all_maps, all_cross_maps = [], [], []
        for index, layer in enumerate(self.layers):
            if output_hidden_states:
                all_hidden.append(hidden_states)
            hidden_states, maps, cross_maps = layer(
                hidden_states,
                encoder_hidden_states,
                self_attn_inputs | {"head_mask": self_gates[index]},
                cross_attn_inputs and cross_attn_inputs | {"head_mask": cross_gates[index]},
                past_key_values=past_key_values,
                output_attentions=output_attentions,
            )
            all_maps.append(maps)
            all_cross_maps.append(cross_maps)
        hidden_states = self.final_norm(hidden_states)

        return StackOutput(
            last_hidden_state=hidden_states,
            past_key_values=past_key_values,
            hidden_states=(*all_hidden, hidden_states) if output_hidden_states else None,
            attentions=tuple(all_maps) if output_attentions else None,
            cross_attentions=tuple(all_cross_maps) if output_attentions and self.has_cross_attention else None,
            position_ids=q_ids.expand(hidden_states.shape[0], -1),
        )

    def prepare(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        encoder_hidden_states: Tensor | None = None,
        encoder_attention_mask: Tensor | None = None,
        encoder_position_ids: Tensor | None = None,
        past_key_values: Cache | None = None,
        may_divide: bool = False,
    ) -> tuple[Tensor, Tensor, dict, dict | None]:
        """What the first layer reads (B, Q, E), the ids of the tokens, and what all layers' attention shares.

        With `may_divide` long sequences are attended to in blocks of queries, for which no maps or gradients are kept.
        """
        self._check_inputs(input_ids, inputs_embeds, encoder_hidden_states)
        hidden_states = inputs_embeds if input_ids is None else self._embed(input_ids)
        assert hidden_states is not None  # one of the two was given
        batch, queries = hidden_states.shape[:2]
        past, num_keys = self._past(past_key_values, queries)
        query_slots = torch.arange(queries, device=hidden_states.device) + past
        name = "decoder_attention_mask" if self.has_cross_attention else "attention_mask"
        whole = None
        if attention_mask is not None and attention_mask.ndim == 4:
            heads = self.config.num_attention_heads
            whole = whole_mask(name, attention_mask, batch, heads, queries, num_keys)
            attention_mask = as_padding(whole.expand(batch, -1, -1, -1))
        attention_mask = self._check_padding(name, attention_mask, batch, queries, past, num_keys)
        q_ids, k_ids = self._position_ids(input_ids, attention_mask, position_ids, batch, query_slots, past, num_keys)
        jitter, dtype = self._draw_jitter(hidden_states), hidden_states.dtype
        how = batch, self.config.num_attention_heads, self.config._attn_implementation, may_divide
        newest = queries == 1 and isinstance(past, int) and past + 1 == num_keys  # it sees all keys
        self_attn_inputs = ScoreTerms(
            self.position_encoding,
            self.normalizer,
            q_ids,
            k_ids,
            query_slots,
            padding=None if without_effect(attention_mask) else attention_mask,
            causal=self.causal and not newest,
            dtype=dtype,
            window=self.config.attention_window,
            whole=whole,
            jitter=jitter,
        ).inputs(*how)
        cross_attn_inputs = None
        if self.cross_position_encoding is not None and self.cross_normalizer is not None:
            assert encoder_hidden_states is not None  # `_check_inputs` asks for them
            encoder_keys = encoder_hidden_states.shape[1]
            encoder_attention_mask = self._check_padding(
                "attention_mask", as_padding(encoder_attention_mask), batch, encoder_keys, 0, encoder_keys
            )
            cross_attn_inputs = ScoreTerms(
                self.cross_position_encoding,
                self.cross_normalizer,
                q_ids,
                self._encoder_ids(encoder_position_ids, encoder_hidden_states),
                query_slots,
                padding=None if without_effect(encoder_attention_mask) else encoder_attention_mask,
                causal=False,
                dtype=dtype,
                jitter=jitter,
            ).inputs(*how)
        hidden_states = self.dropout(self.position_encoding.embed(hidden_states, q_ids))
        return hidden_states, q_ids, self_attn_inputs, cross_attn_inputs

    def _embed(self, input_ids: Tensor) -> Tensor:
        try:
            return self.embed_tokens(input_ids)
        except IndexError as error:
            raise ValueError(
                f"input_ids run from {int(input_ids.min())} to {int(input_ids.max())}; expected 0 to "
                f"{self.config.vocab_size - 1}."
            ) from error

    def _check_inputs(
        self, input_ids: Tensor | None, inputs_embeds: Tensor | None, encoder_hidden_states: Tensor | None
    ) -> None:
        own = "decoder_" if self.has_cross_attention else ""
        states, dimensions = (input_ids, 2) if input_ids is not None else (inputs_embeds, 3)
        if states is None or (input_ids is not None and inputs_embeds is not None):
            wanted = f"{own}input_ids and {own}inputs_embeds" + (", or labels to make them from" if own else "")
            raise ValueError(f"expected exactly one of {wanted}.")
        if states.ndim != dimensions or 0 in states.shape[:2]:
            name = f"{own}input_ids" if input_ids is not None else f"{own}inputs_embeds"
            wanted = "(batch, length)" if dimensions == 2 else "(batch, length, hidden_size)"
            raise ValueError(f"{name} has shape {tuple(states.shape)}, expected {wanted} with at least one token.")
        if self.has_cross_attention:
            if encoder_hidden_states is None:
                raise ValueError("encoder_hidden_states is missing; expected the encoder's output.")
        elif encoder_hidden_states is not None:
            raise ValueError("encoder_hidden_states has no effect on a stack without cross-attention; expected None.")

    def _new_cache(self) -> Cache:
        if self.has_cross_attention:
            return EncoderDecoderCache(DynamicCache(), DynamicCache())
        return DynamicCache()

    def _past(self, cache: Cache | None, queries: int) -> tuple[int | Tensor, int]:
        """How many tokens the cache holds, and how many keys attention will see (a static cache: all its slots)."""
        if cache is None:
            return 0, queries
        if self.has_cross_attention:
            if not isinstance(cache, EncoderDecoderCache):
                raise TypeError(f"past_key_values is a {type(cache).__name__}, expected an EncoderDecoderCache.")
            cache = cache.self_attention_cache
        return cache.get_seq_length(), cache.get_mask_sizes(queries, 0)[0]

    def _check_padding(
        self, name: str, mask: Tensor | None, batch: int, queries: int, past: int | Tensor, num_keys: int
    ) -> Tensor | None:
        """The mask over all keys, or an error that names the shape wanted."""
        if mask is None:
            return None
        total = past + queries if isinstance(past, int) else num_keys
        length = mask.shape[1] if mask.ndim == 2 else -1
        fits = length in (total, num_keys) if isinstance(past, int) else 0 < length <= total
        if mask.ndim != 2 or mask.shape[0] != batch or not fits:
            raise ValueError(
                f"{name} has shape {tuple(mask.shape)}, expected ({batch}, {total}): past and present tokens."
            )
        return nn.functional.pad(mask, (0, num_keys - mask.shape[1]), value=1)  # slots to come; causality hides them

    def _position_ids(
        self,
        input_ids: Tensor | None,
        attention_mask: Tensor | None,
        position_ids: Tensor | None,
        batch: int,
        query_slots: Tensor,
        past: int | Tensor,
        num_keys: int,
    ) -> tuple[Tensor, Tensor]:
        """Ids of the queries (B or 1, Q) and of the keys (B or 1, K)."""
        queries = query_slots.shape[0]
        starts_here = isinstance(past, int) and past == 0
        if position_ids is None:
            length = queries if starts_here else num_keys
            mask = None if attention_mask is None else attention_mask[:, :length]
            slots = torch.arange(length, device=query_slots.device)
            scheme = POSITION_SCHEMES[self.config.position_scheme]
            ids = scheme(slots, input_ids if starts_here else None, mask, self.config, self.stack, self.training)
            q_ids = ids if starts_here else ids[:, query_slots]
        else:
            ids = position_ids if position_ids.ndim == 2 else position_ids[None]
            if ids.ndim != 2 or ids.shape[0] not in (1, batch):
                raise ValueError(
                    f"position_ids has shape {tuple(position_ids.shape)}, expected (1, length) or ({batch}, length)."
                )
            q_ids = ids[:, -queries:]
            known = ids.shape[1] == past + queries if isinstance(past, int) else queries < ids.shape[1] <= num_keys
            if not known and (self.position_encoding.uses_bias() or ids.shape[1] != queries):
                raise ValueError(
                    f"position_ids has length {ids.shape[1]}, expected {past + queries}: "
                    f"{self.config.position_embedding_type!r} needs the ids of all tokens, past ({past}) and present "
                    f"({queries})."
                )
        return q_ids, nn.functional.pad(ids, (0, num_keys - ids.shape[1]))

    def _encoder_ids(self, encoder_position_ids: Tensor | None, encoder_hidden_states: Tensor) -> Tensor:
        if encoder_position_ids is not None:
            return encoder_position_ids
        if self.config.cross_attention_positions:
            raise ValueError(
                "encoder_outputs has no position_ids, which cross_attention_positions=True needs; expected the whole "
                "output of the model's own encoder."
            )
        return torch.arange(encoder_hidden_states.shape[1], device=encoder_hidden_states.device)[None]  # not looked at

    def _draw_jitter(self, hidden_states: Tensor) -> Tensor | None:
        """(1, H, 1, 1): in half of the batches one factor for all heads, so that no head can make up for the others;
        in the other half one for each, so that every mixture of sharp and diffuse heads is met.
        """
        if self.config.score_jitter is None or not self.training:
            return None
        low, heads = self.config.score_jitter, self.config.num_attention_heads
        alike, common, *each = torch.rand(2 + heads, device=hidden_states.device)
        drawn = torch.where(alike < 0.5, common, torch.stack(each))
        return (low + (1 - low) * drawn)[None, :, None, None]

    def _gates(self, mask: Tensor | None, name: str, hidden_states: Tensor) -> list[Tensor | None]:
        """One gate tensor (B or 1, H, 1, 1) per layer."""
        num_layers = len(self.layers)
        if mask is None:
            return [None] * num_layers
        mask = expand_head_mask(mask, name, num_layers, self.config.num_attention_heads, hidden_states.shape[0])
        return list(mask.to(hidden_states)[..., None, None].unbind(dim=1))
