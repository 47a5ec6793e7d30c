"""Does `generate()`, token by token with its cache, write what one pass says it would?

Shapes: N problems.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...configuration.configuration_headcount import HeadcountConfig
from ...data_builders.corpus import Corpus
from ...data_builders.examples import Examples, make_examples
from ...data_builders.tasks import Task
from ...data_builders.vocabulary import EOS, IGNORED, PAD
from ...records.intervals import rate
from ...records.rows import Row, Rows, row, values_of
from ...trainers.evaluation import generate_tokens
from .measure import answers_at, why_no_room
from .passes import answer_margin


GENERATED_UP_TO = 200  # length up to which generate() writes every test problem; beyond, SAMPLE of each kind
SAMPLE = 8


def writes_answers(task: Task, config: HeadcountConfig) -> bool:
    return task.kind != "label"


def check_generation(
    model: Any,
    corpus: Corpus,
    lengths: Iterable[int],
    rows: int = 200,
    kinds: Sequence[str] | None = None,
    progress: Callable[[Row], None] | None = None,
) -> Rows:
    """Rows: exact match by `generate()`, and on how many problems one pass says otherwise (`disagree`; 0 expected).

    Every test problem up to a length of 200, a sample of each kind beyond.
    """
    model.eval()
    task, found = corpus.task, []
    for length in sorted(set(lengths)):
        for kind in (kinds or task.classes) if why_no_room(model, task, length) is None else ():
            count = answers_at(length, rows)
            problems = task.test_problems(corpus.options, kind, length, count)
            sample = problems[: count if length <= GENERATED_UP_TO else min(SAMPLE, count)]
            examples = make_examples(task, corpus.options, sample, model.config.architecture)
            generated = generate_exactly(model, examples)
            disagree = int((generated != (answer_margin(model, examples.rows) > 0)).sum())
            share = rate(generated.sum(), len(generated))
            found.append(generated_row(share, length, kind, disagree))
            if progress is not None:
                progress(found[-1])
    return found


def generated_row(share: dict, length: int, kind: str, disagree: int) -> Row:
    about: dict[str, Any] = {"length": length, "kind": kind, "disagree": disagree}
    return row("generated", "exact_match", share, decoding="free-running", **about)


def generate_exactly(model: Any, examples: Examples) -> NDArray[np.bool_]:
    """(N,): whether `generate()` writes exactly the right answer and then stops."""
    right = []
    labels = examples.rows["labels"].tolist()
    for tokens, label in zip(generate_tokens(model, examples), labels, strict=True):
        answer = [token for token in label if token != IGNORED]
        after = tokens[len(answer) :]
        right.append(tokens[: len(answer)] == answer and all(token in (PAD, EOS) for token in after))
    return np.array(right)


def lengths_worth_writing(task: Task, measured: Rows) -> list[int]:
    """The lengths beyond training at which something was right: a model that fails needs no second witness."""
    return values_of([each for each in measured if each["value"] and each["kind"] in task.classes], "length")
