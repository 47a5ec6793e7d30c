"""Examples: problems with their tokens as tensors and with what is known of each.

Shapes: N examples, L tokens, T labelled places.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .tasks import Pairs, Problems, Roles, Task
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
    """Counterfactual pairs as examples; `index` (N,) is the place at which the variable differs."""

    variable: str
    base: Examples
    source: Examples
    index: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.base)

    def __getitem__(self, rows: NDArray | slice) -> "PairedExamples":
        return PairedExamples(self.variable, self.base[rows], self.source[rows], self.index[rows])


def tensors(arrays: dict[str, NDArray]) -> dict[str, Tensor]:
    return {name: torch.from_numpy(np.ascontiguousarray(values)) for name, values in arrays.items()}


def make_examples(task: Task, options: Any, problems: Problems, style: str) -> Examples:
    """`style` is the architecture of the model that is to read them."""
    return Examples(task, options, problems, tensors(task.encode(problems, style, options)), task.facts(problems))


def make_pairs(task: Task, options: Any, variable: str, pairs: Pairs, style: str) -> PairedExamples:
    base, source = (make_examples(task, options, side, style) for side in (pairs.base, pairs.source))
    return PairedExamples(variable, base, source, pairs.index)


def is_labelled(labels: Tensor) -> Tensor:
    return labels != IGNORED
