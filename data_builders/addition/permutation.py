"""A random order of 0..size-1 for sizes up to 10^18, computed where it is needed and never stored."""

import numpy as np
from numpy.typing import NDArray

from ..key_sets import scramble


TABLE_LIMIT = 1 << 20
ROUNDS = 6


class Permutation:
    """`Permutation(size, seed)(i)` is the i-th element of a random order of 0..size-1.

    >>> order = Permutation(10**18, seed=[0, 1])
    >>> drawn = order(np.arange(3, dtype=np.uint64))
    >>> len(set(drawn.tolist())), bool((drawn < 10**18).all())
    (3, True)

    Small sizes use a table. Large ones use a Feistel network over the smallest power of two that holds `size`: the
    bits are cut into two halves, and each half in turn is XORed with a keyed hash of the other, which can be undone
    and is therefore a bijection. Results that fall outside of 0..size-1 are sent through the network again until
    they fall inside (cycle walking), which keeps it a bijection; on average less than two passes are needed.
    """

    def __init__(self, size: int, seed: list[int]):
        if not 0 < size <= 10**18:
            raise ValueError(f"size={size} is not allowed; expected 1 to 10**18.")
        self.size = size
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
        self._table = rng.permutation(size).astype(np.uint64) if size <= TABLE_LIMIT else None
        self._keys = rng.integers(0, 1 << 64, size=ROUNDS, dtype=np.uint64)
        bits = (size - 1).bit_length()
        self._low_bits = np.uint64(bits // 2)
        self._low_mask = np.uint64((1 << (bits // 2)) - 1)
        self._high_mask = np.uint64((1 << (bits - bits // 2)) - 1)

    def __call__(self, index: NDArray[np.uint64]) -> NDArray[np.uint64]:
        if self._table is not None:
            return self._table[index]
        value = self._network(index)
        outside = np.flatnonzero(value >= self.size)
        while len(outside):
            value[outside] = self._network(value[outside])
            outside = outside[value[outside] >= self.size]
        return value

    def _network(self, value: NDArray[np.uint64]) -> NDArray[np.uint64]:
        low, high = value & self._low_mask, value >> self._low_bits
        for number, key in enumerate(self._keys):
            if number % 2:
                low = low ^ (scramble(high + key) & self._low_mask)
            else:
                high = high ^ (scramble(low + key) & self._high_mask)
        return (high << self._low_bits) | low
