"""The data of an analysis: rows of tokens, what is known about each example, and what each token stands for.

Shapes: N examples, L tokens of a sequence, T labelled places.
"""

from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..data_builders.carry_groups import name_groups
from ..data_builders.columns import Problems, solve
from ..data_builders.sortedness import KIND_NAMES
from ..data_builders.tokenization import (
    DIGIT_IDS,
    EOS,
    EQUALS_ID,
    PAD,
    PLUS_ID,
    SORTEDNESS_VOCABULARY,
    SPECIAL_TOKENS,
    encode_sortedness,
)


NO_COLUMN = -1


@dataclass(frozen=True)
class Examples:
    """Examples of one task. `facts` are arrays (N,) by which results are broken down, such as `longest_chain`."""

    task: str
    rows: dict[str, Tensor]
    facts: dict[str, NDArray] = field(default_factory=dict)
    problems: Problems | None = None
    answer_order: str | None = None

    @property
    def measure(self) -> dict[str, str]:
        """How rows name the share of examples that a model gets right."""
        if self.task == "sortedness":
            return {"metric": "accuracy"}
        return {"metric": "exact_match", "decoding": "free-running"}

    def __len__(self) -> int:
        return len(self.rows["input_ids"])

    def __getitem__(self, index: NDArray) -> "Examples":
        rows = {name: values[torch.as_tensor(index)] for name, values in self.rows.items()}
        facts = {name: values[index] for name, values in self.facts.items()}
        problems = None if self.problems is None else self.problems[index]
        return Examples(self.task, rows, facts, problems, self.answer_order)


def addition_examples(problems: Problems, rows: dict[str, Tensor], answer_order: str) -> Examples:
    solution = solve(problems.a, problems.b)
    facts = {
        "longest_chain": solution.longest_chain,
        "group": name_groups(problems),
        "carry": np.where(solution.longest_chain > 0, "with", "without"),
    }
    return Examples("addition", rows, facts, problems, answer_order)


def sortedness_examples(groups: list[dict[str, NDArray]]) -> Examples:
    """From groups of equal length, `{"values": (N, L), "label": (N,), "kind": (N,)}`; shorter ones are padded."""
    width = max(group["values"].shape[1] for group in groups)
    padded, mask = [], []
    for group in groups:
        ids = encode_sortedness(group["values"])
        padded.append(np.pad(ids, ((0, 0), (0, width - ids.shape[1])), constant_values=PAD))
        mask.append(np.repeat((np.arange(width) < ids.shape[1])[None].astype(np.int64), len(ids), 0))
    rows = {
        "input_ids": torch.from_numpy(np.concatenate(padded)),
        "labels": torch.from_numpy(np.concatenate([group["label"] for group in groups]).astype(np.int64)),
    }
    attention_mask = torch.from_numpy(np.concatenate(mask))
    if not bool(attention_mask.all()):
        rows["attention_mask"] = attention_mask
    facts = {"length": attention_mask.sum(-1).numpy()}
    if all("kind" in group for group in groups):
        facts["kind"] = np.array(KIND_NAMES)[np.concatenate([group["kind"] for group in groups])]
    return Examples("sortedness", rows, facts)


def token_names(ids: list[int], vocabulary: int) -> list[str]:
    """How tokens are written on the axis of a figure."""
    names = list(SPECIAL_TOKENS)
    names += [str(value) for value in range(100)] if vocabulary == SORTEDNESS_VOCABULARY else list("0123456789+=")
    return [names[token] if 0 <= token < len(names) else "?" for token in ids]


def input_columns(input_ids: Tensor) -> Tensor:
    """(N, L): the column (units 0) that each operand digit of an addition problem stands in; -1 for other tokens."""
    slots = torch.arange(input_ids.shape[1])
    plus = (input_ids == PLUS_ID).int().argmax(-1, keepdim=True)
    ends = (input_ids == EQUALS_ID) | ((input_ids == EOS) & (slots > plus))
    end = ends.int().argmax(-1, keepdim=True)
    column = torch.where(slots < plus, plus - 1 - slots, end - 1 - slots)
    is_operand = _is_digit(input_ids) & (slots < end)
    return column.masked_fill(~is_operand, NO_COLUMN)


def label_columns(labels: Tensor, answer_order: str) -> Tensor:
    """(N, T): the column of the answer digit that each label is; -1 for <eos> and places without a label."""
    is_digit = _is_digit(labels)
    number = is_digit.long().cumsum(-1) - 1
    column = number if answer_order == "reversed" else is_digit.sum(-1, keepdim=True) - 1 - number
    return column.masked_fill(~is_digit, NO_COLUMN)


def _is_digit(tokens: Tensor) -> Tensor:
    return (tokens >= DIGIT_IDS[0]) & (tokens <= DIGIT_IDS[-1])
