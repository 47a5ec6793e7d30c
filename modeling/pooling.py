"""Pooling: one vector per sequence. `cls(config)(hidden_states (B, L, E), attention_mask (B, L) or None) -> (B, E)`.

Padding, on either side, never reaches the result; a sequence without a single token pools as if it were all zeros.
"""

import torch
from torch import Tensor, nn

from ..configuration.configuration_headcount import HeadcountConfig


class Pooler(nn.Module):
    """Base class: turns the mask into a boolean `real` (B, L, 1) and leaves the rest to `pool`."""

    def __init__(self, config: HeadcountConfig):
        super().__init__()

    def forward(self, hidden_states: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        if attention_mask is None:
            attention_mask = torch.ones(hidden_states.shape[:2], device=hidden_states.device)
        return self.pool(hidden_states, attention_mask.bool()[..., None])

    def pool(self, hidden_states: Tensor, real: Tensor) -> Tensor:
        raise NotImplementedError


def masked_mean(states: Tensor, real: Tensor) -> Tensor:
    return states.masked_fill(~real, 0.0).sum(1) / real.sum(1).clamp(min=1).to(states.dtype)


def masked_max(states: Tensor, real: Tensor) -> Tensor:
    largest = states.masked_fill(~real, torch.finfo(states.dtype).min).amax(1)
    return largest.masked_fill(~real.any(1), 0.0)


def masked_min(states: Tensor, real: Tensor) -> Tensor:
    return -masked_max(-states, real)


def first_real(states: Tensor, real: Tensor) -> Tensor:
    index = real.int().argmax(1)  # (B, 1): argmax finds the first True
    found = states.gather(1, index[..., None].expand(-1, -1, states.shape[-1])).squeeze(1)
    return found.masked_fill(~real.any(1), 0.0)


def last_real(states: Tensor, real: Tensor) -> Tensor:
    return first_real(states.flip(1), real.flip(1))


class MeanPooler(Pooler):
    def pool(self, hidden_states: Tensor, real: Tensor) -> Tensor:
        return masked_mean(hidden_states, real)


class MaxPooler(Pooler):
    def pool(self, hidden_states: Tensor, real: Tensor) -> Tensor:
        return masked_max(hidden_states, real)


class MinPooler(Pooler):
    def pool(self, hidden_states: Tensor, real: Tensor) -> Tensor:
        return masked_min(hidden_states, real)


class FirstPooler(Pooler):
    def pool(self, hidden_states: Tensor, real: Tensor) -> Tensor:
        return first_real(hidden_states, real)


class LastPooler(Pooler):
    def pool(self, hidden_states: Tensor, real: Tensor) -> Tensor:
        return last_real(hidden_states, real)


class AttentionPooler(Pooler):
    """Average weighted by the softmax of a trained score per token."""

    def __init__(self, config: HeadcountConfig):
        super().__init__(config)
        self.score = nn.Linear(config.hidden_size, 1)

    def pool(self, hidden_states: Tensor, real: Tensor) -> Tensor:
        scores = self.score(hidden_states).masked_fill(~real, torch.finfo(hidden_states.dtype).min)
        return (scores.softmax(dim=1).masked_fill(~real, 0.0) * hidden_states).sum(1)


class ViolationPooler(Pooler):
    """Five features through a linear layer: minimum over positions, minimum and mean of the differences of neighbours,
    first, last. Made by hand for finding one step down in a long sequence; say so next to its results.
    """

    def __init__(self, config: HeadcountConfig):
        super().__init__(config)
        self.combine = nn.Linear(5 * config.hidden_size, config.hidden_size)

    def pool(self, hidden_states: Tensor, real: Tensor) -> Tensor:
        steps = hidden_states[:, 1:] - hidden_states[:, :-1]
        if not steps.shape[1]:  # a single token has no neighbour
            steps, real_steps = torch.zeros_like(hidden_states), torch.zeros_like(real)
        else:
            real_steps = real[:, 1:] & real[:, :-1]
        features = (
            masked_min(hidden_states, real),
            masked_min(steps, real_steps),
            masked_mean(steps, real_steps),
            first_real(hidden_states, real),
            last_real(hidden_states, real),
        )
        return self.combine(torch.cat(features, dim=-1))


POOLERS: dict[str, type[Pooler]] = {
    "mean": MeanPooler,
    "max": MaxPooler,
    "min": MinPooler,
    "first": FirstPooler,
    "last": LastPooler,
    "attention": AttentionPooler,
    "violation": ViolationPooler,
}
