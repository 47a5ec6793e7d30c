"""How answers are wrong without a site: the distribution of (wrong digit - right digit) under resampling.

Whoever loses the carry writes digits that are off by one; whoever loses the digits of a column writes anything. Every
label is predicted from the right ones before it, so one wrong digit does not make the next one wrong.

    error_offset     the share of wrong labels that are off by so much: scope {"offset": 1}; all places that count
    VARIABLE_errors  the share of wrong labels that are off as they are if the variable is wrong: of addition, by one

The site `none` is the intact model, whose errors may be few. `n` counts wrong labels, not examples.

Shapes: V interventions, N examples, T labelled places.
"""

from typing import Any

import numpy as np

from ...data_builders.examples import Examples
from ...data_builders.tasks import ErrorSignature
from ...modeling.modeling_headcount import HeadcountPreTrainedModel
from ...records.intervals import rate
from ...records.rows import Rows, row
from ..heads.ablation import answer_places
from ..interventions.intervention import Intervention
from ..interventions.plan import Progress
from ..interventions.sets import SiteSet
from ..interventions.sweep import sweep


def signature_rows(
    model: HeadcountPreTrainedModel,
    examples: Examples,
    variable: str,
    sets: list[SiteSet],
    progress: Progress | None = None,
) -> Rows:
    """Rows for every set of sites, resampled; and for the intact model."""
    errors = examples.task.variables[variable].errors
    assert isinstance(errors, ErrorSignature)  # asked of variables that have one
    wanted = [Intervention(), *(each.swapped("resample") for each in sets)]
    outcomes = sweep(model, examples.rows, wanted, progress=progress)
    tokens, labels, _ = outcomes.by_labels()
    counts = answer_places(examples, labels) >= errors.first_place
    rows: Rows = []
    for version, each in enumerate(outcomes.interventions):
        wrong = counts & (tokens[version] != labels)
        offsets = examples.task.offsets(tokens[version], labels)[wrong]
        about: dict[str, Any] = {"site": each.name, "size": len(each.sites), "variable": variable, "mode": "resample"}
        about |= {"labels": int(counts.sum()), "runner": outcomes.runner}
        n = len(offsets)
        found = rate(int(np.isin(offsets, errors.offsets).sum()), n) if n else None
        rows.append(row("signature", f"{variable}_errors", found, decoding="teacher-forced", **about))
        for offset in range(1, errors.modulus) if n else ():
            share = rate(int((offsets == offset).sum()), n)
            scope = {"offset": offset}
            rows.append(row("signature", "error_offset", share, scope=scope, decoding="teacher-forced", **about))
    return rows
