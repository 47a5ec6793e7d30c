"""What the model answers with one head switched off: every shown example, every head, really generated.

The other sweeps ask whether an answer stays right and can do so in one parallel pass. Here the wrong answer itself is
wanted, and a wrong digit changes what the decoder reads next, so these answers come from `generate()`.
"""

from collections.abc import Callable

import torch

from .ablation import IGNORED
from .examples import Examples, token_names
from .maps import generated_rows


def toggle_rows(model, shown: Examples, progress: Callable | None = None) -> list[dict]:
    """One row per example and head, `head` None for the intact model: the answer, the right one, whether they agree.

    A classifier's rows also hold the probability that it gives to its answer.
    """
    answer_of = _written_answers if shown.task == "addition" else _named_classes
    heads = [None, *model.list_heads()]
    inputs, targets = _inputs_and_targets(model, shown)
    rows: list[dict] = []
    for done, head in enumerate(heads, start=1):
        answers = answer_of(model, shown, model.head_mask_for([head]) if head else {})
        for example, answer in enumerate(answers):
            row = {"analysis": "toggles", "example": example, "input": inputs[example], "head": head, **answer}
            rows.append({**row, "target": targets[example], "right": answer["answer"] == targets[example]})
        if progress is not None:
            progress(done, len(heads))
    return sorted(rows, key=lambda row: row["example"])  # a stable sort: heads stay in order, the intact model first


def _written_answers(model, shown: Examples, masks: dict) -> list[dict]:
    labels = generated_rows(model, shown, masks)["labels"]
    return [{"answer": _answer(model, row)} for row in labels]


@torch.inference_mode()
def _named_classes(model, shown: Examples, masks: dict) -> list[dict]:
    model.eval()
    inputs = {
        name: shown.rows[name].to(model.device) for name in ("input_ids", "attention_mask") if name in shown.rows
    }
    best = model(**inputs, **masks).logits.softmax(-1).max(-1)
    names = model.config.id2label
    return [
        {"answer": names[index], "probability": round(probability, 6)}
        for index, probability in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]


def _inputs_and_targets(model, shown: Examples) -> tuple[list[str], list[str]]:
    ids, mask = shown.rows["input_ids"], shown.rows.get("attention_mask")
    real = [row[mask[i].bool()] if mask is not None else row for i, row in enumerate(ids)]
    tokens = [token_names(row.tolist(), model.config.vocab_size) for row in real]
    if shown.task != "addition":
        names = model.config.id2label
        return [" ".join(row) for row in tokens], [names[label] for label in shown.rows["labels"].tolist()]
    questions = ["".join(name for name in row if not name.startswith("<")).partition("=")[0] for row in tokens]
    return questions, [_answer(model, row) for row in shown.rows["labels"]]


def _answer(model, labels: torch.Tensor) -> str:
    """The digits of labels: of a decoder-only model, what stands after the equals sign."""
    names = token_names(labels[labels != IGNORED].tolist(), model.config.vocab_size)
    return "".join(name for name in names if not name.startswith("<")).rpartition("=")[2]
