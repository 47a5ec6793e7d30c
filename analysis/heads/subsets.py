"""Ground truth for rankings of heads: every subset of a small model's heads, really evaluated.

From the accuracy without each of the 2^h sets of heads come exact Shapley values, the best set of every size, and the
regret of any ranking: how much accuracy is lost by removing its k lowest heads instead of the best k.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from ...data_builders.examples import Examples
from ...modeling.modeling_headcount import HeadcountPreTrainedModel
from ...records.intervals import rate
from ...records.rows import Rows, row
from ..interventions.intervention import Intervention
from ..interventions.plan import Progress
from ..interventions.sites import Site
from ..interventions.sweep import sweep


MOST_HEADS = 12


def every_subset(heads: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """All sets of heads to remove, small ones first."""
    for size in range(len(heads) + 1):
        yield from combinations(heads, size)


def evaluate_subsets(
    model: HeadcountPreTrainedModel, examples: Examples, progress: Progress | None = None
) -> dict[frozenset, int]:
    """How many examples the model gets right without each set of heads."""
    heads = model.list_heads()
    if len(heads) > MOST_HEADS:
        raise ValueError(
            f"the model has {len(heads)} heads, and so 2^{len(heads)} subsets; expected at most {MOST_HEADS} heads."
        )
    removed = list(every_subset(heads))
    outcomes = sweep(
        model, examples.rows, (Intervention(tuple(map(Site, some))) for some in removed), progress=progress
    )
    return {frozenset(some): int(right.sum()) for some, right in zip(removed, outcomes.right, strict=True)}


def shapley_values(right: dict[frozenset, int], heads: Sequence[str], n: int) -> dict[str, float]:
    """Each head's fair share of the accuracy of the whole model over that of the model without any head."""
    everyone = frozenset(heads)
    values = {}
    for head in heads:
        others = [other for other in heads if other != head]
        total = 0.0
        for size in range(len(others) + 1):
            gains = [  # `right` is keyed by what is removed
                right[everyone - frozenset(present) - {head}] - right[everyone - frozenset(present)]
                for present in combinations(others, size)
            ]
            total += sum(gains) / comb(len(others), size)
        values[head] = total / len(heads) / n
    return values


def subset_rows(
    model: HeadcountPreTrainedModel,
    examples: Examples,
    rankings: dict[str, list[str]],
    progress: Progress | None = None,
) -> Rows:
    """Rows: Shapley value of every head, best set of every size, and every ranking's regret at every size.

    `rankings` lists heads in the order in which a method would remove them. Shapley values, as one more ranking, and
    greedy removal from the same counts are added.
    """
    heads, n, decoding = model.list_heads(), len(examples), examples.measure["decoding"]
    right = evaluate_subsets(model, examples, progress)
    shapley = shapley_values(right, heads, n)
    rows = [
        row("subsets", "shapley", {"value": value, "n": n}, decoding=decoding, head=head)
        for head, value in shapley.items()
    ]
    best = {}
    for size in range(len(heads) + 1):
        removed = max((frozenset(some) for some in combinations(heads, size)), key=lambda some: right[some])
        best[size] = right[removed]
        about: dict[str, Any] = {"removed": sorted(removed), "size": size}
        rows.append(row("subsets", "best_subset", rate(right[removed], n), decoding=decoding, **about))
    rankings = rankings | {
        "shapley": sorted(heads, key=lambda head: shapley[head]),
        "greedy": greedy_order(right, heads),
    }
    for name, order in rankings.items():
        regrets = []
        for size in range(1, len(heads)):
            got = right[frozenset(order[:size])]
            regrets.append((best[size] - got) / n)
            about = {"ranking": name, "size": size, "regret": regrets[-1]}
            rows.append(row("subsets", "ranking_accuracy", rate(got, n), decoding=decoding, **about))
        found = {"value": float(np.mean(regrets)), "n": n}
        rows.append(row("subsets", "mean_regret", found, decoding=decoding, ranking=name))
    return rows


def greedy_order(right: dict[frozenset, int], heads: Sequence[str]) -> list[str]:
    """Removes the head whose loss costs least, again and again."""
    removed: list[str] = []
    while len(removed) < len(heads):
        left = [head for head in heads if head not in removed]
        removed.append(max(left, key=lambda head: right[frozenset([*removed, head])]))
    return removed
