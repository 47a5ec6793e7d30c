"""What a model loses without each of its heads: `headcount.ablate`, and the one place where its rows are made.

Rows of every model are alike, whatever runner computed them:

    exact_match_drop, accuracy_drop, NAME_drop   intact minus ablated; of a share with class, p values and rank
    loss_rise                                    how much the loss of an example rises
    place_accuracy_drop                          by place of the answer, given the right tokens before it

Shapes: V interventions, the intact model first; N examples, T labelled places.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from transformers import PreTrainedModel

from ...data_builders.examples import Examples
from ...data_builders.vocabulary import IGNORED
from ...modeling.heads import HeadName
from ...modeling.stock.finding import as_heads, list_heads
from ...records.intervals import holm, mcnemar, mean_with_interval, paired_drop, rate
from ...records.rows import Row, Rows, row
from ...trainers.evaluation import place_zero
from ..interventions.batches import Batches
from ..interventions.intervention import one_at_a_time
from ..interventions.measures import Metric, is_sequence_model
from ..interventions.plan import Outcomes, Progress
from ..interventions.sets import SetName, SiteSet, find_sets
from ..interventions.sweep import sweep


MODES = {
    "zero": "the head's output becomes zero",
    "mean": "the head's output becomes its mean over the data, place by place",
    "resample": "the head's output becomes that of another example",
}
CRITICAL, IMPORTANT = 0.10, 0.01  # drops in exact match above which a head or a set is called so
# Below: a head that was tested alone is not needed alone; that others can do without it is a property of the set.
NOT_NEEDED_ALONE, REDUNDANT = "not needed alone", "redundant"
RESAMPLES = 1000


def ablate(
    model: PreTrainedModel,
    batches: Batches,
    metric: Metric | None = None,
    mode: str | Iterable[str] = "zero",
    heads: Iterable[HeadName] | None = None,
    *,
    sets: Iterable[SetName] | None = None,
    complements: bool = False,
    run: Callable | None = None,
    runner: str | None = None,
    seed: int = 0,
    resume: str | Path | None = None,
    progress: Progress | None = None,
) -> Rows:
    """What any transformers model loses without each of its heads, or sets of heads, the one that costs most first.

    >>> import headcount, torch
    >>> config = headcount.HeadcountConfig(num_hidden_layers=1, num_attention_heads=2)
    >>> model = headcount.HeadcountForConditionalGeneration(config)
    >>> batch = {"input_ids": torch.tensor([[5, 6, 2]]), "labels": torch.tensor([[6, 5, 2]])}
    >>> rows = headcount.ablate(model, batch, metric=lambda outputs, batch: outputs.logits[:, 0, 7])
    >>> len(rows), rows[0]["rank"], rows[0]["mode"]
    (6, 1, 'zero')
    >>> rows = headcount.ablate(model, batch, sets=["decoder.*.cross.*"], complements=True, mode=["zero", "mean"])
    >>> [(row["site"], row["size"], row["mode"]) for row in rows if row["metric"] == "exact_match_drop"]
    [('decoder.*.cross.*', 2, 'zero'), ('decoder.*.cross.*', 2, 'mean'), ('all but decoder.*.cross.*', 4, 'zero'), ...]

    Args:
        model: one of headcount's own, or any transformers model whose heads `list_heads` finds.
        batches: one batch, a tensor of input ids, a list of either, or a DataLoader.
        metric: a function of outputs and batch that gives one value per example, the higher the better; or an
            `evaluate` metric; without one, the share of examples with every label right, and the rise of the loss.
        mode: what takes the place of a head's output: `zero`; `mean`, its mean over the data, place by place;
            `resample`, what it puts out on another example of the batch. Or several of these: then rows also say, by
            `modes_disagree`, whether the modes differ by more than their intervals.
        heads: some heads only, by name or, where that says enough, as `(layer, head)`.
        sets: instead of heads one at a time, sets that are ablated together: each a pattern such as
            `decoder.*.cross.*`, or a list of names; feed-forward sublayers and residuals are sites, too.
        complements: beside each set, all other heads (of feed-forward sublayers: all others of these).
        run: called as `run(model, batch)` instead of `model(**batch)`, for example a generation; its result goes to
            the metric.
        runner: a name from `RUNNERS`; without it, the first that suits. All give the same.
        seed: draws the partners of `resample`.
        resume: a folder in which every finished batch is kept; called again, the sweep goes on from there.
        progress: called with the work done and all of it.

    Returns:
        Rows with n, interval and the runner that was used.
    """
    modes = check_modes([mode] if isinstance(mode, str) else list(mode))
    if sets is None:
        if complements:
            raise ValueError("complements stand beside sets; expected sets, too.")
        chosen = list_heads(model) if heads is None else as_heads(model, heads)
        if not chosen or len(set(chosen)) < len(chosen):
            raise ValueError(f"heads are {list(chosen)}; expected some, each once.")
    elif heads is not None:
        raise ValueError("heads and sets are both given; expected one of them.")
    else:
        found = find_sets(model, sets, complements)
    rows: Rows = []
    for name in modes:
        outcomes = sweep(
            model,
            batches,
            one_at_a_time(chosen, name) if sets is None else (each.swapped(name) for each in found),
            metric,
            run=run,
            runner=runner,
            seed=seed,
            resume=resume if resume is None or len(modes) == 1 else Path(resume) / name,
            progress=progress,
        )
        rows += ablation_rows(model, outcomes, metric)
    return say_where_modes_disagree(rows) if len(modes) > 1 else rows


def check_modes(modes: list[str]) -> list[str]:
    unknown = next((name for name in modes if name not in MODES), None)
    if unknown is not None or not modes or len(set(modes)) < len(modes):
        raise ValueError(f"mode={unknown or modes!r} is not known; expected one or more of {', '.join(MODES)}.")
    return modes


def say_where_modes_disagree(rows: Rows) -> Rows:
    """The rows of several modes; each says whether the interval of another mode is apart from its own."""
    groups: dict[str, Rows] = {}
    for each in rows:
        key = f"{each.get('head')} {each.get('site')} {each['metric']} {each['scope']}"
        groups.setdefault(key, []).append(each)
    return [{**each, "modes_disagree": _differ(group)} for group in groups.values() for each in group]


def _differ(rows: Rows) -> bool:
    """Whether two of the intervals have nothing in common."""
    intervals = [each["interval"] for each in rows if each["interval"] is not None]
    return max((low for low, _ in intervals), default=0.0) > min((high for _, high in intervals), default=0.0)


def ablate_examples(
    model: PreTrainedModel, examples: Examples, mode: str = "zero", seed: int = 0, progress: Progress | None = None
) -> Rows:
    """Rows for every head on examples of a task: as a whole, by every fact and by place of the answer."""
    wanted = one_at_a_time(list_heads(model), mode)
    outcomes = sweep(model, examples.rows, wanted, seed=seed, progress=progress)
    return ablation_rows(model, outcomes, examples=examples)


def ablate_sets(
    model: PreTrainedModel,
    examples: Examples,
    sets: list[SiteSet],
    modes: Iterable[str] = tuple(MODES),
    progress: Callable[[str], Progress] | None = None,
) -> Rows:
    """Rows `exact_match_drop`, or the task's own measure, for sets of sites that are ablated together."""
    name = f"{examples.measure['metric']}_drop"
    rows: Rows = []
    for mode in modes:
        bar = None if progress is None else progress(f"sets, {mode}")
        outcomes = sweep(model, examples.rows, [each.swapped(mode) for each in sets], progress=bar)
        found = ablation_rows(model, outcomes)
        rows += [{**each, "study": "sets"} for each in found if each["metric"] == name]
    return say_where_modes_disagree(rows)


