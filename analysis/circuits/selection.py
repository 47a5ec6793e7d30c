"""The smallest set of sites that does something, chosen on one half of the data and tested on the other.

Of at most 12 sites every subset is tried; of more, sets grow one site at a time (`greedy`) and shrink one at a time
(`backwards`). For every size there is a row: the chosen set, what it reaches on the half that it was not chosen on,
and what random sets of that size reach there.

A `Trial` says what a set does: sets of sites and some examples in, whether it happened out, (V, N).
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...records.intervals import rate
from ...records.rows import Rows, row
from ..interventions.plan import Progress
from ..interventions.sites import Site


MOST_SITES = 12  # of which every subset is tried
RANDOM_SETS = 5  # of each size, to compare with
MOST_TO_CHOOSE = 300  # examples: a search tries hundreds of sets on them
ENOUGH = 0.99  # a search in steps ends where it reaches this share of what all sites together do

Sets = Sequence[tuple[Site, ...]]
Trial = Callable[[Sets, NDArray[np.int64]], NDArray[np.bool_]]


def halves(n: int, seed: int = 0) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The examples to choose on, of one half, and those to test on, the other half."""
    order = np.random.default_rng(seed).permutation(n)
    return np.sort(order[: min(n // 2, MOST_TO_CHOOSE)]), np.sort(order[n // 2 :])


def selection_rows(
    pool: Sequence[Site], trial: Trial, n: int, metric: str, progress: Progress | None = None, **about: Any
) -> Rows:
    """Rows `METRIC` for every method and size; `about` says what was searched."""
    choose, test = halves(n)
    methods = {"all subsets": best_of_every_size} if len(pool) <= MOST_SITES else {"greedy": grow, "backwards": shrink}
    rows: Rows = []
    for number, (method, search) in enumerate(methods.items()):
        found = list(search(tuple(pool), lambda sets: trial(sets, choose).mean(-1)))
        tested = trial([some for some, _ in found], test)
        chance = _random_sets(pool, [len(some) for some, _ in found], trial, test)
        for (some, chosen_at), own, others in zip(found, tested, chance, strict=True):
            facts: dict[str, Any] = {
                "method": method,
                "size": len(some),
                "heads": list(some),
                "pool": len(pool),
                "on_chosen_half": {"value": float(chosen_at), "n": len(choose)},
                "random_mean": {"value": float(np.mean(others)), "n": len(test)},
                "random_best": {"value": float(np.max(others)), "n": len(test)},
                "random_sets": len(others),
            }
            rows.append(row("selection", metric, rate(int(own.sum()), len(test)), **facts, **about))
        if progress is not None:
            progress(number + 1, len(methods))
    return rows


Score = Callable[[Sets], NDArray[np.float64]]


def best_of_every_size(pool: tuple[Site, ...], score: Score) -> Iterator[tuple[tuple[Site, ...], float]]:
    """Of all subsets of each size the one that does most."""
    every = [some for size in range(1, len(pool) + 1) for some in combinations(pool, size)]
    values = score(every)
    for size in range(1, len(pool) + 1):
        own = [number for number, some in enumerate(every) if len(some) == size]
        best = max(own, key=lambda number: values[number])
        yield every[best], float(values[best])


def grow(pool: tuple[Site, ...], score: Score, enough: float = ENOUGH) -> Iterator[tuple[tuple[Site, ...], float]]:
    """Adds the site that brings most, until almost all is there."""
    whole = float(score([pool])[0])
    chosen: tuple[Site, ...] = ()
    while len(chosen) < len(pool):
        candidates = [(*chosen, site) for site in pool if site not in chosen]
        values = score(candidates)
        chosen, value = candidates[int(values.argmax())], float(values.max())
        yield chosen, value
        if value >= enough * whole:
            return


def shrink(pool: tuple[Site, ...], score: Score) -> Iterator[tuple[tuple[Site, ...], float]]:
    """Takes away the site that costs least, until less than half is left."""
    chosen, whole = pool, float(score([pool])[0])
    yield chosen, whole
    while len(chosen) > 1:
        candidates = [tuple(other for other in chosen if other != site) for site in chosen]
        values = score(candidates)
        chosen, value = candidates[int(values.argmax())], float(values.max())
        yield chosen, value
        if value < whole / 2:
            return


def _random_sets(
    pool: Sequence[Site], sizes: Sequence[int], trial: Trial, test: NDArray[np.int64]
) -> list[NDArray[np.float64]]:
    """For every size, what random sets do: the control of a search."""
    rng = np.random.default_rng(1)
    drawn = [
        tuple(pool[i] for i in sorted(rng.permutation(len(pool))[:size])) for size in sizes for _ in range(RANDOM_SETS)
    ]
    shares = trial(drawn, test).mean(-1)
    return list(shares.reshape(len(sizes), RANDOM_SETS))
