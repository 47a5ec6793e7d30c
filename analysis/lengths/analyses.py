"""What is measured of every cell: `LENGTH_ANALYSES`, by the name of the file of rows, in the order of work."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...configuration.configuration_headcount import HeadcountConfig
from ...data_builders.corpus import Corpus
from ...data_builders.tasks import Task
from ...records.rows import Row, Rows, values_of
from .asked import Asked
from .dilution import dilution, has_twins
from .generated import check_generation, lengths_worth_writing, writes_answers
from .measure import measure_lengths
from .neighbour import neighbour_head
from .reading import has_reading, what_heads_read
from .shifts import has_ids_to_move, shifted_positions


@dataclass(frozen=True)
class LengthAnalysis:
    """`measure(model, corpus, asked, lengths)` gives rows; `lengths` are those of the first analysis, if it is done.

    `by_length`: it is made again when more lengths, kinds or rows are asked for than before.
    """

    applies: Callable[[Task, HeadcountConfig], bool]
    measure: Callable[[Any, Corpus, Asked, Rows], Rows]
    by_length: bool = True


def _say(found: Row) -> None:
    print(f"measured length {found['length']}", file=sys.stderr, flush=True)


def _reached(corpus: Corpus, lengths: Rows) -> list[int]:
    """The lengths from the longest of training on at which there was something to measure."""
    longest = corpus.task.trained_lengths(corpus.options)[1]
    return values_of([each for each in lengths if each["value"] is not None and each["length"] >= longest], "length")


def _lengths(model: Any, corpus: Corpus, asked: Asked, lengths: Rows) -> Rows:
    return measure_lengths(model, corpus, asked.lengths, asked.rows, asked.kinds, _say)


def _dilution(model: Any, corpus: Corpus, asked: Asked, lengths: Rows) -> Rows:
    return dilution(model, corpus, _reached(corpus, lengths))


def _shifts(model: Any, corpus: Corpus, asked: Asked, lengths: Rows) -> Rows:
    return shifted_positions(model, corpus)


def _neighbour(model: Any, corpus: Corpus, asked: Asked, lengths: Rows) -> Rows:
    return neighbour_head(model, corpus)


def _generated(model: Any, corpus: Corpus, asked: Asked, lengths: Rows) -> Rows:
    written = lengths_worth_writing(corpus.task, lengths)
    return check_generation(model, corpus, written, asked.rows, asked.kinds, _say)


def _columns(model: Any, corpus: Corpus, asked: Asked, lengths: Rows) -> Rows:
    return what_heads_read(model, corpus, _reached(corpus, lengths))


LENGTH_ANALYSES: dict[str, LengthAnalysis] = {
    "lengths": LengthAnalysis(lambda task, config: True, _lengths),
    "dilution": LengthAnalysis(has_twins, _dilution),
    "shifts": LengthAnalysis(has_ids_to_move, _shifts, by_length=False),
    "neighbour": LengthAnalysis(has_twins, _neighbour, by_length=False),
    "generated": LengthAnalysis(writes_answers, _generated),
    "columns": LengthAnalysis(has_reading, _columns),
}
