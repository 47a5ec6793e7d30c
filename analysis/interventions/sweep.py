"""One engine for everything that switches off, weakens or replaces parts of a model.

`sweep` takes a model, batches and any number of interventions and gives the outcome of each on every example. Ablation
alone and together, interchange, pruning, Shapley values are small generators of interventions for it. Runners do the
work; all give the same, and the quickest one that suits is chosen.

Shapes: V interventions, B rows of a batch, N all rows, T labelled places.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from ...data_builders.vocabulary import IGNORED
from .batches import Batches, as_batches, batch_rows
from .finished_batches import FinishedBatches
from .intervention import FROZEN, INTACT, Intervention
from .measures import Measure, Metric, Values, decoding_of
from .plan import FindsTokens, Outcomes, Plan, Progress, check_plan, role_mask
from .replacements import check_same_shapes, for_rows, mean_outputs, resampled
from .shared_states import obstacle, run_shared_states
from .sites import as_sites
from .subject import Subject, numbers, self_check
from .versions import WAYS, DiffersError, Job


logger = logging.getLogger(__name__)


def sweep(
    model: PreTrainedModel,
    batches: Batches,
    interventions: Iterable[Intervention],
    metric: Metric | None = None,
    *,
    sources: Batches | None = None,
    contrasts: Tensor | None = None,
    roles: Mapping[str, FindsTokens] | None = None,
    runner: str | None = None,
    run: Callable | None = None,
    seed: int = 0,
    resume: str | Path | None = None,
    progress: Progress | None = None,
) -> Outcomes:
    """The outcome of every intervention on every example; the intact model comes first.

    >>> from headcount import HeadcountConfig, HeadcountForConditionalGeneration
    >>> model = HeadcountForConditionalGeneration(HeadcountConfig(num_hidden_layers=1, num_attention_heads=2))
    >>> batch = {"input_ids": torch.tensor([[5, 6, 2]]), "labels": torch.tensor([[6, 5, 2]])}
    >>> outcomes = sweep(model, batch, [Intervention((head,)) for head in model.list_heads()])
    >>> intact, without_head = outcomes.right[0], outcomes.right[1:]
    >>> without_head.shape
    (6, 1)

    Args:
        model: one of headcount's own, or any transformers model whose heads `list_heads` finds.
        batches: one batch, a tensor of input ids, a list of either, or a DataLoader.
        interventions: sets of sites with gates and replacements.
        metric: a function of outputs and batch that gives one value per example, the higher the better, or an
            `evaluate` metric; without one, labels decide.
        sources: for `replacement="source"`: batches of the same shapes, the source of each example in its row.
        contrasts: a token beside each label, of the same shape; margins say by how much the label's logit is larger.
        roles: for sites at some tokens only: `{"input": ..., "answer": ...}`, such as `Examples.roles` gives.
        runner: a name from RUNNERS; without it, the first that suits.
        run: called as `run(model, batch)` instead of `model(**batch)`, for example a generation.
        seed: draws the partners for `replacement="resample"`.
        resume: a folder in which every finished batch is kept; called again, the sweep goes on from there.
        progress: called with the work done and all of it.

    Returns:
        Outcomes per intervention and example, and which runner was used.
    """
    found = [_resolved(model, each) for each in interventions]
    if not found or found[0].sites:
        found = [INTACT, *found]
    if runner is not None and runner not in RUNNERS:
        raise ValueError(f"runner={runner!r} is not known; expected one of {', '.join(RUNNERS)}.")
    plan = Plan(
        model=model,
        batches=as_batches(batches),
        interventions=found,
        measure=Measure(model, metric),
        sources=None if sources is None else as_batches(sources),
        contrasts=contrasts,
        roles=roles,
        run=run,
        seed=seed,
        resume=resume,
        progress=progress,
    )
    check_plan(plan)
    chosen = RUNNERS[runner] if runner is not None else run_best
    was_training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            return chosen(plan)
    finally:
        model.train(was_training)


def run_best(plan: Plan) -> Outcomes:
    """By the first runner that suits the model and what is asked."""
    return run_shared_states(plan) if obstacle(plan) is None else run_by_batches(plan)


def run_by_batches(plan: Plan, ways: tuple[str, ...] = tuple(WAYS)) -> Outcomes:
    """Batch after batch, by the first of these ways that gives what the loop gives."""
    subject = Subject.of(plan.model, plan.run)
    finished = FinishedBatches(plan)
    found: list[list[Values]] = []
    used: list[str] = []
    notes: list[str] = []
    versions = [each for each in plan.interventions if each.sites]
    modules = {kind: _modules(plan, kind) for kind in plan.replacements}
    masks = {site: role_mask(plan, site) for each in versions for site in each.touched if site.role is not None}
    means = {}
    if finished.missing(len(plan.batches)):
        self_check(subject, plan.batches[0], versions)
        if "mean" in modules:
            means = mean_outputs(subject, plan.batches, modules["mean"])
    for number, (start, batch) in enumerate(zip(plan.starts(), plan.batches, strict=True)):
        done = finished.load(number)
        if done is None:
            rows = batch_rows(batch)
            wanted = [modules.get(kind, set()) for kind in ("resample", FROZEN, "source")]
            intact, record = subject.read(batch, set().union(*wanted))
            replacements = {"mean": for_rows(means, rows), FROZEN: record}
            if "resample" in modules:
                others = {name: record[name] for name in modules["resample"]}
                replacements["resample"] = resampled(subject, batch, others, plan.seed + number)
            if plan.sources is not None:
                replacements["source"] = subject.read(plan.sources[number], modules["source"])[1]
                check_same_shapes(record, replacements["source"])
            job = Job(
                subject=subject,
                inputs=subject.prepare(batch),
                versions=versions,
                replacements=replacements,
                masks={site: mask[start : start + rows] for site, mask in masks.items()},
                number=number,
                output_size=sum(value.numel() for value in numbers(intact).values()),
            )
            values, ways, reasons = _first_that_suits(plan, job, batch, ways, plan.contrasts_of(start, batch))
            intact_values = plan.measure.values(intact, batch, rows, plan.contrasts_of(start, batch))
            queue = iter(values)
            done = [next(queue) if each.sites else intact_values for each in plan.interventions], ways[0]
            finished.save(number, *done)
            for reason in reasons:
                logger.warning("%s", reason)
            notes += reasons
        found.append(done[0])
        used = list(dict.fromkeys([*used, done[1]]))
        plan.report(number + 1, len(plan.batches))
    return _outcomes(plan, found, ", ".join(used), notes)


def _first_that_suits(
    plan: Plan, job: Job, batch: dict, ways: tuple[str, ...], contrasts: Tensor | None
) -> tuple[list[Values], tuple[str, ...], list[str]]:
    """Values of every version, the ways that are left, the one that was used first, and why others were not."""
    reasons: list[str] = []
    for number, way in enumerate(ways):
        try:
            # By identity: two interventions may be alike.
            values = {
                id(each): plan.measure.values(outputs, batch, job.rows, contrasts) for each, outputs in WAYS[way](job)
            }
            return [values[id(each)] for each in job.versions], ways[number:], reasons
        except DiffersError as error:
            reasons.append(f"{way} does not suit {type(plan.model).__name__}: {error}")
    raise ValueError(f"runner={ways[-1]!r} does not suit: {reasons[-1]}; expected another runner, or none.")


def _modules(plan: Plan, kind: str) -> set[str]:
    return {
        site.module for each in plan.interventions for site in each.touched if each.replacement_at(site.module) == kind
    }


def _resolved(model: PreTrainedModel, each: Intervention) -> Intervention:
    if not isinstance(each, Intervention):
        raise TypeError(f"an intervention is a {type(each).__name__}; expected Intervention([site, ...]).")
    as_sites(model, each.touched)  # raises for a site that the model does not have
    return each


def _outcomes(plan: Plan, found: list[list[Values]], runner: str, notes: list[str]) -> Outcomes:
    def joined(name: str) -> Tensor:
        """(V, N) or (V, N, T): batches of fewer places are filled up with places without a label."""
        parts = [torch.stack([version[name] for version in batch]) for batch in found]
        if parts[0].ndim == 2:
            return torch.cat(parts, dim=1)
        width = max(part.shape[-1] for part in parts)
        return torch.cat([nn.functional.pad(p, (0, width - p.shape[-1]), value=IGNORED) for p in parts], dim=1)

    about: dict[str, Any] = {
        "interventions": plan.interventions,
        "runner": runner,
        "metric": plan.measure.name,
        "notes": notes,
    }
    if not plan.measure.by_labels:
        return Outcomes(**about, values=joined("values").numpy())
    labels = joined("labels")[0]
    return Outcomes(
        **about,
        decoding=decoding_of(plan.model, labels),
        tokens=joined("tokens").numpy(),
        labels=labels.numpy(),
        loss=joined("loss").numpy(),
        margins=None if plan.contrasts is None else joined("margins").numpy(),
    )


RUNNERS: dict[str, Callable[[Plan], Outcomes]] = {
    "shared_states": run_shared_states,
    **{way: partial(run_by_batches, ways=(way,)) for way in WAYS},
}
