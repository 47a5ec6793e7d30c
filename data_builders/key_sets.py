"""Keys of problems: 64-bit hashes, and sets of them in which millions can be looked up."""

import numpy as np
from numpy.typing import NDArray


def scramble(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A fixed bijection of 64-bit integers in which every input bit moves every output bit (splitmix64)."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


def hash_rows(values: NDArray[np.integer]) -> NDArray[np.uint64]:
    """(N,) hashes of the rows of (N, L); zeros at the end of a row do not count."""
    key = np.full(len(values), 0x9E3779B97F4A7C15, np.uint64)
    longer = np.asarray(values, np.uint64)
    for column in range(longer.shape[1]):
        own = longer[:, column]
        key = np.where(own > 0, scramble((key ^ own) * np.uint64(0x100000001B3) + np.uint64(column)), key)
    return key


class KeySet:
    """A growing set of 64-bit keys in a few sorted arrays: 8 bytes per key.

    Most keys that are looked up are not in the set. A table of 2^20 flags, one for each value of a 20-bit hash, tells
    so for nearly all of them at once, as long as the set is small.
    """

    def __init__(self, runs: list[NDArray[np.uint64]] | None = None, flags: NDArray[np.bool_] | None = None):
        self._runs = list(runs or [])
        self._flags = np.zeros(1 << 20, bool) if flags is None else flags.copy()

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def copy(self) -> "KeySet":
        return KeySet(self._runs, self._flags)

    def contains(self, keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
        found = self._flags[_hash_20_bits(keys)]
        maybe = np.flatnonzero(found)
        candidates = keys[maybe]
        really = np.zeros(len(maybe), bool)
        for run in self._runs:
            place = np.minimum(np.searchsorted(run, candidates), len(run) - 1)
            really |= run[place] == candidates
        found[maybe] = really
        return found

    def add(self, keys: NDArray[np.uint64]) -> None:
        if not len(keys):
            return
        self._flags[_hash_20_bits(keys)] = True
        self._runs.append(np.sort(keys))
        # Like the digits of a binary counter: runs of similar size are merged, so that there are few of them.
        while len(self._runs) > 1 and 2 * len(self._runs[-1]) >= len(self._runs[-2]):
            self._runs.append(np.sort(np.concatenate([self._runs.pop(), self._runs.pop()]), kind="stable"))


def _hash_20_bits(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return (keys * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(44)