def ablation_row(
    outcomes: Outcomes, version: int, metric: str, estimate: dict[str, Any], scope: dict | None = None, **more: Any
) -> Row:
    """The row of one intervention of a sweep, compared with the intact model."""
    each = outcomes.interventions[version]
    name = {"head": each.name} if each.title is None else {"site": each.name, "size": len(each.sites)}
    about = {**name, "mode": each.replacement, "runner": outcomes.runner}
    decoding = more.pop("decoding", None)
    return row("ablation", metric, estimate, scope=scope, decoding=decoding, **about, **more)


def ablation_rows(
    model: PreTrainedModel, outcomes: Outcomes, metric: Metric | None = None, examples: Examples | None = None
) -> Rows:
    """All rows of a sweep over heads one at a time; `metric` is the one it was made with."""
    if hasattr(metric, "compute"):
        return _ranked(_module_rows(outcomes, metric))
    if outcomes.values is not None:
        assert outcomes.metric is not None  # whose values they are
        make = _share_rows if outcomes.values.dtype == bool else _mean_rows
        return _ranked(make(outcomes, outcomes.values, outcomes.metric, None))
    name = "exact_match" if is_sequence_model(model) else "accuracy"
    rows = _ranked(_share_rows(outcomes, outcomes.right, name, outcomes.decoding))
    _, _, loss = outcomes.by_labels()
    for version in range(1, len(loss)):
        rise = mean_with_interval(loss[version] - loss[0])
        rows.append(ablation_row(outcomes, version, "loss_rise", rise))
    return rows if examples is None else rows + _part_rows(outcomes, examples, name)


def _share_rows(outcomes: Outcomes, right: NDArray, name: str, decoding: str | None) -> Rows:
    """Right or wrong: paired drop, exact McNemar test over all heads together, class."""
    intact = right[0].astype(bool)
    p_values = [mcnemar(intact, ablated) for ablated in right[1:]]
    rows = []
    for version, (p_value, p_holm) in enumerate(zip(p_values, holm(p_values), strict=True), start=1):
        drop = paired_drop(intact, right[version])
        estimates = {
            "intact": rate(int(intact.sum()), len(intact)),
            "ablated": rate(int(right[version].sum()), len(intact)),
        }
        alone = len(outcomes.interventions[version].sites) == 1
        tests = {"p_value": p_value, "p_holm": p_holm, **classify(drop, alone)}
        rows.append(ablation_row(outcomes, version, f"{name}_drop", drop, decoding=decoding, **estimates, **tests))
    return rows


