"""Multiply a number by one digit, `374*6` -> 2244, or by a number with the steps written out, `12*34` -> 48, 36, 408.

Shapes: N problems, C columns of the first number, B of the second. Digits are uint8 arrays with the units in column 0,
and are written units first in answers:

    digit   374*6=4422          374 times 6 is 2244
    long    12*34=840,630:8040  12 times 4 is 048, 12 times 3 is 036, and with the second one place to the left, 0408

Numbers have leading zeros, an answer one digit for every digit of the two numbers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .addition.columns import AdditionProblems
from .built_in import BuiltIn
from .card_figures import draw_counts
from .corpus import Corpus
from .counterfactuals import ANY_PAIRS
from .expectations import C_RASP, RASP_L, Expectation, Paper, Prediction, Published
from .option_checks import check_lengths, check_name, check_whole_number
from .tasks import NOT_A_PLACE, DataCard, LengthStudy, Problems, Relation, Roles, Study, Task, Texts, Variable
from .vocabulary import EOS, Vocabulary, Written, side_by_side


if TYPE_CHECKING:
    import pyarrow as pa

VOCABULARY = Vocabulary(tuple("0123456789*=,:"), answer_mark="=")
ZERO, NINE, TIMES, COMMA, RESULT = (VOCABULARY.id_of(symbol) for symbol in "09*,:")
FORMS = {
    "digit": "a number times one digit, the answer alone",
    "long": "two numbers of one length: the product with every digit, then, after a colon, their sum",
}
CLASSES = {
    "random": "all digits equally likely",
    "carries": "every column sends out a carry, whatever comes in",
    "nines": "all nines",
    "chain": "every column but the units makes a nine: whether the units send a carry decides every digit",
}
ROLES = ("other", "first", "second", "operator", "step", "answer", "end")


def _purpose(config: str, split: str) -> str:
    if config in CLASSES:
        return f"testing at {split.removeprefix('test_')} digits; `{config}`: {CLASSES[config]}"
    return {"train": "training", "validation": "choosing", "test": "testing"}[split]


def _trained(options: Mapping) -> str:
    by = "one digit" if options["form"] == "digit" else "another of the same length"
    return f"a number of {options['min_length']} to {options['max_length']} digits by {by}"


TEXTS = Texts(
    title="Multiplication, digit by digit",
    short_title="Multiplication",
    description="multiply a number by a digit, or two numbers with the steps written out: 374*6 -> 2244",
    summary=lambda options: (
        f"A small transformer that multiplies {_trained(options)}. It writes the product digit by digit, units first; "
        "nothing but the weights does the arithmetic."
    ),
    reads=lambda options: (
        f"It multiplies {_trained(options)}, written with leading zeros. Anything else it cannot read."
    ),
    length="digits",
    place="digit of the answer",
    difference_note="+1 is the column being written, 0 the one to its right",
    facts={"length": "digits", "carry": "largest carry"},
    kinds_text="; ".join(f"`{name}`: {says}" for name, says in CLASSES.items()) + ".",
    answer_note=lambda options: "units first",
    data=DataCard(
        summary="Multiplication problems with exact answers, for models that compute.",
        method="All digits are drawn uniformly, so that numbers may have leading zeros. No problem of `train` is in "
        "`validation` or `test`; the classes at longer lengths are drawn by themselves.",
        limits="A uniform test set has next to no long chains of carries: the classes are for that.",
        columns={
            "": {
                "input": "the problem, most significant digit first",
                "target": "the product, units first; with the option `form=long` after the products with every digit",
                "length": "digits of the first number as written",
                "carry": "the largest carry out of a column",
            }
        },
        purpose=_purpose,
        balance="carry",
        balance_text="Rows by their largest carry:",
        draw=partial(draw_counts, facts={"length": "digits"}),
        figure="lengths.png",
        figure_text="Share of rows by length",
    ),
)


@dataclass(frozen=True)
class MultiplicationOptions:
    """Numbers of `min_length`..`max_length` digits, all lengths equally often; `form`: a key of FORMS.

    `test_lengths`: lengths outside of training, each tested by `long_test` problems of every class.
    """

    seed: int = 0
    form: str = "digit"
    min_length: int = 2
    max_length: int = 10
    train: int = 20_000
    validation: int = 500
    test: int = 2_000
    test_lengths: tuple[int, ...] = ()
    long_test: int = 100

    def __post_init__(self) -> None:
        check_whole_number("seed", self.seed, 0)
        check_name("form", self.form, FORMS)
        check_whole_number("max_length", self.max_length, 1, 10_000)
        check_whole_number("min_length", self.min_length, 1, self.max_length)
        for split in ("train", "validation", "test"):
            check_whole_number(split, getattr(self, split), 0)
        check_whole_number("long_test", self.long_test, 1)
        lengths = check_lengths("test_lengths", self.test_lengths, self.max_length + 1, 10_000)
        object.__setattr__(self, "test_lengths", lengths)
        if not any((self.train, self.validation, self.test)):
            raise ValueError("every split has 0 rows; expected at least one split with rows.")


@dataclass(frozen=True)
class Products(Problems):
    """`a` (N, C) times `b` (N, B), digits with the units first; `width` (N,) columns of `a` are written."""

    a: NDArray[np.uint8]
    b: NDArray[np.uint8]
    width: NDArray[np.int64]

    @property
    def by_digit(self) -> bool:
        return self.b.shape[1] == 1


def multiply(a: NDArray[np.uint8], b: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Digits of the products (N, C + B), and the carry out of every column (N, C + B), as on paper."""
    columns = np.zeros((len(a), a.shape[1] + b.shape[1]), np.int64)
    for place in range(b.shape[1]):
        columns[:, place : place + a.shape[1]] += a.astype(np.int64) * b[:, place, None]
    return resolve(columns)


