"""Unseen positions or unseen lengths? The same short sequences, with position ids that start further on.

If a model fails on sequences of a training length as soon as their ids are moved, it is the ids that it cannot handle,
not the length. An encoding that depends on differences alone does not notice the move.
"""

from collections.abc import Iterable

import numpy as np
import torch

from ..data_builders.sortedness_corpus import SortednessCorpus
from .length_curve import class_rates, sorted_margin, test_rows


SHIFTS = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


def shifted_positions(model, corpus: SortednessCorpus, shifts: Iterable[int] = SHIFTS) -> list[dict]:
    """Rows: accuracy on `swap` at the longest training length, ids k, k+1, ... instead of 0, 1, ...

    Models without an encoding have no ids to move, and those trained on random ids have seen them all: no rows.
    """
    model.eval()
    config = model.config
    if config.position_embedding_type == "none" or config.position_scheme != "sequential":
        return []
    length = max(n for n in corpus.options.test_lengths if n <= corpus.options.max_length)
    split = test_rows(corpus, "swap", length, corpus.options.test)
    values = split["values"][:, :length]
    ends = config.position_embedding_type == "learned" and config.position_overflow == "error"
    rows = []
    for shift in shifts:
        if ends and shift + length > config.max_position_embeddings:
            continue  # there is no such id in the table
        position_ids = (torch.arange(length, device=model.device) + shift)[None]
        predicted = (sorted_margin(model, values, position_ids) > 0).astype(np.int64)
        rows.append(
            {"metric": "accuracy", "length": length, "kind": "swap", "shift": shift}
            | class_rates(predicted, split["label"])
        )
    return rows
