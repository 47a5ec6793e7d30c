"""What the model answers with one head switched off: every shown example, every head, really generated.

The other sweeps ask whether an answer stays right and can do so in one parallel pass. Here the wrong answer itself is
wanted, and a wrong token changes what the decoder reads next, so these answers come from `generate()`.
"""

import torch
from torch import Tensor

from ...data_builders.examples import Examples, is_labelled
from ...data_builders.vocabulary import SPECIAL_TOKENS, Vocabulary
from ...modeling.modeling_headcount import HeadcountPreTrainedModel
from ...records.rows import Rows, row
from ..interventions.plan import Progress
from .maps import generated_rows


def toggle_rows(model: HeadcountPreTrainedModel, shown: Examples, progress: Progress | None = None) -> Rows:
    """One row per example and head, `head` None for the intact model: the answer, the right one, whether they agree.

    A classifier's rows also hold the probability that it gives to its answer; those of others hold None.
    """
    heads = [None, *model.list_heads()]
    inputs, targets = _inputs_and_targets(model, shown)
    answer_of = _named_classes if shown.task.kind == "label" else _written_answers
    rows: Rows = []
    for done, head in enumerate(heads, start=1):
        answers = answer_of(model, shown, model.head_mask_for([head]) if head else {})
        for example, (answer, probability) in enumerate(answers):
            right = answer == targets[example]
            rows.append(
                row(
                    "toggles",
                    shown.measure["metric"],
                    {"value": float(right), "n": 1},
                    decoding=shown.measure["decoding"],
                    example=example,
                    head=head,
                    input=inputs[example],
                    answer=answer,
                    probability=probability,
                    target=targets[example],
                    right=right,
                )
            )
        if progress is not None:
            progress(done, len(heads))
    return sorted(rows, key=lambda each: each["example"])  # a stable sort: heads stay in order, the intact model first


Answers = list[tuple[str, float | None]]


def _written_answers(model: HeadcountPreTrainedModel, shown: Examples, masks: dict[str, Tensor]) -> Answers:
    labels = generated_rows(model, shown, masks)["labels"]
    return [(answer_text(shown.task.vocabulary, each), None) for each in labels]


@torch.inference_mode()
def _named_classes(model: HeadcountPreTrainedModel, shown: Examples, masks: dict[str, Tensor]) -> Answers:
    model.eval()
    inputs = {
        name: shown.rows[name].to(model.device) for name in ("input_ids", "attention_mask") if name in shown.rows
    }
    best = model(**inputs, **masks).logits.softmax(-1).max(-1)
    names = model.config.id2label
    return [
        (names[index], round(probability, 6))
        for index, probability in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]


def _inputs_and_targets(model: HeadcountPreTrainedModel, shown: Examples) -> tuple[list[str], list[str]]:
    ids, mask, vocabulary = shown.rows["input_ids"], shown.rows.get("attention_mask"), shown.task.vocabulary
    real = [each[mask[i].bool()] if mask is not None else each for i, each in enumerate(ids)]
    questions = [vocabulary.question(_symbols(vocabulary, each)) for each in real]
    labels = shown.rows["labels"]
    if shown.task.kind == "label":
        return questions, [model.config.id2label[label] for label in labels.tolist()]
    return questions, [answer_text(vocabulary, each) for each in labels]


def answer_text(vocabulary: Vocabulary, labels: Tensor) -> str:
    """The answer that labels are; of a decoder-only model, what stands after the mark."""
    text = _symbols(vocabulary, labels[is_labelled(labels)])
    return text if vocabulary.answer_mark is None else text.rpartition(vocabulary.answer_mark)[2].strip()


def _symbols(vocabulary: Vocabulary, ids: Tensor) -> str:
    return vocabulary.joiner.join(name for name in vocabulary.names(ids.tolist()) if name not in SPECIAL_TOKENS)
