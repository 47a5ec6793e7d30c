"""Accuracy by length: a trained model of any task on problems far longer than those it was trained on.

Shapes: N problems.

Training lengths are always measured, on what the corpus held out. Long problems cost their square, and are spared
where they cannot tell anything new; the row then says so (`not_measured`) instead of showing a figure:

- labels: up to `ALWAYS` everything is measured; longer, a class is measured only if the length before was above
  chance; beyond `LONG` only the hardest class, with fewer rows, and only while nearly everything is right;
- answers: a class of which nothing was right at one length is not measured at longer ones.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ...data_builders.corpus import Corpus
from ...data_builders.examples import tensors
from ...data_builders.tasks import Problems, SplitTest, Task
from ...metrics.classes import class_rates
from ...modeling.position_schemes import no_room
from ...records.intervals import mean_with_interval, rate
from ...records.rows import Row, Rows, row
from .passes import answer_margin, label_margin
from .spread import entropy_share


ALWAYS, LONG, FEWEST, SURVIVES = 256, 1024, 20, 0.9  # of labels
WHOLE_ROWS_UP_TO = 200  # of answers: beyond, half of the rows


def measure_lengths(
    model: Any,
    corpus: Corpus,
    lengths: Iterable[int],
    rows: int = 200,
    kinds: Sequence[str] | None = None,
    progress: Callable[[Row], None] | None = None,
) -> Rows:
    """Rows: the task's measure by length and class of problems.

    Args:
        model: a trained model of the task.
        corpus: the data of its run; `test` and `hard` are rows of these kinds at the longest training length.
        lengths: to test beyond training.
        rows: problems of each class and length beyond training.
        kinds: classes of the task; all if None.
        progress: is called with a row after each length.

    Returns:
        Rows with `length`, `kind` and `not_measured`, which is None where there is a value.
    """
    model.eval()
    task, kinds = corpus.task, list(corpus.task.classes if kinds is None else kinds)
    first, last = task.trained_lengths(corpus.options)
    check_lengths(task, last, lengths)
    held_out = held_out_tests(corpus)
    way = WAYS[task.kind](model, corpus, kinds)
    found: Rows = []
    for test in corpus.tests():
        if test.kind is None:
            problems = corpus.problems(test.split, test.config)
            found.append(length_row(task, last, test.split, way.estimate(problems, None)))
    before: dict[str, Row] = {}
    for length in sorted({*lengths, *(length for kind, length in held_out if kind in kinds)}):
        for kind in kinds:
            kept = held_out.get((kind, length))
            reason = why_no_room(model, task, length) or way.why_not(length, kind, before.get(kind))
            if first <= length <= last and kept is None:
                reason = f"training may have seen {task.texts.problems} of this length"
            if reason is not None:
                found.append(length_row(task, length, kind, None, reason))
                continue
            if kept is None:
                problems = task.test_problems(corpus.options, kind, length, way.rows_at(length, rows))
            else:
                problems = corpus.problems(kept.split, kept.config)
            before[kind] = length_row(task, length, kind, way.estimate(problems, length))
            found.append(before[kind])
        if progress is not None:
            progress(found[-1])
    return found


def length_row(task: Task, length: int, kind: str, estimate: dict | None, not_measured: str | None = None) -> Row:
    measure = task.measure
    about: dict[str, Any] = {"length": length, "kind": kind, "not_measured": not_measured}
    return row("lengths", measure["metric"], estimate, decoding=measure["decoding"], **about)


def check_lengths(task: Task, longest_trained: int, lengths: Iterable[int]) -> None:
    """Answers of the training lengths are tested by whole held-out splits: asked for by class they are an error."""
    shortest = min(lengths, default=longest_trained + 1)
    if task.kind != "label" and shortest <= longest_trained:
        raise ValueError(
            f"a length of {shortest} is within training, which is tested by held-out {task.texts.problems} in any "
            f"case; expected more than {longest_trained} {task.texts.length}."
        )


def held_out_tests(corpus: Corpus) -> dict[tuple[str, int], SplitTest]:
    """(class, length) -> the test of it that the corpus keeps out of training, for training lengths."""
    first, last = corpus.task.trained_lengths(corpus.options)
    return {
        (test.kind, test.length): test
        for test in corpus.tests()
        if test.kind is not None and test.length is not None and first <= test.length <= last
    }


def is_testable(corpus: Corpus, kind: str, length: int) -> bool:
    """Within the training lengths, only those that the corpus kept out of training."""
    first, last = corpus.task.trained_lengths(corpus.options)
    return not first <= length <= last or (kind, length) in held_out_tests(corpus)


def why_no_room(model: Any, task: Task, length: int) -> str | None:
    tokens = task.tokens_at(length, model.config.architecture)
    return no_room(model.config, tokens, task.longest_number(length))


def encode(model: Any, corpus: Corpus, problems: Problems) -> dict[str, Tensor]:
    return tensors(corpus.task.encode(problems, model.config.architecture, corpus.options))


class Way(Protocol):
    """How problems of a kind of task are measured. `length` None: a split of mixed lengths."""

    def __init__(self, model: Any, corpus: Corpus, kinds: Sequence[str]): ...
    def rows_at(self, length: int, rows: int) -> int: ...
    def why_not(self, length: int, kind: str, before: Row | None) -> str | None: ...
    def estimate(self, problems: Problems, length: int | None) -> dict: ...


class Labels:
    """Accuracy with the rates of both classes, and how evenly attention is spread."""

    def __init__(self, model: Any, corpus: Corpus, kinds: Sequence[str]):
        self.model, self.corpus = model, corpus
        self.hardest = next((kind for kind in corpus.task.hardest if kind in kinds), kinds[0])
        self.entropy: dict[int, float] = {}

    def rows_at(self, length: int, rows: int) -> int:
        """Beyond `LONG` as many as keep the cost, which grows with the square; even, so that the classes balance."""
        return rows if length <= LONG else min(rows, max(FEWEST, rows * LONG**2 // length**2 // 2 * 2))

    def why_not(self, length: int, kind: str, before: Row | None) -> str | None:
        if length > LONG and kind != self.hardest:
            return f"beyond {LONG:,} only the hardest kind is measured"
        if length <= ALWAYS or before is None:
            return None
        if before["interval"][0] <= before["majority_class_rate"]:
            return f"at chance at length {before['length']}"
        if length > LONG and before["value"] < SURVIVES:
            return f"below {SURVIVES:.0%} at length {before['length']}"
        return None

    def estimate(self, problems: Problems, length: int | None) -> dict:
        rows = encode(self.model, self.corpus, problems)
        label = rows["labels"].numpy()
        if length is not None and length <= LONG and length not in self.entropy and "attention_mask" not in rows:
            self.entropy[length] = entropy_share(self.model, rows["input_ids"])
        predicted = (label_margin(self.model, rows) > 0).astype(np.int64)
        place = self.corpus.task.decisive_place(problems)
        trained = self.corpus.task.trained_lengths(self.corpus.options)[1]
        decided: dict[str, dict | None] = dict.fromkeys(PLACES)
        if place is not None and length is not None and length > trained:
            decided = by_place(predicted == label, place, trained)
        return {
            **class_rates(predicted, label),
            "entropy_share": self.entropy.get(length) if length is not None else None,
            **decided,
        }


PLACES = ("decided_within_training_range", "decided_beyond")


def by_place(right: NDArray[np.bool_], place: NDArray[np.int64], trained: int) -> dict[str, dict | None]:
    """The share that is right where the decisive pair is among the first `trained` places, and where further on."""
    decided, within = place >= 0, place + 1 < trained
    chosen = dict(zip(PLACES, (decided & within, decided & ~within), strict=True))
    return {name: rate(right[own].sum(), own.sum()) if own.any() else None for name, own in chosen.items()}


class Answers:
    """Free-running exact match, and the smallest logit margin of an answer."""

    def __init__(self, model: Any, corpus: Corpus, kinds: Sequence[str]):
        self.model, self.corpus = model, corpus

    def rows_at(self, length: int, rows: int) -> int:
        return answers_at(length, rows)

    def why_not(self, length: int, kind: str, before: Row | None) -> str | None:
        if before is not None and before["value"] == 0:
            return f"nothing right at {before['length']:,} {self.corpus.task.texts.length}"
        return None

    def estimate(self, problems: Problems, length: int | None) -> dict:
        margins = answer_margin(self.model, encode(self.model, self.corpus, problems))
        return {**rate((margins > 0).sum(), len(margins)), "margin": mean_with_interval(margins)}


def answers_at(length: int, rows: int) -> int:
    """How many problems of a length are tested: long ones cost their square."""
    return rows if length <= WHOLE_ROWS_UP_TO else max(1, rows // 2)


WAYS: dict[str, type[Way]] = {"label": Labels, "sequence": Answers, "continuation": Answers}
