"""The runner for headcount's own models: interventions that have not yet differed share their states.

The walk goes through the layers once with S distinct states (S, B, L, E) and parts them at the first site where two
interventions differ. So layers below an ablated head are computed once, the encoder is not repeated for sites of the
decoder, and interventions are folded into the batch. It is exact, and faster than one pass per intervention. Greedy
exact match is decided by one parallel pass (see trainers/evaluation.py: an answer is generated exactly right if and
only if every teacher-forced argmax is right).

Shapes: V interventions, S distinct states, P distinct patterns at one module, B rows of one portion, N all rows,
T labelled places, L tokens, E hidden size, H heads, D head dimension.
"""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn

from ...data_builders.vocabulary import IGNORED
from ...modeling.modeling_headcount import HeadcountPreTrainedModel
from .batches import join_batches, partners, row_lengths
from .intervention import FROZEN, Intervention
from .measures import decoding_of, labels_in_place, margins_of, predicts_next
from .plan import Outcomes, Plan, role_mask
from .walk import Replacements, Walk, modules_of


NAME = "shared_states"
INPUTS = {"input_ids", "labels", "attention_mask"}
TOKENS_AT_ONCE = 24_576  # states held at a time, S * B * L: enough for the cores, few enough for their caches
FEWEST_ROWS = 32

Rows = dict[str, Tensor]  # input_ids (N, L), labels (N, T) or (N,), attention_mask where there is padding


def obstacle(plan: Plan) -> str | None:
    """Why this runner cannot do it; None if it can."""
    if not isinstance(plan.model, HeadcountPreTrainedModel) or not hasattr(plan.model, "read_out"):
        return f"{type(plan.model).__name__} is not a model of headcount's own with an output layer"
    if plan.run is not None or not plan.measure.by_labels:
        return "it measures by labels alone"
    if plan.resume is not None:
        return "it keeps no finished batches"
    for batch in (*plan.batches, *(plan.sources or [])):
        if not {"input_ids", "labels"} <= batch.keys() <= INPUTS or batch["labels"].is_floating_point():
            return f"a batch has {', '.join(batch)}; expected input_ids, labels and no more than an attention_mask"
        mask = batch.get("attention_mask")
        if mask is not None and bool((mask[:, 1:] > mask[:, :-1]).any()):
            return "attention_mask hides tokens before others; expected padding on the right only"
        if not bool(row_lengths(batch).all()):
            return "a row has no tokens or no labels"
    if "resample" in plan.replacements:
        for batch in plan.batches:
            lengths, partner = row_lengths(batch), partners(batch, plan.seed)
            if not torch.equal(lengths, lengths[partner]):
                return "only one row has its length, so there is none like it to resample from"
    if plan.sources is not None:
        for batch, source in zip(plan.batches, plan.sources, strict=True):
            if not torch.equal(row_lengths(batch), row_lengths(source)):
                return "sources differ from the batches in lengths"
    return None


def run_shared_states(plan: Plan) -> Outcomes:
    """The outcome of every intervention on every row."""
    reason = obstacle(plan)
    if reason is not None:
        raise ValueError(f"runner={NAME!r} does not suit: {reason}; expected another runner, or none.")
    model, interventions = plan.model, plan.interventions
    rows = join_batches(plan.batches)
    sources = None if plan.sources is None else join_batches(plan.sources)
    labels = labels_in_place(model, rows["labels"]).cpu()
    tokens = torch.full((len(interventions), *labels.shape), IGNORED)
    loss = torch.zeros(len(interventions), len(labels))
    contrasts = None if plan.contrasts is None else labels_in_place(model, plan.contrasts).cpu()
    margins = None if contrasts is None else torch.zeros(tokens.shape)
    masks = {site: role_mask(plan, site) for each in interventions for site in each.touched if site.role is not None}
    means = _mean_outputs(model, rows, interventions) if "mean" in plan.replacements else {}
    partner = partner_rows(plan) if "resample" in plan.replacements else None
    done, total = 0, len(interventions) * len(labels)
    for part, versions, walk in _portions(model, rows, interventions):
        replacements: Replacements = {}
        if "mean" in plan.replacements:
            replacements["mean"] = means
        if partner is not None:
            replacements["resample"] = _outputs(model, cut_rows(model, rows, partner[part]), walk.modules)
        if sources is not None:
            replacements["source"] = _outputs(model, cut_rows(model, sources, part), walk.modules)
        batch = cut_rows(model, rows, part)
        if FROZEN in plan.replacements:
            replacements[FROZEN] = _outputs(model, batch, walk.modules)
        own_masks = {site: mask[part] for site, mask in masks.items()}
        logits, state_of = walk.logits(model, batch, replacements, own_masks)
        best, cost, apart = _score(model, logits, batch["labels"], None if contrasts is None else contrasts[part])
        tokens[versions[:, None], part[None], : best.shape[-1]] = best.cpu()[state_of]
        loss[versions[:, None], part[None]] = cost.float().cpu()[state_of]
        if margins is not None and apart is not None:
            margins[versions[:, None], part[None], : best.shape[-1]] = apart.float().cpu()[state_of]
        done += len(part) * len(versions)
        plan.report(done, total)
    tokens.masked_fill_(labels == IGNORED, IGNORED)
    return Outcomes(
        interventions=interventions,
        runner=NAME,
        decoding=decoding_of(model, labels),
        tokens=tokens.numpy(),
        labels=labels.numpy(),
        loss=loss.numpy(),
        margins=None if margins is None else margins.numpy(),
        metric=plan.measure.name,
    )


