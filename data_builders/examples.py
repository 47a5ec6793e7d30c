"""Examples: problems with their tokens as tensors and with what is known of each.

Shapes: N examples, L tokens, T labelled places.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .tasks import Pairs, Problems, Roles, Task, Variable
from .vocabulary import IGNORED


@dataclass(frozen=True)
class Examples:
    """Examples of one task. `facts` are arrays (N,) by which results are broken down, such as `longest_chain`."""

    task: Task
    options: Any
    problems: Problems
    rows: dict[str, Tensor]  # input_ids (N, L), labels (N, T) or (N,), attention_mask (N, L) where rows are padded
    facts: dict[str, NDArray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows["input_ids"])

    def __getitem__(self, index: NDArray | slice) -> "Examples":
        chosen = np.arange(len(self))[index]
        rows = {name: values[torch.as_tensor(chosen)] for name, values in self.rows.items()}
        facts = {name: values[chosen] for name, values in self.facts.items()}
        return Examples(self.task, self.options, self.problems[chosen], rows, facts)

    @property
    def measure(self) -> dict[str, Any]:
        """How rows name the share of examples that a model gets right."""
        return self.task.measure

    def roles(self, side: str = "input") -> Roles:
        """What the tokens of `input_ids`, or the labels (`side="answer"`), stand for."""
        return self.task.roles(self.rows["input_ids" if side == "input" else "labels"].numpy(), side, self.options)

    def batches(self, size: int) -> Iterator[dict[str, Tensor]]:
        for start in range(0, len(self), size):
            yield {name: values[start : start + size] for name, values in self.rows.items()}


@dataclass(frozen=True)
class PairedExamples:
    """Counterfactual pairs as examples; `index` (N,) is the place at which the variable is taken from the source.

    `expected` are the base's questions with the answers that are right if just this variable is the source's.
    """

    variable: str
    kind: str
    base: Examples
    source: Examples
    expected: Examples
    index: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.base)

    def __getitem__(self, rows: NDArray | slice) -> "PairedExamples":
        base, source, expected = (side[rows] for side in (self.base, self.source, self.expected))
        return PairedExamples(self.variable, self.kind, base, source, expected, self.index[rows])

    @property
    def about(self) -> Variable:
        return self.base.task.variables[self.variable]

    def roles(self, side: str) -> "PlacesNearby":
        """The tokens at the pairs' own places, by name: `column`, `left`; and every role of the task."""
        return PlacesNearby(self.expected.roles(side), self.about, self.index)


@dataclass(frozen=True)
class PlacesNearby:
    """Roles of pairs: the place at which a pair differs, and places nearby, by the names of the variable."""

    roles: Roles
    variable: Variable
    index: NDArray[np.int64]

    def where(self, name: str, index: int | None = None) -> NDArray[np.bool_]:
        """(N, L): the tokens of this name."""
        distances = {self.variable.place: 0, **self.variable.near}
        if name not in distances:
            return self.roles.where(name, index)
        if index is not None:
            raise ValueError(f"@{name} follows each pair; expected it without ({index}).")
        place = self.index + distances[name]
        return (self.roles.index == place[:, None]) & (place >= 0)[:, None]  # below the first, there is none


def tensors(arrays: dict[str, NDArray]) -> dict[str, Tensor]:
    return {name: torch.from_numpy(np.ascontiguousarray(values)) for name, values in arrays.items()}


def make_examples(task: Task, options: Any, problems: Problems, style: str) -> Examples:
    """`style` is the architecture of the model that is to read them."""
    return Examples(task, options, problems, tensors(task.encode(problems, style, options)), task.facts(problems))


def make_pairs(
    task: Task, options: Any, variable: str, pairs: Pairs, style: str, kind: str = "minimal"
) -> PairedExamples:
    base, source = (make_examples(task, options, side, style) for side in (pairs.base, pairs.source))
    expected = replace(base, rows=tensors(task.encode(pairs.base, style, options, pairs.answers)))
    return PairedExamples(variable, kind, base, source, expected, pairs.index)


def is_labelled(labels: Tensor) -> Tensor:
    return labels != IGNORED
