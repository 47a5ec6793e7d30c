"""What goes into attention scores beside queries and keys: a bias and a mask, which are added, and a factor.

Bias and mask are as large as the scores, queries times keys: of 30,000 tokens and four heads that is 14 GB for each of
them. They are made once and shared by all layers as long as they are small, or gradients or maps are asked for.
Otherwise attention takes a block of queries at a time, with terms that are made for this block in every layer: the
results are the same, and memory grows with the keys instead of their square.

Shapes: B batch, Q queries, K keys, H heads.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .attention import EVERY, Block, merge_bias_and_mask
from .masking import visible_keys
from .normalizers import Softmax
from .position_encodings import PositionEncoding


MOST_CELLS = 2**22  # of the scores of a block, all heads and rows; with bias and mask about 20 bytes each


@dataclass
class ScoreTerms:
    """All that the terms of one kind of attention are made from, for any of the stack's queries."""

    encoding: PositionEncoding
    normalizer: Softmax
    q_ids: Tensor  # (B or 1, Q)
    k_ids: Tensor  # (B or 1, K)
    query_slots: Tensor  # (Q,): the places of the queries among the keys
    padding: Tensor | None  # (B, K), nonzero for real tokens
    causal: bool
    dtype: torch.dtype
    window: int | None = None
    whole: Tensor | None = None  # (B or 1, 1 or H, Q, K): says itself who sees whom, instead of the three above
    jitter: Tensor | None = None  # (1, H, 1, 1)

    def inputs(self, batch: int, heads: int, kernel: str, may_divide: bool) -> dict[str, Any]:
        """What `HeadcountAttention.attend` takes: the terms of all queries, or `blocks` of them.

        kernel: name of the attention function. may_divide: whether blocks are allowed where the scores are many.
        """
        shared = {
            "position_encoding": self.encoding,
            "normalizer": self.normalizer,
            "q_ids": self.q_ids,
            "k_ids": self.k_ids,
        }
        queries, keys = self.query_slots.shape[0], self.k_ids.shape[-1]
        plain = self.padding is None and self.window is None and self.whole is None and not self.encoding.uses_bias()
        by_kernel = plain and self.causal and queries == keys  # it hides what is ahead without a mask
        needs_nothing = plain and (by_kernel or not self.causal) and kernel == "sdpa" and self.normalizer.fused
        size = max(1, MOST_CELLS // (batch * heads * keys))
        if may_divide and size < queries and not needs_nothing:
            return {**shared, "blocks": QueryBlocks(self, size)}
        if not by_kernel:
            return {**shared, **self.of(EVERY, EVERY)}
        factor = self._factor(lambda: self.query_slots[None, None, :, None] + 1)
        return {**shared, "score_factor": self._as_scores(factor), "is_causal": True}

    def of(self, queries: slice, keys: slice) -> dict[str, Tensor | None]:
        """`attention_mask` (B or 1, 1 or H, Q, K) and `score_factor` (B or 1, 1 or H, Q or 1, 1) of some queries."""
        q_ids, k_ids = self.q_ids[:, queries], self.k_ids[:, keys]
        visible = self._visible(queries, keys)
        bias = None
        if self.encoding.uses_bias() and not self.encoding.bias_needs_query:
            bias = self.encoding.bias(None, q_ids, k_ids)

        def count() -> Tensor:
            shown = None if bias is None else bias != float("-inf")  # an encoding may hide keys from a head
            seen = visible if shown is None else shown if visible is None else visible & shown
            return torch.as_tensor(k_ids.shape[-1]).to(q_ids) if seen is None else seen.sum(dim=-1, keepdim=True)

        factor = self._factor(count)
        if bias is not None and factor is not None:  # -inf * log(1) would be NaN
            hidden = bias == float("-inf")
            bias = (bias.masked_fill(hidden, 0.0) * factor).masked_fill(hidden, float("-inf"))
        mask = merge_bias_and_mask(self._as_scores(bias), visible)
        return {"attention_mask": mask, "score_factor": self._as_scores(factor)}

    def reach(self, queries: slice) -> slice:
        """The keys up to the last one that some of these queries may see."""
        if not self.causal or self.whole is not None:
            return EVERY
        return slice(int(self.query_slots[queries][-1]) + 1)

    def _visible(self, queries: slice, keys: slice) -> Tensor | None:
        if self.whole is not None:
            return self.whole[:, :, queries, keys]
        padding = None if self.padding is None else self.padding[:, keys]
        num_keys = self.k_ids[:, keys].shape[-1]
        return visible_keys(padding, self.query_slots[queries], num_keys, self.causal, self.window)

    def _factor(self, count: Callable[[], Tensor]) -> Tensor | None:
        factor = self.normalizer.factor(count)
        return self.jitter if factor is None else factor if self.jitter is None else factor * self.jitter

    def _as_scores(self, term: Tensor | None) -> Tensor | None:
        return None if term is None else term.to(self.dtype)


@dataclass
class QueryBlocks:
    """Some queries at a time, the keys that they may see, and their terms, which are made anew for every layer.

    The last queries come first: in causal attention they see the most keys, and what they leave has room for the rest.
    """

    terms: ScoreTerms
    size: int

    def __iter__(self) -> Iterator[Block]:
        for start in reversed(range(0, self.terms.query_slots.shape[0], self.size)):
            queries = slice(start, start + self.size)
            keys = self.terms.reach(queries)
            yield queries, keys, self.terms.of(queries, keys)
