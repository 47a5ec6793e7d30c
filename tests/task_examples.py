"""Examples of headcount's tasks that tests share."""

from itertools import pairwise

import numpy as np
import torch

from headcount.analysis.interventions.sweep import sweep
from headcount.data_builders.addition.columns import AdditionProblems
from headcount.data_builders.addition.options import AdditionOptions
from headcount.data_builders.examples import Examples, PairedExamples, make_examples, make_pairs
from headcount.data_builders.registry import TASKS
from headcount.data_builders.sortedness.sequences import KIND_NAMES, SortednessProblems
from headcount.data_builders.tasks import Pairs


def addition(a, b, style="encoder-decoder", order="plain") -> Examples:
    problems = AdditionProblems.from_integers(a, b, columns=3)
    return make_examples(TASKS["addition"], AdditionOptions(digits=3, answer_order=order), problems, style)


def random_addition(count=40, seed=0, **options) -> Examples:
    rng = np.random.default_rng(seed)
    return addition(rng.integers(0, 1000, count).tolist(), rng.integers(0, 1000, count).tolist(), **options)


def sortedness(rows: list[list[int]], kind: str = "shuffle") -> Examples:
    """Sequences, shorter ones padded; those in order are labelled so."""
    length = np.array([len(row) for row in rows])
    values = np.zeros((len(rows), length.max()), np.int64)
    for own, row in zip(values, rows, strict=True):
        own[: len(row)] = row
    violations = np.array([sum(x > y for x, y in pairwise(row)) for row in rows])
    kinds = np.where(violations == 0, KIND_NAMES.index("sorted"), KIND_NAMES.index(kind))
    problems = SortednessProblems(values, length, kinds, np.full(len(rows), -1), violations)
    task = TASKS["sortedness"]
    return make_examples(task, task.options(), problems, "encoder")


def carry_pairs(style="encoder-decoder", order="plain") -> PairedExamples:
    """221 + 436 = 0657 and 271 + 486 = 0757, and a pair that changes the hundreds: 2+4 and 7+9."""
    base = AdditionProblems.from_integers([221, 231], [436, 415], columns=3)
    source = AdditionProblems.from_integers([271, 731], [486, 915], columns=3)
    options = AdditionOptions(digits=3, answer_order=order)
    answers = TASKS["addition"].solve(source)  # nothing else differs
    return make_pairs(TASKS["addition"], options, "carry", Pairs(base, source, np.array([1, 2]), answers), style)


def with_rows(examples: Examples, **rows) -> Examples:
    return Examples(examples.task, examples.options, examples.problems, {**examples.rows, **rows}, examples.facts)


def taught(model, examples: Examples) -> Examples:
    """The examples with the model's own argmax as labels, so that the intact model is right on most of them."""
    for _ in range(examples.rows["labels"].shape[1]):
        tokens = sweep(model, examples.rows, []).tokens[0]
        examples = with_rows(examples, labels=torch.from_numpy(tokens))
    return examples