def _outputs(model: HeadcountPreTrainedModel, batch: Rows, modules: set[str]) -> dict[str, Tensor]:
    """What these modules of the intact model put out."""
    record = dict.fromkeys(modules, torch.empty(0))  # to be filled
    Walk([Intervention()]).logits(model, batch, record=record)
    return record


def _score(
    model: HeadcountPreTrainedModel, logits: Tensor, labels: Tensor, contrasts: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Argmax (S, B, T), summed loss (S, B) and, with contrasts (B, T or more), margins (S, B, T)."""
    labels = labels_in_place(model, labels)
    if logits.ndim == 3:  # a classifier: (S, B, classes)
        logits = logits[:, :, None]
    elif predicts_next(model):
        logits = logits[:, :, :-1]
    every = labels.expand(len(logits), *labels.shape)
    loss = nn.functional.cross_entropy(logits.flatten(0, 2), every.flatten(), ignore_index=IGNORED, reduction="none")
    margins = None
    if contrasts is not None:
        margins = margins_of(logits, every, contrasts[:, : labels.shape[1]].to(labels).expand_as(every))
    return logits.argmax(-1), loss.view(every.shape).sum(-1), margins


def length_groups(rows: Rows) -> list[Tensor]:
    """Indices of rows that need no padding beside each other."""
    _, group_of = row_lengths(rows).unique(dim=0, return_inverse=True)
    return [(group_of == group).nonzero()[:, 0] for group in range(int(group_of.max()) + 1)]


def _length(rows: Rows, group: Tensor) -> int:
    return int(row_lengths({name: values[group[:1]] for name, values in rows.items()}).sum())


def partner_rows(plan: Plan) -> Tensor:
    """(N,): another row of the same batch and length for every row."""
    starts = zip(plan.starts(), plan.batches, strict=True)
    return torch.cat([start + partners(batch, plan.seed + number) for number, (start, batch) in enumerate(starts)])


def cut_rows(model: HeadcountPreTrainedModel, rows: Rows, part: Tensor) -> Rows:
    """Some rows of one length, without padding, where the model is."""
    tokens, places = row_lengths({name: values[part[:1]] for name, values in rows.items()})[0].tolist()
    labels = rows["labels"][part]
    if labels.ndim > 1:
        labels = labels[:, : tokens if predicts_next(model) else places]
    return {"input_ids": rows["input_ids"][part, :tokens].to(model.device), "labels": labels.to(model.device)}


def _portions(
    model: HeadcountPreTrainedModel, rows: Rows, interventions: list[Intervention]
) -> Iterator[tuple[Tensor, Tensor, Walk]]:
    """Rows and interventions to walk with together, sorted so that those that part late stay together."""
    whole = Walk(interventions)
    keys = np.array([whole.pattern_of(name).numpy() for name in modules_of(model)]).reshape(-1, len(interventions))
    order = torch.from_numpy(np.lexsort(keys[::-1])) if len(keys) else torch.arange(len(interventions))
    for group in length_groups(rows):
        length = _length(rows, group)
        size = max(FEWEST_ROWS, TOKENS_AT_ONCE // (length * len(interventions)))
        block = max(1, TOKENS_AT_ONCE // (length * min(size, len(group))))
        walks = [(some, Walk([interventions[i] for i in some.tolist()])) for some in order.split(block)]
        for part in group.split(size):
            for some, walk in walks:
                yield part, some, walk


def _mean_outputs(model: HeadcountPreTrainedModel, rows: Rows, interventions: list[Intervention]) -> dict[str, Tensor]:
    """The mean of what modules put out over all rows that have the place: (1, H, L, D), (1, L, E)."""
    modules = Walk([each for each in interventions if each.replacement == "mean"]).modules
    totals: dict[str, Tensor] = {}
    counts: dict[str, Tensor] = {}
    for group in length_groups(rows):
        for part in group.split(max(FEWEST_ROWS, TOKENS_AT_ONCE // _length(rows, group))):
            for name, output in _outputs(model, cut_rows(model, rows, part), modules).items():
                added = output.double().sum(0)
                seen = added.new_full((added.shape[-2], 1), len(part))
                totals[name] = _sum(totals.get(name), added)
                counts[name] = _sum(counts.get(name), seen)
    return {name: (total / counts[name])[None].to(model.dtype) for name, total in totals.items()}


def _sum(first: Tensor | None, second: Tensor) -> Tensor:
    """Both, of which either may have more places."""
    if first is None:
        return second
    longer, shorter = (first, second) if first.shape[-2] >= second.shape[-2] else (second, first)
    longer = longer.clone()
    longer[..., : shorter.shape[-2], :] += shorter
    return longer
