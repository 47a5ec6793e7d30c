"""The splits of a task: disjoint, a function of the seed alone, as problems and as arrow tables.

`Corpus` serves any task whose options have `seed`, `min_length`, `max_length`, `train`, `validation`, `test`,
`test_lengths` and `long_test`; a task with other splits overrides what differs.
"""

from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic

import numpy as np
from numpy.typing import NDArray

from .key_sets import KeySet, hash_rows
from .tasks import P, SplitTest, Task


if TYPE_CHECKING:
    import pyarrow as pa
    from datasets import Features

MOST_ROUNDS = 200


class Corpus(Generic[P]):
    """The splits of one set of options; nothing is computed before it is asked for.

    >>> from headcount import TASKS
    >>> corpus = TASKS["reverse"].splits(TASKS["reverse"].options(seed=0))
    >>> corpus.sizes()["default"]["test"]
    1000

    Held-out rows are drawn first: `test`, then `validation` without those, then `train` without either. The class of a
    test at one length, such as `random/test_64`, is drawn by itself; its lengths are outside of training.
    """

    repetitive: tuple[str, ...] = ()  # parquet columns with few different values, which are written as a dictionary

    def __init__(self, task: Task[P], options: Any):
        self.task, self.options = task, options
        self.files: dict[tuple[str, str], list[Path]] = {}  # parquet files of splits that are read, not drawn

    def sizes(self) -> dict[str, dict[str, int]]:
        """Config -> split -> number of rows."""
        options = self.options
        default = {name: getattr(options, name) for name in ("train", "validation", "test")}
        configs = {"default": {name: rows for name, rows in default.items() if rows}}
        for kind in self.task.classes:
            configs[kind] = {f"test_{length}": options.long_test for length in options.test_lengths}
        return {config: splits for config, splits in configs.items() if splits}

    def tests(self) -> list[SplitTest]:
        """What a model is evaluated on."""
        whole = [SplitTest("default", split) for split in self.sizes().get("default", {}) if split in ("test", "hard")]
        return whole + [
            SplitTest(config, split, config, int(split.removeprefix("test_")))
            for config, splits in self.sizes().items()
            for split in splits
            if config in self.task.classes
        ]

    def problems(self, split: str, config: str = "default") -> P:
        """All rows of a split, in their order."""
        if (config, split) in self.files:
            return self._read_files(self.files[config, split])
        parts = list(self.chunks(config, split))
        return type(parts[0]).concatenate(parts)

    def _read_files(self, paths: list[Path]) -> P:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return self.read_table(pa.concat_tables([pq.read_table(path) for path in paths]))
        except (pa.ArrowException, OSError, KeyError, TypeError, IndexError) as error:
            reason = " ".join(str(error).split())[:150] or type(error).__name__
            raise ValueError(
                f"{paths[0]} holds no rows of {self.task.name} ({reason}); write the folder again."
            ) from error

    def rng(self, purpose: str) -> np.random.Generator:
        """Random numbers of the seed for one purpose, the same for every model."""
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence([self.options.seed, *purpose.encode()])))

    def sample(self, split: str, n: int) -> P:
        """At most `n` examples of a split, for studies that look at a trained model."""
        return self.problems(split)[:n]

    def chunks(self, config: str, split: str) -> Iterator[P]:
        """The rows of a split, part after part."""
        if split not in self.sizes().get(config, {}):
            known = [f"{name}/{one}" for name, splits in self.sizes().items() for one in splits]
            raise ValueError(f"there is no split {config}/{split}; expected one of {', '.join(known)}.")
        if config != "default":
            length = int(split.removeprefix("test_"))
            yield self.task.test_problems(self.options, config, length, self.sizes()[config][split])
        elif split == "train":
            yield from self._train_chunks()
        else:
            yield self._held_out[0][split]

    def is_held_out(self, problems: P) -> NDArray[np.bool_]:
        """(N,): which problems training must not see; for training data that is made on the fly."""
        return self.held_out_keys.contains(self.keys(problems))

    @property
    def held_out_keys(self) -> KeySet:
        """Keys of what training must not see."""
        return self._held_out[1]

    def keys(self, problems: P) -> NDArray[np.uint64]:
        """(N,): what makes two problems the same."""
        ids, lengths = self.task.write(problems, self.options)[0]
        return hash_rows(np.where(np.arange(ids.shape[1]) < lengths[:, None], ids, 0))

    @cached_property
    def _held_out(self) -> tuple[dict[str, P], KeySet]:
        splits, taken = {}, KeySet()
        for split in ("test", "validation"):
            rows = getattr(self.options, split)
            if rows:
                splits[split] = self._draw(split, rows, taken, remember=True)
        return splits, taken

    def _train_chunks(self) -> Iterator[P]:
        taken = self.held_out_keys.copy()
        yield self._draw("train", self.options.train, taken, remember=False)

    def _draw(self, split: str, rows: int, taken: KeySet, remember: bool) -> P:
        """`rows` problems of mixed lengths that are not in `taken`; with `remember`, none of them twice."""
        rng, missing = self.rng(split), rows
        found: list[P] = []
        for _ in range(MOST_ROUNDS):
            drawn = self.task.problems(self.options, rng, missing + missing // 8 + 16)
            keys = self.keys(drawn)
            new = ~taken.contains(keys)
            if remember:
                first = np.zeros(len(keys), bool)
                first[np.unique(keys, return_index=True)[1]] = True
                new &= first
            chosen = np.flatnonzero(new)[:missing]
            if remember:
                taken.add(keys[chosen])
            found.append(drawn[chosen])
            missing -= len(chosen)
            if not missing:
                return type(drawn).concatenate(found)
        raise ValueError(
            f"{split}={rows:,} is not allowed: only {rows - missing:,} different {self.task.texts.problems} were "
            "found for it beside the other splits; expected smaller splits or longer ones."
        )

    # Tables

    def features(self, config: str) -> "Features":
        from datasets import ClassLabel, Features, Value

        answer = {"label": ClassLabel(names=list(self.task.labels))} if self.task.kind == "label" else {}
        return Features(
            {"input": Value("string"), **(answer or {"target": Value("string")}), "length": Value("int32")}
            | {name: Value("string") for name in self._fact_names()}
        )

    def _fact_names(self) -> list[str]:
        return [name for name in self.task.texts.facts if name != "length"]

    def tables(self, config: str, split: str) -> "Iterator[pa.Table]":
        """The rows of a split as arrow tables, part after part."""
        for problems in self.chunks(config, split):
            yield self.table(problems, config)

    def table(self, problems: P, config: str) -> "pa.Table":
        import pyarrow as pa

        (ids, lengths), answers = self.task.write(problems, self.options)
        vocabulary, facts = self.task.vocabulary, self.task.facts(problems)
        texts = [vocabulary.text(row[:length].tolist()) for row, length in zip(ids, lengths, strict=True)]
        columns: dict[str, Any] = {"input": texts}
        if self.task.kind == "label":
            columns["label"] = np.asarray(answers)
        else:
            columns["target"] = [vocabulary.text(row[:n].tolist()) for row, n in zip(*answers, strict=True)]
        columns["length"] = facts.get("length", lengths)
        columns |= {name: facts[name].astype(str) for name in self._fact_names()}
        schema = self.features(config).arrow_schema
        arrays = [pa.array(columns[name], schema.field(name).type) for name in schema.names]
        return pa.Table.from_arrays(arrays, schema=schema)

    def read_table(self, table: "pa.Table") -> P:
        """The problems of a table that `table` made."""
        raise ValueError(f"the task {self.task.name} cannot read its rows back; expected `read_table` in its corpus.")

    def tally(self, config: str, table: "pa.Table") -> dict[str, Counter]:
        """What the card counts: rows by length, and by every fact."""
        return {name: count_values(table[name]) for name in ("length", *self._fact_names())}


def count_values(column: "pa.ChunkedArray") -> Counter:
    return Counter({count["values"]: count["counts"] for count in column.value_counts().to_pylist()})
