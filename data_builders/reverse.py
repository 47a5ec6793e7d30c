"""Reverse a string of letters, in which letters may come again: `banana` -> `ananab`."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .card_figures import draw_counts
from .corpus import Corpus
from .expectations import C_RASP, RASP_L, Expectation, Prediction
from .option_checks import check_lengths, check_whole_number
from .tasks import NOT_A_PLACE, DataCard, LengthStudy, Problems, Relation, Roles, Study, Task, Texts
from .vocabulary import EOS, Vocabulary, Written


if TYPE_CHECKING:
    import pyarrow as pa

LETTERS = "abcdefghijklmnopqrstuvwxyz"
FEW = 3  # letters of a `repeated` string
VOCABULARY = Vocabulary(tuple(LETTERS + "="), answer_mark="=")
CLASSES = {
    "random": "letters drawn from all 26",
    "repeated": f"letters drawn from {FEW} only, so that nearly all come again",
}


def _purpose(config: str, split: str) -> str:
    if config in CLASSES:
        return f"testing at length {split.removeprefix('test_')}; `{config}`: {CLASSES[config]}"
    return {"train": "training", "validation": "choosing", "test": "testing"}[split]


def _trained(options: Mapping) -> str:
    return f"{options['min_length']} to {options['max_length']} letters"


TEXTS = Texts(
    title="Reverse a string",
    short_title="Reversal",
    description="write a string of letters from its end to its start: banana -> ananab",
    summary=lambda options: (
        f"A small transformer that writes strings of {_trained(options)} backwards, letter by letter."
    ),
    reads=lambda options: (
        f"It was trained on strings of {_trained(options)} from a to z. Anything else it cannot read."
    ),
    length="letters",
    problems="strings",
    kinds="strings",
    kind_noun="strings",
    place="letter of the answer",
    facts={"length": "length", "repeats": "letters that come again"},
    kinds_text="; ".join(f"`{name}`: {says}" for name, says in CLASSES.items()) + ".",
    data=DataCard(
        summary="Strings of letters, and the same strings backwards.",
        method="Letters are drawn uniformly and may come again. No string of `train` is in `validation` or `test`, "
        "and none is in both of these; the classes at longer lengths are drawn by themselves.",
        limits="Strings of one length are as many as 26 to the power of that length: short ones are soon used up.",
        columns={
            "": {
                "input": "the string",
                "target": "the string backwards",
                "length": "how many letters",
                "repeats": "`with` or `without` a letter that comes again",
            }
        },
        purpose=_purpose,
        balance="repeats",
        balance_text="Rows with and without a letter that comes again:",
        draw=partial(draw_counts, facts={"length": "letters"}),
        figure="lengths.png",
        figure_text="Share of rows by length",
    ),
)

EXPECTATION = Expectation(
    predictions=(
        Prediction(
            RASP_L,
            None,
            "copying with repeated tokens, its twin, has no RASP-L program: a letter does not say where it stood",
        ),
        Prediction(
            C_RASP,
            None,
            "copying with repeated tokens, its twin, has no program: a whole string is too much to be carried across",
        ),
    ),
)


@dataclass(frozen=True)
class ReverseOptions:
    """Strings of `min_length`..`max_length` letters, all lengths equally often; rows of every split.

    `test_lengths`: lengths outside of training, each tested by `long_test` strings of every class.
    """

    seed: int = 0
    min_length: int = 5
    max_length: int = 10
    train: int = 10_000
    validation: int = 1_000
    test: int = 1_000
    test_lengths: tuple[int, ...] = ()
    long_test: int = 100

    def __post_init__(self) -> None:
        check_whole_number("seed", self.seed, 0)
        check_whole_number("max_length", self.max_length, 2, 10_000)
        check_whole_number("min_length", self.min_length, 2, self.max_length)
        for split in ("train", "validation", "test"):
            check_whole_number(split, getattr(self, split), 0)
        check_whole_number("long_test", self.long_test, 1)
        object.__setattr__(self, "test_lengths", check_lengths("test_lengths", self.test_lengths, 2, 10_000))
        inside = [length for length in self.test_lengths if self.min_length <= length <= self.max_length]
        if inside:
            raise ValueError(
                f"test_lengths has {inside[0]}, which is within training and tested by the split `test`; expected "
                f"lengths outside of {self.min_length} to {self.max_length}."
            )
        if not any((self.train, self.validation, self.test)):
            raise ValueError("every split has 0 rows; expected at least one split with rows.")


@dataclass(frozen=True)
class Strings(Problems):
    """`letters` (N, L), 0 for a; what stands after the `length` (N,) of a string is no part of it."""

    letters: NDArray[np.int64]
    length: NDArray[np.int64]


class ReverseCorpus(Corpus[Strings]):
    repetitive = ("length", "repeats")

    def read_table(self, table: "pa.Table") -> Strings:
        texts = table["input"].to_pylist()
        length = np.array([len(text) for text in texts])
        letters = np.zeros((len(texts), int(length.max(initial=1))), np.int64)
        for row, text in zip(letters, texts, strict=True):
            row[: len(text)] = [LETTERS.index(letter) for letter in text]
        return Strings(letters, length)


class Reverse(Task[Strings]):
    name = "reverse"
    kind = "sequence"
    options = ReverseOptions
    vocabulary = VOCABULARY
    texts = TEXTS
    classes = CLASSES
    hardest = ("repeated", "random")
    relations = {"source": Relation("the letter that is to be written", ("letter",), 0, reads="its source")}
    last_written = "last letter"
    role_letters = {"letter": "x", "answer": "y"}
    length_study = LengthStudy(
        recipe="reverse",
        lengths=(11, 12, 14, 16, 20, 32),
        quick_lengths=(12, 16),
        quick_settings=("training.steps=300",),
        quick_variants=("learned", "rotary"),
    )
    expectation = EXPECTATION
    study = Study(
        recipes=("reverse",),
        quick_recipe="reverse",
        quick_settings=("training.epochs=1",),
        length_options=("--encodings", "learned,sinusoidal,rotary,t5_bias,none", "--seeds", "0"),
    )

    def problems(
        self,
        options: ReverseOptions,
        rng: np.random.Generator,
        n: int,
        length: int | None = None,
        kind: str | None = None,
    ) -> Strings:
        width = options.max_length if length is None else length
        lengths = rng.integers(options.min_length, width + 1, n) if length is None else np.full(n, length)
        letters = rng.integers(0, len(LETTERS), (n, width))
        if kind == "repeated":
            chosen = rng.permuted(np.tile(np.arange(len(LETTERS)), (n, 1)), axis=1)[:, :FEW]
            letters = np.take_along_axis(chosen, letters % FEW, axis=1)
        return Strings(letters, lengths)

    def solve(self, problems: Strings) -> NDArray[np.int64]:
        """The letters of every string from its end to its start; what stands after them is no part of it."""
        source = problems.length[:, None] - 1 - np.arange(problems.letters.shape[1])
        return np.take_along_axis(problems.letters, np.maximum(source, 0), axis=1)

    def facts(self, problems: Strings) -> dict[str, NDArray]:
        real = np.arange(problems.letters.shape[1]) < problems.length[:, None]
        ordered = np.sort(np.where(real, problems.letters, -1 - np.arange(problems.letters.shape[1])), axis=1)
        again = (ordered[:, 1:] == ordered[:, :-1]).any(-1)
        return {"length": problems.length, "repeats": np.where(again, "with", "without")}

    def splits(self, options: ReverseOptions) -> ReverseCorpus:
        return ReverseCorpus(self, options)

    def write(self, problems: Strings, options: ReverseOptions) -> tuple[Written, Written]:
        first = self.vocabulary.first
        return (problems.letters + first, problems.length), (self.solve(problems) + first, problems.length)

    def roles(self, tokens: NDArray, side: str = "input", options: Any = None) -> Roles:
        """Letters by their place in the string; an answer letter has the place of the letter that it repeats."""
        tokens = np.asarray(tokens)
        is_letter = (tokens >= self.vocabulary.first) & (tokens < self.vocabulary.first + len(LETTERS))
        marks = np.cumsum(tokens == self.vocabulary.answer_mark_id, -1) > 0
        is_answer = is_letter & (marks if side == "input" else True)
        is_question = is_letter & ~is_answer
        forward = np.cumsum(is_question, -1) - 1
        backward = is_answer.sum(-1, keepdims=True) - np.cumsum(is_answer, -1)
        role = np.select([is_question, is_answer, tokens == EOS], [1, 2, 3], 0)
        index = np.select([is_question, is_answer], [forward, backward], NOT_A_PLACE)
        return Roles(("other", "letter", "answer", "end"), role, index)

    def tokens_at(self, length: int, style: str) -> int:
        return 2 * length + 3 if style == "decoder" else length + 1


TASK = Reverse()
