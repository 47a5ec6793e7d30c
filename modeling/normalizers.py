"""Normalizers: the factor that scores are multiplied with before the softmax.

Each is a function of `visible_keys()`, which counts the keys that every query sees, (B, 1, Q, 1) or broadcastable;
it returns the factor in that shape, or None for no factor. Counting is a call because not every normalizer needs it.
"""

from collections.abc import Callable

from torch import Tensor


def softmax(visible_keys: Callable[[], Tensor]) -> None:
    """Scores as they are."""
    return


def log_n(visible_keys: Callable[[], Tensor]) -> Tensor:
    """log n for n visible keys (Chiang & Cholak 2022, https://arxiv.org/abs/2202.12172).

    With bounded scores, the weight of any one key falls as 1/n; scores that grow with log n keep it constant.
    """
    return visible_keys().clamp(min=1).float().log()


NORMALIZERS: dict[str, Callable[[Callable[[], Tensor]], Tensor | None]] = {
    "softmax": softmax,
    "log_n": log_n,
}
