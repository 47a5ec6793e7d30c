"""What a model card says about its task: summary, evaluation, limits, mistakes; one function per kind of task."""

from collections.abc import Mapping
from typing import Any

from ..data_builders.tasks import Task, options_of
from ..records.rows import Rows, select
from ..reports.evaluation_rows import at_lengths, by_fact, main_facts, whole_splits, worst_by_length
from ..reports.markdown import code, inline
from ..reports.wording import interval, percent
from .card_tables import answer_tables, label_table, longer_table, place_table, table, whole_label_table


MOST_WRONG_ANSWERS = 8
MOST_WEAK_TESTS = 5
FEW = 30  # problems of a part that a rate says little about
DECODING = """\
Decoding is greedy and free-running: an answer counts only if every token and the end that the model itself writes are
right. Beside it stands the share of tokens that are right when all tokens before them are given (teacher-forced); that
figure says little about what the model can do. Intervals are Wilson's, 95 %."""


def task_parts(task: Task, rows: Rows, options: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of the card that depend on the task; `options` are those of its data, all of them."""
    parts = label_parts(task, rows, options) if task.kind == "label" else answer_parts(task, rows, options)
    return {"summary": task.texts.summary(options), "wrong_text": "", "wrong_answers": "", **parts}


def answer_parts(task: Task, rows: Rows, options: Mapping[str, Any]) -> dict[str, Any]:
    texts, longer = task.texts, worst_by_length(at_lengths(rows, task))
    splits = whole_splits(rows)
    parts = [row for split in splits for fact in main_facts(task) for row in by_fact(rows, fact, split)]
    frequent = task.most_frequent_answer(options_of(task, options))
    chance = ""
    if frequent is not None:
        share = percent(frequent)
        chance = f" Always giving the most frequent answer would be right in {share} of the `test` {texts.problems}."
    tables = [
        *answer_tables(rows, task),
        *([(longer_text(task), longer_table(rows, task))] if longer else []),
        *((f"By {texts.place}, split {code(split)}:", place_table(rows, split, task)) for split in splits),
    ]
    limits = [
        texts.reads(options),
        *tested_beyond(longer, task),
        *perfect_scores(rows, task),
        *small_parts(parts, task),
        "The answer is generated, not computed: a wrong one looks like a right one.",
    ]
    return {
        "evaluation_text": DECODING + chance,
        "tables": tables,
        "limits": limits,
        **wrong_answers(rows, task, options),
    }


def wrong_answers(rows: Rows, task: Task, options: Mapping[str, Any]) -> dict[str, str]:
    wrong = select(rows, metric="wrong_answer")
    if not wrong:
        return {}
    note = task.texts.answer_note(options)
    order = f", answers {note} as the model writes them" if note else ""
    lines = [
        [code(row["input"]), code(row["target"]), code(row["generated"]), inline(row["split"])]
        for row in wrong[:MOST_WRONG_ANSWERS]
    ]
    problems = task.texts.problems
    return {
        "wrong_text": f"{problems.capitalize()} that it gets wrong: {len(lines)} of the {len(wrong)} that are kept "
        f"with the results{order}.",
        "wrong_answers": table([problems, "right", "what it writes", "split"], lines),
    }


def longer_text(task: Task) -> str:
    return (
        f"{task.texts.problems.capitalize()} longer than any in training; exact match, free-running, with its 95 % "
        f"interval. {task.texts.kinds_text} One parallel pass decides each answer, which for greedy decoding is the "
        "same as generating:"
    )


def tested_beyond(worst: Rows, task: Task) -> list[str]:
    """What was tested beyond the training length, and where it falls short; `worst`: one row per length."""
    if not worst:
        return []
    unit = task.texts.length
    lengths = ", ".join(f"{row['length']:,}" for row in worst)
    short = [
        f"{row['length']:,} {unit} ({percent(row['value'])} on {code(row['kind'])})"
        for row in worst
        if row["value"] < 1
    ]
    mistakes = f" It makes mistakes at {', '.join(short)}." if short else ""
    return [
        f"Beyond training it was tested at {lengths} {unit}, n = {worst[-1]['n']} of each class; other lengths were "
        f"not tested.{mistakes}"
    ]


def perfect_scores(rows: Rows, task: Task) -> list[str]:
    return [
        f"No mistake among the {row['n']:,} {task.texts.problems} of {code(split)} still allows an error rate of "
        f"up to {percent(1 - row['interval'][0])} (95 %)."
        for split, row in whole_splits(rows).items()
        if row["value"] == 1
    ]


def small_parts(rows: Rows, task: Task) -> list[str]:
    small = [row for row in rows if row["n"] < FEW]
    if not small:
        return []
    row = min(small, key=lambda row: row["n"])
    ((fact, value),) = row["scope"].items()
    return [
        f"Some parts of the data hold few {task.texts.problems}: {task.texts.facts[fact]} {code(value)} in "
        f"{code(row['split'])} has {row['n']}, with an interval of {interval(row)}."
    ]


def label_parts(task: Task, rows: Rows, options: Mapping[str, Any]) -> dict[str, Any]:
    first, last = task.trained_lengths(options_of(task, options))
    tested = at_lengths(rows, task)
    texts = task.texts
    limits = [texts.reads(options)]
    if tested:
        lengths = ", ".join(f"{n:,}" for n in sorted({row["length"] for row in tested}))
        limits.append(
            f"Trained on lengths {first} to {last}; tested at {lengths}. Lengths between and beyond were not tested, "
            "and accuracy need not fall evenly with length."
        )
    weak = sorted((row for row in tested if row["value"] < 1), key=lambda row: row["value"])
    for row in weak[:MOST_WEAK_TESTS]:
        limits.append(
            f"At length {row['length']:,} it misses {round((1 - row['value']) * row['n'])} of {row['n']} (kind "
            f"{code(row['kind'])})" + (f", and calls all {texts.problems} the same." if row["one_class_only"] else ".")
        )
    perfect = [row for row in tested if row["value"] == 1]
    if perfect:
        most = max(1 - row["interval"][0] for row in perfect)
        limits.append(
            f"{len(perfect)} of {len(tested)} tests came out without a mistake; with so few {texts.problems} each, an "
            f"error rate of up to {percent(most, 1)} would still be compatible with that (95 %)."
        )
    tables = [("", whole_label_table(rows)), (f"Accuracy by {texts.length} and kind:", label_table(rows, task, last))]
    return {
        "evaluation_text": kinds_text(task) if tested else LABELS,
        "tables": [(caption, found) for caption, found in tables if found],
        "limits": limits,
    }


LABELS = "There is no decoding: the label with the largest logit counts. Intervals are Wilson's, 95 %."


def kinds_text(task: Task) -> str:
    negative, positive = task.labels[:2]
    problems = task.texts.problems
    return (
        f"Each line is one length and one kind of {negative} {problems}, against as many {positive} ones: "
        f"{task.texts.kinds_text} The last column is what one answer for all {problems} would reach. {LABELS}"
    )
