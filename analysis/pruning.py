"""Removing heads for real, one after the other, ranked anew after each removal.

"Harmless when it alone is removed" does not add up: of two heads that stand in for each other, either can go, but not
both. So the set is built jointly, on validation data, and tested once on other data.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .ablation import Outcomes, ablate, one_head_at_a_time
from .examples import Examples
from .importance import IMPORTANT
from .statistics import paired_drop, rate


TRIES = 3  # with fine-tuning: how many heads are tried before it is said that none can go


@dataclass
class Pruned:
    """A model without some of its heads, and the rows that tell how it got there."""

    model: object
    removed: list[str]
    rows: list[dict]


def outcomes_of(model, examples: Examples) -> NDArray[np.bool_]:
    """(N,): what the model gets right."""
    return ablate(model, examples.rows, [{}]).right[0]


def least_needed(outcomes: Outcomes) -> list[tuple[str, int]]:
    """Heads of a sweep, the one that costs least first: fewest errors, then lowest loss; with the sweep's index."""
    right, loss = outcomes.right.sum(-1), outcomes.loss.sum(-1)
    order = sorted(range(1, len(right)), key=lambda version: (-right[version], loss[version]))
    return [(next(iter(outcomes.gates[version])), version) for version in order]


def prune(
    model,
    validation: Examples,
    max_drop: float | None = 0.01,
    keep: int | None = None,
    finetune: Callable | None = None,
    progress: Callable[[dict], None] | None = None,
) -> Pruned:
    """Removes heads greedily as long as the joint drop in accuracy on the validation data stays within `max_drop`.

    With `keep` instead, until so many heads are left, whatever it costs. `finetune(model)` trains the smaller model a
    little after every removal; then a head whose removal cannot be healed is put back and the next best is tried.
    The given model is left as it is.
    """
    if (max_drop is None) == (keep is None):
        raise ValueError("expected exactly one of max_drop and keep.")
    if keep is not None and not 0 <= keep < len(model.list_heads()):
        raise ValueError(f"keep={keep} is not allowed; expected 0 to {len(model.list_heads()) - 1}, fewer than now.")
    if max_drop is not None and not 0 <= max_drop <= 1:
        raise ValueError(f"max_drop={max_drop} is not allowed; expected a share from 0 to 1.")
    model = copy.deepcopy(model)
    intact = outcomes_of(model, validation)
    removed: list[str] = []
    rows = [_row(removed, None, intact, intact, finetune)]
    while len(model.list_heads()) > (keep or 0):
        outcomes = ablate(model, validation.rows, one_head_at_a_time(model))
        if not removed:
            rows += _one_at_a_time(outcomes)
        step = None
        for head, version in least_needed(outcomes)[: TRIES if finetune else 1]:
            smaller, right = model, outcomes.right[version]
            if finetune:
                smaller = copy.deepcopy(model)
                smaller.prune_heads([head])
                finetune(smaller)
                right = outcomes_of(smaller, validation)
            row = _row([*removed, head], head, intact, right, finetune)
            if keep is not None or row["drop"]["value"] <= max_drop:
                step = row
                break
        if step is None:
            rows.append({**row, "kept": False})
            break
        if not finetune:
            smaller.prune_heads([head])
        model, removed = smaller, [*removed, head]
        rows.append({**step, "kept": True})
        if progress is not None:
            progress(step)
    return Pruned(model, removed, rows)


def removal_curve(model, examples: Examples, progress: Callable[[dict], None] | None = None) -> list[dict]:
    """Accuracy against the number of heads removed, greedily and without fine-tuning, down to none."""
    return prune(model, examples, max_drop=None, keep=0, progress=progress).rows


def _row(removed: list[str], head: str | None, intact, right, finetune) -> dict:
    return {
        "analysis": "pruning",
        "metric": "exact_match",
        "decoding": "free-running",
        "split": "validation",
        "fine_tuned": finetune is not None,
        "removed": len(removed),
        "head": head,
        "heads": list(removed),
        **rate(int(right.sum()), len(right)),
        "drop": paired_drop(intact, right),
    }


def _one_at_a_time(outcomes: Outcomes) -> list[dict]:
    """How many heads each cost less than a point when they alone are removed: the count that tempts to add up."""
    drops = [paired_drop(outcomes.right[0], right)["value"] for right in outcomes.right[1:]]
    harmless = [next(iter(gate)) for gate, drop in zip(outcomes.gates[1:], drops, strict=True) if drop < IMPORTANT]
    return [{"analysis": "pruning", "metric": "harmless_one_at_a_time", "value": len(harmless), "n": len(drops),
             "heads": harmless}]  # fmt: skip


def joint_drop(model, examples: Examples, heads: list[str]) -> dict:
    """The drop in accuracy when all of these heads are removed together, with its interval."""
    right = ablate(model, examples.rows, [{}, dict.fromkeys(heads, 0.0)]).right
    return paired_drop(right[0], right[1])
