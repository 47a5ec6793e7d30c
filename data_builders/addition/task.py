"""Addition of two numbers, digit by digit, and the anatomy of its carries."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..built_in import BuiltIn
from ..card_examples import Example, PublishedModel
from ..corpus import Corpus
from ..option_checks import check_shares
from ..tasks import NOT_A_PLACE, LengthStudy, Pairs, Relation, Roles, Study, Task
from ..vocabulary import EOS, Vocabulary, Written
from .card_examples import addition_examples
from .carry_groups import NINES, name_groups, sample_addition, shorten_one_operand
from .choices import PROBLEM_CLASSES as CLASS_SENTENCES
from .columns import AdditionProblems, solve
from .corpus import AdditionCorpus
from .expectation import EXPECTATION
from .long_problems import PROBLEM_CLASSES
from .options import AdditionOptions
from .pair_kinds import carry_pairs
from .text import addition_texts
from .texts import TEXTS
from .variables import VARIABLES


VOCABULARY = Vocabulary(tuple("0123456789+="), answer_mark="=")
DIGIT_IDS = [VOCABULARY.id_of(digit) for digit in "0123456789"]
PLUS_ID, EQUALS_ID = VOCABULARY.id_of("+"), VOCABULARY.id_of("=")
ROLES = ("other", "first", "second", "operator", "answer", "end")
PLACES = ("units", "tens", "hundreds", "thousands")
MOST_DRAWS = 200  # for one batch, if they bring less than one problem each

_ID_OF_CODE = np.zeros(256, np.int64)
_ID_OF_CODE[[ord(symbol) for symbol in VOCABULARY.symbols]] = np.arange(VOCABULARY.first, VOCABULARY.size)


@dataclass(frozen=True)
class AdditionStream:
    """Problems that are made while training. `nine_shares`: an equal part of each batch has columns that sum to nine
    with this probability; long carry chains, and long chains that no carry enters, are next to absent without.
    """

    nine_shares: tuple[float, ...] = (0.0, 0.0, 0.5, 0.9)

    def __post_init__(self) -> None:
        object.__setattr__(self, "nine_shares", check_shares("training.nine_shares", self.nine_shares))


class Addition(Task[AdditionProblems]):
    name = "addition"
    kind = "sequence"
    options = AdditionOptions
    stream = AdditionStream
    vocabulary = VOCABULARY
    texts = TEXTS
    classes = CLASS_SENTENCES
    hardest = ("full_chain", "carry_dense", "all_nines", "random")
    relations = {
        "same_column": Relation(
            "the digits of both operands in the query's column", ("first", "second"), 0, reads="own column"
        ),
        "carry_source": Relation(
            "the digits of both operands one column to the right of the query's",
            ("first", "second"),
            -1,
            reads="right column",
        ),
        "operator": Relation("the plus sign", ("operator",)),
    }
    variables = VARIABLES
    role_letters = {"first": "a", "second": "b", "answer": "y"}
    format_options = ("answer_order", "zero_pad")
    place_zero = "last"
    last_written = "last digit"
    length_study = LengthStudy(
        recipe="addition-long",
        lengths=(21, 30, 50, 100, 200, 500, 1000),
        quick_lengths=(30, 50, 100, 200),
        quick_settings=("training.steps=1000",),
        quick_variants=("whole", "no-jitter"),
    )
    expectation = EXPECTATION
    study = Study(
        recipes=("addition", "addition-reversed"),
        quick_recipe="addition-tiny",
        length_options=("--variants", "whole,no-jitter,no-coupling", "--seeds", "0"),
    )

    def problems(
        self,
        options: AdditionOptions,
        rng: np.random.Generator,
        n: int,
        length: int | None = None,
        kind: str | None = None,
    ) -> AdditionProblems:
        return PROBLEM_CLASSES[kind or "random"](rng, n, options.digits if length is None else length)

    def solve(self, problems: AdditionProblems) -> NDArray[np.uint8]:
        """Digits of the sums, units first."""
        return solve(problems.a, problems.b).sum

    def facts(self, problems: AdditionProblems) -> dict[str, NDArray]:
        chain = solve(problems.a, problems.b).longest_chain
        carry = np.where(chain > 0, "with", "without")
        return {"longest_chain": chain, "group": name_groups(problems), "carry": carry}

    def fresh_problems(
        self,
        rng: np.random.Generator,
        n: int,
        corpus: Corpus[AdditionProblems],
        stream: AdditionStream,
        step: int,
        steps: int,
    ) -> AdditionProblems:
        """With `min_digits`, a batch has one width, drawn from `min_digits`..`digits`, so that nothing is padded; in
        half of its problems one operand is shorter, of any length.
        """
        width, shares = int(rng.choice(corpus.options.widths)), stream.nine_shares
        found: list[AdditionProblems] = []
        have = 0
        while have < n:
            if len(found) >= MOST_DRAWS and have < len(found):
                raise ValueError(
                    f"nearly all problems of {width} digits are held out; expected a larger data.min_digits, or fewer "
                    "rows in data.test, data.validation and data.hard."
                )
            part = math.ceil(n / len(shares)) + 4
            drawn = [sample_addition(rng, part, width, nine_share=share) for share in shares]
            problems = AdditionProblems.concatenate(drawn)
            problems = problems[rng.permutation(len(problems))]
            if corpus.options.min_digits is not None:
                shorten_one_operand(rng, problems)
            problems = problems[~corpus.is_held_out(problems)]
            found.append(problems)
            have += len(problems)
        return AdditionProblems.concatenate(found)[:n]

    def splits(self, options: AdditionOptions) -> AdditionCorpus:
        return AdditionCorpus(self, options)

    def pairs(self, variable: str, corpus: Corpus[AdditionProblems], kind: str = "minimal") -> Pairs[AdditionProblems]:
        if self.variables.get(variable) is not VARIABLES["carry"] or not isinstance(corpus, AdditionCorpus):
            return super().pairs(variable, corpus, kind)
        return carry_pairs(corpus, kind)

    def trained_lengths(self, options: AdditionOptions) -> tuple[int, int]:
        return options.min_digits or options.digits, options.digits

    def write(self, problems: AdditionProblems, options: AdditionOptions) -> tuple[Written, Written]:
        total = solve(problems.a, problems.b).sum
        texts = addition_texts(problems, total, options.zero_pad, options.answer_order)
        questions, answers = ((_ID_OF_CODE[codes], lengths) for codes, lengths in texts)
        return questions, answers

    def write_answers(self, problems: AdditionProblems, answers: NDArray, options: AdditionOptions) -> Written:
        codes, lengths = addition_texts(problems, answers, options.zero_pad, options.answer_order)[1]
        return _ID_OF_CODE[codes], lengths

    def offsets(self, written: NDArray, right: NDArray) -> NDArray:
        """-1 where one of the two is no digit."""
        is_digit = (np.minimum(written, right) >= DIGIT_IDS[0]) & (np.maximum(written, right) <= DIGIT_IDS[-1])
        return np.where(is_digit, (written - right) % len(DIGIT_IDS), NOT_A_PLACE)

    def roles(self, tokens: NDArray, side: str = "input", options: AdditionOptions | None = None) -> Roles:
        """Operand digits by column, answer digits by column, units 0."""
        order = "plain" if options is None else options.answer_order
        tokens = np.asarray(tokens)
        slots = np.arange(tokens.shape[1])
        is_digit = (tokens >= DIGIT_IDS[0]) & (tokens <= DIGIT_IDS[-1])
        if side == "answer":
            is_answer = is_digit
            role = np.where(is_answer, ROLES.index("answer"), 0)
            index = np.full(tokens.shape, NOT_A_PLACE)
        else:
            plus = (tokens == PLUS_ID).argmax(-1)[:, None]
            ends = (tokens == EQUALS_ID) | ((tokens == EOS) & (slots > plus))
            end = ends.argmax(-1)[:, None]
            is_operand = is_digit & (slots < end)
            is_answer = is_digit & (slots > end)
            role = np.where(is_operand, np.where(slots < plus, ROLES.index("first"), ROLES.index("second")), 0)
            role = np.where(tokens == PLUS_ID, ROLES.index("operator"), role)
            role = np.where(is_answer, ROLES.index("answer"), role)
            index = np.where(is_operand, np.where(slots < plus, plus - 1 - slots, end - 1 - slots), NOT_A_PLACE)
        number = np.cumsum(is_answer, -1) - 1
        column = number if order == "reversed" else is_answer.sum(-1, keepdims=True) - 1 - number
        role = np.where(tokens == EOS, ROLES.index("end"), role)
        return Roles(ROLES, role, np.where(is_answer, column, index))

    def config(self, options: AdditionOptions, model: Mapping[str, Any]) -> dict[str, Any]:
        varied = options.min_digits is not None
        return {
            "digit_token_ids": list(DIGIT_IDS),
            "answer_start_token_id": EQUALS_ID,
            "answer_order": options.answer_order,
            "operand_digits": options.digits if options.zero_pad and not varied else None,
            "align_operands": options.zero_pad and varied,
        }

    def built_in(self, config: Mapping[str, Any]) -> list[BuiltIn]:
        found = super().built_in(config)
        if config.get("answer_order") == "reversed":
            found.append(
                BuiltIn("reversed answers", "the answer is written units first, in the order in which carries run.")
            )
        if config.get("operand_digits") is not None or config.get("align_operands"):
            sentence = (
                "numbers are written with leading zeros to one width, so that their digits stand in like places."
            )
            found.append(BuiltIn("leading zeros", sentence))
        return found

    def tokens_at(self, length: int, style: str) -> int:
        """`<bos>`, both operands, `+`, `=`, the sum with a digit more, `<eos>`; an encoder reads the problem only."""
        return 3 * length + 5 if style == "decoder" else 2 * length + 2

    def longest_number(self, length: int) -> int:
        return length + 1

    def answer_order(self, options: AdditionOptions) -> str:
        return options.answer_order

    def number_of_answers(self, options: AdditionOptions) -> int:
        return 2 * (10**options.digits - 1) + 1

    def most_frequent_answer(self, options: AdditionOptions) -> float | None:
        """Of numbers that are all equally likely, one sum in the middle; of mixed lengths it is not known."""
        return 10.0**-options.digits if options.min_digits is None else None

    def place_name(self, place: int) -> str:
        return PLACES[place] if place < len(PLACES) else f"10^{place}"

    def fact_name(self, fact: str, value: Any) -> str:
        if fact != "group":
            return str(value)
        if value == NINES:
            return "all nines, no carry"
        columns = int(value.removeprefix("chain_"))
        return "no carry" if columns == 0 else f"longest carry chain {columns} column{'s' if columns > 1 else ''}"

    def card_examples(self, model: PublishedModel) -> dict[str, Example]:
        return addition_examples(model)


TASK = Addition()
