"""The task of a table: its rows are all the problems that there are, and its own answers are the right ones.

Nobody can make new problems of it, so that lengths beyond the table's are not studied: accuracy is shown by the
lengths of its rows.

Shapes: N rows, W tokens of the longest input, V tokens of the longest answer.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..card_figures import draw_counts
from ..corpus import Corpus
from ..key_sets import KeySet
from ..tasks import DataCard, Origin, Problems, SplitTest, Task, Texts
from ..vocabulary import EOS, Vocabulary, Written
from .definition import MARKS, Definition, define, parse, read_again
from .source import Rows, Source


@dataclass(frozen=True)
class TableOptions:
    """A table has nothing to choose: its rows are what they are, and so are their splits."""

    seed: int = 0

    def __post_init__(self) -> None:
        if self.seed != 0:
            raise ValueError(f"data.seed={self.seed} has no effect on a table, whose rows are drawn by nobody.")


@dataclass(frozen=True)
class TablePairs(Problems):
    """Inputs (N, W) and answers (N, V) as token ids, of which `length` and `answer_length` (N,) count.

    Of a table with labels, an answer is one number, that of its class.
    """

    input: NDArray[np.int64]
    length: NDArray[np.int64]
    answer: NDArray[np.int64]
    answer_length: NDArray[np.int64]


class TableCorpus(Corpus[TablePairs]):
    """The splits of a table; `task.rows` reads them, once."""

    task: "Table"

    def sizes(self) -> dict[str, dict[str, int]]:
        return {"default": {name: len(rows) for name, rows in self.task.rows.items()}}

    def tests(self) -> list[SplitTest]:
        return [SplitTest("default", "test")]

    def chunks(self, config: str, split: str) -> Iterator[TablePairs]:
        if config != "default" or split not in self.task.rows:
            raise ValueError(f"there is no split {config}/{split}; expected one of {', '.join(self.task.rows)}.")
        yield self.task.encoded(split)

    @cached_property
    def held_out_keys(self) -> KeySet:
        keys = KeySet()
        for split in ("validation", "test"):
            keys.add(np.unique(self.keys(self.problems(split))))
        return keys


class Table(Task[TablePairs]):
    """One table as a task. `definition` says all that is known without reading the table again."""

    options = TableOptions

    def __init__(self, definition: Definition, rows: dict[str, Rows] | None = None):
        mark = next((sign for sign in MARKS if sign not in definition.symbols), "<answer>")
        symbols = definition.symbols if definition.is_label else (*definition.symbols, mark)
        joiner = "" if definition.tokens == "character" else " "
        self.definition, self._rows, self.origin = definition, rows, definition.origin()
        # What other tasks name in their class, this one knows once it has seen a table.
        self.name, self.labels = definition.name, definition.labels  # type: ignore[misc]
        self.kind = "label" if definition.is_label else "sequence"  # type: ignore[misc]
        self.vocabulary = Vocabulary(symbols, joiner, None if definition.is_label else mark)  # type: ignore[misc]
        self.texts = table_texts(definition)  # type: ignore[misc]

    @property
    def rows(self) -> dict[str, Rows]:
        """The splits, read from where the table is; an error if it is gone or is another now."""
        if self._rows is None:
            self._rows = read_again(self.definition)
        return self._rows

    def encoded(self, split: str) -> TablePairs:
        first = self.vocabulary.first
        ids = {symbol: first + number for number, symbol in enumerate(self.definition.symbols)}
        inputs, answers = ([row[side] for row in self.rows[split]] for side in (0, 1))
        written = padded([[ids[piece] for piece in self.definition.pieces(text)] for text in inputs])
        if self.definition.is_label:
            right = padded([[self.labels.index(label)] for label in answers])
        else:
            right = padded([[ids[piece] for piece in self.definition.pieces(text)] for text in answers])
        return TablePairs(*written, *right)

    def problems(
        self,
        options: TableOptions,
        rng: np.random.Generator,
        n: int,
        length: int | None = None,
        kind: str | None = None,
    ) -> TablePairs:
        """`n` rows that training has not seen, some of them twice if there are fewer."""
        if length is not None or kind is not None:
            raise ValueError(
                f"{self.name} is a table, and nobody knows the answers to problems that are not in it; expected a "
                "task that makes its own, to test other lengths."
            )
        held_out = self.encoded("test")
        return held_out[rng.permutation(np.arange(n) % len(held_out))]

    def fresh_problems(self, *arguments: Any) -> TablePairs:
        raise ValueError("training.fresh_data=true makes new problems, and a table has none; expected false.")

    def solve(self, problems: TablePairs) -> NDArray[np.int64]:
        return problems.answer

    def facts(self, problems: TablePairs) -> dict[str, NDArray]:
        return {"length": problems.length}

    def splits(self, options: TableOptions) -> TableCorpus:
        return TableCorpus(self, options)

    def trained_lengths(self, options: TableOptions) -> tuple[int, int]:
        return self.definition.shortest, self.definition.longest

    def write(self, problems: TablePairs, options: TableOptions) -> tuple[Written, Written | NDArray]:
        questions = (problems.input, problems.length)
        if self.kind == "label":
            return questions, problems.answer[:, 0]
        return questions, (problems.answer, problems.answer_length)

    def data_command(self, options: TableOptions) -> str:
        """There is none that writes the data: the table is there already."""
        found = self.definition
        words = ["headcount", "train", "--data", shown_place(found), "--input", plain(found.input)]
        words += ["--label" if found.is_label else "--target", plain(found.answer), "--tokens", found.tokens]
        for option, value in (("--config", found.config), ("--split", found.split)):
            words += [option, plain(value)] if value is not None else []
        return shlex.join([*words, "--output", "DIR"])

    def tokens_at(self, length: int, style: str) -> int:
        return length + self.definition.widest + 3 if style == "decoder" else length + 1


def padded(rows: list[list[int]]) -> Written:
    lengths = np.array([len(row) for row in rows], np.int64)
    ids = np.full((len(rows), int(lengths.max())), EOS, np.int64)
    for target, row in zip(ids, rows, strict=True):
        target[: len(row)] = row
    return ids, lengths


def table_task(source: Source, tokens: str = "character") -> Table:
    """Reads a table and makes a task of it."""
    return Table(*define(source, tokens))


def kept_table_task(origin: Origin) -> Table:
    """The task of a definition that a folder keeps; the table itself is read when its rows are asked for."""
    return Table(parse(origin))


def plain(text: str) -> str:
    """A name from a table or a file, which may hold anything, as one line without marks of Markdown or HTML."""
    return " ".join(re.sub(r"[^\w .,:/-]+", " ", text).split())[:100]


def shown_place(found: Definition) -> str:
    """The id of a dataset, or the last part of a path: the rest of it is nobody's business."""
    place = found.place.rstrip("/")
    return plain(place.rsplit("/", 1)[-1] if place.startswith("/") else place)