def resolve(columns: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """What carries make of the sums of the columns: their digits, and the carries."""
    digits, carries = np.zeros(columns.shape, np.uint8), np.zeros(columns.shape, np.int64)
    carry = np.zeros(len(columns), np.int64)
    for column in range(columns.shape[1]):
        total = columns[:, column] + carry
        carry = total // 10
        digits[:, column], carries[:, column] = total % 10, carry
    return digits, carries


def carries(problems: Products) -> NDArray[np.int64]:
    """(N, C): the carry out of every column that is written; with more than one digit there is more than one sum."""
    found = multiply(problems.a, problems.b)[1][:, : problems.a.shape[1]]
    written = np.arange(found.shape[1]) < problems.width[:, None]
    return np.where(written & problems.by_digit, found, NOT_A_PLACE)


def with_carry(problems: Products, column: NDArray[np.int64], value: NDArray[np.int64]) -> NDArray[np.uint8]:
    """The products with this carry out of a column; columns above go on from there."""
    rows = np.arange(len(problems))
    sums = np.pad(problems.a.astype(np.int64) * problems.b, ((0, 0), (0, 1)))
    sums[rows, column + 1] += value - carries(problems)[rows, column]
    return resolve(sums)[0]


def has_carry_and_digit(problems: Products, column: NDArray[np.int64], value: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether another digit in the column gives this carry and the same digit of the answer, times the same digit."""
    rows = np.arange(len(problems))
    out = carries(problems)
    into = np.where(column > 0, out[rows, column - 1], 0)
    totals = np.arange(10) * problems.b.astype(np.int64) + into[:, None]  # (N, 10)
    own = problems.a[rows, column].astype(np.int64) * problems.b[:, 0] + into
    return ((totals % 10 == (own % 10)[:, None]) & (totals // 10 == value[:, None])).any(-1)


def draw_digits(
    rng: np.random.Generator, n: int, columns: int, others: int, kind: str
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Digits (n, columns) and (n, others) of a class."""
    if kind == "carries":
        b = rng.integers(2, 10, (n, others))
        least = -(-10 // b.min(-1, keepdims=True))  # the smallest digit whose products are all ten or more
        return least + (rng.random((n, columns)) * (10 - least)).astype(np.int64), b
    if kind == "nines":
        units = rng.integers(1, 10, (n, 1))
        return np.full((n, columns), 9), np.concatenate([units, np.full((n, others - 1), 9)], 1)
    if kind == "chain":  # 3 times 3, or 9 times 1, above any units
        b = rng.choice([3, 9], (n, 1))
        units = rng.integers(0, 10, (n, 1))
        return np.concatenate([units, np.repeat(9 // b, columns - 1, axis=1)], 1), np.repeat(b, others, axis=1)
    return rng.integers(0, 10, (n, columns)), rng.integers(0, 10, (n, others))


class MultiplicationCorpus(Corpus[Products]):
    repetitive = ("length", "carry")

    def read_table(self, table: "pa.Table") -> Products:
        texts = [text.split("*") for text in table["input"].to_pylist()]
        a, b = ([text[side] for text in texts] for side in (0, 1))
        digits = AdditionProblems.from_integers([int(number) for number in a], [int(number) for number in b])
        width, others = (max(map(len, numbers)) for numbers in (a, b))
        return Products(_wide(digits.a, width), _wide(digits.b, others), np.array([len(number) for number in a]))


def _wide(digits: NDArray[np.uint8], columns: int) -> NDArray[np.uint8]:
    return np.pad(digits, ((0, 0), (0, columns)))[:, :columns]


EXPECTATION = Expectation(
    predictions=(
        Prediction(RASP_L, None, "addition, which it contains, has no program without index hints"),
        Prediction(C_RASP, None, "addition, which it contains, has no program"),
    ),
    published=Published(
        50,
        100,
        "97 %",
        "n digits times one, every step of a Turing machine written out, Hard-ALiBi",
        Paper("Hou et al. 2024", "https://arxiv.org/abs/2407.03310"),
    ),
)


class Multiplication(Task[Products]):
    name = "multiplication"
    kind = "sequence"
    options = MultiplicationOptions
    vocabulary = VOCABULARY
    texts = TEXTS
    classes = CLASSES
    hardest = ("chain", "carries", "nines", "random")
    relations = {
        "same_column": Relation("the digit of the first number in the query's column", ("first",), 0, "own column"),
        "carry_source": Relation("the digit one column to the right of the query's", ("first",), -1, "right column"),
        "multiplier": Relation("the second number", ("second",), reads="multiplier"),
        "operator": Relation("the times sign", ("operator",)),
    }
    variables = {
        "carry": Variable(
            "the carry out of a column, of a number times one digit",
            place="column",
            near={"left": 1, "right": -1},
            shows_at="left",
            pair_kinds=ANY_PAIRS,
            values=carries,
            answers=with_carry,
            possible=has_carry_and_digit,
        )
    }
    role_letters = {"first": "a", "second": "b", "answer": "y"}
    format_options = ("form",)
    place_zero = "last"
    last_written = "last digit"
    expectation = EXPECTATION
    length_study = LengthStudy(
        recipe="multiplication",
        lengths=(11, 20, 50, 100),
        quick_lengths=(11, 20),
        quick_settings=("training.steps=300",),
        quick_variants=("whole",),
    )
    study = Study(
        recipes=("multiplication",),
        quick_recipe="multiplication",
        quick_settings=("training.steps=100",),
        length_options=("--variants", "whole,no-jitter,no-coupling", "--seeds", "0"),
    )

    def problems(
        self,
        options: MultiplicationOptions,
        rng: np.random.Generator,
        n: int,
        length: int | None = None,
        kind: str | None = None,
    ) -> Products:
        columns = options.max_length if length is None else length
        width = rng.integers(options.min_length, columns + 1, n) if length is None else np.full(n, columns)
        a, b = draw_digits(rng, n, columns, 1 if options.form == "digit" else columns, kind or "random")
        a = np.where(np.arange(columns) < width[:, None], a, 0)
        b = np.where(np.arange(b.shape[1]) < width[:, None], b, 0)
        return Products(a.astype(np.uint8), b.astype(np.uint8), width)

    def solve(self, problems: Products) -> NDArray[np.uint8]:
        """Digits of the products, units first."""
        return multiply(problems.a, problems.b)[0]

    def facts(self, problems: Products) -> dict[str, NDArray]:
        return {"length": problems.width, "carry": multiply(problems.a, problems.b)[1].max(-1)}

    def splits(self, options: MultiplicationOptions) -> MultiplicationCorpus:
        return MultiplicationCorpus(self, options)

    def write(self, problems: Products, options: MultiplicationOptions) -> tuple[Written, Written]:
        first, second = (
            _digits(np.take_along_axis(digits, _from_left(digits, width), 1), width)
            for digits, width in ((problems.a, problems.width), (problems.b, self._other_width(problems)))
        )
        question = side_by_side([first, _sign(TIMES, len(problems)), second], 0)
        return question, self.write_answers(problems, self.solve(problems), options)

    def write_answers(self, problems: Products, answers: NDArray, options: MultiplicationOptions) -> Written:
        result = _digits(answers, problems.width + self._other_width(problems))
        if options.form == "digit":
            return result
        steps: list[Written] = []
        for place in range(problems.b.shape[1]):
            is_there = (place < problems.width).astype(np.int64)
            partial_product = multiply(problems.a, problems.b[:, place, None])[0]
            signs = np.where(place + 1 < problems.width, COMMA, RESULT)[:, None]
            steps += [_digits(partial_product, (problems.width + 1) * is_there), (signs, is_there)]
        return side_by_side([*steps, result], 0)

    def _other_width(self, problems: Products) -> NDArray[np.int64]:
        return np.minimum(problems.width, problems.b.shape[1])

    def roles(self, tokens: NDArray, side: str = "input", options: Any = None) -> Roles:
        """Digits of both numbers by column, those of steps and of the answer by column; units 0."""
        tokens = np.asarray(tokens)
        is_digit = (tokens >= ZERO) & (tokens <= NINE)
        after = {mark: np.cumsum(tokens == mark, -1) > 0 for mark in (TIMES, self.vocabulary.answer_mark_id, RESULT)}
        times, equals, result = after.values()
        is_written = is_digit & (equals if side == "input" else True)
        # In an encoder, and where nothing but the answer is written, there is no colon.
        is_answer = is_written & (result | ~result.any(-1, keepdims=True))
        is_question = is_digit & ~is_written
        role = np.select(
            [is_question & ~times, is_question, tokens == TIMES, is_answer, is_written, tokens == EOS],
            [ROLES.index(name) for name in ("first", "second", "operator", "answer", "step", "end")],
            0,
        )
        from_left = _place_in_run(is_digit)
        from_right = _place_in_run(is_digit[:, ::-1])[:, ::-1]
        return Roles(ROLES, role, np.select([is_question, is_written], [from_right, from_left], NOT_A_PLACE))

    def config(self, options: MultiplicationOptions, model: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "digit_token_ids": list(range(ZERO, NINE + 1)),
            "answer_start_token_id": self.vocabulary.answer_mark_id,
            "answer_order": "reversed",
        }

    def built_in(self, config: Mapping[str, Any]) -> list[BuiltIn]:
        return [
            *super().built_in(config),
            BuiltIn("reversed answers", "the answer is written units first, in the order in which carries run."),
            BuiltIn(
                "leading zeros", "numbers have leading zeros, and an answer one digit for every digit of the two."
            ),
        ]

    def tokens_at(self, length: int, style: str) -> int:
        """Of a number times a digit: `<bos>`, the number, `*`, a digit, `=`, the answer with a digit more, `<eos>`."""
        return 2 * length + 6 if style == "decoder" else length + 3

    def longest_number(self, length: int) -> int:
        return length + 1

    def answer_order(self, options: MultiplicationOptions) -> str:
        return "reversed"


def _digits(digits: NDArray, lengths: NDArray[np.int64]) -> Written:
    return digits.astype(np.int64) + ZERO, lengths


def _sign(token: int, count: int) -> Written:
    return np.full((count, 1), token), np.ones(count, np.int64)


def _from_left(digits: NDArray, width: NDArray[np.int64]) -> NDArray[np.int64]:
    """(N, C): the columns from the most significant one that is written to the units."""
    return np.maximum(width[:, None] - 1 - np.arange(digits.shape[1]), 0)


def _place_in_run(is_digit: NDArray[np.bool_]) -> NDArray[np.int64]:
    """0, 1, 2, ... within every run of digits."""
    slots = np.arange(is_digit.shape[1])
    return slots - np.maximum.accumulate(np.where(is_digit, -1, slots), axis=1) - 1


TASK = Multiplication()
