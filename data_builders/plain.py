"""What a simple task needs beside its problems: options with lengths and splits, and texts with the usual words."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from .card_figures import draw_counts
from .option_checks import check_lengths, check_whole_number
from .tasks import DataCard, Texts


LONGEST = 10_000
PURPOSES = {"train": "training", "validation": "choosing", "test": "testing"}


@dataclass(frozen=True)
class PlainOptions:
    """Problems of `min_length`..`max_length`; rows of every split. A task subclasses it to change a default.

    `test_lengths`: lengths outside of training, each tested by `long_test` problems of every class.
    """

    seed: int = 0
    min_length: int = 2
    max_length: int = 8
    train: int = 10_000
    validation: int = 500
    test: int = 1_000
    test_lengths: tuple[int, ...] = ()
    long_test: int = 100
    shortest: ClassVar[int] = 1  # that a problem can be

    def __post_init__(self) -> None:
        check_whole_number("seed", self.seed, 0)
        check_whole_number("max_length", self.max_length, self.shortest, LONGEST)
        check_whole_number("min_length", self.min_length, self.shortest, self.max_length)
        for split in ("train", "validation", "test"):
            check_whole_number(split, getattr(self, split), 0)
        check_whole_number("long_test", self.long_test, 1)
        lengths = check_lengths("test_lengths", self.test_lengths, self.shortest, LONGEST)
        object.__setattr__(self, "test_lengths", lengths)
        inside = [length for length in self.test_lengths if self.min_length <= length <= self.max_length]
        if inside:
            raise ValueError(
                f"test_lengths has {inside[0]}, which is within training and tested by the split `test`; expected "
                f"lengths outside of {self.min_length} to {self.max_length}."
            )
        if not any((self.train, self.validation, self.test)):
            raise ValueError("every split has 0 rows; expected at least one split with rows.")


def plain_texts(
    title: str,
    description: str,
    problem: str,
    answer: str,
    classes: Mapping[str, str] | None = None,
    length: str = "tokens",
    facts: Mapping[str, str] | None = None,
) -> Texts:
    """What cards and reports say of a task.

    Args:
        title: of the pages: "Running totals".
        description: one line for lists: "write the total after each digit: 394 -> 326".
        problem: what the column `input` holds: "a row of digits".
        answer: what the column `target` or `label` holds: "the total after each of them".
        classes: those of the task.
        length: what a length counts: "digits".
        facts: those of the task beside `length`, with how they read.
    """
    known, others = dict(classes or {}), dict(facts or {})

    def trained(options: Mapping[str, Any]) -> str:
        return f"{options['min_length']} to {options['max_length']} {length}"

    def purpose(config: str, split: str) -> str:
        if config in known:
            return f"testing at length {split.removeprefix('test_')}; `{config}`: {known[config]}"
        return PURPOSES[split]

    columns = {"input": problem, "target": answer, "label": answer, "length": f"how many {length}", **others}
    return Texts(
        title=title,
        short_title=title,
        description=description,
        summary=lambda options: f"A small transformer for this task: {description}. Trained on {trained(options)}.",
        reads=lambda options: f"It was trained on {trained(options)}: {problem}. Anything else it cannot read.",
        length=length,
        facts={"length": "length", **others},
        kinds_text="; ".join(f"`{name}`: {says}" for name, says in known.items()) + "." if known else "",
        data=DataCard(
            summary=f"{description[0].upper()}{description[1:]}.",
            method="Problems are drawn at random. None of `train` is in `validation` or `test`, and none is in both "
            "of these; classes at other lengths are drawn by themselves.",
            limits="There are only so many short problems, and nearly all of them may be in `train`.",
            columns={"": columns},
            purpose=purpose,
            balance="length",
            balance_text="Rows by length:",
            balance_order=int,
            draw=partial(draw_counts, facts={"length": length}),
            figure="lengths.png",
            figure_text="Share of rows by length",
        ),
    )
