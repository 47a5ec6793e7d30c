"""Normalizers: how the scores of a query over its keys become weights.

Each is a module of a stack, one for its self-attention and one for its cross-attention. It may do two things: multiply
the scores with a factor before anything else (`factor`), and turn them into weights its own way (`weigh`); the first
suits every kernel, the second is written out (`fused` is False).
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from transformers import initialization as init

from ..configuration.configuration_headcount import HeadcountConfig


class Softmax(nn.Module):
    """Scores as they are; their exponentials, divided by the sum."""

    fused = True  # torch's kernel computes the same weights

    def __init__(self, config: HeadcountConfig):
        super().__init__()

    def factor(self, visible_keys: Callable[[], Tensor]) -> Tensor | None:
        """What the scores are multiplied with, broadcastable to (B, H, Q, 1), or None for nothing.

        `visible_keys()` counts the keys that every query sees, (B or 1, 1 or H, Q, 1) or a number; counting is a call
        because not every normalizer needs it.
        """
        return None

    def weigh(self, scores: Tensor) -> Tensor:
        """Weights over the last axis; -inf hides a key, and a query that sees no key at all gets weights of zero."""
        sees_nothing = (scores == float("-inf")).all(dim=-1, keepdim=True)
        return self.over_keys(scores.masked_fill(sees_nothing, 0.0)).masked_fill(sees_nothing, 0.0)

    def over_keys(self, scores: Tensor) -> Tensor:
        """The weights of queries that see at least one key."""
        return scores.softmax(dim=-1)


class LogN(Softmax):
    """log n for n visible keys (Chiang & Cholak 2022, https://arxiv.org/abs/2202.12172).

    With bounded scores, the weight of any one key falls as 1/n; scores that grow with log n keep it constant.
    """

    def factor(self, visible_keys: Callable[[], Tensor]) -> Tensor | None:
        return visible_keys().clamp(min=1).float().log()


class Temperature(Softmax):
    """A trained factor for every head, 1 at the start: the model may sharpen its attention by itself."""

    def __init__(self, config: HeadcountConfig):
        super().__init__(config)
        self.log_factor = nn.Parameter(torch.zeros(config.num_attention_heads))

    def factor(self, visible_keys: Callable[[], Tensor]) -> Tensor | None:
        return self.log_factor.exp()[None, :, None, None]

    def init_parameters(self) -> None:
        init.zeros_(self.log_factor)


class Sparsemax(Softmax):
    """The nearest point to the scores that is a distribution (Martins & Astudillo 2016, arXiv 1602.02068).

    Keys whose scores are more than 1 below the best get exactly nothing, however many there are. What is nearest: the
    scores minus a threshold, cut off at zero, with the threshold that makes the sum 1.
    """

    fused = False

    MOST_CELLS = 4_000_000  # of scores that are sorted at once: sorting takes several times their memory

    def over_keys(self, scores: Tensor) -> Tensor:
        if torch.is_grad_enabled() or scores.numel() <= self.MOST_CELLS:
            return self._nearest(scores)
        rows = scores.flatten(0, -2)
        parts = rows.split(max(1, self.MOST_CELLS // scores.shape[-1]))
        return torch.cat([self._nearest(part) for part in parts]).view(scores.shape)

    def _nearest(self, scores: Tensor) -> Tensor:
        scores = scores - scores.amax(dim=-1, keepdim=True)
        ordered = scores.sort(dim=-1, descending=True).values
        sums = ordered.cumsum(dim=-1)
        count = torch.arange(1, scores.shape[-1] + 1, device=scores.device)
        kept = (1 + count * ordered > sums).sum(dim=-1, keepdim=True)  # the best keys, and the first is always one
        threshold = (sums.gather(-1, kept - 1) - 1) / kept
        return (scores - threshold).clamp(min=0.0)


NORMALIZERS: dict[str, type[Softmax]] = {
    "softmax": Softmax,
    "log_n": LogN,
    "temperature": Temperature,
    "sparsemax": Sparsemax,
}
