"""An estimate of `interchange` for all sites at once, by one backward pass, beside what the swaps really do.

Attribution patching (Nanda 2023, Syed, Rager and Conmy 2023): to first order, putting a site's output on the source in
the place of its output on the base changes the logit difference by (source - base) . gradient. With a gate at every
site, open at 1, that is minus the gradient of the gate:  output = gate * (own) + (1 - gate) * (source's).

Estimates are quick and can be far off where a model saturates, so the exact values of the engine stand beside them,
and verdicts belong to these.

Shapes: B rows, N pairs, L tokens, H heads.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from ...modeling.stock.changes import Change
from ...records.intervals import mean_with_interval, rank_correlation
from ...records.rows import Rows, row
from ..interventions.batches import Batches, as_batches, batch_rows, with_answers
from ..interventions.intervention import Intervention
from ..interventions.measures import Measure, answer_margin
from ..interventions.plan import Plan, Progress, RoleFinders, check_plan, role_mask
from ..interventions.replacements import mean_outputs, resampled
from ..interventions.sites import Site, match_sites
from ..interventions.sites import sites as all_sites
from ..interventions.subject import Subject, only_call
from ..interventions.sweep import sweep


ONCE = "a model whose layers run once"


def attribution_patching(
    model: PreTrainedModel,
    base: Batches,
    source: Batches,
    answers: Tensor | Sequence[Any],
    sites: Iterable[str] | None = None,
    *,
    at: int = -1,
    roles: RoleFinders | None = None,
    progress: Progress | None = None,
) -> Rows:
    """How much each site would change the logit difference of two answers: estimated by gradients, and exactly.

    >>> import headcount, torch
    >>> from transformers import GPT2Config, GPT2LMHeadModel
    >>> config = GPT2Config(n_layer=1, n_head=2, n_embd=8, vocab_size=9, bos_token_id=0, eos_token_id=0)
    >>> model = GPT2LMHeadModel(config)
    >>> base, source = torch.tensor([[5, 6, 7]]), torch.tensor([[5, 8, 7]])
    >>> rows = headcount.attribution_patching(model, base, source, answers=([1], [2]))
    >>> [(row["metric"], row["site"]) for row in rows[:2]]
    [('estimated_change', 'decoder.0.self.0'), ('exact_change', 'decoder.0.self.0')]

    Args:
        model: one of headcount's own, or any transformers model whose heads `list_heads` finds.
        base: one batch, a tensor of input ids, a list of either, or a DataLoader.
        source: as the base and of the same shapes; the source of each example is in its row.
        answers: token ids (examples, 2), or two lists of them: the answers to the bases and those to the sources.
        sites: names or patterns such as `decoder.*.self.*@position(-1)`; without them, all heads and feed-forward
            sublayers.
        at: the position whose logits are read; -1 is the last, padding left out.
        roles: for sites at tokens of some role: `{"input": ..., "answer": ...}`; positions need none.
        progress: called with the work done and all of it, for the exact values.

    Returns:
        For every site `estimated_change` and `exact_change` of the logit difference, the base's answer minus the
        source's, over that of the run on the base; then `correlation` (Pearson's) and `rank_correlation` (Spearman's)
        between the two over all sites, None where one of them does not vary.
    """
    wanted = _chosen(model, sites)
    bases, sources = with_answers(as_batches(base), answers), with_answers(as_batches(source), answers)
    metric = answer_margin(model, at)
    swaps = [Intervention((site,), replacement="source") for site in wanted]
    plan = Plan(model, bases, swaps, Measure(model, metric), sources, roles=roles)
    check_plan(plan)
    outcomes = sweep(model, bases, swaps, metric, sources=sources, roles=roles, progress=progress)
    assert outcomes.values is not None  # a metric was given
    exact = outcomes.values[1:].astype(float) - outcomes.values[0].astype(float)
    estimated = estimates(plan, wanted, metric)
    rows: Rows = []
    for site, guess, real in zip(wanted, estimated, exact, strict=True):
        about: dict[str, Any] = {"site": str(site), "size": 1}
        rows.append(row("attribution_patching", "estimated_change", mean_with_interval(guess), **about))
        found = mean_with_interval(real)
        rows.append(row("attribution_patching", "exact_change", found, **about, runner=outcomes.runner))
    means = estimated.mean(-1), exact.mean(-1)
    for name, value in (("correlation", correlation(*means)), ("rank_correlation", rank_correlation(*means))):
        rows.append(row("attribution_patching", name, {"value": value, "n": len(wanted)}))
    return rows


def estimates(plan: Plan, wanted: list[Site], metric: Any) -> NDArray[np.float64]:
    """(sites, N): for every site and example, minus the gradient of its gate.

    What comes in its place is what the plan's interventions say: the source's, zero, a mean or another example's.
    """
    model, subject = plan.model, Subject.of(plan.model)
    modules = {site.module for site in wanted}
    masks = {site: role_mask(plan, site) for site in wanted if site.role is not None}
    was_training = model.training
    model.eval()
    parts = []
    try:
        (kind,) = plan.replacements
        with torch.no_grad():
            means = mean_outputs(subject, plan.batches, modules) if kind == "mean" else {}
        for number, (start, batch) in enumerate(zip(plan.starts(), plan.batches, strict=True)):
            with torch.no_grad():
                _, read = subject.read(plan.sources[number] if plan.sources is not None else batch, modules)
                if kind == "resample":
                    read = resampled(subject, batch, read, plan.seed + number)
                record = only_call(read, ONCE)
                if kind == "mean":
                    record = {name: _as_many(only_call(means, ONCE)[name], own) for name, own in record.items()}
                elif kind == "zero":
                    record = {name: torch.zeros_like(own) for name, own in record.items()}
            # (B, L, H) for the heads of a layer, (B, L) for a sublayer.
            gates = {
                name: torch.ones(states.shape[: 3 if name in subject.layers else 2], device=states.device)
                for name, states in record.items()
            }
            for gate in gates.values():
                gate.requires_grad_()
            with torch.enable_grad(), subject.changed({n: Change(gate, (record[n],)) for n, gate in gates.items()}):
                value = metric(subject.call(subject.prepare(batch)), batch)
                if not value.requires_grad:
                    raise ValueError("the metric has no gradient; expected a differentiable one, computed by torch.")
                found = torch.autograd.grad(value.sum(), list(gates.values()), allow_unused=True)
            slopes = dict(zip(gates, found, strict=True))
            rows = batch_rows(batch)
            parts.append(
                np.stack([_estimate(subject, site, slopes[site.module], masks, start, rows) for site in wanted])
            )
    finally:
        model.train(was_training)
    return np.concatenate(parts, axis=1)


def _as_many(mean: Tensor, states: Tensor) -> Tensor:
    """A mean (W, Q, ...) for every row of states (B * W, L, ...), as long as they are."""
    times = len(states) // len(mean)
    return mean[:, : states.shape[1]].to(states).repeat(times, *[1] * (states.ndim - 1))


def _estimate(
    subject: Subject, site: Site, slope: Tensor | None, masks: dict[Site, Tensor], start: int, rows: int
) -> NDArray[np.float64]:
    """(B,): of one site, summed over the tokens that it names."""
    if slope is None:  # nothing that is measured depends on it
        return np.zeros(rows)
    own = slope if site.head is None else slope[..., subject.layers[site.module].heads.index(site.head.number)]
    if site in masks:
        own = own * masks[site][start : start + rows, : own.shape[1]].to(own)
    return -own.double().sum(-1).cpu().numpy()


def _chosen(model: PreTrainedModel, wanted: Iterable[str] | None) -> list[Site]:
    if wanted is None:
        return [site for site in all_sites(model) if site.kind != "residual"]
    if isinstance(wanted, str):
        raise TypeError(f"sites is the string {wanted!r}, expected a list such as [{wanted!r}].")
    found = match_sites(model, wanted)
    if not found:
        raise ValueError("there are no sites; expected at least one, such as 'decoder.0.mlp'.")
    return found


def correlation(first: NDArray[np.float64], second: NDArray[np.float64]) -> float | None:
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    return float(np.corrcoef(first, second)[0, 1])
