"""Multi-head attention, written out.

Shapes: B batch, Q queries, K keys, H heads (those not pruned), G groups of heads that share their keys and values
(as many as heads, unless the config says otherwise), D head dimension, E hidden size.

    query, key, value   (B, H, Q|K, D)
    attention_mask      None, boolean (True = visible) or float (added to the scores, -inf = hidden),
                        broadcastable to (B, H, Q, K)
    head_mask           (B or 1, H, 1, 1): a gate on each head's output; 1 keeps, 0 removes
"""

import math
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from transformers.cache_utils import Cache, EncoderDecoderCache

from ..configuration.configuration_headcount import HeadcountConfig
from .normalizers import Softmax
from .position_encodings import PositionEncoding


# Some of the queries, the keys that they may see, and their `attention_mask` and `score_factor`.
Block = tuple[slice, slice, dict[str, Tensor | None]]
EVERY = slice(None)


def eager_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    normalizer: Softmax,
    attention_mask: Tensor | None = None,
    head_mask: Tensor | None = None,
    scaling: float = 1.0,
    dropout: float = 0.0,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor]:
    """Attention step by step. Returns the heads' outputs (B, H, Q, D) and the attention maps (B, H, Q, K)."""
    # How well does each key answer each query?
    scores = query @ key.transpose(-2, -1) * scaling

    # Hide what a query must not see.
    if is_causal:
        ahead = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(ahead, float("-inf"))
    if attention_mask is None:  # every query sees a key, itself at least
        attn_weights = normalizer.over_keys(scores)
    else:
        if attention_mask.dtype == torch.bool:
            scores = scores.masked_fill(~attention_mask, float("-inf"))
        else:
            scores = scores + attention_mask
        attn_weights = normalizer.weigh(scores)

    # Every query reads the values by its weights; then the gates close or weaken heads. The maps stay as they were:
    # they show where a head looks, whether or not it is listened to.
    attn_output = nn.functional.dropout(attn_weights, p=dropout) @ value
    if head_mask is not None:
        attn_output = attn_output * head_mask
    return attn_output, attn_weights


def sdpa_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    normalizer: Softmax,
    attention_mask: Tensor | None = None,
    head_mask: Tensor | None = None,
    scaling: float = 1.0,
    dropout: float = 0.0,
    is_causal: bool = False,
) -> tuple[Tensor, None]:
    """The same by torch's fused kernel, which keeps no maps. Gates work here too: they act on the heads' outputs.

    The kernel knows the softmax only; other weights are written out, whichever way was asked for.
    """
    if not normalizer.fused:
        attn_output, _ = eager_attention(
            query, key, value, normalizer, attention_mask, head_mask, scaling, dropout, is_causal
        )
        return attn_output, None
    if is_causal and attention_mask is not None:  # the kernel takes one of the two
        ahead = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device).triu(1)
        hidden = torch.zeros(ahead.shape, dtype=query.dtype, device=query.device).masked_fill(ahead, float("-inf"))
        attention_mask, is_causal = merge_bias_and_mask(hidden, attention_mask), False
    attn_output = nn.functional.scaled_dot_product_attention(
        query, key, value, attn_mask=attention_mask, dropout_p=dropout, is_causal=is_causal, scale=scaling
    )
    if head_mask is not None:
        attn_output = attn_output * head_mask
    return attn_output, None


ATTENTION_FUNCTIONS: dict[str, Callable] = {
    "eager": eager_attention,
    "sdpa": sdpa_attention,
}


