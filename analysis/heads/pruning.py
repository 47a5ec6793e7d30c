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
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ...data_builders.examples import Examples
from ...modeling.modeling_headcount import HeadcountPreTrainedModel
from ...records.intervals import paired_drop, rate
from ...records.rows import Row, Rows, row, select
from ..interventions.intervention import Intervention, one_at_a_time
from ..interventions.plan import Outcomes
from ..interventions.sites import Site
from ..interventions.sweep import sweep
from .ablation import IMPORTANT


TRIES = 3  # with fine-tuning: how many heads are tried before it is said that none can go


@dataclass
class Pruned:
    """A model without some of its heads, and the rows that tell how it got there."""

    model: HeadcountPreTrainedModel
    removed: list[str]
    rows: Rows


def outcomes_of(model: HeadcountPreTrainedModel, examples: Examples) -> NDArray[np.bool_]:
    """(N,): what the model gets right."""
    return sweep(model, examples.rows, []).right[0]


def without_each_head(model: HeadcountPreTrainedModel, examples: Examples) -> Outcomes:
    return sweep(model, examples.rows, one_at_a_time(model.list_heads()))


def least_needed(outcomes: Outcomes) -> list[tuple[str, int]]:
    """Heads of a sweep, the one that costs least first: fewest errors, then lowest loss; with the sweep's index."""
    right, loss = outcomes.right.sum(-1), outcomes.by_labels()[2].sum(-1)
    order = sorted(range(1, len(right)), key=lambda version: (-right[version], loss[version]))
    return [(outcomes.interventions[version].name, version) for version in order]


def check_budget(model: HeadcountPreTrainedModel, max_drop: float | None, keep: int | None) -> None:
    """Raises unless exactly one of the two is given and possible."""
    if (max_drop is None) == (keep is None):
        raise ValueError("expected exactly one of max_drop and keep.")
    if keep is not None and not 0 <= keep < len(model.list_heads()):
        raise ValueError(f"keep={keep} is not allowed; expected 0 to {len(model.list_heads()) - 1}, fewer than now.")
    if max_drop is not None and not 0 <= max_drop <= 1:
        raise ValueError(f"max_drop={max_drop} is not allowed; expected a share from 0 to 1.")


