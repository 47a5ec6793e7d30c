"""What a site brings: its output in the run on a source, put into the run on a base (Geiger et al. 2021).

`headcount.interchange` does it for any model and any two batches. `swap.py` does it for the variables of a task.

Shapes: V interventions, N pairs, T labelled places.
"""

from collections.abc import Iterable
from typing import Any

from transformers import PreTrainedModel

from ...data_builders.vocabulary import IGNORED
from ...records.intervals import mean_with_interval, rate
from ...records.rows import Row, Rows, row
from ..interventions.batches import Batches, as_batches
from ..interventions.intervention import Intervention
from ..interventions.measures import Metric
from ..interventions.plan import Outcomes, Progress, RoleFinders
from ..interventions.sets import SetName, find_set, find_sets, with_complements
from ..interventions.sweep import sweep


def interchange(
    model: PreTrainedModel,
    base: Batches,
    source: Batches,
    sites: Iterable[SetName],
    metric: Metric | None = None,
    *,
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
        model: one of headcount's own, or any transformers model whose attention asks transformers' interface.
        base: one batch, a tensor of input ids, a list of either, or a DataLoader.
        source: as the base and of the same shapes; the source of each example is in its row.
        sites: each the name of a site, a pattern such as `decoder.*.cross.*`, or a list of these; what one entry names
            is changed together.
        complements: beside every set, all other heads (of feed-forward sublayers: all others of these).
        frozen: sites that keep what they put out on the base, whatever is changed below them.
        metric: a function of outputs and batch that gives one value per example; without it, labels say which places
            count, and the base's are what a decoder reads.
        roles: for sites at some tokens only: `{"input": ..., "answer": ...}`.
        runner: a name from `RUNNERS`; without it, the first that suits.
        progress: called with the work done and all of it.

    Returns:
        One row for every site or list. `flip`: of the examples on which the intact model predicts differently for
        base and source, the share whose predictions all become those of the source, where they differ. With a metric,
        `NAME_rise`: how much it rises over the base. The site `none` is the control without any intervention; `size`
        is how many sites are changed.
    """
    sets = find_sets(model, sites)
    kept = tuple(site for each in frozen for site in find_set(model, each).sites)
    wanted = [each.swapped("source", kept) for each in (with_complements(model, sets) if complements else sets)]
    base, source = as_batches(base), as_batches(source)
    outcomes = sweep(model, base, wanted, metric, sources=source, roles=roles, runner=runner, progress=progress)
    if outcomes.values is not None:
        values = outcomes.values.astype(float)
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


def _about(each: Intervention) -> dict[str, Any]:
    return {"site": each.name, "size": len(each.sites)}


def _row(outcomes: Outcomes, metric: str, estimate: dict, scope: dict | None = None, **about: Any) -> Row:
    decoding = outcomes.decoding
    return row("interchange", metric, estimate, scope=scope, decoding=decoding, runner=outcomes.runner, **about)
