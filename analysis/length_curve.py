"""Accuracy by length: a trained sortedness model on sequences far longer than those it was trained on.

Shapes: N sequences, L values; `label` 1 = sorted.

Lengths up to `ALWAYS` are measured whatever comes out. Longer ones cost their square, and are measured for a kind of
negative only if the length before was above chance; if not, the row says so instead of showing a figure.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..data_builders.sortedness import SORTED
from ..data_builders.sortedness_corpus import SortednessCorpus
from ..data_builders.tokenization import encode_sortedness
from .attention_spread import entropy_share
from .length_grid import KINDS
from .statistics import rate


ALWAYS = 256
LONG = 1024  # beyond it one kind and fewer rows, and only for models that still get nearly everything right
FEWEST = 20
SURVIVES = 0.9
TOKENS_PER_BATCH = 16_384
CELLS_PER_BATCH = 2**26  # of an attention map; what is shared by the rows, such as a bias, is made once per batch


def measure_lengths(
    model,
    corpus: SortednessCorpus,
    lengths: Iterable[int],
    rows: int = 200,
    kinds: Iterable[str] = KINDS,
    progress: Callable[[dict], None] | None = None,
) -> list[dict]:
    """Rows: accuracy by length and kind of negative, each against as many sorted sequences."""
    model.eval()
    kinds = list(kinds)
    hardest = "swap" if "swap" in kinds else kinds[0]
    found, before = [], {}
    for length in sorted(set(lengths)):
        if not is_testable(corpus, length):
            continue
        entropy = None
        for kind in kinds:
            place = {"metric": "accuracy", "length": length, "kind": kind}
            reason = no_room(model.config, length) or why_not(length, before.get(kind), kind == hardest)
            if reason:
                found.append({**place, "value": None, "n": 0, "interval": None, "not_measured": reason})
                continue
            split = test_rows(corpus, kind, length, rows_at(length, rows))
            if entropy is None and length <= LONG:
                entropy = entropy_share(model, split["values"])
            predicted = (sorted_margin(model, split["values"]) > 0).astype(np.int64)
            before[kind] = {**place, **class_rates(predicted, split["label"]), "entropy_share": entropy}
            if kind != "shuffle" and length > corpus.options.max_length:
                before[kind] |= by_place(predicted, split, corpus.options.max_length)
            found.append(before[kind])
        if progress is not None:
            progress(found[-1])
    return found


def is_testable(corpus: SortednessCorpus, length: int) -> bool:
    """Within the training lengths, only those that the corpus kept out of training."""
    options = corpus.options
    return not options.min_length <= length <= options.max_length or length in options.test_lengths


def rows_at(length: int, rows: int) -> int:
    """Beyond `LONG` as many as keep the cost, which grows with the square; even, so that the classes balance."""
    return rows if length <= LONG else min(rows, max(FEWEST, rows * LONG**2 // length**2 // 2 * 2))


def test_rows(corpus: SortednessCorpus, kind: str, length: int, count: int) -> dict[str, NDArray]:
    """Test rows of one length and kind; the same for every model and seed, so that comparisons are paired."""
    options = corpus.options
    if not options.min_length <= length <= options.max_length:
        corpus = SortednessCorpus(replace(options, test_lengths=(length,), test=count))
    parts = list(corpus.batches(kind, f"test_{length}"))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def no_room(config, length: int) -> str | None:
    """Why a model cannot read so long a sequence at all; None if it can."""
    ends = config.position_embedding_type == "learned" and config.position_overflow == "error"
    if (ends or config.position_scheme == "randomized") and length > config.max_position_embeddings:
        return f"the model has {config.max_position_embeddings:,} positions"
    return None


def why_not(length: int, before: dict | None, hardest: bool) -> str | None:
    """Why a length is not worth measuring, given the row of the last one that was; None if it is."""
    if length > LONG and not hardest:
        return f"beyond {LONG:,} only the hardest kind is measured"
    if length <= ALWAYS or before is None:
        return None
    if before["interval"][0] <= before["majority_class_rate"]:
        return f"at chance at length {before['length']}"
    if length > LONG and before["value"] < SURVIVES:
        return f"below {SURVIVES:.0%} at length {before['length']}"
    return None


@torch.inference_mode()
def sorted_margin(model, values: NDArray, position_ids: Tensor | None = None) -> NDArray[np.float32]:
    """(N,) logit of "sorted" minus logit of "unsorted", for sequences (N, L)."""
    length = values.shape[1]
    size = max(1, min(TOKENS_PER_BATCH // length, CELLS_PER_BATCH // length**2))
    input_ids = torch.from_numpy(encode_sortedness(values)).to(model.device)
    logits = torch.cat([model(part, position_ids=position_ids).logits for part in input_ids.split(size)])
    return (logits[:, SORTED] - logits[:, 1 - SORTED]).float().cpu().numpy()


def class_rates(predicted: NDArray, label: NDArray) -> dict:
    """Accuracy with the rates that show how it came about, and what always guessing one class would give."""
    right, positive = predicted == label, label == SORTED
    return {
        **rate(right.sum(), len(right)),
        "true_positive_rate": float(right[positive].mean()),
        "true_negative_rate": float(right[~positive].mean()),
        "majority_class_rate": float(max(positive.mean(), 1 - positive.mean())),
        "one_class_only": bool((predicted == predicted[0]).all()),
    }


def by_place(predicted: NDArray, split: dict[str, NDArray], trained: int) -> dict:
    """True-negative rate for violations among the first `trained` places, and for those further on."""
    unsorted = split["label"] != SORTED
    within = split["position"] + 1 < trained
    return {
        name: rate((predicted[chosen] != SORTED).sum(), chosen.sum()) if chosen.any() else None
        for name, chosen in (
            ("violations_within_training_range", unsorted & within),
            ("violations_beyond", unsorted & ~within),
        )
    }
