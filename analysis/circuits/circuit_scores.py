"""How far a circuit accounts for a model, on examples that it was not chosen on.

    faithfulness   the circuit alone: its share right over the model's; `by` loss or another metric, how far it goes
                   from the empty circuit (0) to the model (1)
    complement     the share right without the circuit, beside `empty` (everything replaced) and `chance` (the
                   commonest answer); a complete circuit leaves no more than these (completeness)
    removal_cost   for each node and edge, the faithfulness that the circuit loses without it (minimality)
    curve          the faithfulness of circuits of other sizes that the search came by
    cpr, cmd       the area under that curve, and between it and 1, over the share of nodes or edges from 0 to 1

Faithfulness, completeness and minimality are Wang et al.'s (2022, arXiv 2211.00593). CPR and CMD are those of MIB
(Mueller et al. 2025, arXiv 2504.13151): with f(k) = (m(circuit of share k) - m(empty)) / (m(model) - m(empty)),

    CPR = integral of f(k) dk        CMD = integral of |1 - f(k)| dk

by straight lines between at most 11 even steps and the circuit's own size, where MIB has 10 uneven ones. All of it
under zero, mean and resample ablation, on which scores depend (Miller et al. 2024, arXiv 2407.08734), beside random
circuits of equal size.

Shapes: V sets, N examples, R resamples.
"""

from collections.abc import Collection
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel

from ...records.intervals import mean_with_interval, paired_drop, rate, ratio_with_interval
from ...records.rows import Row, Rows, row
from ..heads.ablation import MODES
from ..interventions.measures import Metric
from ..interventions.plan import Progress
from .circuit import Circuit
from .graph import edge_name, graph_of
from .trials import EDGES, NODES, ChosenData, Data, Measured, Trials


RANDOM_CIRCUITS = 5
MOST_SIZES = 11  # of a curve
RESAMPLES = 500  # for the intervals of areas

UNMEASURED = {"value": None, "interval": None}  # where the empty circuit does what the model does

Sets = list[tuple[Any, ...]]


