"""What a site brings: its output in the run on a source, put into the run on a base (Geiger et al. 2021).

For a variable of a task, such as the carry out of a column, the two problems of a pair differ in that variable at one
place. If a head brings the variable to the answer, the labels that differ become those of the source, while the label
at the place itself stays. For carries: the two problems differ in one column only, where the digit sums are s and
s + 10; the column's own answer digit is the same, and the carry out of it is not.

Both runs then read the source's answer as far as it is written. So one parallel pass decides what greedy decoding with
the intervention gives: it writes the source's answer if and only if every argmax is the source's label.

Shapes: V interventions, N pairs, T labelled places.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from ...data_builders.examples import PairedExamples, is_labelled
from ...data_builders.vocabulary import IGNORED
from ...modeling.heads import HeadName
from ...modeling.modeling_headcount import HeadcountPreTrainedModel
from ...records.intervals import mean_with_interval, rate
from ...records.rows import Row, Rows, row
from ..interventions.batches import Batches, as_batches, row_lengths
from ..interventions.intervention import Intervention, one_at_a_time
from ..interventions.measures import Metric, labels_in_place
from ..interventions.plan import Outcomes, Progress, RoleFinders
from ..interventions.sites import as_sites
from ..interventions.sweep import sweep


def interchange(
    model: PreTrainedModel,
    base: Batches,
    source: Batches,
    sites: Iterable[HeadName | Iterable[HeadName]],
    metric: Metric | None = None,
    *,
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
        sites: names of sites, or lists of names that are changed together.
        metric: a function of outputs and batch that gives one value per example; without it, labels say which places
            count, and the base's are what a decoder reads.
        roles: for sites at some tokens only: `{"input": ..., "answer": ...}`.
        runner: a name from `RUNNERS`; without it, the first that suits.
        progress: called with the work done and all of it.

    Returns:
        One row for every site or list. `flip`: of the examples on which the intact model predicts differently for
        base and source, the share whose predictions all become those of the source, where they differ. With a metric,
        `NAME_rise`: how much it rises over the base. The site `none` is the control without any intervention.
    """
    groups = [[each] if isinstance(each, (str, tuple)) else list(each) for each in sites]
    wanted = [Intervention(tuple(as_sites(model, group)), replacement="source") for group in groups]
    if not wanted:
        raise ValueError("there are no sites; expected at least one, such as 'decoder.0.mlp'.")
    base, source = as_batches(base), as_batches(source)
    outcomes = sweep(model, base, wanted, metric, sources=source, roles=roles, runner=runner, progress=progress)
    if outcomes.values is not None:
        values = outcomes.values.astype(float)
        return [
            _row(outcomes, f"{outcomes.metric}_rise", mean_with_interval(own - values[0]), site=each.name)
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
        _row(outcomes, "flip", rate(int(own.sum()), int(counted.sum())), site=each.name)
        for each, own in zip(outcomes.interventions, flips, strict=True)
    ]


def _row(outcomes: Outcomes, metric: str, estimate: dict, scope: dict | None = None, **about: Any) -> Row:
    decoding = outcomes.decoding
    return row("interchange", metric, estimate, scope=scope, decoding=decoding, runner=outcomes.runner, **about)


def of_same_length(pairs: PairedExamples) -> PairedExamples:
    """The pairs whose two sides have the same numbers of tokens and labels."""
    same = (row_lengths(pairs.base.rows) == row_lengths(pairs.source.rows)).all(-1)
    return pairs[np.flatnonzero(same.numpy())]


def interchange_rows(model: HeadcountPreTrainedModel, pairs: PairedExamples, progress: Progress | None = None) -> Rows:
    """Rows for every head, whole and by the place at which the variable differs; see `flip_rows`."""
    pairs = of_same_length(pairs)
    wanted = one_at_a_time(model.list_heads(), "source")
    rows = read_answer_of_source(model, pairs)
    return flip_rows(model, pairs, sweep(model, rows, wanted, sources=pairs.source.rows, progress=progress))


def read_answer_of_source(model: HeadcountPreTrainedModel, pairs: PairedExamples) -> dict[str, Tensor]:
    """The base's rows with the answer of the source, as labels and as far as the decoder reads it."""
    labels = pairs.source.rows["labels"]
    rows = {**pairs.base.rows, "labels": labels}
    if not model.config.is_encoder_decoder:  # the answer is part of the sequence that is read
        rows["input_ids"] = torch.where(is_labelled(labels), pairs.source.rows["input_ids"], rows["input_ids"])
    return rows


def flip_rows(model: HeadcountPreTrainedModel, pairs: PairedExamples, outcomes: Outcomes) -> Rows:
    """What a sweep over pairs that reads the answers of the source has found.

    `VARIABLE_flip`: all labels that differ become the source's and the label at the changed place stays;
    `whole_answer_flip`: greedy decoding writes exactly the source's answer.
    The head named `none` is the control without any intervention: its rate is that of wrong answers.
    """
    tokens, labels, _ = outcomes.by_labels()
    agrees = tokens == labels  # (V, N, T)
    before = labels_in_place(model, pairs.base.rows["labels"]).numpy()
    index = labels_in_place(model, torch.from_numpy(pairs.source.roles("answer").index)).numpy()
    counts = (before != labels) | (index == pairs.index[:, None])
    flips = (agrees | ~counts).all(-1)
    variable = pairs.base.task.variables[pairs.variable]
    found = []
    for version in range(len(outcomes.interventions)):
        for metric, happened in (
            (f"{pairs.variable}_flip", flips[version]),
            ("whole_answer_flip", outcomes.right[version]),
        ):
            for scope, own in _scopes(variable.place, pairs.index):
                estimate = rate(int(happened[own].sum()), int(own.sum()))
                about = {"head": outcomes.interventions[version].name, "variable": pairs.variable}
                found.append(_row(outcomes, metric, estimate, scope, **about))
    return found


def _scopes(place: str, index: np.ndarray) -> list[tuple[dict, np.ndarray]]:
    whole: list[tuple[dict, np.ndarray]] = [({}, np.ones(len(index), bool))]
    return whole + [({place: int(value)}, index == value) for value in np.unique(index)]
