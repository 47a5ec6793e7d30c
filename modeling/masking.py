"""Which key may a query see? Padding, direction and window as one boolean mask, by the order of the tokens.

Position ids play no part here: coupled ids repeat, and order in the sequence is still order in the sequence.
"""

import torch
from torch import Tensor


def without_effect(padding_mask: Tensor | None) -> bool:
    """Whether all tokens are real, as far as it can be known: a mask that hides nothing costs time in every layer."""
    return padding_mask is None or (not torch.compiler.is_compiling() and bool(padding_mask.all()))


def whole_mask(name: str, mask: Tensor, batch: int, heads: int, queries: int, keys: int) -> Tensor:
    """A mask (B, 1 or H, Q, K) that says itself who sees whom, as booleans; or an error that says what is expected.

    As numbers it has 0 where a query sees a key, and -inf or the lowest number of its type where it does not.
    """
    fits = mask.shape[0] in (1, batch) and mask.shape[1] in (1, heads) and tuple(mask.shape[2:]) == (queries, keys)
    if not fits:
        raise ValueError(
            f"{name} has shape {tuple(mask.shape)}, expected ({batch}, 1, {queries}, {keys}), with {heads} for 1 "
            f"where heads differ, or ({batch}, {keys})."
        )
    if mask.dtype == torch.bool:
        return mask
    if not mask.is_floating_point():
        raise ValueError(f"{name} of four axes has dtype {mask.dtype}; expected booleans, or numbers to be added.")
    seen = mask == 0
    if not torch.compiler.is_compiling() and not bool((seen | (mask <= torch.finfo(mask.dtype).min)).all()):
        raise ValueError(
            f"{name} has numbers between 0 and the lowest one; expected 0 where a query sees a key, and -inf or the "
            "lowest number where it does not."
        )
    return seen


def as_padding(mask: Tensor | None) -> Tensor | None:
    """(B, K) from a mask of either kind: a token that no query sees is padding."""
    if mask is None or mask.ndim != 4:
        return mask
    return (mask if mask.dtype == torch.bool else mask == 0).flatten(1, 2).any(dim=1).long()


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
