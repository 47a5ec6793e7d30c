"""Position encodings: what a model knows about where a token stands.

Every encoding has the same three hooks, and each hook does nothing unless a subclass overrides it:

- `embed(hidden_states, position_ids)`: once per stack, on the token embeddings;
- `rotate(query, key, q_ids, k_ids)`: in every attention layer, on queries and new keys;
- `bias(query, q_ids, k_ids)`: a term added to the scores. It is computed once per stack and shared by its layers,
  unless `bias_needs_query` is set; then it is computed in every layer.

Position ids are arbitrary integers: negative, repeated or with gaps; nothing here assumes 0..n-1.

Shapes: B batch (1 when all rows share their ids), Q queries, K keys, H heads, D head dimension, E hidden size.
To add an encoding: write a class below, name it in `POSITION_ENCODINGS`, describe it in `configuration/choices.py`.
"""

import math

import torch
from torch import Tensor, nn
from transformers import initialization as init

from ..configuration.configuration_headcount import HeadcountConfig


def relative_distance(q_ids: Tensor, k_ids: Tensor) -> Tensor:
    """(B, Q), (B, K) -> (B, Q, K): how far each key is ahead of each query; negative is behind."""
    return k_ids[:, None, :] - q_ids[:, :, None]


def look_up(table: Tensor, buckets: Tensor) -> Tensor:
    """A table (buckets, H) read at (B, Q, K) -> (B, H, Q, K)."""
    return table.t()[:, buckets].transpose(0, 1)


def sinusoid(position_ids: Tensor, size: int, base: float = 10000.0) -> Tensor:
    """(B, L) -> (B, L, size): sin(p / base^(2i/size)) in even and cos in odd features.

    >>> sinusoid(torch.tensor([[0, 1]]), size=2)
    tensor([[[0.0000, 1.0000], [0.8415, 0.5403]]])
    """
    frequencies = base ** (-torch.arange(0, size, 2, device=position_ids.device, dtype=torch.float32) / size)
    angles = position_ids[..., None].float() * frequencies
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)


class PositionEncoding(nn.Module):
    """No encoding: the base class, whose hooks do nothing.

    `causal` says whether queries see earlier keys only.
    """

    bias_needs_query = False

    def __init__(self, config: HeadcountConfig, causal: bool = False):
        super().__init__()
        self.num_heads = config.num_attention_heads
        self.causal = causal

    @classmethod
    def uses_bias(cls) -> bool:
        return cls.bias is not PositionEncoding.bias

    def embed(self, hidden_states: Tensor, position_ids: Tensor) -> Tensor:
        return hidden_states

    def rotate(self, query: Tensor, key: Tensor, q_ids: Tensor, k_ids: Tensor) -> tuple[Tensor, Tensor]:
        return query, key

    def bias(self, query: Tensor | None, q_ids: Tensor, k_ids: Tensor) -> Tensor | None:
        return None

    def init_parameters(self) -> None:
        """Fills the encoding's own parameters, through transformers' `init`, which spares those just loaded."""


class SinusoidalEncoding(PositionEncoding):
    """Vaswani et al. 2017, https://arxiv.org/abs/1706.03762. Computed on the fly, so there is no last position."""

    def embed(self, hidden_states: Tensor, position_ids: Tensor) -> Tensor:
        return hidden_states + sinusoid(position_ids, hidden_states.shape[-1]).to(hidden_states.dtype)