def table_texts(found: Definition) -> Texts:
    """What cards and reports say."""
    given, answered = plain(found.input), plain(found.answer)
    says = f"{given} to {answered}, of {shown_place(found)}"
    unit = f"{found.tokens}s"
    lost = sum(found.left_out.values())
    left_out = (
        f" {lost} rows of validation and test hold a {found.tokens} that no training row has, and were left out."
        if lost
        else ""
    )

    def reads(options: Mapping[str, Any]) -> str:
        return (
            f"It was trained on texts of {found.shortest} to {found.longest} {unit}, and reads the "
            f"{len(found.symbols):,} {unit} that they hold. Anything else it cannot read.{left_out}"
        )

    answer = {"label" if found.is_label else "target": f"the column {answered}"}
    return Texts(
        title=says,
        short_title=says,
        description=says,
        summary=lambda options: f"A small transformer that was trained on a table: {says}.",
        reads=reads,
        length=unit,
        problems="rows",
        facts={"length": "length"},
        pipeline_tag="text-classification" if found.is_label else "text-generation",
        data=DataCard(
            summary=f"Two columns of a table: {says}.",
            method="The splits are the table's own; those that it lacks were cut from its training rows, by the text "
            "of the input alone. No input is in two splits.",
            limits=reads({}),
            columns={"": {"input": f"the column {given}", **answer, "length": f"how many {unit}"}},
            purpose=lambda config, split: {"train": "training", "validation": "choosing", "test": "testing"}[split],
            balance="length",
            balance_text="Rows by length:",
            balance_order=int,
            draw=partial(draw_counts, facts={"length": unit}),
            figure="lengths.png",
            figure_text="Share of rows by length",
            category="text-classification" if found.is_label else "text-generation",
        ),
    )
