"""The splits of addition: disjoint, exact, and with pairs of problems in which one carry differs."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..corpus import Corpus, count_values
from ..key_sets import KeySet
from ..tasks import SplitTest, Task
from .carry_pairs import count_pairs, draw_pairs
from .columns import AdditionProblems, from_integers, problem_keys
from .options import HARD_PART, HELD_OUT_PART, AdditionOptions, group_sizes
from .problem_sources import GroupSource, OperandRange, UniformSource, share_out, take_new


if TYPE_CHECKING:
    import pyarrow as pa
    from datasets import Features


WIDER = np.uint64(0x5851F42D4C957F2D)  # keeps the keys of wider problems apart


@dataclass
class HeldOut:
    """The rows that training must not see, and their keys."""

    splits: dict[str, AdditionProblems]
    pairs: dict[str, tuple[AdditionProblems, AdditionProblems]]
    keys: KeySet


class AdditionCorpus(Corpus[AdditionProblems]):
    """The splits of one set of options; nothing is computed before it is asked for.

    >>> from headcount.data_builders.registry import TASKS
    >>> corpus = TASKS["addition"].splits(AdditionOptions(seed=0))
    >>> corpus.sizes()["default"]
    {'train': 10000, 'validation': 2000, 'test': 2000, 'hard': 1000}
    >>> corpus.problems("test").a.shape
    (2000, 3)

    Held-out rows (validation, test, hard, pairs) are drawn first and kept in memory; the training rows are a stream
    that leaves their keys out, made chunk by chunk. `sampling="carry_balanced"` remembers 8 bytes per training row
    besides.
    """

    repetitive = ("digits", "carries", "longest_chain", "group", "carry_into", "column_class", "column", "ripple")
    options: AdditionOptions

    def __init__(self, task: Task[AdditionProblems], options: AdditionOptions):
        super().__init__(task, options)
        # Wide problems make shorter chunks, so that a chunk takes some tens of megabytes.
        self.chunk_rows = max(256, min(1 << 17, (1 << 22) // options.digits))

    def sizes(self) -> dict[str, dict[str, int]]:
        options = self.options
        sizes = {name: getattr(options, name) for name in ("train", "validation", "test", "hard")}
        configs = {"default": {name: size for name, size in sizes.items() if size}}
        if options.pairs:
            configs["pairs"] = {"test": options.pairs}
            if count_pairs(options.digits, True, options.zero_pad):
                configs["pairs"]["ripple"] = options.pairs
        for kind in self.task.classes if options.test_lengths else ():
            configs[kind] = {f"test_{digits}": options.long_test for digits in options.test_lengths}
        if options.exhaustive:
            configs["exhaustive"] = {"exhaustive": 10 ** (2 * options.digits)}
        return {config: splits for config, splits in configs.items() if splits}

    def tests(self) -> list[SplitTest]:
        everything = [SplitTest("exhaustive", "exhaustive")] if self.options.exhaustive else []
        return super().tests() + everything

    def chunks(self, config: str, split: str) -> Iterator[AdditionProblems]:
        if config == "exhaustive" and self.options.exhaustive:
            yield from self._exhaustive_chunks()
        elif config == "default" and split in self.sizes()["default"] and split != "train":
            whole = self._drawn.splits[split]
            yield from (whole[start : start + self.chunk_rows] for start in range(0, len(whole), self.chunk_rows))
        else:
            yield from super().chunks(config, split)

    def pairs(self, split: str = "test") -> tuple[AdditionProblems, AdditionProblems]:
        """Base and source problems of the `pairs` config; split `test` or `ripple`."""
        known = self.sizes().get("pairs", {})
        if split not in known:
            raise ValueError(f"there are no pairs {split!r}; expected one of: {', '.join(known)}.")
        return self._drawn.pairs[split]

    def is_held_out(self, problems: AdditionProblems) -> NDArray[np.bool_]:
        """(N,): which problems are in validation, test, hard or pairs; for training data that is made on the fly."""
        return super().is_held_out(problems) & ~self._is_wider(problems)

    @property
    def held_out_keys(self) -> KeySet:
        return self._drawn.keys

    def keys(self, problems: AdditionProblems) -> NDArray[np.uint64]:
        """Leading zeros do not count; a+b and b+a are one problem unless the options say otherwise."""
        columns = max(problems.columns, self.options.digits)
        a, b = (np.pad(digits, ((0, 0), (0, columns - problems.columns))) for digits in (problems.a, problems.b))
        own = slice(None, self.options.digits)
        keys = problem_keys(AdditionProblems(a[:, own], b[:, own], problems.width), self.options.ordered)
        wider = self._is_wider(problems)
        keys[wider] = problem_keys(AdditionProblems(a, b, problems.width), self.options.ordered)[wider] ^ WIDER
        return keys

    def _is_wider(self, problems: AdditionProblems) -> NDArray[np.bool_]:
        """Whether a number has more digits than any of this corpus."""
        beyond = slice(self.options.digits, None)
        return np.asarray((problems.a[:, beyond] | problems.b[:, beyond]).any(-1))

    def features(self, config: str) -> "Features":
        from .tables import pair_features, problem_features

        return pair_features(self.options) if config == "pairs" else problem_features(self.options)

    def tables(self, config: str, split: str) -> "Iterator[pa.Table]":
        from .tables import pair_table

        if config != "pairs":
            yield from super().tables(config, split)
            return
        for start in range(0, self.options.pairs, self.chunk_rows):
            base, source = (problems[start : start + self.chunk_rows] for problems in self.pairs(split))
            yield pair_table(base, source, self.options, self.features(config).arrow_schema)

    def table(self, problems: AdditionProblems, config: str) -> "pa.Table":
        from .tables import addition_table

        return addition_table(problems, self.options, self.features(config).arrow_schema)

    def read_table(self, table: "pa.Table") -> AdditionProblems:
        from .tables import read_problems

        return read_problems(table, self.options)

    def tally(self, config: str, table: "pa.Table") -> dict[str, Counter]:
        """What the card counts: rows by carry chain and by group; pairs by changed column."""
        columns = ["column", "ripple"] if config == "pairs" else ["longest_chain", "group"]
        return {name: count_values(table[name]) for name in columns}

    def _exhaustive_chunks(self) -> Iterator[AdditionProblems]:
        operands = 10**self.options.digits
        for start in range(0, operands**2, self.chunk_rows):
            a, b = np.divmod(np.arange(start, min(start + self.chunk_rows, operands**2)), operands)
            width = np.full(len(a), self.options.digits)
            yield AdditionProblems(from_integers(a, self.options.digits), from_integers(b, self.options.digits), width)

    def _train_chunks(self) -> Iterator[AdditionProblems]:
        options = self.options
        sources = self._uniform_sources() if options.sampling == "uniform" else self._group_sources("train")
        return self._mixed_chunks("train", sources, options.train, self._drawn.keys.copy(), keep_keys=False)

    @cached_property
    def _drawn(self) -> HeldOut:
        """Every held-out row, drawn in one fixed order, each set without the ones before it."""
        options, held_out = self.options, HeldOut({}, {}, KeySet())
        sources = self._uniform_sources()
        for split in ("test", "validation"):
            size = getattr(options, split)
            if size:
                chunks = self._mixed_chunks(split, sources, size, held_out.keys, keep_keys=True, part=HELD_OUT_PART)
                held_out.splits[split] = AdditionProblems.concatenate(list(chunks))
        if options.hard:
            groups = self._group_sources("hard")
            chunks = self._mixed_chunks("hard", groups, options.hard, held_out.keys, keep_keys=True, part=HARD_PART)
            held_out.splits["hard"] = AdditionProblems.concatenate(list(chunks))
        for split in self.sizes().get("pairs", {}):
            rng = self.rng(f"pairs/{split}")
            held_out.pairs[split] = draw_pairs(rng, options, split == "ripple", held_out.keys)
        return held_out

    def _mixed_chunks(
        self, split: str, sources: list, total: int, taken: KeySet, keep_keys: bool, part: int = 1
    ) -> Iterator[AdditionProblems]:
        """`total` new problems, shared over the sources and shuffled within each chunk."""
        shares = share_by_group(total, sources, part)
        rng = self.rng(f"order/{split}")
        chunks = -(-total // self.chunk_rows)
        exhausted: set[int] = set()
        for chunk in range(chunks):
            counts = [share * (chunk + 1) // chunks - share * chunk // chunks for share in shares]
            parts = []
            while any(counts):
                missing = 0
                for number, count in enumerate(counts):
                    if count and number not in exhausted:
                        parts.append(take_new(sources[number], count, taken, self.options.ordered, keep_keys))
                        count -= len(parts[-1])
                        if count:
                            exhausted.add(number)
                    missing += count
                if missing and len(exhausted) == len(sources):
                    raise ValueError(
                        f"{split}={total:,} is not allowed: fewer different problems are left for it beside the other "
                        f"splits, {missing:,} are missing; expected smaller splits or more digits."
                    )
                # What an exhausted source could not give, the others give in equal shares.
                counts = share_out(missing, [total * (number not in exhausted) for number in range(len(sources))])
            problems = AdditionProblems.concatenate(parts)
            # A single source is in random order already.
            yield problems if len(sources) == 1 else problems[rng.permutation(len(problems))]

    def _uniform_sources(self) -> list[UniformSource]:
        options, sources = self.options, []
        for b in options.widths:
            for a in options.widths if options.ordered else (width for width in options.widths if width <= b):
                first, second = (OperandRange(digits, options.leading_zeros) for digits in (a, b))
                width = max(a, b)
                sources.append(UniformSource(first, second, width, options.digits, options.ordered, [options.seed]))
        return sources

    def _group_sources(self, split: str) -> list[GroupSource]:
        options = self.options
        seed = [options.seed, *split.encode()]
        return [
            GroupSource(group, width, options.digits, options.ordered, seed) for group, width in group_sizes(options)
        ]


def share_by_group(total: int, sources: list, part: int) -> list[int]:
    """Rows per source: equal shares for the carry groups, and within a group equal shares for its widths."""
    groups: dict[str, list[int]] = {}
    for number, source in enumerate(sources):
        groups.setdefault(getattr(source, "group", ""), []).append(number)
    capacities = [source.share_limit if part == 1 else source.size // part for source in sources]
    shares = [0] * len(sources)
    of_groups = share_out(total, [sum(capacities[number] for number in members) for members in groups.values()])
    for members, share in zip(groups.values(), of_groups, strict=True):
        for number, own in zip(members, share_out(share, [capacities[number] for number in members]), strict=True):
            shares[number] = own
    shares[-1] += total - sum(shares)  # more than there are: the source itself reports it
    return shares
