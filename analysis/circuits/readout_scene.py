"""What a readout program may ask and answer: variables of a problem and of its source, and tokens made from them.

Shapes: N problems, T tokens of the answer.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ...data_builders.examples import Examples, PlacesNearby, make_examples, tensors
from ...data_builders.tasks import NOT_A_PLACE, Variable
from ...modeling.modeling_headcount import HeadcountPreTrainedModel
from ...trainers.trained_run import TrainedRun
from ...trainers.training_data import style_of
from ..interventions.measures import labels_in_place
from ..interventions.plan import RoleFinders


BELOW = 2  # how many places below its own a token's columns and rules reach
FEW_VALUES = 3

Tokens = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Scene:
    """Problems with a source beside each, and what the task says of both at every token of the answer."""

    model: HeadcountPreTrainedModel
    base: Examples
    source: Examples

    def __len__(self) -> int:
        return len(self.base)

    @cached_property
    def right(self) -> Tokens:
        """(N, T)"""
        return self._in_place(self.base.rows["labels"])

    @cached_property
    def of_source(self) -> Tokens:
        return self._in_place(self.source.rows["labels"])

    @cached_property
    def index(self) -> NDArray[np.int64]:
        """(N, T): the place that a token of the answer stands for; that of a class stands for none."""
        if self.base.task.kind == "label":
            return np.full_like(self.right, NOT_A_PLACE)
        return self._in_place(torch.from_numpy(self.base.roles("answer").index))

    @cached_property
    def values(self) -> dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Variable -> its values (N, places) in the problems and in the sources."""
        return {
            name: (about.values(self.base.problems), about.values(self.source.problems))
            for name, about in self.base.task.variables.items()
            if about.values is not None and about.answers is not None
        }

    def _in_place(self, labels: torch.Tensor) -> Tokens:
        return labels_in_place(self.model, labels).numpy()

    def roles(self, place: int, rows: NDArray[np.int64]) -> RoleFinders:
        """Of some of the problems: the tokens of one place, by the name that the task's variables have for it."""
        some = self.base[rows]
        at = np.full(len(some), place)
        sides = ("input",) if self.base.task.kind == "label" else ("input", "answer")
        return {side: PlacesNearby(some.roles(side), self.about, at) for side in sides}

    @property
    def about(self) -> Variable:
        return self.base.task.variables[next(iter(self.values))]

    def columns(self, token: int, written: Tokens) -> dict[str, NDArray[np.int64]]:
        """What a table may ask, (N,) each: variables at the token's place and below, and the token before it."""
        found: dict[str, NDArray[np.int64]] = {}
        for name, both in self.values.items():
            for side, values in zip(("base", "source"), both, strict=True):
                for distance in range(BELOW + 1):
                    own = _at(values, self.index[:, token] - distance)
                    if (own != own[0]).any():
                        found[f"{side}'s {name}{_below(distance)}"] = own
        if token:
            before, right, other = (side[:, token - 1] for side in (written, self.right, self.of_source))
            found["token before"] = np.select([before == right, before == other], [0, 1], 2)
        return found

    @cached_property
    def rules(self) -> list[dict[str, Tokens]]:
        """For every token of the answer, what a network may write, (N,) each; the simplest first."""
        return [self._rules(token) for token in range(self.right.shape[1])]

    def _rules(self, token: int) -> dict[str, Tokens]:
        found = {"base": self.right[:, token], "source": self.of_source[:, token]}
        for name, (own, others) in self.values.items():
            about = self.base.task.variables[name]
            for distance in range(BELOW + 1):
                place = self.index[:, token] - distance
                where = f"{name}{_below(distance)}"
                found[f"base, source's {where}"] = self._with(self.base, about, place, _at(others, place), token)
                found[f"source, base's {where}"] = self._with(self.source, about, place, _at(own, place), token)
                known = np.unique(own[own != NOT_A_PLACE])
                if len(known) <= FEW_VALUES:
                    for value in known.tolist():
                        given = np.full_like(place, value)
                        found[f"base, {where} = {value}"] = self._with(self.base, about, place, given, token)
        for each in np.unique(self.right[:, token]).tolist():
            found[f"always {each}"] = np.full(len(self), each)
        return found

    def _with(
        self, examples: Examples, about: Variable, place: NDArray[np.int64], value: NDArray[np.int64], token: int
    ) -> Tokens:
        """(N,): a token of the answer that is right if a variable had these values; where it has no such place, the
        token as it is.
        """
        assert about.values is not None and about.answers is not None  # chosen for them
        tokens = self._in_place(examples.rows["labels"])[:, token].copy()
        own = _at(about.values(examples.problems), place)
        rows = np.flatnonzero((own != NOT_A_PLACE) & (value != NOT_A_PLACE))
        if len(rows):
            some = examples.problems[rows]
            answers = about.answers(some, place[rows], value[rows])
            encoded = examples.task.encode(some, self.model.config.architecture, examples.options, answers)
            tokens[rows] = self._in_place(tensors(encoded)["labels"])[:, token]
        return tokens


def _at(values: NDArray[np.int64], place: NDArray[np.int64]) -> NDArray[np.int64]:
    """(N,): a variable at a place of each problem, NOT_A_PLACE where there is none."""
    inside = (place >= 0) & (place < values.shape[1])
    return np.where(inside, values[np.arange(len(values)), np.where(inside, place, 0)], NOT_A_PLACE)


def _below(distance: int) -> str:
    return f" {distance} below" if distance else ""


def make_scene(run: TrainedRun, problems: Any, purpose: str) -> Scene:
    """Problems, each with another one of the same length as its source."""
    task, corpus = run.recipe.the_task, run.corpus
    examples = make_examples(task, corpus.options, problems, style_of(run.recipe))
    lengths = (examples.rows["input_ids"] >= task.vocabulary.first).sum(-1).numpy()
    partner = np.arange(len(problems))
    rng = corpus.rng(f"readout/{purpose}")
    for length in np.unique(lengths):
        own = rng.permutation(np.flatnonzero(lengths == length))
        partner[own] = np.roll(own, 1)
    kept = np.flatnonzero(partner != np.arange(len(partner)))
    return Scene(run.model, examples[kept], examples[partner[kept]])
