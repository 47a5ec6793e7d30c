"""What a site brings: its output in the run on a source, put into the run on a base (Geiger et al. 2021).

`headcount.interchange` does it for any model and any two batches. `swap.py` does it for the variables of a task.

Shapes: V interventions, N pairs, T labelled places.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from ...data_builders.vocabulary import IGNORED
from ...records.intervals import mean_with_interval, rate, ratio_with_interval
from ...records.rows import Row, Rows, row
from ..interventions.batches import Batches, as_batches, with_answers
from ..interventions.intervention import Intervention
from ..interventions.measures import Metric, answer_margin
from ..interventions.plan import Outcomes, Progress, RoleFinders
from ..interventions.sets import SetName, find_frozen, find_sets
from ..interventions.sweep import sweep


def interchange(
    model: PreTrainedModel,
    base: Batches,
    source: Batches,
    sites: Iterable[SetName],
    metric: Metric | None = None,
    *,
    answers: Tensor | Sequence[Any] | None = None,
    at: int = -1,
    complements: bool = False,
    frozen: Iterable[SetName] = (),
    roles: RoleFinders | None = None,
    runner: str | None = None,
    progress: Progress | None = None,
) -> Rows:
    """What becomes of the run on the base if sites take their output from the run on the source.

    >>> import headcount, torch
    >>> config = headcount.HeadcountConfig(num_hidden_layers=1, num_attention_heads=2)
    >>> model = headcount.HeadcountForConditionalGeneration(config)
    >>> base, source = torch.tensor([[5, 6, 2]]), torch.tensor([[7, 8, 2]])
    >>> wrap = lambda ids: {"input_ids": ids, "labels": torch.tensor([[6, 5, 2]])}
    >>> metric = lambda outputs, batch: outputs.logits[:, 0, 7]
    >>> sites = ["decoder.0.cross.0", ["encoder.0.mlp", "decoder.0.mlp"]]
    >>> [row["site"] for row in headcount.interchange(model, wrap(base), wrap(source), sites, metric)]
    ['none', 'decoder.0.cross.0', 'encoder.0.mlp + decoder.0.mlp']

    Args:
        model: one of headcount's own, or any transformers model whose heads `list_heads` finds.
        base: one batch, a tensor of input ids, a list of either, or a DataLoader.
        source: as the base and of the same shapes; the source of each example is in its row.
        sites: each the name of a site, a pattern such as `decoder.*.cross.*`, or a list of these; what one entry names
            is changed together.
        complements: beside every set, all other heads (of feed-forward sublayers: all others of these).
        frozen: sites that keep what they put out on the base, whatever is changed below them.
        metric: a function of outputs and batch that gives one value per example; without it, labels say which places
            count, and the base's are what a decoder reads.
        answers: for a logit difference instead of a metric: token ids (examples, 2), or two lists of them, the
            answers to the bases and those to the sources.
        at: the position whose logits are read for these; -1 is the last, padding left out.
        roles: for sites at some tokens only: `{"input": ..., "answer": ...}`; `site@position(3)` needs none.
        runner: a name from `RUNNERS`; without it, the first that suits.
        progress: called with the work done and all of it.

    Returns:
        One row for every site or list. `flip`: of the examples on which the intact model predicts differently for
        base and source, the share whose predictions all become those of the source, where they differ. With a metric,
        `NAME_rise`: how much it rises over the base. With answers, three rows: `logit_difference`, the base's answer
        minus the source's; `recovered`, how far that goes from the run on the base (0) to the run on the source (1);
        `answer_flip`, the share of examples on which the source's answer has the larger logit. The site `none` is the
        control without any intervention; `size` is how many sites are changed.
    """
    kept = find_frozen(model, frozen)
    wanted = [each.swapped("source", kept) for each in find_sets(model, sites, complements)]
    base, source = as_batches(base), as_batches(source)
    if answers is not None:
        if metric is not None:
            raise ValueError("answers and a metric are given; expected one of them.")
        base, source = with_answers(base, answers), with_answers(source, answers)
        metric = answer_margin(model, at)
    outcomes = sweep(model, base, wanted, metric, sources=source, roles=roles, runner=runner, progress=progress)
    if outcomes.values is not None:
        values = outcomes.values.astype(float)
        if answers is not None:
            reached = sweep(model, source, [], metric, runner=runner).values
            assert reached is not None  # a metric was given
            return _answer_rows(outcomes, values, reached[0].astype(float))
        return [
            _row(outcomes, f"{outcomes.metric}_rise", mean_with_interval(own - values[0]), **_about(each))
            for each, own in zip(outcomes.interventions, values, strict=True)
        ]
    tokens, labels, _ = outcomes.by_labels()
    target = sweep(model, source, [], metric, runner=runner).by_labels()[0][0]
    if target.shape != labels.shape:
        raise ValueError("base and source differ in their labelled places; expected labels of the same shape.")
    differs = (target != tokens[0]) & (labels != IGNORED)
    counted = differs.any(-1)
    if not counted.any():
        raise ValueError("the model predicts the same for every base and source; expected pairs on which it differs.")
    flips = ((tokens == target) | ~differs).all(-1)[:, counted]
    return [
        _row(outcomes, "flip", rate(int(own.sum()), int(counted.sum())), **_about(each))
        for each, own in zip(outcomes.interventions, flips, strict=True)
    ]


def _answer_rows(outcomes: Outcomes, values: NDArray[np.float64], reached: NDArray[np.float64]) -> Rows:
    """Of logit differences (V, N), the intact model's first; `reached` are those of the runs on the sources."""
    rows: Rows = []
    for each, own in zip(outcomes.interventions, values, strict=True):
        about = _about(each)
        rows.append(_row(outcomes, "logit_difference", mean_with_interval(own), **about))
        rows.append(_row(outcomes, "recovered", recovered_share(own, values[0], reached), **about))
        rows.append(_row(outcomes, "answer_flip", rate(int((own < 0).sum()), len(own)), **about))
    return rows


def recovered_share(own: NDArray[np.float64], base: NDArray[np.float64], source: NDArray[np.float64]) -> dict:
    """How far a swap goes from the base's value (0) to the source's (1); None where these do not differ on average."""
    gap = source - base
    if abs(gap.mean()) <= 1e-6 * max(1.0, float(np.abs(gap).max())):
        return {"value": None, "n": len(own), "interval": None}
    return ratio_with_interval(own - base, gap)


def _about(each: Intervention) -> dict[str, Any]:
    return {"site": each.name, "size": len(each.sites)}


def _row(outcomes: Outcomes, metric: str, estimate: dict, scope: dict | None = None, **about: Any) -> Row:
    decoding = outcomes.decoding
    return row("interchange", metric, estimate, scope=scope, decoding=decoding, runner=outcomes.runner, **about)