def score_circuit(
    model: PreTrainedModel,
    data: Data,
    circuit: Circuit,
    metric: Metric | None = None,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> Rows:
    """Rows of study "circuit" for any circuit, without curves.

    >>> import torch
    >>> from headcount import HeadcountConfig, HeadcountForCausalLM
    >>> config = HeadcountConfig(architecture="decoder", num_hidden_layers=1, num_attention_heads=2)
    >>> ids = torch.randint(3, 9, (6, 5), generator=torch.Generator().manual_seed(0))
    >>> circuit = Circuit(("decoder.0.mlp",), None, "mean")
    >>> metric = lambda outputs, batch: outputs.logits[:, -1, 7]
    >>> rows = score_circuit(HeadcountForCausalLM(config), {"input_ids": ids, "labels": ids}, circuit, metric)
    >>> rows[0]["metric"], rows[0]["mode"], rows[0]["size"], rows[0]["of"]
    ('faithfulness', 'zero', 1, 3)

    Args:
        model: the model that it is a circuit of.
        data: examples that it was not chosen on, as `find_circuit` takes them.
        circuit: what is kept.
        metric: one value per example, the higher the better; without it, right or wrong by the labels.
        seed: draws random circuits and partners.
        progress: called with the work done and all of it.

    Returns:
        Rows as the head of this file lists them.
    """
    return circuit_rows(model, ChosenData.of(model, data, circuit.ablation), circuit, {}, metric, seed, progress)


def circuit_rows(
    model: PreTrainedModel,
    data: ChosenData,
    circuit: Circuit,
    ladders: dict[str, Sets],
    metric: Metric | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Rows:
    """All rows; `ladders` are the sets of other sizes, of nodes and of edges, that a search came by."""
    rows: Rows = []
    modes = list(dict.fromkeys([*MODES, circuit.ablation]))
    for number, mode in enumerate(modes):
        own = data if mode == "source" else ChosenData(data.batches)
        trials = Trials(model, own, mode, metric, seed)
        rows += _Scores(trials, NODES, circuit, seed).rows(ladders.get(NODES, []))
        if circuit.edges is not None:
            rows += _Scores(trials, EDGES, circuit, seed).rows(ladders.get(EDGES, []))
        if progress is not None:
            progress(number + 1, len(modes))
    return rows


def rungs(sets: Sets, size: int) -> Sets:
    """Of the sets of a search at most `MOST_SIZES`, evenly spread, and the one of this size."""
    wanted = {*np.linspace(0, len(sets) - 1, min(MOST_SIZES, len(sets))).round().astype(int).tolist()}
    return [some for number, some in enumerate(sets) if number in wanted or len(some) == size]


class _Scores:
    """The rows of one circuit, made of nodes or of edges, under one ablation."""

    def __init__(self, trials: Trials, level: str, circuit: Circuit, seed: int):
        self.trials, self.level, self.circuit = trials, level, circuit
        self.kept: tuple[Any, ...] = circuit.nodes if level == NODES else circuit.edges or ()
        self.every: tuple[Any, ...] = trials.nodes if level == NODES else graph_of(trials.model).edges
        self.rng = np.random.default_rng(seed)
        self.measures = [("good", trials.name)] + ([("fine", "loss")] if trials.metric is None else [])

    def rows(self, ladder: Sets) -> Rows:
        without = [tuple(other for other in self.kept if other != one) for one in self.kept]
        outside = tuple(one for one in self.every if one not in set(self.kept))
        # Random circuits for every size of a curve would take longer than all else; they stand where it was searched.
        with_chance = self.level == NODES and self.trials.ablation == self.circuit.ablation
        sizes = [len(self.kept), *(len(some) for some in (ladder if with_chance else ()))]
        groups = [[self.kept], [outside], without, ladder, *(self._random(size) for size in sizes)]
        found = self.trials.keep(self.level, [some for group in groups for some in group])
        ends = np.cumsum([len(group) for group in groups])
        own, rest, less, curve, chance, *along = (
            found[end - len(group) : end] for group, end in zip(groups, ends, strict=True)
        )
        rows = [self._faithful("faithfulness", self.kept, own, 0, by, chance, self._members()) for by in self.measures]
        rows += self._complement(outside, rest)
        rows += [self._cost(one, own, less, number) for number, one in enumerate(self.kept)]
        for number, some in enumerate(ladder):
            beside = along[number] if along else None
            rows += [self._faithful("curve", some, curve, number, by, beside) for by in self.measures]
        if ladder:
            rows += [each for by in self.measures for each in self._areas(ladder, curve, by)]
        return rows

    def _random(self, size: int) -> Sets:
        draws = [sorted(self.rng.permutation(len(self.every))[:size]) for _ in range(RANDOM_CIRCUITS)]
        return [tuple(self.every[i] for i in draw) for draw in draws]

    def _members(self) -> dict[str, Any]:
        names = [str(one) if self.level == NODES else edge_name(one) for one in self.kept]
        return {self.level: names}

    def _row(self, metric: str, estimate: dict | None, size: int, by: str, **about: Any) -> Row:
        about = {"level": self.level, "mode": self.trials.ablation, "by": by, "size": size, **about}
        about |= {"of": len(self.every), "searched_under": self.circuit.ablation}
        return row("circuit", metric, estimate, decoding=self.trials.decoding, **about)

    def _share(self, found: Measured, version: int, which: str = "good") -> dict:
        values = getattr(found, which)[version]
        return rate(int(values.sum()), len(values)) if values.dtype == bool else mean_with_interval(values)

    def _estimate(self, found: Measured, version: int, which: str) -> dict:
        values, whole = (getattr(each, which) for each in (found, self.trials.intact))
        if which == "good" and self.trials.is_share:
            lost = relative_drop(whole[0], values[version], whole[0])
            low, high = lost["interval"]
            return {"value": 1 - lost["value"], "n": lost["n"], "interval": [1 - high, 1 - low]}
        gap = self.trials.gap(self.level, which)
        if gap is None:
            return UNMEASURED | {"n": values.shape[1]}
        return ratio_with_interval(values[version] - getattr(self.trials.empty(self.level), which)[0], gap)

    def _faithful(
        self,
        metric: str,
        kept: Collection[Any],
        found: Measured,
        version: int,
        by: tuple[str, str],
        chance: Measured | None,
        about: dict[str, Any] | None = None,
    ) -> Row:
        which, name = by
        about = {**(about or {}), "circuit": self._share(found, version, which)}
        about["intact"] = self._share(self.trials.intact, 0, which)
        if chance is not None:
            drawn = [self._estimate(chance, number, which)["value"] for number in range(RANDOM_CIRCUITS)]
            known = [value for value in drawn if value is not None]
            if known:
                n = chance.good.shape[1]
                about["random_mean"] = {"value": float(np.mean(known)), "n": n}
                about["random_best"] = {"value": max(known), "n": n}
                about["random_sets"] = RANDOM_CIRCUITS
        return self._row(metric, self._estimate(found, version, which), len(kept), name, **about)

    def _complement(self, outside: Collection[Any], rest: Measured) -> Rows:
        empty = self._share(self.trials.empty(self.level), 0)
        about: dict[str, Any] = {"empty": empty, "intact": self._share(self.trials.intact, 0)}
        about["chance"] = commonest_answer(self.trials.data) if self.trials.metric is None else None
        return [self._row("complement", self._share(rest, 0), len(outside), self.trials.name, **about)]

    def _cost(self, one: Any, own: Measured, less: Measured, number: int) -> Row:
        if self.trials.is_share:
            estimate = relative_drop(own.good[0], less.good[number], self.trials.intact.good[0])
        else:
            gap = self.trials.gap(self.level, "good")
            lost = own.good[0] - less.good[number]
            estimate = UNMEASURED | {"n": len(lost)} if gap is None else ratio_with_interval(lost, gap)
        about = {"site": str(one)} if self.level == NODES else {"edge": edge_name(one)}
        return self._row("removal_cost", estimate, len(self.kept), self.trials.name, **about)

    def _areas(self, ladder: Sets, curve: Measured, by: tuple[str, str]) -> Rows:
        which, name = by
        shares = np.array([len(some) / len(self.every) for some in ladder])
        order = np.argsort(shares)
        empty, whole = (getattr(each, which)[0] for each in (self.trials.empty(self.level), self.trials.intact))
        if self.trials.gap(self.level, which) is None:
            return []
        found = areas(shares[order], getattr(curve, which)[order], empty, whole)
        return [self._row(metric, estimate, len(self.kept), name) for metric, estimate in found.items()]


def relative_drop(before: NDArray[np.bool_], after: NDArray[np.bool_], whole: NDArray[np.bool_]) -> dict:
    """How much lower one share is than another, over the model's: `paired_drop` in units of what the model gets right.

    >>> before, after, whole = (np.array(right, bool) for right in ([1, 1, 1, 0], [1, 0, 1, 0], [1, 1, 0, 0]))
    >>> relative_drop(before, after, whole)["value"]
    0.5
    """
    drop, share = paired_drop(before, after), float(whole.mean())
    return {**drop, "value": drop["value"] / share, "interval": [end / share for end in drop["interval"]]}


def areas(
    shares: NDArray[np.float64], values: NDArray, empty: NDArray, whole: NDArray, seed: int = 0
) -> dict[str, dict]:
    """CPR and CMD of values (V, N) at rising shares (V,), with intervals by resampling the examples.

    >>> found = areas(np.array([0.0, 0.5, 1.0]), np.array([[0.0], [0.5], [1.0]]), np.array([0.0]), np.array([1.0]))
    >>> found["cpr"]["value"], found["cmd"]["value"]
    (0.5, 0.5)
    """
    n = values.shape[1]
    draws = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), RESAMPLES)
    weights = np.concatenate([np.full((1, n), 1 / n), draws / n])  # (1 + R, N): the examples as they are come first
    low, high = (weights @ side.astype(float) for side in (empty, whole))
    with np.errstate(divide="ignore", invalid="ignore"):  # some draws have no examples that tell the two apart
        curves = (weights @ values.astype(float).T - low[:, None]) / (high - low)[:, None]
        found = {"cpr": np.trapezoid(curves, shares), "cmd": _area_to_zero(1 - curves, shares)}

    def estimate(drawn: NDArray[np.float64]) -> dict:
        usual = drawn[1:][np.isfinite(drawn[1:])]
        interval = np.quantile(usual, [0.025, 0.975]).tolist() if n > 1 and len(usual) else None
        return {"value": float(drawn[0]), "n": n, "interval": interval}

    return {name: estimate(drawn) for name, drawn in found.items()}


def _area_to_zero(curves: NDArray[np.float64], shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Between straight lines and zero, which they may cross: then two triangles, not a trapezoid."""
    left, right, steps = curves[:, :-1], curves[:, 1:], np.diff(shares)
    both = np.abs(left) + np.abs(right)
    crosses = left * right < 0
    triangles = (left**2 + right**2) / np.where(crosses, 2 * both, 1.0)
    return (np.where(crosses, triangles, both / 2) * steps).sum(-1)


def commonest_answer(data: ChosenData) -> dict | None:
    """The share of examples whose labels are the commonest ones, all of them: what a constant answer gets right."""
    answers: list[tuple[int, ...]] = []
    for batch in data.batches:
        if "labels" not in batch:
            return None
        labels = torch.as_tensor(batch["labels"]).cpu()
        answers += [tuple(label for label in own if label >= 0) for own in labels.reshape(len(labels), -1).tolist()]
    most = max(answers.count(answer) for answer in set(answers))
    return {"value": most / len(answers), "n": len(answers)}