class LearnedEncoding(PositionEncoding):
    """One trained vector per id. An id outside of the table is an error, or is clamped to the table's ends.

    The vectors start as large as the token embeddings (`position_init_std`): started at 0.02 they drown, and training
    rests at chance for hundreds of steps.
    """

    def __init__(self, config: HeadcountConfig, causal: bool = False):
        super().__init__(config, causal)
        self.table = nn.Parameter(torch.empty(config.max_position_embeddings, config.hidden_size))
        self.overflow = config.position_overflow
        self.init_std = config.position_init_std

    def embed(self, hidden_states: Tensor, position_ids: Tensor) -> Tensor:
        size = self.table.shape[0]
        if self.overflow == "clamp":
            position_ids = position_ids.clamp(0, size - 1)
        elif not torch.compiler.is_compiling():
            low, high = (int(end) for end in position_ids.aminmax())
            if low < 0 or high >= size:
                raise ValueError(
                    f"position_ids run from {low} to {high}, but the learned table holds 0 to {size - 1}; shorten the "
                    "input, or set max_position_embeddings higher or position_overflow='clamp' in the config."
                )
        return hidden_states + self.table[position_ids]

    def init_parameters(self) -> None:
        init.normal_(self.table, std=self.init_std)


class RotaryEncoding(PositionEncoding):
    """Su et al. 2021, https://arxiv.org/abs/2104.09864: q and k are rotated by angles proportional to their ids.

    A rotation by s undoes part of a rotation by t, so that q.k depends on t - s only. Feature i is paired with feature
    i + D/2, as in Llama (the paper pairs neighbours; the two differ by a permutation of the features).
    """

    def __init__(self, config: HeadcountConfig, causal: bool = False):
        super().__init__(config, causal)
        self.base = config.rope_theta

    def rotate(self, query: Tensor, key: Tensor, q_ids: Tensor, k_ids: Tensor) -> tuple[Tensor, Tensor]:
        return self._turn(query, q_ids), self._turn(key, k_ids)

    def _turn(self, states: Tensor, position_ids: Tensor) -> Tensor:
        half = states.shape[-1] // 2
        frequencies = self.base ** (-torch.arange(half, device=states.device, dtype=torch.float32) / half)
        angles = position_ids[:, None, :, None].float() * frequencies  # (B, 1, L, D/2)
        cos, sin = angles.cos().to(states.dtype), angles.sin().to(states.dtype)
        first, second = states[..., :half], states[..., half:]
        return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


class AlibiEncoding(PositionEncoding):
    """Press et al. 2022, https://arxiv.org/abs/2108.12409: score - slope * |distance|.

    Slopes fall geometrically from 2^(-8/H); for H that is no power of two, every second slope of the next power fills
    up, as in the paper's code. In bidirectional attention the penalty is symmetric, so direction stays invisible.
    """

    def slopes(self) -> list[float]:
        def geometric(count: int) -> list[float]:
            return [2.0 ** (-8.0 * (i + 1) / count) for i in range(count)]

        power = 2 ** int(math.log2(self.num_heads))
        return geometric(power) + geometric(2 * power)[0::2][: self.num_heads - power]

    def bias(self, query: Tensor | None, q_ids: Tensor, k_ids: Tensor) -> Tensor:
        distance = relative_distance(q_ids, k_ids).abs_().float()
        slopes = torch.tensor(self.slopes(), device=distance.device)
        return -slopes[None, :, None, None] * distance[:, None]