def prune_greedily(
    model: HeadcountPreTrainedModel,
    validation: Examples,
    max_drop: float | None = None,
    keep: int | None = None,
    finetune: Callable[[HeadcountPreTrainedModel], None] | None = None,
    progress: Callable[[Row], None] | None = None,
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
    rows = [_step_row(validation, removed, None, intact, intact, finetune, kept=True)]
    while len(model.list_heads()) > (keep or 0):
        outcomes = without_each_head(model, validation)
        if not removed:
            rows.append(_harmless_row(validation, outcomes))
        kept = False
        for head, version in least_needed(outcomes)[: TRIES if finetune else 1]:
            smaller, right = model, outcomes.right[version]
            if finetune:
                smaller = copy.deepcopy(model)
                smaller.prune_heads([head])
                finetune(smaller)
                right = outcomes_of(smaller, validation)
            kept = keep is not None or paired_drop(intact, right)["value"] <= max_drop
            step = _step_row(validation, [*removed, head], head, intact, right, finetune, kept)
            if kept:
                break
        rows.append(step)
        if not kept:
            break
        if not finetune:
            smaller.prune_heads([head])
        model, removed = smaller, [*removed, head]
        if progress is not None:
            progress(step)
    return Pruned(model, removed, rows)


def choose_prefix(model: HeadcountPreTrainedModel, curve: Pruned, max_drop: float) -> Pruned:
    """The longest part of a curve without fine-tuning whose joint drop is within `max_drop`, and its model."""
    steps = [each for each in select(curve.rows, kept=True) if each["drop"]["value"] <= max_drop]
    removed = steps[-1]["heads"]
    return Pruned(without(model, removed), removed, curve.rows)


def compare(
    model: HeadcountPreTrainedModel,
    smaller: dict[str, HeadcountPreTrainedModel],
    test: Examples,
    removed: list[str],
) -> Rows:
    """Rows on test data for the intact model, for what it would be without all heads that are harmless one at a time,
    for each smaller model by name, and for the intact model without these heads and without as many others: accuracy,
    drop, parameters, bytes on disk, relative speed.
    """
    outcomes = without_each_head(model, test)
    harmless, chance = harmless_heads(outcomes), random_sets(model, test, len(removed))
    models = {"intact": (model, 0), "all harmless one at a time": (without(model, harmless), len(harmless))}
    models |= {name: (small, len(removed)) for name, small in smaller.items()}
    if removed:
        models["the same heads, no training"] = without(model, removed), len(removed)
        models[RANDOM] = without(model, chance.median), len(removed)
    speeds = relative_speeds([small for small, _ in models.values()], test)
    rows = []
    for (name, (small, gone)), speed in zip(models.items(), speeds, strict=True):
        right = outcomes_of(small, test)
        size = {"parameters": small.num_parameters(), "bytes": weight_bytes(small), "relative_speed": speed}
        about: dict[str, Any] = {
            "split": "test",
            "model": name,
            "removed": gone,
            "drop": paired_drop(outcomes.right[0], right),
        }
        if name == RANDOM:
            about |= chance.about(len(test))
        found = rate(int(right.sum()), len(right))
        rows.append(row("pruning", estimate=found, **test.measure, **about, **size))
    return rows


RANDOM = "random heads, no training"
RANDOM_SETS = 20


@dataclass(frozen=True)
class RandomSets:
    """Sets of heads that somebody without any knowledge would remove: the middle one, and what all of them reach."""

    median: list[str]
    shares: NDArray[np.float64]

    def about(self, n: int) -> dict[str, Any]:
        best, mean = float(self.shares.max()), float(self.shares.mean())
        return {
            "random_sets": len(self.shares),
            "random_mean": {"value": mean, "n": n},
            "random_best": {"value": best, "n": n},
        }


def random_sets(model: HeadcountPreTrainedModel, test: Examples, size: int) -> RandomSets:
    """What is left without random sets of so many heads."""
    drawn = [random_heads(model, size, seed) for seed in range(RANDOM_SETS)]
    right = sweep(model, test.rows, [Intervention(), *(Intervention(tuple(map(Site, own))) for own in drawn)]).right
    shares = right[1:].mean(-1)
    return RandomSets(drawn[int(np.argsort(shares)[len(shares) // 2])], shares)


def random_heads(model: HeadcountPreTrainedModel, size: int, seed: int = 0) -> list[str]:
    heads = model.list_heads()
    return [heads[number] for number in sorted(np.random.default_rng(seed).permutation(len(heads))[:size])]


def without(model: HeadcountPreTrainedModel, heads: list[str]) -> HeadcountPreTrainedModel:
    """A copy that has lost these heads, and is as it was otherwise."""
    smaller = copy.deepcopy(model)
    smaller.prune_heads(heads)
    return smaller


def harmless_heads(outcomes: Outcomes) -> list[str]:
    """The heads that each cost less than a point when they alone are removed."""
    right = outcomes.right
    return [
        each.name
        for each, ablated in zip(outcomes.interventions[1:], right[1:], strict=True)
        if paired_drop(right[0], ablated)["value"] < IMPORTANT
    ]


def weight_bytes(model: HeadcountPreTrainedModel) -> int:
    """The size of model.safetensors."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        return (Path(folder) / "model.safetensors").stat().st_size


@torch.inference_mode()
def relative_speeds(
    models: list[HeadcountPreTrainedModel], examples: Examples, rounds: int = 7, size: int = 256
) -> list[float]:
    """Forward passes per second of each model over those of the first: medians, measured in turns in one run."""
    batch = {name: values[:size].to(models[0].device) for name, values in examples.rows.items()}
    seconds: list[list[float]] = [[] for _ in models]
    for _ in range(rounds + 1):
        for model, times in zip(models, seconds, strict=True):
            model.eval()
            start = time.perf_counter()
            model(**batch)
            times.append(time.perf_counter() - start)
    medians = [statistics.median(times[1:]) for times in seconds]  # the first round warms up
    return [medians[0] / median for median in medians]


def _step_row(
    examples: Examples,
    removed: list[str],
    head: str | None,
    intact: NDArray[np.bool_],
    right: NDArray[np.bool_],
    finetune: Callable | None,
    kept: bool,
) -> Row:
    """After one removal; `kept`: whether the head stayed removed. The intact model comes first, without a head."""
    return row(
        "pruning",
        estimate=rate(int(right.sum()), len(right)),
        **examples.measure,
        split="validation",
        fine_tuned=finetune is not None,
        removed=len(removed),
        head=head,
        heads=list(removed),
        drop=paired_drop(intact, right),
        kept=kept,
    )


def _harmless_row(examples: Examples, outcomes: Outcomes) -> Row:
    """How many heads each cost less than a point when they alone are removed: the count that tempts to add up."""
    heads = harmless_heads(outcomes)
    found = {"value": len(heads), "n": len(outcomes.interventions) - 1}
    decoding = examples.measure["decoding"]
    return row("pruning", "harmless_one_at_a_time", found, decoding=decoding, split="validation", heads=heads)
