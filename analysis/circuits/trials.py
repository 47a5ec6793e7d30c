"""What is left of a model if everything outside some nodes, or some edges, is replaced: on some examples, exactly.

Shapes: V sets of nodes or edges, N examples.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from ...modeling.modeling_headcount import HeadcountPreTrainedModel
from ..interventions.batches import Batches, as_batches, batch_rows, join_batches
from ..interventions.intervention import REPLACEMENTS, Intervention
from ..interventions.measures import Metric, is_sequence_model
from ..interventions.plan import Outcomes
from ..interventions.sites import Site, sites
from ..interventions.sweep import sweep
from .edge_runs import EdgeRuns
from .graph import Edge


NODES, EDGES = "nodes", "edges"  # what a circuit is made of

Batch = dict[str, Any]
Data = Batches | tuple[Batches, Batches]  # labelled examples; for `source`, the bases and their sources


@dataclass(frozen=True)
class ChosenData:
    """Labelled batches and, for `source`, those of the sources; some of the rows can be taken out."""

    batches: list[Batch]
    sources: list[Batch] | None = None

    @classmethod
    def of(cls, model: PreTrainedModel, data: Data, ablation: str) -> "ChosenData":
        """What a search is given, checked."""
        if ablation not in REPLACEMENTS:
            raise ValueError(f"ablation={ablation!r} is not known; expected one of {', '.join(REPLACEMENTS)}.")
        is_pair = isinstance(data, tuple) and len(data) == 2
        if is_pair != (ablation == "source"):
            given = "a pair (base, source)" if is_pair else f"a {type(data).__name__}"
            wanted = "a pair (base, source)" if ablation == "source" else "labelled batches, or ablation='source'"
            raise ValueError(f"the data are {given} with ablation={ablation!r}; expected {wanted}.")
        sides = [as_batches(side) for side in (data if is_pair else [data])]  # type: ignore[arg-type]
        if isinstance(model, HeadcountPreTrainedModel):
            sides = [[join_batches(side)] if _are_alike(side) else side for side in sides]
        return cls(sides[0], sides[1] if is_pair else None)

    def __len__(self) -> int:
        return sum(map(batch_rows, self.batches))

    def part(self, chosen: NDArray[np.int64]) -> "ChosenData":
        """These rows of all batches."""
        return ChosenData(_part(self.batches, chosen), None if self.sources is None else _part(self.sources, chosen))


def _are_alike(batches: list[Batch]) -> bool:
    """Whether all have the same inputs, of the same lengths."""
    shapes = [
        {name: tuple(value.shape[1:]) if isinstance(value, Tensor) else value for name, value in batch.items()}
        for batch in batches
    ]
    return all(isinstance(value, Tensor) for value in batches[0].values()) and all(own == shapes[0] for own in shapes)


def _part(batches: list[Batch], chosen: NDArray[np.int64]) -> list[Batch]:
    found, start = [], 0
    for batch in batches:
        count = batch_rows(batch)
        own = torch.from_numpy(chosen[(chosen >= start) & (chosen < start + count)] - start)
        if len(own):
            picked = {
                name: value[own.to(value.device)]
                for name, value in batch.items()
                if isinstance(value, Tensor) and value.ndim and len(value) == count
            }
            found.append({**batch, **picked})
        start += count
    return found


@dataclass(frozen=True)
class Measured:
    """Of every set and example: `good`, right or wrong, or a metric's value; `fine`, minus the loss, or that value."""

    good: NDArray
    fine: NDArray[np.float64]

    def __getitem__(self, versions: slice) -> "Measured":
        return Measured(self.good[versions], self.fine[versions])