class DirectionalAlibiEncoding(AlibiEncoding):
    """ALiBi for encoders: even heads see only themselves and what is behind, odd heads what is ahead.

    Direction is built in by hand; say so next to its results. Neighbouring heads share a slope: 1, 1, 1/4, 1/4, ...
    """

    def slopes(self) -> list[float]:
        return [4.0 ** -(head // 2) for head in range(self.num_heads)]

    def bias(self, query: Tensor | None, q_ids: Tensor, k_ids: Tensor) -> Tensor:
        penalty = super().bias(query, q_ids, k_ids)
        distance = relative_distance(q_ids, k_ids)[:, None]
        penalty[:, 0::2].masked_fill_(distance > 0, float("-inf"))
        penalty[:, 1::2].masked_fill_(distance < 0, float("-inf"))
        return penalty


class T5BiasEncoding(PositionEncoding):
    """Raffel et al. 2020, https://arxiv.org/abs/1910.10683: a trained bias per head and distance bucket.

    Half of the buckets hold one distance each, the rest grow logarithmically up to `relative_attention_max_distance`,
    beyond which all distances share the last bucket. Bidirectional attention spends half of the buckets on each side.
    Deviation: the table is multiplied by `position_bias_scale`.
    """

    def __init__(self, config: HeadcountConfig, causal: bool = False):
        super().__init__(config, causal)
        self.num_buckets = config.relative_attention_num_buckets
        self.max_distance = config.relative_attention_max_distance
        self.scale = config.position_bias_scale
        self.table = nn.Parameter(torch.empty(self.num_buckets, self.num_heads))

    def bucket(self, distance: Tensor) -> Tensor:
        offset: Tensor | int = 0
        if self.causal:
            size, reach = self.num_buckets, (-distance).clamp(min=0)
        else:
            size, reach = self.num_buckets // 2, distance.abs()
            offset = torch.where(distance > 0, size, 0)
        exact = size // 2
        growth = torch.log(reach.clamp(min=1).float() / exact) / math.log(self.max_distance / exact)
        coarse = exact + (growth * (size - exact)).long()
        return offset + torch.where(reach < exact, reach, coarse.clamp(max=size - 1))

    def bias(self, query: Tensor | None, q_ids: Tensor, k_ids: Tensor) -> Tensor:
        return look_up(self.scale * self.table, self.bucket(relative_distance(q_ids, k_ids)))

    def init_parameters(self) -> None:
        init.normal_(self.table, std=0.02)


class RelativeBiasEncoding(PositionEncoding):
    """A trained bias per head and difference of ids, clipped to +-`relative_position_range`.

    With `relative_bias_first_token`, keys with id 0 have a bias of their own: a place to attend to for nothing.
    """

    def __init__(self, config: HeadcountConfig, causal: bool = False):
        super().__init__(config, causal)
        self.range = config.relative_position_range
        self.first_token = config.relative_bias_first_token
        self.scale = config.position_bias_scale
        self.table = nn.Parameter(torch.empty(2 * self.range + 1 + self.first_token, self.num_heads))

    def bias(self, query: Tensor | None, q_ids: Tensor, k_ids: Tensor) -> Tensor:
        bucket = relative_distance(q_ids, k_ids).clamp(-self.range, self.range) + self.range
        if self.first_token:
            bucket = torch.where(k_ids[:, None, :] == 0, 2 * self.range + 1, bucket)
        return look_up(self.scale * self.table, bucket)

    def init_parameters(self) -> None:
        init.normal_(self.table, std=0.02)


class RelativeKeyEncoding(PositionEncoding):
    """Shaw et al. 2018, https://arxiv.org/abs/1803.02155: score + q.a(clipped difference), a vector per difference.

    The heads share the vectors, as in the paper; so do the layers, unlike in the paper.
    """

    bias_needs_query = True

    def __init__(self, config: HeadcountConfig, causal: bool = False):
        super().__init__(config, causal)
        self.range = config.relative_position_range
        self.table = nn.Parameter(torch.empty(2 * self.range + 1, config.head_dim))

    def bias(self, query: Tensor | None, q_ids: Tensor, k_ids: Tensor) -> Tensor:
        assert query is not None  # see bias_needs_query
        by_distance = query @ self.table.t()  # (B, H, Q, distances)
        bucket = relative_distance(q_ids, k_ids).clamp(-self.range, self.range) + self.range
        return by_distance.gather(-1, bucket[:, None].expand(*by_distance.shape[:3], -1))

    def init_parameters(self) -> None:
        init.normal_(self.table, std=self.table.shape[-1] ** -0.5)


class FireEncoding(PositionEncoding):
    """Li et al. 2024, https://arxiv.org/abs/2310.04418: f(psi(distance) / psi(max(threshold, position of the query))).

    psi(x) = log(c x + 1), f is a network with one hidden layer of 32, c and the threshold are trained.
    Deviations: in bidirectional attention f sees the distance with its sign and the later of the two positions;
    `position_bias_scale` multiplies the output; the layers share f (the paper's FIRE-S).
    """

    WIDTH = 32
    MOST_CELLS = 2**20

    def __init__(self, config: HeadcountConfig, causal: bool = False):
        super().__init__(config, causal)
        self.scale = config.position_bias_scale
        self.threshold_start = config.fire_threshold
        self.rate = nn.Parameter(torch.empty(()))  # c
        self.threshold = nn.Parameter(torch.empty(()))
        self.hidden = nn.Linear(1, self.WIDTH)
        self.output = nn.Linear(self.WIDTH, self.num_heads)

    def bias(self, query: Tensor | None, q_ids: Tensor, k_ids: Tensor) -> Tensor:
        # The hidden layer is WIDTH times as large as the result; queries go through it in parts.
        parts = q_ids.split(max(1, self.MOST_CELLS // k_ids.shape[1]), dim=1)
        return torch.cat([self._bias_of_part(part, k_ids) for part in parts], dim=2)

    def _bias_of_part(self, q_ids: Tensor, k_ids: Tensor) -> Tensor:
        distance = relative_distance(q_ids, k_ids).float()
        rate = self.rate.abs()
        later = torch.maximum(q_ids[:, :, None], k_ids[:, None, :]).float()
        reach = torch.log1p(rate * torch.maximum(later, self.threshold.abs()))
        progress = torch.log1p(rate * distance.abs()) / reach
        # In causal attention a key is never ahead, except in cells that are masked anyway.
        signed = progress if self.causal else progress * distance.sign()
        hidden = torch.relu(self.hidden(signed[..., None].to(self.hidden.weight.dtype)))
        return self.scale * self.output(hidden).permute(0, 3, 1, 2)

    def init_parameters(self) -> None:
        init.constant_(self.rate, 0.1)
        init.constant_(self.threshold, self.threshold_start)
        # With a zero bias every kink of f would sit at distance 0; spread over [-1, 1], f can bend where it needs to.
        init.uniform_(self.hidden.weight, -1.0, 1.0)
        init.uniform_(self.hidden.bias, -1.0, 1.0)
        init.normal_(self.output.weight, std=0.02)
        init.zeros_(self.output.bias)


class KerpleEncoding(PositionEncoding):
    """Chi et al. 2022, https://arxiv.org/abs/2205.09921, logarithmic form: score - r1 log(1 + r2 |distance|).

    r1 and r2 are trained per head and kept positive by a softplus. Symmetric in bidirectional attention, like ALiBi.
    """

    def __init__(self, config: HeadcountConfig, causal: bool = False):
        super().__init__(config, causal)
        self.raw_weight = nn.Parameter(torch.empty(self.num_heads))
        self.raw_rate = nn.Parameter(torch.empty(self.num_heads))

    def bias(self, query: Tensor | None, q_ids: Tensor, k_ids: Tensor) -> Tensor:
        distance = relative_distance(q_ids, k_ids).abs().float()[:, None]
        weight = nn.functional.softplus(self.raw_weight)[None, :, None, None]
        rate = nn.functional.softplus(self.raw_rate)[None, :, None, None]
        return -weight * torch.log1p(rate * distance)

    def init_parameters(self) -> None:
        init.uniform_(self.raw_weight, -1.0, 2.0)
        init.uniform_(self.raw_rate, -1.0, 1.0)


POSITION_ENCODINGS: dict[str, type[PositionEncoding]] = {
    "none": PositionEncoding,
    "sinusoidal": SinusoidalEncoding,
    "learned": LearnedEncoding,
    "rotary": RotaryEncoding,
    "alibi": AlibiEncoding,
    "alibi_directional": DirectionalAlibiEncoding,
    "t5_bias": T5BiasEncoding,
    "relative_bias": RelativeBiasEncoding,
    "relative_key": RelativeKeyEncoding,
    "fire": FireEncoding,
    "kerple": KerpleEncoding,
}
