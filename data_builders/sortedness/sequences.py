"""The sortedness task: sorted sequences of integers 0-99, and violations made from the same values.

Shapes: N sequences, L values. A violation is a place i with values[i] > values[i + 1].

Every sequence starts as a sorted draw of values; half of them are then put out of order. Which half is decided without
looking at the values, so no statistic of the values tells the classes apart. A draw of L equal values cannot be put
out of order; kept among the sorted ones it would give the label away, so it is drawn again in both classes.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..option_checks import check_share, check_whole_number
from ..tasks import Problems


KINDS = {
    "sorted": "in non-decreasing order, nothing changed",
    "shuffle": "random order: the easy violation",
    "swap": "two neighbours exchanged: the smallest violation there is",
    "move": "one element put two or more places away",
}
VALUES = 100
NARROWEST = 3
UNSORTED, SORTED = 0, 1
KIND_NAMES = list(KINDS)
SHORTEST = {"shuffle": 2, "swap": 2, "move": 3}
MIXTURE = {"shuffle": 0.3, "swap": 0.4, "move": 0.3}

# Upper end of each width's share of the unit interval, for widths log-uniform in 3..100. Rounded, so that the last
# bit of a logarithm, which differs between machines, never matters.
_WIDTHS = np.arange(NARROWEST, VALUES + 1)
_WIDTH_BOUNDS = np.round(np.log((_WIDTHS + 1) / NARROWEST) / np.log((VALUES + 1) / NARROWEST), 9)


@dataclass(frozen=True)
class SortednessProblems(Problems):
    """`values` (N, L), 0 after the end of shorter rows; `kind` is an index into `KIND_NAMES`; `position` of the first
    violation, -1 if sorted; `violations`, their number.
    """

    values: NDArray[np.uint8]
    length: NDArray[np.int64]
    kind: NDArray[np.int64]
    position: NDArray[np.int64]
    violations: NDArray[np.int64]

    @property
    def label(self) -> NDArray[np.int64]:
        return (self.violations == 0).astype(np.int64)


def is_sorted(values: NDArray[np.integer]) -> NDArray[np.bool_]:
    """The oracle: (...,) from (..., L), true where the values never decrease."""
    return np.asarray((values[..., 1:] >= values[..., :-1]).all(-1))


def check_kinds(kinds: dict[str, float], length: int) -> None:
    """Says what is wrong with a mixture of kinds for sequences of this length, if anything."""
    if not isinstance(kinds, dict) or not kinds:
        raise ValueError(f"kinds={kinds!r} is not allowed; expected shares by kind, such as {MIXTURE}.")
    for kind, share in kinds.items():
        if kind not in SHORTEST:
            raise ValueError(f"kind {kind!r} is not allowed; expected one of {', '.join(SHORTEST)}.")
        check_share(f"kinds[{kind!r}]", share)
        if share and length < SHORTEST[kind]:
            reason = "one value cannot be out of order" if length < 2 else "a move of two places does not fit"
            raise ValueError(
                f"length={length} is not allowed with kind {kind!r}: {reason}; expected >= {SHORTEST[kind]}."
            )
    if not abs(sum(kinds.values()) - 1) < 1e-6:
        raise ValueError(f"the shares of kinds={kinds!r} sum to {sum(kinds.values())}; expected 1.")


def draw_sorted(rng: np.random.Generator, count: int, length: int, narrow_share: float) -> NDArray[np.uint8]:
    """(count, length) sorted sequences of at least two different values.

    A share of the rows draws its values from a random sub-range, whose width is log-uniform from 3 to 100: ties and
    steps of one, which rule long sequences, are then seen in short ones. Its middle is uniform over 0-99 and the range
    is pushed inwards at the ends, so that ties of 0 and of 99, which every long sequence has, are seen as well.
    """
    values = np.empty((count, length), np.uint8)
    todo = np.arange(count)
    while len(todo):
        drawn = _draw_values(rng, len(todo), length, narrow_share)
        values[todo] = drawn
        todo = todo[(drawn == drawn[:, :1]).all(-1)]
    values.sort(axis=-1)
    return values


def _draw_values(rng: np.random.Generator, count: int, length: int, narrow_share: float) -> NDArray[np.uint8]:
    if not narrow_share:
        return rng.integers(0, VALUES, size=(count, length), dtype=np.uint8)
    narrow = rng.random(count) < narrow_share
    width = np.where(narrow, _WIDTHS[np.searchsorted(_WIDTH_BOUNDS[:-1], rng.random(count), side="right")], VALUES)
    middle = np.floor(rng.random(count) * VALUES)
    start = np.clip(middle - width // 2, 0, VALUES - width).astype(np.uint8)
    drawn = rng.integers(0, 1 << 16, size=(count, length), dtype=np.uint16)
    scaled = (drawn.astype(np.uint32) * width[:, None].astype(np.uint32)) >> np.uint32(16)
    return start[:, None] + scaled.astype(np.uint8)


def sample_sortedness(
    rng: np.random.Generator,
    count: int,
    length: int,
    kinds: dict[str, float] = MIXTURE,
    narrow_share: float = 0.5,
) -> SortednessProblems:
    """A batch of one length, exactly half of it sorted, in random order.

    >>> batch = sample_sortedness(np.random.default_rng(0), 64, 16, {"swap": 1.0})
    >>> batch.values.shape, float(batch.label.mean())
    ((64, 16), 0.5)
    """
    check_whole_number("count", count, 2)
    check_whole_number("length", length, 1)
    if count % 2:
        raise ValueError(f"count={count} is not allowed: the classes could not be balanced; expected an even number.")
    check_kinds(kinds, length)
    check_share("narrow_share", narrow_share)
    kind = balanced_kinds(rng, count, kinds)
    values = draw_sorted(rng, count, length, narrow_share)
    put_out_of_order(rng, values, kind)
    return describe(values, kind)


def balanced_kinds(rng: np.random.Generator, count: int, kinds: dict[str, float]) -> NDArray[np.uint8]:
    """(count,) kind indices in random order: half `sorted`, the other half by the given shares, rounded."""
    bounds = np.round(np.cumsum([kinds.get(name, 0.0) for name in KIND_NAMES[1:]]) * (count // 2)).astype(int)
    unsorted = 1 + np.searchsorted(bounds, np.arange(count // 2), side="right")
    return rng.permutation(np.concatenate([np.zeros(count - count // 2, int), unsorted])).astype(np.uint8)


def describe(values: NDArray[np.uint8], kind: NDArray[np.uint8]) -> SortednessProblems:
    """Sequences of one length, with the place and number of their violations."""
    falls = values[:, 1:] < values[:, :-1]
    violations = falls.sum(-1)
    position = np.where(violations > 0, falls.argmax(-1), -1)
    length = np.full(len(values), values.shape[1])
    return SortednessProblems(values, length, kind.astype(np.int64), position, violations)


def put_out_of_order(rng: np.random.Generator, values: NDArray[np.uint8], kind: NDArray[np.uint8]) -> None:
    """Changes the order of sorted rows in place, as their kind says."""
    for number, name in enumerate(KIND_NAMES):
        rows = np.flatnonzero(kind == number)
        if name != "sorted" and len(rows):
            values[rows] = VIOLATIONS[name](rng, values[rows])


def shuffle(rng: np.random.Generator, values: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Random order, drawn again where it came out sorted."""
    shuffled = rng.permuted(values, axis=1)
    todo = np.flatnonzero(is_sorted(shuffled))
    while len(todo):
        shuffled[todo] = rng.permuted(values[todo], axis=1)
        todo = todo[is_sorted(shuffled[todo])]
    return shuffled


