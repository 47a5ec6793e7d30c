"""Removing heads for real, one after the other, ranked anew after each removal.

"Harmless when it alone is removed" does not add up: of two heads that stand in for each other, either can go, but not
both. So the set is built jointly, on validation data, and tested once on other data.
"""

import copy
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
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


def check_budget(model, max_drop: float | None, keep: int | None) -> None:
    """Raises unless exactly one of the two is given and possible."""
    if (max_drop is None) == (keep is None):
        raise ValueError("expected exactly one of max_drop and keep.")
    if keep is not None and not 0 <= keep < len(model.list_heads()):
        raise ValueError(f"keep={keep} is not allowed; expected 0 to {len(model.list_heads()) - 1}, fewer than now.")
    if max_drop is not None and not 0 <= max_drop <= 1:
        raise ValueError(f"max_drop={max_drop} is not allowed; expected a share from 0 to 1.")


def prune(
    model,
    validation: Examples,
    max_drop: float | None = None,
    keep: int | None = None,
    finetune: Callable | None = None,
    progress: Callable[[dict], None] | None = None,
) -> Pruned:
    """Removes heads greedily as long as the joint drop in accuracy on the validation data stays within `max_drop`.

    With `keep` instead, until so many heads are left, whatever it costs. `finetune(model)` trains the smaller model a
    little after every removal; then a head whose removal cannot be healed is put back and the next best is tried.
    The given model is left as it is.
    """
    check_budget(model, max_drop, keep)
    model = copy.deepcopy(model)
    intact = outcomes_of(model, validation)
    removed: list[str] = []
    rows = [_row(validation, removed, None, intact, intact, finetune)]
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
            row = _row(validation, [*removed, head], head, intact, right, finetune)
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


def choose_prefix(model, curve: Pruned, max_drop: float) -> Pruned:
    """The longest part of a curve without fine-tuning whose joint drop is within `max_drop`, and its model."""
    steps = [row for row in curve.rows if row.get("kept") and row["drop"]["value"] <= max_drop]
    removed = steps[-1]["heads"] if steps else []
    smaller = copy.deepcopy(model)
    smaller.prune_heads(removed)
    return Pruned(smaller, removed, curve.rows)


def compare(model, smaller: dict[str, object], test: Examples, removed: int) -> list[dict]:
    """Rows on test data for the intact model, for what it would be without all heads that are harmless one at a time,
    and for each smaller model by name: accuracy, drop, parameters, bytes on disk, relative speed.
    """
    right = ablate(model, test.rows, one_head_at_a_time(model)).right
    harmless = [
        head
        for head, ablated in zip(model.list_heads(), right[1:], strict=True)
        if paired_drop(right[0], ablated)["value"] < IMPORTANT
    ]
    together = copy.deepcopy(model)
    together.prune_heads(harmless)
    models = {"intact": (model, 0), "all harmless one at a time": (together, len(harmless))}
    models |= {name: (small, removed) for name, small in smaller.items()}
    speeds = relative_speeds([small for small, _ in models.values()], test)
    rows = []
    for (name, (small, gone)), speed in zip(models.items(), speeds, strict=True):
        outcome = outcomes_of(small, test)
        rows.append({
            "analysis": "pruning", **test.measure, "split": "test", "model": name,
            "removed": gone, **rate(int(outcome.sum()), len(outcome)), "drop": paired_drop(right[0], outcome),
            "parameters": small.num_parameters(), "bytes": weight_bytes(small), "relative_speed": speed,
        })  # fmt: skip
    return rows


def weight_bytes(model) -> int:
    """The size of model.safetensors."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        return (Path(folder) / "model.safetensors").stat().st_size


@torch.inference_mode()
def relative_speeds(models: list, examples: Examples, rounds: int = 7, size: int = 256) -> list[float]:
    """Forward passes per second of each model over those of the first: medians, measured in turns in one run."""
    batch = {name: values[:size] for name, values in examples.rows.items()}
    seconds: list[list[float]] = [[] for _ in models]
    for _ in range(rounds + 1):
        for model, times in zip(models, seconds, strict=True):
            model.eval()
            start = time.perf_counter()
            model(**batch)
            times.append(time.perf_counter() - start)
    medians = [statistics.median(times[1:]) for times in seconds]  # the first round warms up
    return [medians[0] / median for median in medians]


def _row(examples: Examples, removed: list[str], head: str | None, intact, right, finetune) -> dict:
    return {
        "analysis": "pruning",
        **examples.measure,
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
