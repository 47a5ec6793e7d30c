"""Tasks that read a string of symbols and write another one: what reverse, copy, parity and sorting share.

    reverse   b a n a n a = a n a n a b      copy      b a n a n a = b a n a n a
    parity    1 0 1 1     = 1                sorting   7 3 3 9     = 3 3 7 9

A subclass names its alphabet, draws strings of every class (`draw`) and solves them. Where position ids are coupled, a
symbol of the answer shares its id with the symbol of the string at the place that `answer_order` says.

Shapes: N strings, L symbols of the longest.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .built_in import BuiltIn
from .corpus import Corpus
from .plain import PlainOptions
from .tasks import NOT_A_PLACE, Problems, Roles, Task
from .vocabulary import EOS, Written


if TYPE_CHECKING:
    import pyarrow as pa

COUPLED = (
    "every symbol of the answer shares its position id with the symbol of the string that belongs to it (`coupled`), "
    "so that their alignment is not learned."
)


@dataclass(frozen=True)
class StringOptions(PlainOptions):
    """Strings of `min_length`..`max_length` symbols, all lengths equally often; rows of every split.

    `test_lengths`: lengths outside of training, each tested by `long_test` strings of every class.
    """

    min_length: int = 5
    max_length: int = 10
    validation: int = 1_000
    shortest: ClassVar[int] = 2


@dataclass(frozen=True)
class Strings(Problems):
    """`symbols` (N, L), 0 for the first of the alphabet; what is after the `length` (N,) is no part of a string."""

    symbols: NDArray[np.int64]
    length: NDArray[np.int64]

    @property
    def real(self) -> NDArray[np.bool_]:
        """(N, L): which places belong to the string."""
        return np.arange(self.symbols.shape[1]) < self.length[:, None]


class StringCorpus(Corpus[Strings]):
    task: "StringTask"
    repetitive: tuple[str, ...] = ("length",)

    def read_table(self, table: "pa.Table") -> Strings:
        vocabulary = self.task.vocabulary
        numbers = {symbol: number for number, symbol in enumerate(self.task.alphabet)}
        rows = [
            text.split(vocabulary.joiner) if vocabulary.joiner else list(text) for text in table["input"].to_pylist()
        ]
        length = np.array([len(row) for row in rows])
        symbols = np.zeros((len(rows), int(length.max(initial=1))), np.int64)
        for row, found in zip(symbols, rows, strict=True):
            row[: len(found)] = [numbers[symbol] for symbol in found]
        return Strings(symbols, length)


class StringTask(Task[Strings]):
    """`symbol` is what a symbol of the string is called; `coupled_order`: where an answer's symbol comes from."""

    kind = "sequence"
    options: ClassVar[type] = StringOptions
    alphabet: ClassVar[tuple[str, ...]]
    symbol: ClassVar[str]
    coupled_order: ClassVar[str] = "aligned"  # see `coupled` in modeling/position_schemes.py

    def draw(self, options: Any, rng: np.random.Generator, n: int, width: int, kind: str | None) -> NDArray[np.int64]:
        """(n, width): symbols of a class; None is what training sees."""
        raise NotImplementedError

    def problems(
        self, options: Any, rng: np.random.Generator, n: int, length: int | None = None, kind: str | None = None
    ) -> Strings:
        width = options.max_length if length is None else length
        lengths = rng.integers(options.min_length, width + 1, n) if length is None else np.full(n, length)
        return Strings(self.draw(options, rng, n, width, kind), lengths)

    def splits(self, options: Any) -> StringCorpus:
        return StringCorpus(self, options)

    def write(self, problems: Strings, options: Any) -> tuple[Written, Written]:
        question = problems.symbols + self.vocabulary.first, problems.length
        return question, self.write_answers(problems, self.solve(problems), options)

    def write_answers(self, problems: Strings, answers: NDArray, options: Any) -> Written:
        return answers + self.vocabulary.first, problems.length

    def roles(self, tokens: NDArray, side: str = "input", options: Any = None) -> Roles:
        """Symbols by their place in the string; those of the answer by the place that they belong to."""
        tokens = np.asarray(tokens)
        is_symbol = (tokens >= self.vocabulary.first) & (tokens < self.vocabulary.first + len(self.alphabet))
        marks = np.cumsum(tokens == self.vocabulary.answer_mark_id, -1) > 0
        is_answer = is_symbol & (marks if side == "input" else True)
        is_question = is_symbol & ~is_answer
        number = np.cumsum(is_answer, -1) - 1
        if self.coupled_order == "reversed":
            number = is_answer.sum(-1, keepdims=True) - 1 - number
        role = np.select([is_question, is_answer, tokens == EOS], [1, 2, 3], 0)
        index = np.select([is_question, is_answer], [self.places(tokens, is_question), number], NOT_A_PLACE)
        return Roles(("other", self.symbol, "answer", "end"), role, index)

    def places(self, tokens: NDArray, is_question: NDArray[np.bool_]) -> NDArray[np.int64]:
        """(N, L): the numbers of the symbols of a string."""
        return np.cumsum(is_question, -1) - 1

    def config(self, options: Any, model: Mapping[str, Any]) -> dict[str, Any]:
        if model.get("position_scheme") not in ("coupled", "abacus"):
            return {}
        first = self.vocabulary.first
        return {
            "digit_token_ids": list(range(first, first + len(self.alphabet))),
            "answer_start_token_id": self.vocabulary.answer_mark_id,
            "answer_order": self.coupled_order,
        }

    def built_in(self, config: Mapping[str, Any]) -> list[BuiltIn]:
        return [
            found._replace(sentence=COUPLED) if found.name == "coupled position ids" else found
            for found in super().built_in(config)
        ]

    def tokens_at(self, length: int, style: str) -> int:
        """`<bos>`, the string, `=`, an answer as long as it, `<eos>`; an encoder reads the string and `<eos>`."""
        return 2 * length + 3 if style == "decoder" else length + 1

    def longest_number(self, length: int) -> int:
        return length
