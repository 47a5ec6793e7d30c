"""Add numbers modulo p, every number a token of its own: `57 + 88 =` -> `32` modulo 113.

Numbers are symbols without digits, so that nothing but the table of sums says what they are: the classic setting of
grokking (Power et al. 2022, https://arxiv.org/abs/2201.02177), whose model was found to turn numbers into angles
(Nanda et al. 2023, https://arxiv.org/abs/2301.05217).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .card_figures import draw_counts
from .corpus import Corpus
from .expectations import C_RASP, RASP_L, Expectation, Prediction
from .key_sets import hash_rows
from .option_checks import check_lengths, check_whole_number
from .tasks import NOT_A_PLACE, DataCard, LengthStudy, Problems, Relation, Roles, Study, Task, Texts
from .vocabulary import EOS, Vocabulary, Written


if TYPE_CHECKING:
    import pyarrow as pa

LARGEST = 113  # modulus
TRAINED = 2  # numbers of a sum in training
VOCABULARY = Vocabulary((*map(str, range(LARGEST)), "+", "="), joiner=" ", answer_mark="=")
PLUS = VOCABULARY.id_of("+")
CLASSES = {
    "random": "numbers drawn uniformly",
    "zero": "the last number brings the sum to 0",
    "same": "one number, again and again",
}


def _purpose(config: str, split: str) -> str:
    if config in CLASSES:
        return f"testing sums of {split.removeprefix('test_')} numbers; `{config}`: {CLASSES[config]}"
    return {"train": "training", "validation": "choosing", "test": "testing"}[split]


TEXTS = Texts(
    title="Addition modulo p",
    short_title="Modular addition",
    description="add two numbers modulo p, every number a token of its own: 57 + 88 -> 32 modulo 113",
    summary=lambda options: f"A small transformer that adds two numbers modulo {options['modulus']}.",
    reads=lambda options: (
        f"Whole numbers from 0 to {options['modulus'] - 1}, each a token of its own, with blanks and plus signs "
        "between them. It was trained on sums of two numbers."
    ),
    length="numbers",
    problems="sums",
    kinds="sums",
    kind_noun="sums",
    place="digit of the answer as it is written, units 0",
    facts={"length": "numbers", "wraps": "times that the sum passes the modulus"},
    kinds_text="; ".join(f"`{name}`: {says}" for name, says in CLASSES.items()) + ".",
    data=DataCard(
        summary="Pairs of residues, and their sum modulo p.",
        method="`test` and `validation` are drawn first, uniformly and without repetition; a+b and b+a are one sum "
        "there, and neither is in `train` if one of them is held out. `train` has pairs of what is left, none twice, "
        "in both orders. Sums of more numbers are drawn by themselves.",
        limits="There are only p times p pairs. A model that has seen most of them may know the rest by exchange of "
        "rows and columns; how many are held out is part of every result.",
        columns={
            "": {
                "input": "the numbers with plus signs between them",
                "target": "their sum modulo p",
                "length": "how many numbers",
                "wraps": "how often the sum passes p",
            }
        },
        purpose=_purpose,
        balance="wraps",
        balance_text="Rows by how often the sum passes the modulus:",
        draw=partial(draw_counts, facts={"length": "numbers"}),
        figure="lengths.png",
        figure_text="Share of rows by how many numbers are added",
    ),
)


@dataclass(frozen=True)
class ModularAdditionOptions:
    """Pairs modulo `modulus`; rows of every split. What `train` leaves of the pairs is not used.

    `test_lengths`: sums of more than two numbers, each tested by `long_test` sums of every class.
    """

    seed: int = 0
    modulus: int = LARGEST
    train: int = 9_000
    validation: int = 300
    test: int = 1_500
    test_lengths: tuple[int, ...] = ()
    long_test: int = 100

    def __post_init__(self) -> None:
        check_whole_number("seed", self.seed, 0)
        check_whole_number("modulus", self.modulus, 3, LARGEST)
        for split in ("train", "validation", "test"):
            check_whole_number(split, getattr(self, split), 0)
        check_whole_number("long_test", self.long_test, 1)
        lengths = check_lengths("test_lengths", self.test_lengths, TRAINED + 1, 10_000)
        object.__setattr__(self, "test_lengths", lengths)
        if not any((self.train, self.validation, self.test)):
            raise ValueError("every split has 0 rows; expected at least one split with rows.")


@dataclass(frozen=True)
class Sums(Problems):
    """`terms` (N, T), of which the first `length` (N,) are added, modulo `modulus` (N,)."""

    terms: NDArray[np.int64]
    length: NDArray[np.int64]
    modulus: NDArray[np.int64]


def _totals(problems: Sums) -> NDArray[np.int64]:
    real = np.arange(problems.terms.shape[1]) < problems.length[:, None]
    return np.where(real, problems.terms, 0).sum(-1)


class ModularAdditionCorpus(Corpus[Sums]):
    repetitive = ("length", "wraps")

    def keys(self, problems: Sums) -> NDArray[np.uint64]:
        """The numbers, whatever their order."""
        real = np.arange(problems.terms.shape[1]) < problems.length[:, None]
        return hash_rows(-np.sort(-np.where(real, problems.terms + 1, 0), axis=1))

    def _train_chunks(self) -> Iterator[Sums]:
        """Pairs that are not held out, every one once, in random order."""
        modulus = self.options.modulus
        pairs = self.rng("train").permutation(modulus**2)
        every = Sums(
            np.stack([pairs // modulus, pairs % modulus], 1), np.full(len(pairs), TRAINED), pairs * 0 + modulus
        )
        left = np.flatnonzero(~self.is_held_out(every))
        if len(left) < self.options.train:
            raise ValueError(
                f"train={self.options.train:,} is not allowed: of {modulus**2:,} pairs, {len(left):,} are left beside "
                "the other splits; expected smaller splits."
            )
        yield every[left[: self.options.train]]

    def read_table(self, table: "pa.Table") -> Sums:
        terms = np.array([[int(term) for term in text.split(" + ")] for text in table["input"].to_pylist()])
        return Sums(terms, np.full(len(terms), terms.shape[1]), np.full(len(terms), self.options.modulus))


EXPECTATION = Expectation(
    predictions=(
        Prediction(RASP_L, None, "modulo 2 it is parity, for which no short program is known"),
        Prediction(C_RASP, None, "modulo 2 it is parity, which has no program"),
    ),
)


class ModularAddition(Task[Sums]):
    name = "modular_addition"
    kind = "sequence"
    options = ModularAdditionOptions
    vocabulary = VOCABULARY
    texts = TEXTS
    classes = CLASSES
    hardest = ("random", "same", "zero")
    relations = {
        "numbers": Relation("the numbers that are added", ("number",), reads="numbers"),
        "operator": Relation("the plus signs", ("operator",)),
    }
    role_letters = {"number": "x", "operator": "+", "answer": "y"}
    place_zero = "last"
    expectation = EXPECTATION
    length_study = LengthStudy(
        recipe="modular_addition",
        lengths=(3, 4, 8),
        quick_lengths=(3,),
        quick_settings=("training.steps=100",),
        quick_variants=("learned",),
    )
    study = Study(
        recipes=("modular_addition",),
        quick_recipe="modular_addition",
        quick_settings=("training.steps=100",),
        length_options=("--encodings", "learned,rotary,none", "--seeds", "0"),
        keep=2,
        quick_keep=2,
    )

    def problems(
        self,
        options: ModularAdditionOptions,
        rng: np.random.Generator,
        n: int,
        length: int | None = None,
        kind: str | None = None,
    ) -> Sums:
        length = TRAINED if length is None else length
        terms = rng.integers(0, options.modulus, (n, length))
        if kind == "same":
            terms[:] = terms[:, :1]
        if kind == "zero":
            terms[:, -1] = -terms[:, :-1].sum(-1) % options.modulus
        return Sums(terms, np.full(n, length), np.full(n, options.modulus))

    def solve(self, problems: Sums) -> NDArray[np.int64]:
        """The residues of the sums."""
        return _totals(problems) % problems.modulus

    def facts(self, problems: Sums) -> dict[str, NDArray]:
        return {"length": problems.length, "wraps": _totals(problems) // problems.modulus}

    def splits(self, options: ModularAdditionOptions) -> ModularAdditionCorpus:
        return ModularAdditionCorpus(self, options)

    def trained_lengths(self, options: ModularAdditionOptions) -> tuple[int, int]:
        return TRAINED, TRAINED

    def write(self, problems: Sums, options: ModularAdditionOptions) -> tuple[Written, Written]:
        count, terms = problems.terms.shape
        ids = np.full((count, 2 * terms - 1), PLUS)
        ids[:, ::2] = problems.terms + self.vocabulary.first
        answers = self.solve(problems)[:, None] + self.vocabulary.first
        return (ids, 2 * problems.length - 1), (answers, np.ones(count, np.int64))

    def roles(self, tokens: NDArray, side: str = "input", options: Any = None) -> Roles:
        """Numbers by their place in the sum; the answer is one token."""
        tokens = np.asarray(tokens)
        is_number = (tokens >= self.vocabulary.first) & (tokens < self.vocabulary.first + LARGEST)
        after_mark = np.cumsum(tokens == self.vocabulary.answer_mark_id, -1) > 0
        is_answer = is_number & (after_mark if side == "input" else True)
        is_term = is_number & ~is_answer
        role = np.select([is_term, tokens == PLUS, is_answer, tokens == EOS], [1, 2, 3, 4], 0)
        index = np.select([is_term, is_answer], [np.cumsum(is_term, -1) - 1, 0], NOT_A_PLACE)
        return Roles(("other", "number", "operator", "answer", "end"), role, index)

    def residues(self, options: ModularAdditionOptions) -> NDArray[np.int64]:
        return self.vocabulary.first + np.arange(options.modulus)

    def tokens_at(self, length: int, style: str) -> int:
        return 2 * length + 3 if style == "decoder" else 2 * length

    def number_of_answers(self, options: ModularAdditionOptions) -> int:
        return options.modulus

    def most_frequent_answer(self, options: ModularAdditionOptions) -> float | None:
        """Every residue is the sum of equally many pairs."""
        return 1 / options.modulus


TASK = ModularAddition()
