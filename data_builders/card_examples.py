"""Programs for the model card, for a task of any kind; publishing/ runs them and shows what they print.

A program is built from what the model and its task say of themselves. Whatever is put into it, is put there by
`literal`, so that no name can end a string and go on as code.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np


if TYPE_CHECKING:
    from .tasks import Task

AUTO_CLASSES = {"encoder-decoder": "AutoModelForSeq2SeqLM", "decoder": "AutoModelForCausalLM"}
DRAWN = 100  # problems among which an example of each label is looked for


@dataclass(frozen=True)
class Example:
    text: str  # what to know before
    code: str
    may_fail: bool = False  # an error is what it shows
    output: str = ""


@dataclass(frozen=True)
class PublishedModel:
    """What a program may know: the repository, the config, the task's options, a head of the model (None without any)
    and the longest length at which, and below which, no test found a mistake (None: there is no such length).
    """

    repo_id: str
    config: Mapping[str, Any]
    options: Any
    head: str | None = None
    sure_to: int | None = None


def literal(text: str) -> str:
    """A string as Python reads it, in double quotes if it has none itself.

    >>> print(literal("alice/m"))
    "alice/m"
    """
    return repr(text) if '"' in text else '"' + repr("'" + text)[2:]


def generic_examples(task: "Task", model: PublishedModel) -> dict[str, Example]:
    return label_examples(task, model) if task.kind == "label" else answer_examples(task, model)


def answer_examples(task: "Task", model: PublishedModel) -> dict[str, Example]:
    """By `generate()`, on the first problem that the task makes."""
    style = model.config["architecture"]
    name, repo = AUTO_CLASSES[style], literal(model.repo_id)
    problem = task.problems(model.options, np.random.default_rng(0), 1)
    (ids, lengths), (_, answers) = task.write(problem, model.options)
    question = task.vocabulary.text(ids[0, : lengths[0]].tolist())
    prompt = (
        question if style == "encoder-decoder" else f"{question}{task.vocabulary.joiner}{task.vocabulary.answer_mark}"
    )
    most = f"max_new_tokens={int(answers[0]) + 1}"
    show = "print(tokenizer.decode(answer[0], skip_special_tokens=True))"
    use = (
        f"from transformers import {name}, AutoTokenizer\n\n"
        f"tokenizer = AutoTokenizer.from_pretrained({repo}, trust_remote_code=True)\n"
        f"model = {name}.from_pretrained({repo}, trust_remote_code=True)\n"
        f'inputs = tokenizer({literal(prompt)}, return_tensors="pt")\n'
        f"answer = model.generate(**inputs, {most})\n{show}"
    )
    heads = f"answer = model.generate(**inputs, **masks, {most})\n{show}"
    return {
        "use": Example("headcount need not be installed.", use),
        **mask_example(model, "What it writes", "model", heads),
        "limit": Example("Text outside of its vocabulary is refused:", refused(task, "tokenizer"), may_fail=True),
    }


def label_examples(task: "Task", model: PublishedModel) -> dict[str, Example]:
    """By the pipeline, on the first problem of each class."""
    texts = first_of_each_label(task, model.options)
    use = (
        "from transformers import pipeline\n\n"
        f'classify = pipeline("text-classification", model={literal(model.repo_id)}, trust_remote_code=True)\n'
    )
    use += "\n".join(f"print(classify({literal(text)}))" for text in texts)
    heads = (
        f'inputs = classify.tokenizer({literal(texts[-1])}, return_tensors="pt")\n'
        "print(classify.model(**inputs, **masks).logits.tolist())"
    )
    limit = refused(task, "classify")
    return {
        "use": Example("headcount need not be installed.", use),
        **mask_example(model, "The logits of the last text", "classify.model", heads),
        "limit": Example("Text outside of its vocabulary is refused:", limit, may_fail=True),
    }


def mask_example(model: PublishedModel, what: str, name: str, code: str) -> dict[str, Example]:
    """The same without one head; nothing for a model that has lost all of them."""
    if model.head is None:
        return {}
    text = f"The model honours head masks. {what} without the head `{model.head}`:"
    return {"heads": Example(text, f"masks = {name}.head_mask_for([{literal(model.head)}])\n{code}")}


def first_of_each_label(task: "Task", options: Any) -> list[str]:
    (ids, lengths), labels = task.write(task.problems(options, np.random.default_rng(0), DRAWN), options)
    found: dict[int, str] = {}
    for row, length, label in zip(ids, lengths, np.asarray(labels).tolist(), strict=True):
        found.setdefault(label, task.vocabulary.text(row[:length].tolist()))
    return [found[label] for label in sorted(found)]


def refused(task: "Task", reader: str) -> str:
    unknown = next(sign for sign in "?!#@~^" if sign not in task.vocabulary.symbols)
    return f"print({reader}({literal(unknown)}))"