def swap(rng: np.random.Generator, values: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Exchanges two different neighbours, any such place equally likely."""
    rows, place = np.arange(len(values)), random_rise(rng, values)
    swapped = values.copy()
    swapped[rows, place], swapped[rows, place + 1] = values[rows, place + 1], values[rows, place]
    return swapped


def move(rng: np.random.Generator, values: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Takes one element from one side of a random rise and puts it on the other, two or more places away.

    [1 3 5 7] -> [3 5 1 7]: exactly one violation, with the element before its new or after its old neighbours.
    """
    count, length = values.shape
    rise = random_rise(rng, values)
    left = (rng.random(count) * (rise + 1)).astype(np.int64)  # 0..rise
    right = rise + 1 + (rng.random(count) * (length - 1 - rise)).astype(np.int64)  # rise+1..length-1
    near = right - left == 1
    right += near & (right < length - 1)
    left -= near & (right - left == 1)
    slots = np.arange(length)
    upward = np.less(rng.random(count), 0.5)[:, None]
    left, right = left[:, None], right[:, None]
    up = np.where(slots == right, left, slots + ((slots >= left) & (slots < right)))
    down = np.where(slots == left, right, slots - ((slots > left) & (slots <= right)))
    return np.take_along_axis(values, np.where(upward, up, down), axis=1)


def random_rise(rng: np.random.Generator, values: NDArray[np.uint8]) -> NDArray[np.int64]:
    """(N,): a place with values[i] < values[i + 1], all equally likely. Sorted rows of different values have one."""
    rises = values[:, 1:] > values[:, :-1]
    number = rises.sum(-1)
    wanted = (rng.random(len(values)) * number).astype(np.int64) + 1
    return (np.cumsum(rises, -1, dtype=np.int32) == wanted[:, None]).argmax(-1)


VIOLATIONS = {"shuffle": shuffle, "swap": swap, "move": move}