class Trials:
    """A model on some examples, of which everything outside a set can be replaced.

    Args:
        model: one of headcount's own, or any transformers model whose heads `list_heads` finds; for edges, one of
            headcount's own with norm_position="pre".
        data: the examples.
        ablation: what takes the place of the rest.
        metric: one value per example, the higher the better; without it, right or wrong by the labels.
        seed: draws the partners for `resample`.
    """

    def __init__(
        self, model: PreTrainedModel, data: ChosenData, ablation: str, metric: Metric | None = None, seed: int = 0
    ):
        if hasattr(metric, "compute"):
            raise ValueError("the metric is one of `evaluate`; expected a function of outputs and batch, or none.")
        self.model, self.data, self.ablation, self.metric, self.seed = model, data, ablation, metric, seed
        self.nodes: tuple[Site, ...] = tuple(site for site in sites(model) if site.kind != "residual")
        outcomes = self._sweep([Intervention(self.nodes, replacement=ablation, title="everything")])
        found = measured(outcomes)
        self.intact, self._empty = found[:1], found[1:]
        self.decoding, self.is_share = outcomes.decoding, found.good.dtype == bool
        own = "exact_match" if is_sequence_model(model) else "accuracy"
        self.name: str = outcomes.metric or own
        self._check()

    def _check(self) -> None:
        good = self.intact.good
        if self.is_share and not good.any():
            raise ValueError(
                f"the model gets none of {good.shape[1]} examples right, so there is nothing to keep; expected "
                "examples that it solves, or a metric."
            )
        if not self.is_share and self.gap(NODES, "good") is None:
            raise ValueError(
                f"{self.name} is the same with every node replaced, so there is nothing to keep; expected examples "
                "on which nodes make a difference."
            )

    @cached_property
    def runs(self) -> EdgeRuns:
        return EdgeRuns(
            self.model, self.data.batches, self.ablation, self.metric, sources=self.data.sources, seed=self.seed
        )

    def keep_nodes(self, sets: Sequence[Collection[str]]) -> Measured:
        """Everything outside of each set replaced."""
        outside = [tuple(site for site in self.nodes if site not in set(kept)) for kept in sets]
        wanted = [Intervention(some, replacement=self.ablation, title="tried") for some in outside if some]
        found = measured(self._sweep(wanted))[1:] if wanted else self.intact[:0]
        numbers = iter(range(len(wanted)))
        place = [next(numbers) if some else -1 for some in outside]  # the whole model comes last
        joined = Measured(
            np.concatenate([found.good, self.intact.good]), np.concatenate([found.fine, self.intact.fine])
        )
        return Measured(joined.good[place], joined.fine[place])

    def keep_edges(self, sets: Sequence[Collection[Edge]]) -> Measured:
        """Every edge outside of each set cut."""
        kept = [set(some) for some in sets]
        return measured(self.runs.outcomes([[e for e in self.runs.graph.edges if e not in own] for own in kept]))

    def keep(self, level: str, sets: Sequence[Collection[Any]]) -> Measured:
        return self.keep_nodes(sets) if level == NODES else self.keep_edges(sets)

    def empty(self, level: str) -> Measured:
        """Every node replaced; every edge cut, those from the embeddings too."""
        return self._empty if level == NODES else self._no_edges

    @cached_property
    def _no_edges(self) -> Measured:
        return self.keep_edges([()])

    def faithfulness(self, level: str, found: Measured) -> NDArray[np.float64]:
        """(V,): the share right over that of the model; of a metric, how far it goes from empty (0) to whole (1)."""
        if self.is_share:
            return found.good.mean(-1) / self.intact.good.mean()
        empty = self.empty(level).good.mean()
        return (found.good.mean(-1) - empty) / (self.intact.good.mean() - empty)

    def gap(self, level: str, which: str) -> NDArray[np.float64] | None:
        """(N,): `good` or `fine` of the model minus that of the empty circuit; None where the means do not differ."""
        whole, empty = (getattr(each, which)[0].astype(float) for each in (self.intact, self.empty(level)))
        differs = abs(whole.mean() - empty.mean()) > 1e-6 * max(1.0, float(np.abs(whole - empty).max()))
        return whole - empty if differs else None

    def _sweep(self, wanted: list[Intervention]) -> Outcomes:
        data = self.data
        return sweep(self.model, data.batches, wanted, self.metric, sources=data.sources, seed=self.seed)


def measured(outcomes: Outcomes) -> Measured:
    if outcomes.values is not None:
        return Measured(outcomes.values, outcomes.values.astype(float))
    return Measured(outcomes.right, -outcomes.by_labels()[2].astype(float))
