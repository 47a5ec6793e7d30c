"""What a sweep is asked to do, checked; and what it found.

Shapes: V interventions, the intact model first; N examples, T labelled places, B rows of a batch, L tokens.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from ...data_builders.vocabulary import IGNORED
from .batches import batch_rows, read_tokens, token_at
from .intervention import Intervention
from .measures import Measure
from .sites import POSITION, Site


class FindsTokens(Protocol):
    """What tokens stand for; `data_builders.tasks.Roles` does it."""

    def where(self, name: str, index: int | None = None) -> NDArray[np.bool_]: ...


RoleFinders = Mapping[str, FindsTokens]  # "input": of the input ids, "answer": of the labels
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Plan:
    """A model, all batches, and the interventions to carry out on each of them."""

    model: PreTrainedModel
    batches: list[dict[str, Any]]
    interventions: list[Intervention]
    measure: Measure
    sources: list[dict[str, Any]] | None = None
    contrasts: Tensor | None = (
        None  # (N, T), or (N,) for classes: a token beside each label, from which it is told apart
    )
    roles: RoleFinders | None = None
    run: Callable | None = None
    seed: int = 0
    resume: str | Path | None = None
    progress: Progress | None = None

    @property
    def replacements(self) -> set[str]:
        """All kinds that are needed."""
        return {kind for each in self.interventions for kind in each.replacements}

    @property
    def roles_named(self) -> set[str]:
        """Those of all sites."""
        return {site.role for each in self.interventions for site in each.touched if site.role is not None}

    def starts(self) -> list[int]:
        """The number of each batch's first row among all rows."""
        return np.cumsum([0, *map(batch_rows, self.batches)])[:-1].tolist()

    def contrasts_of(self, start: int, batch: Mapping[str, Any]) -> Tensor | None:
        """Those of a batch that begins at this row, as wide as its labels."""
        if self.contrasts is None:
            return None
        labels = batch["labels"]
        own = self.contrasts[start : start + len(labels)]
        return own if labels.ndim == 1 else own[:, : labels.shape[1]]

    def report(self, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(done, total)


def check_plan(plan: Plan) -> None:
    """Raises where something asked for would have no effect or makes no sense."""
    if plan.run is not None and (plan.replacements - {"zero"} or plan.roles_named):
        raise ValueError(
            "replacements other than zero, and roles, need the model's own forward; expected neither with `run`."
        )
    if ("source" in plan.replacements) != (plan.sources is not None):
        wanted = "sources" if plan.sources is None else "an intervention with replacement='source'"
        raise ValueError(f"sources and replacement='source' belong together; expected {wanted} too.")
    if plan.sources is not None:
        _check_sources(plan.batches, plan.sources)
    if plan.contrasts is not None and not plan.measure.by_labels:
        raise ValueError("contrasts are compared with labels; expected them without a metric.")
    if plan.contrasts is not None and len(plan.contrasts) != sum(map(batch_rows, plan.batches)):
        raise ValueError(f"contrasts are for {len(plan.contrasts)} examples; expected one row for each example.")
    if plan.roles_named - {POSITION} and plan.roles is None:
        raise ValueError(
            "a site names a role, but roles were not given; expected roles={'input': ..., 'answer': ...}."
        )


def _check_sources(batches: list[dict[str, Any]], sources: list[dict[str, Any]]) -> None:
    def shapes(batch: dict[str, Any]) -> dict[str, tuple]:
        return {name: tuple(value.shape) for name, value in batch.items() if isinstance(value, Tensor)}

    same = len(batches) == len(sources) and all(
        shapes(batch) == shapes(source) and _same(batch, source, "attention_mask")
        for batch, source in zip(batches, sources, strict=True)
    )
    if not same:
        raise ValueError(
            "sources differ from the batches in number or lengths; expected one of the same length for each."
        )


def _same(first: Mapping[str, Any], second: Mapping[str, Any], name: str) -> bool:
    return name not in first or torch.equal(first[name].cpu(), second[name].cpu())


def role_mask(plan: Plan, site: Site) -> Tensor:
    """(N, L): the tokens that a site names by its role."""
    answers = site.stack == "decoder" and getattr(plan.model.config, "is_encoder_decoder", False)
    side = "answer" if answers else "input"
    if site.role == POSITION:
        return _position_mask(plan, site, answers)
    roles = plan.roles or {}
    if side not in roles:
        raise ValueError(f"{site} needs the roles of the {side}; expected roles[{side!r}].")
    assert site.role is not None  # asked of sites with a role alone
    found = torch.from_numpy(np.ascontiguousarray(roles[side].where(site.role, site.index)))
    rows = sum(map(batch_rows, plan.batches))
    if found.ndim != 2 or len(found) != rows:
        raise ValueError(
            f"roles have shape {tuple(found.shape)}; expected ({rows}, tokens): one row for each example."
        )
    return found


def _position_mask(plan: Plan, site: Site, answers: bool) -> Tensor:
    """(N, L): one token of every row, counted from 0, or from the end by -1, without padding."""
    assert site.index is not None  # the grammar insists on it
    masks = [read_tokens(batch, answers) for batch in plan.batches]
    width, parts = max(mask.shape[1] for mask in masks), []
    for batch in plan.batches:
        try:
            places = token_at(batch, site.index, answers)
        except ValueError as error:
            raise ValueError(f"{site} is not there: {error}") from None
        parts.append(torch.nn.functional.one_hot(places, width).bool())
    return torch.cat(parts)


@dataclass(frozen=True)
class Outcomes:
    """What the model does under every intervention on every example. Labels decide, or a metric's values."""

    interventions: list[Intervention]  # the first is empty: the intact model
    runner: str
    decoding: str | None = None
    tokens: NDArray[np.int64] | None = None  # (V, N, T): argmax for every label; -100 where there is no label
    labels: NDArray[np.int64] | None = None  # (N, T)
    loss: NDArray[np.float32] | None = None  # (V, N): summed over the labels of an example
    margins: NDArray[np.float32] | None = None  # (V, N, T): logit of the label minus that of its contrast
    values: NDArray | None = None  # (V, N)
    metric: str | None = None
    notes: list[str] = field(default_factory=list)  # why a runner that comes first was not taken

    @property
    def right(self) -> NDArray[np.bool_]:
        """(V, N): every label is the argmax, given the labels before it."""
        tokens, labels, _ = self.by_labels()
        return (tokens == labels).all(-1)

    @property
    def hits(self) -> NDArray[np.bool_]:
        """(V, N, T): the argmax is right, given the right tokens before it; False where there is no label."""
        tokens, labels, _ = self.by_labels()
        return (tokens == labels) & (labels != IGNORED)

    def by_labels(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
        """Tokens, labels and loss; an error where a metric was measured instead."""
        if self.tokens is None or self.labels is None or self.loss is None:
            raise ValueError(f"the metric {self.metric} was measured, not labels; expected a sweep without a metric.")
        return self.tokens, self.labels, self.loss
