"""The sortedness corpus: options, splits by length and kind, and the arrow tables that are written."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
from datasets import ClassLabel, Features, List, Value
from numpy.typing import NDArray

from .arrow_columns import list_column
from .columns import scramble
from .option_checks import check_share, check_whole_number
from .problem_sources import KeySet
from .sortedness import (
    KIND_NAMES,
    MIXTURE,
    SHORTEST,
    balanced_kinds,
    check_kinds,
    describe,
    draw_sorted,
    put_out_of_order,
)


TEST_LENGTHS = (8, 12, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
LONGEST = 1_000_000


@dataclass(frozen=True)
class SortednessOptions:
    """What a sortedness corpus is made of; checked on construction.

    - `train`, `validation`: rows, with lengths `min_length`..`max_length` equally often.
    - `test`: rows of every test split; one split per length in `test_lengths`, in the config `default` with the
      mixture of kinds, and in the configs `shuffle`, `swap` and `move` with that kind alone.
    - `kinds`: shares of the kinds among the unsorted rows.
    - `narrow_share`: share of training and validation rows whose values come from a random sub-range. Test rows use
      the whole range 0-99.
    """

    seed: int = 0
    min_length: int = 8
    max_length: int = 16
    test_lengths: tuple[int, ...] = TEST_LENGTHS
    kinds: dict[str, float] = field(default_factory=lambda: dict(MIXTURE))
    narrow_share: float = 0.5
    train: int = 50_000
    validation: int = 2_000
    test: int = 1_000

    def __post_init__(self):
        check_whole_number("seed", self.seed, 0)
        check_whole_number("max_length", self.max_length, 1, LONGEST)
        check_whole_number("min_length", self.min_length, 1, self.max_length)
        for split in ("train", "validation", "test"):
            check_whole_number(split, getattr(self, split), 0)
            if getattr(self, split) % 2:
                raise ValueError(
                    f"{split}={getattr(self, split)} is not allowed: the classes could not be balanced; "
                    "expected an even number."
                )
        object.__setattr__(self, "test_lengths", tuple(self.test_lengths))
        for length in self.test_lengths:
            check_whole_number("test_lengths", length, 1, LONGEST)
        if len(set(self.test_lengths)) < len(self.test_lengths):
            raise ValueError(f"test_lengths={list(self.test_lengths)} has a length twice; expected each length once.")
        if self.test and not self.test_lengths:
            raise ValueError("test_lengths is empty; expected lengths, or test=0.")
        if not any((self.train, self.validation, self.test)):
            raise ValueError("every split has 0 rows; expected at least one split with rows.")
        check_share("narrow_share", self.narrow_share)
        if self.train or self.validation:
            check_kinds(self.kinds, self.min_length)
        for length in self.test_lengths if self.test else ():
            check_kinds(self.kinds, length)


class SortednessCorpus:
    """The splits of one set of options; nothing is computed before it is asked for.

    >>> corpus = SortednessCorpus(SortednessOptions(seed=0))
    >>> next(corpus.tables("swap", "test_256")).num_rows
    1000

    No multiset of values of a training row is that of a validation or test row.
    """

    name = "sortedness"
    # Parquet columns with few different values, which are written as a dictionary.
    repetitive = ("length", "label", "kind", "position", "violations")

    def __init__(self, options: SortednessOptions):
        self.options = options

    def splits(self) -> dict[str, dict[str, int]]:
        """Config -> split -> number of rows."""
        options = self.options
        tests = {f"test_{length}": options.test for length in options.test_lengths if options.test}
        sizes = {"train": options.train, "validation": options.validation, **tests}
        configs = {"default": {name: size for name, size in sizes.items() if size}}
        for kind, shortest in SHORTEST.items():
            configs[kind] = {name: size for name, size in tests.items() if int(name.removeprefix("test_")) >= shortest}
        return {config: splits for config, splits in configs.items() if splits}

    def features(self, config: str) -> Features:
        return Features(
            {
                "values": List(Value("uint8")),
                "length": Value("int32"),
                "label": ClassLabel(names=["unsorted", "sorted"]),
                "kind": ClassLabel(names=KIND_NAMES),
                "position": Value("int32"),
                "violations": Value("int32"),
            }
        )

    def tables(self, config: str, split: str) -> Iterator[pa.Table]:
        """The rows of a split as arrow tables, chunk after chunk."""
        schema = self.features(config).arrow_schema
        for rows in self.batches(config, split):
            lengths = rows["length"]
            columns = {
                "values": list_column(rows["values"], lengths, pa.uint8()),
                **{name: pa.array(rows[name], schema.field(name).type) for name in schema.names if name != "values"},
            }
            yield pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)

    def batches(self, config: str, split: str) -> Iterator[dict[str, NDArray]]:
        """The same rows as arrays: `values` (N, longest), 0 after the end of shorter rows, and the other columns."""
        if split not in self.splits().get(config, {}):
            raise ValueError(f"there is no split {split!r} in config {config!r}; expected one of {self.splits()}.")
        taken = KeySet()
        if split in ("train", "validation"):
            taken = self._test_keys
        if split == "train":
            taken = self.held_out_keys
        return self._draw(config, split, taken)

    def tally(self, config: str, table: pa.Table) -> dict[str, Counter]:
        """What the card counts: labels, kinds, and where in the sequence the first violation is, in tenths."""
        label, kind, position, length = (table[name].to_numpy() for name in ("label", "kind", "position", "length"))
        wrong = position >= 0
        tenth = position[wrong] * 10 // np.maximum(length[wrong] - 1, 1)
        names = np.array(KIND_NAMES)[kind]
        return {
            "label": _count(np.array(["unsorted", "sorted"])[label]),
            "kind": _count(names),
            "length": _count(length),
            **{f"position/{name}": _count(tenth[names[wrong] == name]) for name in KIND_NAMES[1:]},
        }

    def _draw(self, config: str, split: str, taken: KeySet) -> Iterator[dict[str, NDArray]]:
        options = self.options
        is_test = split.startswith("test_")
        first, last = options.min_length, options.max_length
        lengths = np.array([int(split.removeprefix("test_"))] if is_test else range(first, last + 1))
        kinds = options.kinds if config == "default" else {config: 1.0}
        narrow_share = 0.0 if is_test else options.narrow_share
        purpose = f"{config}/{split}"
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([options.seed, *purpose.encode()])))
        total, longest = self.splits()[config][split], int(lengths.max())
        chunk = max(2, min(1 << 16, (1 << 22) // longest) & ~1)  # even, so that every chunk is balanced
        for start in range(0, total, chunk):
            count = min(chunk, total - start)
            # Pairs of rows have the same length, and one row of each pair is sorted: balance within every length.
            pair_length = rng.permutation(np.resize(rng.permutation(lengths), count // 2))
            kind = balanced_kinds(rng, count, kinds)
            row_length = np.empty(count, np.int64)
            row_length[kind == 0], row_length[kind > 0] = pair_length, pair_length
            values = np.zeros((count, longest), np.uint8)
            rows = {name: np.empty(count, np.int64) for name in ("label", "kind", "position", "violations")}
            for length in np.unique(pair_length):
                own = np.flatnonzero(row_length == length)
                made = draw_untaken(rng, len(own), int(length), narrow_share, taken)
                put_out_of_order(rng, made, kind[own])
                values[own, :length] = made
                for name, column in describe(made, kind[own]).items():
                    if name != "values":
                        rows[name][own] = column
            yield {"values": values, "length": row_length, **rows}

    def _keys_of(self, config: str, split: str, taken: KeySet) -> NDArray[np.uint64]:
        keys = []
        for rows in self._draw(config, split, taken):
            for length in np.unique(rows["length"]):
                keys.append(multiset_keys(np.sort(rows["values"][rows["length"] == length, :length], axis=-1)))
        return np.concatenate(keys)

    @cached_property
    def _test_keys(self) -> KeySet:
        """Keys of the test rows that have a training length; longer or shorter ones cannot be met in training."""
        taken, options = KeySet(), self.options
        for config, splits in self.splits().items():
            for split in splits:
                if split.startswith("test_") and options.min_length <= int(split[5:]) <= options.max_length:
                    taken.add(np.unique(self._keys_of(config, split, KeySet())))
        return taken

    @cached_property
    def held_out_keys(self) -> KeySet:
        """Keys of what training must not see: the multisets of values of validation and test rows."""
        taken = self._test_keys.copy()
        if self.options.validation:
            taken.add(np.unique(self._keys_of("default", "validation", self._test_keys)))
        return taken


def multiset_keys(values: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """(N,) 64-bit hashes of sorted rows (N, L); the length is part of it."""
    key = np.full(len(values), values.shape[1], np.uint64)
    for column in range(values.shape[1]):
        key = scramble(key * np.uint64(0x100000001B3) + values[:, column])
    return key


def draw_untaken(rng, count: int, length: int, narrow_share: float, taken: KeySet) -> NDArray[np.uint8]:
    """Sorted rows, drawn again where their values are those of a held-out row; the same for both classes."""
    values = draw_sorted(rng, count, length, narrow_share)
    if not len(taken):
        return values
    todo = np.flatnonzero(taken.contains(multiset_keys(values)))
    for _ in range(200):
        if not len(todo):
            return values
        values[todo] = draw_sorted(rng, len(todo), length, narrow_share)
        todo = todo[taken.contains(multiset_keys(values[todo]))]
    raise ValueError(
        f"length={length} is too short to keep training rows apart from held-out rows: nearly all its sequences are "
        "held out; expected a larger min_length, or fewer validation and test rows."
    )


def _count(values: NDArray) -> Counter:
    names, counts = np.unique(values, return_counts=True)
    return Counter(dict(zip(names.tolist(), counts.tolist(), strict=True)))
