"""Data collators: rows of a corpus to a padded batch of tensors that the models take as it is.

A batch in which nothing is padded has no `attention_mask`: the models need none then, and are faster without.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from .tasks import Task
from .tokenization import HeadcountTokenizer, make_tokenizer
from .vocabulary import IGNORED, PAD


def make_collator(task: Task, style: str | None = None, model: Any = None) -> "AnswerCollator | LabelCollator":
    """The collator for rows of a task's data folder.

    >>> from headcount.data_builders.registry import TASKS
    >>> collate = make_collator(TASKS["addition"])
    >>> collate([{"input": "374+814", "target": "1188"}])["labels"].tolist()
    [[4, 4, 11, 11, 2]]
    """
    tokenizer = make_tokenizer(task, style)
    return LabelCollator(tokenizer, model) if task.kind == "label" else AnswerCollator(tokenizer, task, model)


@dataclass
class AnswerCollator:
    """Rows with `input` and `target` texts, or already with `input_ids` and `labels`, to one batch.

    With `model`, decoder inputs come from its `prepare_decoder_input_ids_from_labels` and position ids from its
    `make_position_ids`, the functions that it uses itself. Other columns of the rows are left out of the batch.
    Sequences are padded on the right, which is right for training; prompts for `generate()` of a decoder-only model
    are what the tokenizer pads on the left.
    """

    tokenizer: HeadcountTokenizer
    task: Task
    model: Any = None

    def __call__(self, rows: list[dict[str, Any]]) -> dict[str, Tensor]:
        rows = [row if "input_ids" in row else self._encode(row) for row in rows]
        for row in rows:
            if "labels" not in row:
                raise ValueError(f"a row has only {sorted(row)}; expected input and target, or input_ids and labels.")
        batch = pad_inputs([torch.as_tensor(row["input_ids"]) for row in rows])
        labels = [torch.as_tensor(row["labels"]) for row in rows]
        batch["labels"] = pad_sequence(labels, batch_first=True, padding_value=IGNORED)
        if hasattr(self.model, "prepare_decoder_input_ids_from_labels"):
            batch["decoder_input_ids"] = self.model.prepare_decoder_input_ids_from_labels(batch["labels"])
        return add_position_ids(batch, self.model)

    def _encode(self, row: dict[str, Any]) -> dict[str, Any]:
        missing = [name for name in ("input", "target") if name not in row]
        if missing:
            raise ValueError(f"a row has no {missing[0]!r} but {sorted(row)}; expected input and target.")
        if self.tokenizer.padding_side == "right":
            return {
                "input_ids": self.tokenizer(row["input"])["input_ids"],
                "labels": self.tokenizer(row["target"])["input_ids"],
            }
        ids = self.tokenizer(self.task.vocabulary.prompt(row["input"]), row["target"])["input_ids"]
        prompt = ids.index(self.task.vocabulary.answer_mark_id) + 1
        return {"input_ids": ids, "labels": [IGNORED] * prompt + ids[prompt:]}


@dataclass
class LabelCollator:
    """Rows with `values` (or an `input` text) and `label` to one batch; position ids by `model.make_position_ids`."""

    tokenizer: HeadcountTokenizer
    model: Any = None

    def __call__(self, rows: list[dict[str, Any]]) -> dict[str, Tensor]:
        texts = [
            row["input"] if "input" in row else " ".join(str(int(value)) for value in row["values"]) for row in rows
        ]
        for text in texts:
            if not text:
                raise ValueError("a row has no values; expected at least one.")
        batch = pad_inputs([torch.as_tensor(self.tokenizer(text)["input_ids"]) for text in texts])
        batch["labels"] = torch.tensor([int(row["label"]) for row in rows])
        return add_position_ids(batch, self.model)


def pad_inputs(sequences: list[Tensor]) -> dict[str, Tensor]:
    """`input_ids`, padded on the right, and `attention_mask` if anything is padded."""
    batch = {"input_ids": pad_sequence(sequences, batch_first=True, padding_value=PAD)}
    lengths = torch.tensor([len(sequence) for sequence in sequences])
    longest = batch["input_ids"].shape[1]
    if (lengths < longest).any():
        batch["attention_mask"] = (torch.arange(longest) < lengths[:, None]).long()
    return batch


def add_position_ids(batch: dict[str, Tensor], model: Any) -> dict[str, Tensor]:
    """Adds the ids of the model's position scheme for `input_ids`, one row per example.

    A decoder's ids are not in the batch: the model makes them from the decoder inputs by the same function, and
    `generate()`, which trainers call with the same batch, has decoder inputs of its own.
    """
    if hasattr(model, "make_position_ids"):
        count = len(batch["input_ids"])
        ids = model.make_position_ids(batch["input_ids"], batch.get("attention_mask"))
        batch["position_ids"] = ids.expand(count, -1)
    return batch
