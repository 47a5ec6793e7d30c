"""Which sites bring a variable of the task, such as the carry out of a column, to the answer: interchange on pairs.

What a set of sites puts out in the run on the source comes into the run on the base. If the set brings just the
variable, the answer becomes that of the base with the source's value of the variable. Both runs read the answer that
is expected then, so one parallel pass decides what greedy decoding with the intervention gives.

On pairs in which the variable differs (`minimal`, `ripple`, `random`):

    VARIABLE_flip       the labels that show the variable change as expected, and the label at its own place stays
    VARIABLE_moved      the first half of that: the labels that show it
    VARIABLE_kept_own   the second half: the label at its own place
    VARIABLE_recovered  how far the logits go: 0 as in the base's run, 1 as in the source's (not of `random` pairs)
    whole_answer_flip   greedy decoding writes exactly the answer that is expected

On `control` pairs, where digits change and the variable does not:

    VARIABLE_false_flip the label that would show the variable is no longer the base's
    own_place_moved     the label at the place itself becomes the source's

On `equal` pairs, which agree in the variable and in little else:

    answer_kept         greedy decoding writes the base's answer

The site `none` is the control without any intervention.

Shapes: V interventions, N pairs, T labelled places.
"""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from ...data_builders.examples import PairedExamples
from ...modeling.modeling_headcount import HeadcountPreTrainedModel
from ...records.intervals import rate, ratio_with_interval
from ...records.rows import Rows, row
from ..interventions.batches import row_lengths
from ..interventions.intervention import Intervention
from ..interventions.measures import labels_in_place
from ..interventions.plan import Outcomes, Progress
from ..interventions.sets import SiteSet, standard_sets, with_complements
from ..interventions.sites import Site, sites
from ..interventions.sweep import sweep


Happened = dict[str, NDArray[np.bool_]]  # metric -> (V, N)


def of_same_length(pairs: PairedExamples) -> PairedExamples:
    """The pairs whose sides, and the answer that is expected, have the same numbers of tokens and labels."""
    lengths = [row_lengths(side.rows) for side in (pairs.base, pairs.source, pairs.expected)]
    same = torch.stack([(own == lengths[0]).all(-1) for own in lengths]).all(0)
    return pairs[np.flatnonzero(same.numpy())]


def swap_sets(model: HeadcountPreTrainedModel, pairs: PairedExamples) -> list[SiteSet]:
    """What a study swaps: every head and sublayer alone, the standard sets and what they leave, residuals by place."""
    every = sites(model)
    single = [SiteSet(str(site), (site,)) for site in every if site.kind != "residual"]
    places = [
        site.at(name)
        for site in every
        if site.kind == "residual" and site.stack == "encoder"
        for name in dict.fromkeys((pairs.about.place, pairs.about.shows_at))
    ]
    joint = with_complements(model, standard_sets(model))
    return [*single, *joint, *(SiteSet(str(site), (site,)) for site in places)]


def swap(
    model: HeadcountPreTrainedModel,
    pairs: PairedExamples,
    sets: list[SiteSet],
    frozen: tuple[Site, ...] = (),
    progress: Progress | None = None,
) -> Outcomes:
    """The outcome of every swap on every pair; the first is the run on the base that nobody touches."""
    return sweep(
        model,
        pairs.expected.rows,
        [Intervention(), *(each.swapped("source", frozen) for each in sets)],
        sources=pairs.source.rows,
        contrasts=pairs.base.rows["labels"],
        roles={side: pairs.roles(side) for side in ("input", "answer")},
        progress=progress,
    )


def swap_rows(
    model: HeadcountPreTrainedModel,
    pairs: PairedExamples,
    sets: list[SiteSet],
    frozen: tuple[Site, ...] = (),
    progress: Progress | None = None,
) -> Rows:
    """Rows for every set, whole and by the place of the variable."""
    outcomes = swap(model, pairs, sets, frozen, progress)
    happened = what_happened(model, pairs, outcomes)
    rows: Rows = []

    def add(version: int, metric: str, estimate: dict, scope: dict | None = None) -> None:
        each = outcomes.interventions[version]
        about = {"site": each.name, "size": len(each.sites), "pairs": pairs.kind, "variable": pairs.variable}
        rows.append(
            row(
                "interchange",
                metric,
                estimate,
                scope=scope,
                decoding=outcomes.decoding,
                runner=outcomes.runner,
                **about,
            )
        )

    for metric, own in happened.items():
        for version in range(len(own)):
            for scope, rows_of_it in _scopes(pairs):
                chosen = own[version][rows_of_it]
                add(version, metric, rate(int(chosen.sum()), len(chosen)), scope)
    for version, estimate in enumerate(recovered(model, pairs, outcomes)):
        add(version, f"{pairs.variable}_recovered", estimate)
    return rows


def what_happened(model: HeadcountPreTrainedModel, pairs: PairedExamples, outcomes: Outcomes) -> Happened:
    """For every metric of these pairs, whether it came about: (V, N)."""
    if pairs.kind == "equal":
        return {"answer_kept": outcomes.right}
    tokens, expected, _ = outcomes.by_labels()
    before, after = (_in_place(model, side.rows["labels"]) for side in (pairs.base, pairs.source))
    index = _in_place(model, torch.from_numpy(pairs.expected.roles("answer").index))
    own, shown = index == pairs.index[:, None], before != expected
    name = pairs.variable
    if pairs.kind == "control":
        shows = index == (pairs.index + pairs.about.near[pairs.about.shows_at])[:, None]
        return {
            f"{name}_false_flip": ((tokens != before) & shows).any(-1),
            "own_place_moved": ((tokens == after) | ~own).all(-1),
        }
    agrees = tokens == expected
    moved, kept = (agrees | ~shown).all(-1), (agrees | ~own).all(-1)
    return {
        f"{name}_flip": moved & kept,
        f"{name}_moved": moved,
        f"{name}_kept_own": kept,
        "whole_answer_flip": outcomes.right,
    }


def recovered(model: HeadcountPreTrainedModel, pairs: PairedExamples, outcomes: Outcomes) -> list[dict]:
    """How far each swap takes the logits, expected label minus the base's, to those of the source's run."""
    if pairs.kind not in ("minimal", "ripple"):
        return []
    reached = sweep(model, pairs.source.rows, [], contrasts=pairs.base.rows["labels"]).margins
    assert outcomes.margins is not None and reached is not None  # contrasts were given
    shown = _in_place(model, pairs.base.rows["labels"]) != outcomes.by_labels()[1]
    count = shown.sum(-1)
    here, there = ((margins * shown).sum(-1) / count for margins in (outcomes.margins, reached[0]))
    return [ratio_with_interval(own - here[0], there - here[0]) for own in here]


def _in_place(model: HeadcountPreTrainedModel, labels: torch.Tensor) -> NDArray:
    return labels_in_place(model, labels).numpy()


def _scopes(pairs: PairedExamples) -> Iterator[tuple[dict, NDArray[np.bool_]]]:
    yield {}, np.ones(len(pairs), bool)
    for value in np.unique(pairs.index).tolist():
        yield {pairs.about.place: value}, pairs.index == value
