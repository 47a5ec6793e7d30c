"""The splits of sortedness: by length and by kind of violation, classes balanced at every length."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..corpus import Corpus
from ..key_sets import KeySet, scramble
from ..tasks import SplitTest
from .options import SortednessOptions
from .sequences import (
    KIND_NAMES,
    SHORTEST,
    SortednessProblems,
    balanced_kinds,
    describe,
    draw_sorted,
    put_out_of_order,
)


if TYPE_CHECKING:
    import pyarrow as pa
    from datasets import Features


class SortednessCorpus(Corpus[SortednessProblems]):
    """The splits of one set of options; nothing is computed before it is asked for.

    >>> from headcount.data_builders.registry import TASKS
    >>> corpus = TASKS["sortedness"].splits(SortednessOptions(seed=0))
    >>> len(corpus.problems("test_256", "swap"))
    1000

    No multiset of values of a training row is that of a validation or test row.
    """

    repetitive = ("length", "label", "kind", "position", "violations")
    options: SortednessOptions

    def sizes(self) -> dict[str, dict[str, int]]:
        options = self.options
        tests = {f"test_{length}": options.test for length in options.test_lengths if options.test}
        sizes = {"train": options.train, "validation": options.validation, **tests}
        configs = {"default": {name: size for name, size in sizes.items() if size}}
        for kind, shortest in SHORTEST.items():
            configs[kind] = {name: size for name, size in tests.items() if int(name.removeprefix("test_")) >= shortest}
        return {config: splits for config, splits in configs.items() if splits}

    def tests(self) -> list[SplitTest]:
        return [test for test in super().tests() if test.kind is not None]

    def sample(self, split: str, n: int) -> SortednessProblems:
        """Examples of all training lengths, the shortest first: they lie at even distances among all there are."""
        longest = self.options.max_length
        names = [name for name in self.sizes()["default"] if name.startswith("test_") and int(name[5:]) <= longest]
        parts = [self.problems(name) for name in (names if split == "test" else [split])]
        every = SortednessProblems.concatenate([part[np.argsort(part.length, kind="stable")] for part in parts])
        return every[np.linspace(0, len(every) - 1, min(n, len(every))).astype(int)]

    def chunks(self, config: str, split: str) -> Iterator[SortednessProblems]:
        if split not in self.sizes().get(config, {}):
            raise ValueError(f"there is no split {config}/{split}; expected one of {self.sizes()}.")
        taken = KeySet()
        if split == "validation":
            taken = self._test_keys
        if split == "train":
            taken = self.held_out_keys
        return self._rows(config, split, taken)

    def keys(self, problems: SortednessProblems) -> NDArray[np.uint64]:
        """The multiset of values, whatever its order."""
        keys = np.zeros(len(problems), np.uint64)
        for length in np.unique(problems.length):
            own = problems.length == length
            keys[own] = multiset_keys(np.sort(problems.values[own, :length], axis=-1))
        return keys

    def at_length(self, length: int, rows: int) -> "SortednessCorpus":
        """The corpus to test a length from: this one for training lengths, whose rows were kept out of training."""
        options = self.options
        if options.min_length <= length <= options.max_length:
            return self
        return SortednessCorpus(self.task, replace(options, test_lengths=(length,), test=rows))

    def features(self, config: str) -> "Features":
        from datasets import ClassLabel, Features, List, Value

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

    def table(self, problems: SortednessProblems, config: str) -> "pa.Table":
        import pyarrow as pa

        from ..arrow_columns import list_column

        schema = self.features(config).arrow_schema
        columns = {
            "values": list_column(problems.values, problems.length, pa.uint8()),
            **{n: pa.array(getattr(problems, n), schema.field(n).type) for n in schema.names if n != "values"},
        }
        return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)

    def read_table(self, table: "pa.Table") -> SortednessProblems:
        length, kind, position, violations = (
            table[name].to_numpy().astype(np.int64) for name in ("length", "kind", "position", "violations")
        )
        values = np.zeros((len(length), int(length.max(initial=1))), np.uint8)
        flat = np.concatenate([chunk.values.to_numpy() for chunk in table["values"].chunks])
        values[np.arange(values.shape[1]) < length[:, None]] = flat
        return SortednessProblems(values, length, kind, position, violations)

    def tally(self, config: str, table: "pa.Table") -> dict[str, Counter]:
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

    def _rows(self, config: str, split: str, taken: KeySet) -> Iterator[SortednessProblems]:
        options = self.options
        is_test = split.startswith("test_")
        first, last = options.min_length, options.max_length
        lengths = np.array([int(split.removeprefix("test_"))] if is_test else range(first, last + 1))
        kinds = options.kinds if config == "default" else {config: 1.0}
        narrow_share = 0.0 if is_test else options.narrow_share
        purpose = f"{config}/{split}"
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([options.seed, *purpose.encode()])))
        total, longest = self.sizes()[config][split], int(lengths.max())
        chunk = max(2, min(1 << 16, (1 << 22) // longest) & ~1)  # even, so that every chunk is balanced
        for start in range(0, total, chunk):
            count = min(chunk, total - start)
            # Pairs of rows have the same length, and one row of each pair is sorted: balance within every length.
            pair_length = rng.permutation(np.resize(rng.permutation(lengths), count // 2))
            kind = balanced_kinds(rng, count, kinds)
            row_length = np.empty(count, np.int64)
            row_length[kind == 0], row_length[kind > 0] = pair_length, pair_length
            values = np.zeros((count, longest), np.uint8)
            position, violations = np.empty((2, count), np.int64)
            for length in np.unique(pair_length):
                own = np.flatnonzero(row_length == length)
                made = draw_untaken(rng, len(own), int(length), narrow_share, taken)
                put_out_of_order(rng, made, kind[own])
                found = describe(made, kind[own])
                values[own, :length] = made
                position[own], violations[own] = found.position, found.violations
            yield SortednessProblems(values, row_length, kind.astype(np.int64), position, violations)

    @cached_property
    def _test_keys(self) -> KeySet:
        """Keys of the test rows that have a training length; longer or shorter ones cannot be met in training."""
        taken, options = KeySet(), self.options
        for config, splits in self.sizes().items():
            for split in splits:
                if split.startswith("test_") and options.min_length <= int(split[5:]) <= options.max_length:
                    taken.add(np.unique(self._keys_of(config, split, KeySet())))
        return taken

    @cached_property
    def held_out_keys(self) -> KeySet:
        """The multisets of values of validation and test rows."""
        taken = self._test_keys.copy()
        if self.options.validation:
            taken.add(np.unique(self._keys_of("default", "validation", self._test_keys)))
        return taken

    def _keys_of(self, config: str, split: str, taken: KeySet) -> NDArray[np.uint64]:
        return np.concatenate([self.keys(problems) for problems in self._rows(config, split, taken)])


def _count(values: NDArray) -> Counter:
    names, counts = np.unique(values, return_counts=True)
    return Counter(dict(zip(names.tolist(), counts.tolist(), strict=True)))


def multiset_keys(values: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """(N,) 64-bit hashes of sorted rows (N, L); the length is part of it."""
    key = np.full(len(values), values.shape[1], np.uint64)
    for column in range(values.shape[1]):
        key = scramble(key * np.uint64(0x100000001B3) + values[:, column])
    return key


def draw_untaken(
    rng: np.random.Generator, count: int, length: int, narrow_share: float, taken: KeySet
) -> NDArray[np.uint8]:
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
