"""The addition corpus: options, disjoint splits, and the arrow tables that are written."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from datasets import ClassLabel, Features, List, Value

from .addition_options import HARD_PART, HELD_OUT_PART, AdditionOptions, group_sizes
from .addition_text import addition_texts, number_column
from .arrow_columns import list_column, name_column, string_column
from .carry_groups import NINES
from .carry_pairs import count_pairs, draw_pairs, pair_features, pair_table
from .choices import COLUMN_CLASSES
from .columns import (
    INT64_DIGITS,
    AdditionProblems,
    from_integers,
    is_all_nines,
    problem_keys,
    solve,
)
from .long_problems import PROBLEM_CLASSES, long_problems
from .problem_sources import GroupSource, KeySet, OperandRange, UniformSource, share_out, take_new


@dataclass
class HeldOut:
    """The rows that training must not see, and their keys."""

    splits: dict[str, AdditionProblems]
    pairs: dict[str, tuple[AdditionProblems, AdditionProblems]]
    keys: KeySet


class AdditionCorpus:
    """The splits of one set of options; nothing is computed before it is asked for.

    >>> corpus = AdditionCorpus(AdditionOptions(seed=0))
    >>> corpus.splits()["default"]
    {'train': 10000, 'validation': 2000, 'test': 2000, 'hard': 1000}
    >>> corpus.problems("test").a.shape
    (2000, 3)

    Held-out rows (validation, test, hard, pairs) are drawn first and kept in memory; the training rows are a stream
    that leaves their keys out, made chunk by chunk. `sampling="carry_balanced"` remembers 8 bytes per training row
    besides.
    """

    name = "addition"
    # Parquet columns with few different values, which are written as a dictionary.
    repetitive = ("digits", "carries", "longest_chain", "group", "carry_into", "column_class", "column", "ripple")

    def __init__(self, options: AdditionOptions):
        self.options = options
        # Wide problems make shorter chunks, so that a chunk takes some tens of megabytes.
        self.chunk_rows = max(256, min(1 << 17, (1 << 22) // options.digits))

    def splits(self) -> dict[str, dict[str, int]]:
        """Config -> split -> number of rows."""
        options = self.options
        sizes = {name: getattr(options, name) for name in ("train", "validation", "test", "hard")}
        configs = {"default": {name: size for name, size in sizes.items() if size}}
        if options.pairs:
            configs["pairs"] = {"test": options.pairs}
            if count_pairs(options.digits, True, options.zero_pad):
                configs["pairs"]["ripple"] = options.pairs
        for kind in PROBLEM_CLASSES if options.test_lengths else ():
            configs[kind] = {f"test_{digits}": options.long_test for digits in options.test_lengths}
        if options.exhaustive:
            configs["exhaustive"] = {"exhaustive": 10 ** (2 * options.digits)}
        return {config: splits for config, splits in configs.items() if splits}

    def features(self, config: str) -> Features:
        number = Value("int64" if self.options.most_digits <= INT64_DIGITS else "string")
        if config == "pairs":
            return pair_features(number)
        return Features(
            {
                "input": Value("string"),
                "target": Value("string"),
                "a": number,
                "b": number,
                "sum": number,
                "digits": Value("int32"),
                "carries": Value("int32"),
                "longest_chain": Value("int32"),
                "group": Value("string"),
                "carry_into": List(Value("int8")),
                "column_class": List(ClassLabel(names=list(COLUMN_CLASSES))),
            }
        )

    def tables(self, config: str, split: str) -> Iterator[pa.Table]:
        """The rows of a split as arrow tables, chunk after chunk."""
        if config == "pairs":
            for start in range(0, self.options.pairs, self.chunk_rows):
                base, source = (problems[start : start + self.chunk_rows] for problems in self.pairs(split))
                yield pair_table(base, source, self.options, self.features(config).arrow_schema)
        elif config in PROBLEM_CLASSES:
            yield addition_table(self.long_problems(config, split), self.options, self.features(config).arrow_schema)
        else:
            for problems in self._chunks(split):
                yield addition_table(problems, self.options, self.features(config).arrow_schema)

    def problems(self, split: str) -> AdditionProblems:
        """The rows of train, validation, test, hard or exhaustive as arrays of digits."""
        return AdditionProblems.concatenate(list(self._chunks(split)))

    def long_problems(self, kind: str, split: str) -> AdditionProblems:
        """The rows of a class of problems beyond the training length; split `test_200` and the like."""
        return long_problems(kind, int(split.removeprefix("test_")), self.options.long_test, self.options.seed)

    def pairs(self, split: str = "test") -> tuple[AdditionProblems, AdditionProblems]:
        """Base and source problems of the `pairs` config; split `test` or `ripple`."""
        return self._held_out.pairs[split]

    def is_held_out(self, problems: AdditionProblems) -> np.ndarray:
        """(N,): which problems are in validation, test, hard or pairs; for training data that is made on the fly."""
        columns = max(problems.columns, self.options.digits)
        a, b = (np.pad(digits, ((0, 0), (0, columns - problems.columns))) for digits in (problems.a, problems.b))
        if columns > self.options.digits:
            inside = ~(a[:, self.options.digits :].any(-1) | b[:, self.options.digits :].any(-1))
        else:
            inside = np.ones(len(problems), bool)
        own = slice(None, self.options.digits)
        keys = problem_keys(AdditionProblems(a[:, own], b[:, own], problems.width), self.options.ordered)
        return inside & self._held_out.keys.contains(keys)

    def tally(self, config: str, table: pa.Table) -> dict[str, Counter]:
        """What the card counts: rows by carry chain and by group; pairs by changed column."""
        columns = ["column", "ripple"] if config == "pairs" else ["longest_chain", "group"]
        return {
            name: Counter({count["values"]: count["counts"] for count in table[name].value_counts().to_pylist()})
            for name in columns
        }

    def _chunks(self, split: str) -> Iterator[AdditionProblems]:
        if split == "exhaustive" and self.options.exhaustive:
            return self._exhaustive_chunks()
        if split not in self.splits().get("default", {}):
            raise ValueError(
                f"there is no split {split!r}; expected one of {', '.join(self.splits().get('default', {}))}."
            )
        if split == "train":
            return self._train_chunks()
        whole = self._held_out.splits[split]
        return (whole[start : start + self.chunk_rows] for start in range(0, len(whole), self.chunk_rows))

    def _exhaustive_chunks(self) -> Iterator[AdditionProblems]:
        operands = 10**self.options.digits
        for start in range(0, operands**2, self.chunk_rows):
            a, b = np.divmod(np.arange(start, min(start + self.chunk_rows, operands**2)), operands)
            width = np.full(len(a), self.options.digits)
            yield AdditionProblems(from_integers(a, self.options.digits), from_integers(b, self.options.digits), width)

    def _train_chunks(self) -> Iterator[AdditionProblems]:
        options = self.options
        sources = self._uniform_sources() if options.sampling == "uniform" else self._group_sources("train")
        return self._mixed_chunks("train", sources, options.train, self._held_out.keys.copy(), keep_keys=False)

    @cached_property
    def _held_out(self) -> HeldOut:
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
        for split in self.splits().get("pairs", {}):
            rng = self._rng(f"pairs/{split}")
            held_out.pairs[split] = draw_pairs(rng, options, split == "ripple", held_out.keys)
        return held_out

    def _mixed_chunks(
        self, split: str, sources: list, total: int, taken: KeySet, keep_keys: bool, part: int = 1
    ) -> Iterator[AdditionProblems]:
        """`total` new problems, shared over the sources and shuffled within each chunk."""
        shares = share_by_group(total, sources, part)
        rng = self._rng(f"order/{split}")
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

    def _rng(self, purpose: str) -> np.random.Generator:
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence([self.options.seed, *purpose.encode()])))


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


def addition_table(problems: AdditionProblems, options: AdditionOptions, schema: pa.Schema) -> pa.Table:
    """One arrow table of problems with texts, numbers and the anatomy of their carries."""
    solution = solve(problems.a, problems.b)
    inputs, targets = addition_texts(problems, solution.sum, options.zero_pad, options.answer_order)
    chain = solution.longest_chain
    nines = is_all_nines(solution.column_class, problems.width)
    as_integers = options.most_digits <= INT64_DIGITS
    names = [*(f"chain_{length}" for length in range(problems.columns + 1)), NINES]
    columns = {
        "input": string_column(*inputs),
        "target": string_column(*targets),
        "a": number_column(problems.a, as_integers),
        "b": number_column(problems.b, as_integers),
        "sum": number_column(solution.sum, as_integers),
        "digits": pa.array(problems.width, pa.int32()),
        "carries": pa.array(solution.carries, pa.int32()),
        "longest_chain": pa.array(chain, pa.int32()),
        "group": name_column(names, np.where(nines, problems.columns + 1, chain)),
        "carry_into": list_column(solution.carry_into, problems.width + 1, pa.int8()),
        "column_class": list_column(solution.column_class, problems.width, pa.int64()),
    }
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)


def add_by_oracle(a: int | str, b: int | str) -> int:
    """The exact sum, by Python's integers of any size: what every row of the corpus is tested against."""
    return int(a) + int(b)
