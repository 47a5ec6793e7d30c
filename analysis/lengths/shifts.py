"""Unseen positions or unseen lengths? The same short sequences, with position ids that start further on.

If a model fails on sequences of a training length as soon as their ids are moved, it is the ids that it cannot handle,
not the length. An encoding that depends on differences alone does not notice the move.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from ...configuration.configuration_headcount import HeadcountConfig
from ...data_builders.corpus import Corpus
from ...data_builders.tasks import Task
from ...metrics.classes import class_rates
from ...modeling.position_schemes import no_room
from ...records.rows import Rows, row
from .measure import encode, held_out_tests
from .passes import label_margin


SHIFTS = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


def has_ids_to_move(task: Task, config: HeadcountConfig) -> bool:
    """Models without an encoding have no ids to move, and those trained on random ids have seen them all."""
    counts_up = config.position_embedding_type != "none" and config.position_scheme == "sequential"
    return task.kind == "label" and config.architecture == "encoder" and counts_up


def shifted_positions(model: Any, corpus: Corpus, shifts: Iterable[int] = SHIFTS) -> Rows:
    """Rows: accuracy on the hardest class at its longest held-out training length, ids k, k+1, ... instead of 0, 1.

    A corpus without such a test has no rows; a shift beyond the end of a table has none either.
    """
    model.eval()
    kind = corpus.task.hardest[0]
    tests = {length: test for (name, length), test in held_out_tests(corpus).items() if name == kind}
    if not tests:
        return []
    length = max(tests)
    rows = encode(model, corpus, corpus.problems(tests[length].split, tests[length].config))
    found: Rows = []
    for shift in shifts:
        if no_room(model.config, shift + length, 0):
            continue
        position_ids = (torch.arange(length, device=model.device) + shift)[None]
        predicted = (label_margin(model, rows, position_ids) > 0).astype(np.int64)
        rates = class_rates(predicted, rows["labels"].numpy())
        found.append(row("shifts", "accuracy", rates, length=length, kind=kind, shift=shift))
    return found
