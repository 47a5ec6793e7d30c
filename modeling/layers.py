"""One transformer layer: self-attention, cross-attention in a decoder that reads an encoder, feed-forward network."""

from typing import Any

from torch import Tensor, nn
from transformers.cache_utils import Cache
from transformers.modeling_layers import GradientCheckpointingLayer

from ..configuration.configuration_headcount import HeadcountConfig
from .attention import HeadcountAttention
from .feed_forward import FEED_FORWARDS
from .norms import NORMS


def make_dropout(config: HeadcountConfig) -> nn.Module:
    """Most models here have none; torch's module would then still take its time, ten times in a small forward."""
    return nn.Dropout(config.dropout) if config.dropout else nn.Identity()


class HeadcountLayer(GradientCheckpointingLayer):
    """Every sublayer is wrapped in a residual connection, with its norm before (`pre`) or after (`post`) it."""

    def __init__(self, config: HeadcountConfig, stack: str, layer_idx: int):
        super().__init__()
        self.norm_first = config.norm_position == "pre"
        self.dropout = make_dropout(config)

        norm = NORMS[config.norm_type]
        self.self_attn = HeadcountAttention(config, f"{stack}.{layer_idx}.self", layer_idx)
        self.self_attn_norm = norm(config)
        self.cross_attn = None
        if stack == "decoder" and config.is_encoder_decoder:
            self.cross_attn = HeadcountAttention(config, f"{stack}.{layer_idx}.cross", layer_idx)
            self.cross_attn_norm = norm(config)
        self.feed_forward = FEED_FORWARDS[config.feed_forward_type](config)
        self.feed_forward_norm = norm(config)

    def forward(
        self,
        hidden_states: Tensor,
        encoder_hidden_states: Tensor | None,
        self_attn_inputs: dict[str, Any],
        cross_attn_inputs: dict[str, Any] | None = None,
        past_key_values: Cache | None = None,
        output_attentions: bool = False,
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Returns the hidden states, and the self- and cross-attention maps if asked for.

        The two dicts hold what is particular to each kind of attention: encoding, ids, masks; see the stack.
        """
        shared = {"past_key_values": past_key_values, "output_attentions": output_attentions}

        attended, self_maps = self.self_attn(
            self.enter(hidden_states, self.self_attn_norm), **self_attn_inputs, **shared
        )
        hidden_states = self.leave(hidden_states, attended, self.self_attn_norm)

        cross_maps = None
        if self.cross_attn is not None:
            attended, cross_maps = self.cross_attn(
                self.enter(hidden_states, self.cross_attn_norm),
                encoder_hidden_states=encoder_hidden_states,
                **(cross_attn_inputs or {}),
                **shared,
            )
            hidden_states = self.leave(hidden_states, attended, self.cross_attn_norm)

        return self.feed(hidden_states), self_maps, cross_maps

    def enter(self, hidden_states: Tensor, norm: nn.Module) -> Tensor:
        """What a sublayer reads."""
        return norm(hidden_states) if self.norm_first else hidden_states

    def leave(self, residual: Tensor, output: Tensor, norm: nn.Module) -> Tensor:
        """The residual stream after a sublayer has written its output to it."""
        hidden_states = residual + self.dropout(output)
        return hidden_states if self.norm_first else norm(hidden_states)

    def feed(self, hidden_states: Tensor) -> Tensor:
        output = self.feed_forward(self.enter(hidden_states, self.feed_forward_norm))
        return self.leave(hidden_states, output, self.feed_forward_norm)
