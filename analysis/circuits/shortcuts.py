"""How good estimates of what nodes and edges do are, beside what it really costs to replace each.

For every estimate (`gradient`, `eap`, `eap-ig`) and for nodes and edges, rows of study "shortcuts":

    correlation, rank_correlation   Pearson's and Spearman's between estimated and exact changes
    sign_agreement                  of what changes anything, the share whose change has the estimated sign
    top_found                       of the quarter with the largest exact changes, the share in the estimated quarter
    circuit_f1                      the largest estimates, as many as a circuit has members, against the circuit

`gradient` has no sign and is compared with the sizes of exact changes. All changes are of the metric or, without one,
of minus the loss, mean over examples.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedModel

from ...records.intervals import rank_correlation, rate
from ...records.rows import Rows, row
from ..interventions.measures import Metric
from .attribution_patching import correlation
from .circuit import Circuit
from .graph import edge_obstacle
from .methods import ESTIMATES
from .trials import EDGES, NODES, ChosenData, Data, Trials


WITHOUT_SIGN = ("gradient",)
TOP = 0.25


def shortcut_rows(
    model: PreTrainedModel,
    data: Data,
    metric: Metric | None = None,
    ablation: str = "mean",
    *,
    circuit: Circuit | None = None,
    seed: int = 0,
) -> Rows:
    """Every estimate against exact changes of single nodes and, of own models, single edges.

    >>> import torch
    >>> from headcount import HeadcountConfig, HeadcountForCausalLM
    >>> model = HeadcountForCausalLM(HeadcountConfig(architecture="decoder", num_hidden_layers=1))
    >>> ids = torch.randint(3, 9, (6, 5), generator=torch.Generator().manual_seed(0))
    >>> metric = lambda outputs, batch: outputs.logits[:, -1, 7]
    >>> rows = shortcut_rows(model, {"input_ids": ids, "labels": ids}, metric)
    >>> sorted({(row["method"], row["level"]) for row in rows})[:2]
    [('eap', 'edges'), ('eap', 'nodes')]

    Args:
        model: one of headcount's own, or any transformers model (nodes alone, and no integrated gradients).
        data: labelled examples, or a pair `(base, source)` for `ablation="source"`.
        metric: a differentiable function of outputs and batch, one value per example; without it, minus the loss.
        ablation: what takes the place of what is replaced.
        circuit: whose nodes and edges the largest estimates are compared with.
        seed: draws the partners of `resample`.

    Returns:
        Rows as the head of this file lists them; `value` is None where one side does not vary.
    """
    trials = Trials(model, ChosenData.of(model, data, ablation), ablation, metric, seed)
    with_edges = edge_obstacle(model) is None
    rows: Rows = []
    for level in (NODES, EDGES) if with_edges else (NODES,):
        every: tuple[Any, ...] = trials.nodes if level == NODES else trials.runs.graph.edges
        exact = exact_changes(trials, level)
        chosen = None if circuit is None else circuit.nodes if level == NODES else circuit.edges
        for name, scores in ESTIMATES.items():
            if name == "eap-ig" and not with_edges:
                continue
            guessed = scores(trials, level)
            about: dict[str, Any] = {"method": name, "level": level, "mode": ablation, "by": _measured(trials)}
            signed = name not in WITHOUT_SIGN
            for metric_name, estimate in compare(guessed, exact if signed else np.abs(exact), signed).items():
                rows.append(row("shortcuts", metric_name, estimate, **about))
            if chosen:
                top = {every[number] for number in np.argsort(-np.abs(guessed), kind="stable")[: len(chosen)]}
                found = {**rate(len(top & set(chosen)), len(chosen)), "interval": None}  # nodes are no sample
                about |= {"size": len(chosen), "by_chance": len(chosen) / len(every)}
                rows.append(row("shortcuts", "circuit_f1", found, **about))
    return rows


def exact_changes(trials: Trials, level: str) -> NDArray[np.float64]:
    """By how much the metric, or minus the loss, really changes if each node or edge is replaced alone."""
    every: tuple[Any, ...] = trials.nodes if level == NODES else trials.runs.graph.edges
    found = trials.keep(level, [[other for other in every if other != one] for one in every])
    return found.fine.mean(-1) - trials.intact.fine.mean()


def compare(guessed: NDArray[np.float64], exact: NDArray[np.float64], signed: bool = True) -> dict[str, dict]:
    """Estimates against exact changes, one of each for every node or edge.

    >>> found = compare(np.array([3.0, -1.0, 0.5, 0.1]), np.array([2.0, -1.5, -0.2, 0.0]))
    >>> round(found["sign_agreement"]["value"], 3), found["top_found"]["value"]
    (0.667, 1.0)
    """
    n = len(exact)
    found: dict[str, dict] = {
        "correlation": {"value": correlation(guessed, exact), "n": n},
        "rank_correlation": {"value": rank_correlation(guessed, exact), "n": n},
    }
    moves = np.abs(exact) > 1e-6 * max(1.0, float(np.abs(exact).max(initial=0.0)))
    if signed and moves.any():
        agrees = np.sign(guessed[moves]) == np.sign(exact[moves])
        found["sign_agreement"] = {"value": float(agrees.mean()), "n": int(moves.sum())}
    top = max(1, round(TOP * n))
    largest, thought = (set(np.argsort(-np.abs(each), kind="stable")[:top].tolist()) for each in (exact, guessed))
    found["top_found"] = {"value": len(largest & thought) / top, "n": top}
    return found


def _measured(trials: Trials) -> str:
    return "loss" if trials.is_share else trials.name