NO_CLASS = {"class": None, "class_is_certain": None}


def _mean_rows(outcomes: Outcomes, values: NDArray, name: str, decoding: str | None) -> Rows:
    """Numbers: mean drop over examples, intact minus ablated, with a paired t interval and test."""
    drops = values[0] - values[1:]
    p_values = [1.0 if np.ptp(drop) == 0 else float(stats.ttest_1samp(drop, 0.0).pvalue) for drop in drops]
    rows = []
    for version, (p_value, p_holm) in enumerate(zip(p_values, holm(p_values), strict=True), start=1):
        estimates = {"intact": mean_with_interval(values[0]), "ablated": mean_with_interval(values[version])}
        tests: dict[str, Any] = {"p_value": p_value, "p_holm": p_holm, **NO_CLASS}
        drop = mean_with_interval(drops[version - 1])
        rows.append(ablation_row(outcomes, version, f"{name}_drop", drop, decoding=decoding, **estimates, **tests))
    return rows


def _module_rows(outcomes: Outcomes, metric: Any) -> Rows:
    """The difference of an `evaluate` metric on all examples; its interval by resampling, the same for both."""
    answers, references, _ = outcomes.by_labels()
    n = len(references)
    draws = np.random.default_rng(0).integers(0, n, (RESAMPLES, n))

    # `compute` writes every example to disk and reads it again; for the resamples the metric itself is enough.
    resampled = getattr(metric, "_compute", metric.compute)

    def compute(tokens: NDArray, chosen: Any, by: Callable = resampled) -> float:
        found, wanted = tokens[chosen].ravel(), references[chosen].ravel()
        real = wanted != IGNORED
        result = by(predictions=found[real].tolist(), references=wanted[real].tolist())
        return float(next(iter(result.values())))

    whole = [compute(tokens, slice(None), metric.compute) for tokens in answers]
    intact = np.array([compute(answers[0], draw) for draw in draws])
    rows = []
    for version in range(1, len(whole)):
        drops = intact - np.array([compute(answers[version], draw) for draw in draws])
        interval = np.quantile(drops, [0.025, 0.975]).tolist()
        drop = {"value": whole[0] - whole[version], "n": n, "interval": interval}
        estimates = {"intact": {"value": whole[0], "n": n}, "ablated": {"value": whole[version], "n": n}}
        tests: dict[str, Any] = {"p_value": None, "p_holm": None, **NO_CLASS, "interval_by": f"{RESAMPLES} resamples"}
        rows.append(ablation_row(outcomes, version, f"{outcomes.metric}_drop", drop, **estimates, **tests))
    return rows


def _part_rows(outcomes: Outcomes, examples: Examples, name: str) -> Rows:
    """The drop for every value of every fact, and for every place of the answer."""
    right, hits, rows = outcomes.right, outcomes.hits, []
    places = answer_places(examples, outcomes.by_labels()[1]) if examples.task.kind != "label" else None
    for version in range(1, len(right)):
        for fact, values in examples.facts.items():
            for value in np.unique(values).tolist():
                own, scope = values == value, {fact: value}
                drop = paired_drop(right[0][own], right[version][own])
                rows.append(ablation_row(outcomes, version, f"{name}_drop", drop, scope, decoding=outcomes.decoding))
        if places is None:
            continue
        for place in range(places.max() + 1):
            own = places == place
            drop, scope = paired_drop(hits[0][own], hits[version][own]), {"place": place}
            rows.append(ablation_row(outcomes, version, "place_accuracy_drop", drop, scope, decoding="teacher-forced"))
    return rows


def answer_places(examples: Examples, labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """(N, T): the place of each label in its answer, as evaluation counts them; -1 for <eos> and where none is."""
    is_symbol = labels >= examples.task.vocabulary.first
    number = np.cumsum(is_symbol, -1) - 1
    if place_zero(examples) == "last":
        number = is_symbol.sum(-1, keepdims=True) - 1 - number
    return np.where(is_symbol, number, -1)


def classify(drop: dict[str, Any], alone: bool = True) -> dict[str, Any]:
    """Critical (> 10 points), important (1 to 10) or, below that, not needed alone; of a set, redundant.

    And whether the whole interval says so.
    """

    def name(value: float) -> str:
        small = NOT_NEEDED_ALONE if alone else REDUNDANT
        return "critical" if value > CRITICAL else "important" if value >= IMPORTANT else small

    low, high = drop["interval"]
    return {"class": name(drop["value"]), "class_is_certain": name(low) == name(high)}


def _ranked(rows: Rows) -> Rows:
    """The head that costs most first."""
    rows = sorted(rows, key=lambda each: -each["value"])
    return [{**each, "rank": rank} for rank, each in enumerate(rows, start=1)]