class HeadcountAttention(nn.Module):
    """One attention layer: self-attention, or cross-attention when it is given the encoder's states.

    `name` is its place in the model, such as `decoder.1.cross`. `heads` are the original numbers of the heads that are
    left; masks and biases always come for all original heads, and the layer picks its own.

    Neighbouring heads may share keys and values (Ainslie et al. 2023, https://arxiv.org/abs/2305.13245): head h reads
    those of group h // `group_size`. `groups` are the numbers of the groups in which a head is left.
    """

    def __init__(self, config: HeadcountConfig, name: str, layer_idx: int):
        super().__init__()
        self.config = config
        self.name = name
        self.layer_idx = layer_idx
        self.head_dim = config.head_dim
        self.num_heads = config.num_attention_heads  # of the unpruned model
        pruned = (config.pruned_heads or {}).get(name, [])
        self.heads = [head for head in range(self.num_heads) if head not in pruned]
        self.group_size = config.group_size
        self.groups = self._groups_of(self.heads)

        width, shared_width = len(self.heads) * self.head_dim, len(self.groups) * self.head_dim
        self.q_proj = linear(config.hidden_size, width)
        self.k_proj = linear(config.hidden_size, shared_width)
        self.v_proj = linear(config.hidden_size, shared_width)
        self.out_proj = linear(width, config.hidden_size)
        for projection in (self.q_proj, self.k_proj):
            projection.init_gain = config.query_key_init_gain  # type: ignore[assignment]

    def forward(self, hidden_states: Tensor, **inputs: Any) -> tuple[Tensor, Tensor | None]:
        """Returns (B, Q, E) and, if asked for, the maps (B, H, Q, K). `inputs` are those of `attend`."""
        attn_output, attn_weights = self.attend(hidden_states, **inputs)
        return self.merge(attn_output), attn_weights

    def merge(self, attn_output: Tensor) -> Tensor:
        """The heads' outputs (B, H, Q, D), side by side through the output projection: (B, Q, E)."""
        batch, _, queries, _ = attn_output.shape
        width = len(self.heads) * self.head_dim
        return self.out_proj(attn_output.transpose(1, 2).reshape(batch, queries, width))

    def attend(
        self,
        hidden_states: Tensor,
        position_encoding: PositionEncoding,
        normalizer: Softmax,
        q_ids: Tensor,
        k_ids: Tensor,
        attention_mask: Tensor | None = None,
        is_causal: bool = False,
        score_factor: Tensor | None = None,
        head_mask: Tensor | None = None,
        encoder_hidden_states: Tensor | None = None,
        keys_and_values: tuple[Tensor, Tensor] | None = None,
        past_key_values: Cache | None = None,
        blocks: Iterable[Block] | None = None,
        output_attentions: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """What each head reads, (B, H, Q, D), and, if asked for, the maps (B, H, Q, K).

        Cross-attention takes the encoder's states, or its own `keys_and_values` of them if they are known already.
        With `blocks`, from the last queries to the first, nothing as large as all scores is ever held; maps would be.
        """
        batch, queries = hidden_states.shape[:2]
        is_cross = encoder_hidden_states is not None

        query = self._split_heads(self.q_proj(hidden_states))
        cache = past_key_values
        if isinstance(cache, EncoderDecoderCache):
            cache = cache.cross_attention_cache if is_cross else cache.self_attention_cache
        encoder_is_read = past_key_values.is_updated if is_cross and past_key_values is not None else {}
        if cache is not None and encoder_is_read.get(self.layer_idx):
            # The encoder's keys and values do not change while the decoder writes.
            keys_and_values = cache.layers[self.layer_idx].keys, cache.layers[self.layer_idx].values
        if keys_and_values is not None:
            query, _ = position_encoding.rotate(query, query, q_ids, q_ids)
            key, value = keys_and_values
        else:
            states = encoder_hidden_states if is_cross else hidden_states
            key, value = self._split_heads(self.k_proj(states)), self._split_heads(self.v_proj(states))
            query, key = position_encoding.rotate(query, key, q_ids, k_ids if is_cross else q_ids)
            if cache is not None:
                key, value = self._remember(cache, key, value)
                if is_cross:
                    encoder_is_read[self.layer_idx] = True

        if not self.heads:  # all pruned: what is left of the layer is the bias of its output projection
            maps = hidden_states.new_zeros(batch, 0, queries, k_ids.shape[-1]) if output_attentions else None
            return query, maps

        if blocks is not None and output_attentions:
            raise ValueError(
                "output_attentions=True asks for maps, which blocks do not keep; expected one of the two."
            )
        gates = None if head_mask is None else self._pick_heads(head_mask)
        everything: Block = (EVERY, EVERY, {"attention_mask": attention_mask, "score_factor": score_factor})
        read = [
            self._read(
                query[:, :, some],
                key[:, :, seen],
                value[:, :, seen],
                position_encoding,
                normalizer,
                q_ids[:, some],
                k_ids[:, seen],
                head_mask=gates,
                is_causal=is_causal,
                output_attentions=output_attentions,
                **terms,
            )
            for some, seen, terms in ([everything] if blocks is None else blocks)
        ]
        if blocks is None:
            return read[0]
        return torch.cat([attn_output for attn_output, _ in reversed(read)], dim=2), None

    def _read(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        position_encoding: PositionEncoding,
        normalizer: Softmax,
        q_ids: Tensor,
        k_ids: Tensor,
        attention_mask: Tensor | None,
        score_factor: Tensor | None,
        head_mask: Tensor | None,
        is_causal: bool,
        output_attentions: bool,
    ) -> tuple[Tensor, Tensor | None]:
        """What queries read from keys and values, (B, H, Q, D), and, if asked for, the maps (B, H, Q, K)."""
        if score_factor is not None:
            per_head = score_factor.ndim == 4 and score_factor.shape[1] > 1
            query = query * (self._pick_heads(score_factor) if per_head else score_factor)
        if attention_mask is not None and attention_mask.shape[1] > 1:
            attention_mask = self._pick_heads(attention_mask)
        if position_encoding.bias_needs_query:
            position_bias = position_encoding.bias(query * self.head_dim**-0.5, q_ids, k_ids)
            attention_mask = merge_bias_and_mask(position_bias, attention_mask)

        name = "eager" if output_attentions else self.config._attn_implementation
        attn_output, attn_weights = ATTENTION_FUNCTIONS[name](
            query,
            self._for_each_head(key),
            self._for_each_head(value),
            normalizer,
            attention_mask=attention_mask,
            head_mask=head_mask,
            scaling=1 / math.sqrt(self.head_dim),
            dropout=self.config.attention_dropout if self.training else 0.0,
            is_causal=is_causal,
        )
        return attn_output, attn_weights if output_attentions else None

    def keys_and_values(
        self, encoder_hidden_states: Tensor, position_encoding: PositionEncoding, k_ids: Tensor
    ) -> tuple[Tensor, Tensor]:
        """What cross-attention makes of the encoder's states, whatever the decoder asks: (B, G, K, D) each."""
        key = self._split_heads(self.k_proj(encoder_hidden_states))
        _, key = position_encoding.rotate(key, key, k_ids, k_ids)
        return key, self._split_heads(self.v_proj(encoder_hidden_states))

    def prune(self, heads: list[int]) -> None:
        """Removes the parameters of these heads (original numbers); heads that are gone already stay gone.

        Keys and values go with the last head that reads them.
        """
        kept = [head for head in self.heads if head not in heads]
        groups = self._groups_of(kept)
        rows, shared_rows = self._features(kept, self.heads), self._features(groups, self.groups)
        for projection, own in ((self.q_proj, rows), (self.k_proj, shared_rows), (self.v_proj, shared_rows)):
            projection.weight = part_of(projection.weight, (own,))
            projection.bias = part_of(projection.bias, (own,))
            projection.out_features = len(own)
        self.out_proj.weight = part_of(self.out_proj.weight, (slice(None), rows))
        self.out_proj.in_features = len(rows)
        self.heads, self.groups = kept, groups

    def _groups_of(self, heads: list[int]) -> list[int]:
        return sorted({head // self.group_size for head in heads})

    def _features(self, kept: list[int], there: list[int]) -> list[int]:
        """Where the features of the heads or groups that are kept lie among those that are there."""
        return [there.index(number) * self.head_dim + i for number in kept for i in range(self.head_dim)]

    def _split_heads(self, states: Tensor) -> Tensor:
        """(B, L, H * D) -> (B, H, L, D), or the same with G."""
        return states.view(*states.shape[:2], states.shape[-1] // self.head_dim, self.head_dim).transpose(1, 2)

    def _for_each_head(self, shared: Tensor) -> Tensor:
        """(B, G, K, D) -> (B, H, K, D): the keys or values that each head reads."""
        if len(self.groups) == len(self.heads):  # one head left in every group
            return shared
        return shared[:, [self.groups.index(head // self.group_size) for head in self.heads]]

    def _pick_heads(self, per_head: Tensor) -> Tensor:
        """The heads that are left, from a tensor (B, all heads, ...)."""
        return per_head if len(self.heads) == self.num_heads else per_head[:, self.heads]

    def _remember(self, cache: Cache, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        if self.heads:
            return cache.update(key, value, self.layer_idx)
        # transformers reads the length of the past off the keys; with no heads left, an empty one keeps count.
        blank = key.new_zeros(key.shape[0], 1, key.shape[2], 1)
        return cache.update(blank, blank, self.layer_idx)


def linear(inputs: int, outputs: int) -> nn.Linear:
    """nn.Linear, without torch's warning that there is nothing to initialize when all heads are pruned."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Initializing zero-element tensors")
        return nn.Linear(inputs, outputs)


def part_of(parameter: Tensor, index: tuple) -> nn.Parameter:
    """A smaller parameter; one that was frozen stays frozen."""
    return nn.Parameter(parameter.detach()[index].clone(), requires_grad=parameter.requires_grad)


def merge_bias_and_mask(position_bias: Tensor | None, attention_mask: Tensor | None) -> Tensor | None:
    """One tensor for both: the bias, with -inf where the mask hides a key."""
    if position_bias is None or attention_mask is None:
        return attention_mask if position_bias is None else position_bias
    if attention_mask.dtype == torch.bool:
        return position_bias.masked_fill(~attention_mask, float("-inf"))
    return position_bias + attention_mask
