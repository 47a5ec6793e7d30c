"""Which key may a query see? Padding, direction and window as one boolean mask, by the order of the tokens.

Position ids play no part here: coupled ids repeat, and order in the sequence is still order in the sequence.
"""

import torch
from torch import Tensor


def without_effect(padding_mask: Tensor | None) -> bool:
    """Whether all tokens are real, as far as it can be known: a mask that hides nothing costs time in every layer."""
    return padding_mask is None or (not torch.compiler.is_compiling() and bool(padding_mask.all()))


def visible_keys(
    padding_mask: Tensor | None,
    query_slots: Tensor,
    num_keys: int,
    causal: bool,
    window: int | None,
) -> Tensor | None:
    """Boolean mask, broadcastable to (B, 1, Q, K), True where a query sees a key; None if everything is visible.

    padding_mask: (B, K), nonzero for real tokens. query_slots: (Q,), the places of the queries among the keys.
    """
    mask = None
    if causal or window is not None:
        ahead = torch.arange(num_keys, device=query_slots.device)[None, :] - query_slots[:, None]  # (Q, K)
        mask = torch.ones_like(ahead, dtype=torch.bool) if not causal else ahead <= 0
        if window is not None:
            mask = mask & (ahead.abs() <= window)
        mask = mask[None, None]
    if padding_mask is not None:
        real = padding_mask.bool()[:, None, None, :]
        mask = real if mask is None else mask & real
    return mask
