"""Is a string of brackets of two kinds balanced? `([])()` is, `([)]` is not.

Shapes: N strings, L brackets. A string of n pairs has 2 n brackets; its length is n.

Partners are the brackets that a stack would pair, whatever their kind: an opening bracket, and the next closing one at
its depth. A string is balanced if every bracket has a partner, and of its own kind.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .card_figures import draw_counts
from .corpus import Corpus
from .counterfactuals import ANY_PAIRS
from .expectations import C_RASP, RASP_L, YANG_AND_CHIANG, Expectation, Prediction
from .option_checks import check_whole_number
from .plain import PlainOptions
from .tasks import NOT_A_PLACE, DataCard, LengthStudy, Problems, Roles, Study, Task, Texts, Variable
from .vocabulary import Vocabulary, Written


if TYPE_CHECKING:
    import pyarrow as pa

BRACKETS = "([)]"  # a bracket's number is its kind, and 2 more if it closes
CLOSING, OTHER_KIND, TURNED = 2, 1, 2  # the last two: what is to be changed (xor) for the other kind, the other way
VOCABULARY = Vocabulary(tuple(BRACKETS))
BALANCED = "balanced"
CLASSES = {
    "crossing": "two neighbouring closing brackets of different kinds exchanged: each kind alone is balanced",
    "swapped": "one closing bracket has the other kind",
    "flipped": "one bracket turned round, so that the string has too many of one sort",
    "random": "brackets drawn at random: the easy class",
}
KINDS = (BALANCED, *CLASSES)


def _purpose(config: str, split: str) -> str:
    if config in CLASSES:
        return f"testing at {split.removeprefix('test_')} pairs; `{config}`: {CLASSES[config]}"
    return {"train": "training", "validation": "choosing", "test": "testing"}[split]


def _trained(options: Mapping) -> str:
    return f"{2 * options['min_length']} to {2 * options['max_length']} brackets"


TEXTS = Texts(
    title="Are the brackets balanced?",
    short_title="Brackets",
    description="tell whether a string of brackets of two kinds is balanced: ([]) is, ([)] is not",
    summary=lambda options: (
        "A small transformer that tells whether a string of round and square brackets is balanced; trained on "
        f"{_trained(options)}."
    ),
    reads=lambda options: f"The four brackets {' '.join(BRACKETS)}; an even number of them.",
    length="pairs",
    problems="strings",
    kinds="unbalanced strings are",
    kind_noun="negatives",
    facts={"kind": "kind of negative", "length": "pairs"},
    kinds_text="; ".join(f"`{name}`: {says}" for name, says in CLASSES.items()) + ".",
    pipeline_tag="text-classification",
    data=DataCard(
        summary="Strings of round and square brackets: half of them balanced, half with a known kind of mistake.",
        method="Balanced strings are drawn uniformly among those of their length, of any depth. Half of the rows then "
        "get a mistake of one class, all classes equally often. A string that a mistake cannot be made in is drawn "
        "again, whether it is to get one or not. No string of `train` is in `validation` or `test`.",
        limits="A model that only counts is right on `flipped` and at chance on `crossing`: report each class by "
        "itself. Long strings are deeper, too: about 1.8 times the square root of the number of pairs.",
        columns={
            "": {
                "input": "the brackets",
                "label": "`balanced` (1) or `unbalanced` (0)",
                "length": "pairs of brackets",
                "kind": "balanced, or the class of the mistake",
            }
        },
        purpose=_purpose,
        balance="kind",
        balance_text="Rows by kind:",
        balance_order=KINDS.index,
        draw=partial(draw_counts, facts={"length": "pairs of brackets"}),
        figure="lengths.png",
        figure_text="Share of rows by length",
        category="text-classification",
    ),
)


@dataclass(frozen=True)
class DyckOptions(PlainOptions):
    """Strings of `min_length`..`max_length` pairs, all lengths equally often; rows of every split.

    `test_lengths`: lengths outside of training, each tested by `long_test` strings of every class, half balanced.
    """

    min_length: int = 5
    max_length: int = 8
    train: int = 20_000
    long_test: int = 200
    shortest: ClassVar[int] = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole_number("long_test", self.long_test, 2)


@dataclass(frozen=True)
class Strings(Problems):
    """`brackets` (N, L), numbers as in BRACKETS, of which 2 `length` (N,) count; `kind` (N,): index into KINDS."""

    brackets: NDArray[np.int64]
    length: NDArray[np.int64]
    kind: NDArray[np.int64]

    @property
    def real(self) -> NDArray[np.bool_]:
        return np.arange(self.brackets.shape[1]) < 2 * self.length[:, None]


def partners(brackets: NDArray[np.int64], real: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
    """(N, L): the place of each bracket's partner, -1 where it has none or is not `real`."""
    count, width = brackets.shape
    rows, slots = np.arange(count)[:, None], np.arange(width)
    opens = brackets < CLOSING
    level = np.cumsum(np.where(opens, 1, -1), axis=1) + ~opens  # partners have the same
    level = level if real is None else np.where(real, level, width + 1 + slots)  # alone on its level
    order = np.argsort(level, axis=1, kind="stable")
    # On its level, an opening bracket's partner is the next one.
    here, following = order[:, :-1], order[:, 1:]
    paired = level[rows, here] == level[rows, following]
    paired &= opens[rows, here] & ~opens[rows, following]
    found = np.full(brackets.shape, -1)
    row, number = np.nonzero(paired)
    found[row, here[row, number]], found[row, following[row, number]] = following[row, number], here[row, number]
    return found


def mistakes(problems: Strings) -> NDArray[np.int64]:
    """(N, L): 1 where a bracket has no partner of its own kind, 0 where it has."""
    partner = partners(problems.brackets, problems.real)
    other = np.take_along_axis(problems.brackets, np.maximum(partner, 0), axis=1)
    fits = (partner >= 0) & ((other ^ problems.brackets) == TURNED)
    return np.where(problems.real, (~fits).astype(np.int64), NOT_A_PLACE)


def label_with_mistake(problems: Strings, place: NDArray[np.int64], value: NDArray[np.int64]) -> NDArray[np.int64]:
    """The labels if a bracket had a fitting partner, or none."""
    found = mistakes(problems)
    found[np.arange(len(found)), place] = value
    return (found != 1).all(-1).astype(np.int64)


def draw_balanced(rng: np.random.Generator, n: int, pairs: int) -> NDArray[np.int64]:
    """(n, 2 pairs): balanced strings, all equally likely.

    Of all rotations of a sequence of `pairs` steps up and one more down, exactly one goes down below its start at its
    end and not before (the cycle lemma, Dvoretzky & Motzkin 1947); without that last step it is balanced.
    """
    steps = np.repeat([1, -1], [pairs, pairs + 1])
    drawn = rng.permuted(np.tile(steps, (n, 1)), axis=1)
    start = np.cumsum(drawn, axis=1).argmin(axis=1) + 1
    turned = np.take_along_axis(drawn, (start[:, None] + np.arange(2 * pairs)) % (2 * pairs + 1), axis=1)
    opens = turned > 0
    kind = rng.integers(0, 2, opens.shape)
    # Round brackets are enough to find the partners, of which the opening one decides the kind.
    partner = partners(np.where(opens, 0, CLOSING))
    return np.where(opens, kind, np.take_along_axis(kind, partner, axis=1) + CLOSING)


def neighbours(brackets: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(N, L): where a closing bracket is followed by one of the other kind."""
    found = np.zeros(brackets.shape, bool)
    found[:, :-1] = (brackets[:, :-1] >= CLOSING) & ((brackets[:, :-1] ^ brackets[:, 1:]) == OTHER_KIND)
    return found


def draw_strings(rng: np.random.Generator, n: int, pairs: int, kinds: tuple[str, ...]) -> Strings:
    """Strings of one length, half of them (rounded up) balanced, the others of these classes, in random order."""
    chosen = np.array([KINDS.index(kind) for kind in kinds])[rng.integers(0, len(kinds), n)]
    broken = rng.permutation(n) < n // 2
    brackets = draw_balanced(rng, n, pairs)
    crossing = chosen == KINDS.index("crossing")
    while (todo := np.flatnonzero(crossing & ~neighbours(brackets).any(-1))).size:
        brackets[todo] = draw_balanced(rng, len(todo), pairs)
    for kind, name in enumerate(KINDS[1:], 1):
        rows = np.flatnonzero(broken & (chosen == kind))
        if len(rows):
            brackets[rows] = MISTAKES[name](rng, brackets[rows])
    return Strings(brackets, np.full(n, pairs), np.where(broken, chosen, 0))


def _one_of(rng: np.random.Generator, candidates: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row and column of one candidate in every row, all equally likely."""
    return np.arange(len(candidates)), np.where(candidates, rng.random(candidates.shape), -1.0).argmax(-1)


def cross(rng: np.random.Generator, brackets: NDArray[np.int64]) -> NDArray[np.int64]:
    row, place = _one_of(rng, neighbours(brackets))
    crossed = brackets.copy()
    crossed[row, place], crossed[row, place + 1] = brackets[row, place + 1], brackets[row, place]
    return crossed


def swap(rng: np.random.Generator, brackets: NDArray[np.int64]) -> NDArray[np.int64]:
    swapped = brackets.copy()
    swapped[_one_of(rng, brackets >= CLOSING)] ^= OTHER_KIND
    return swapped


def flip(rng: np.random.Generator, brackets: NDArray[np.int64]) -> NDArray[np.int64]:
    flipped = brackets.copy()
    flipped[_one_of(rng, np.ones(brackets.shape, bool))] ^= TURNED
    return flipped


def scatter(rng: np.random.Generator, brackets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Any brackets; a string that came out balanced gets one wrong kind."""
    drawn = rng.integers(0, len(BRACKETS), brackets.shape)
    length = np.full(len(drawn), drawn.shape[1] // 2)
    lucky = np.flatnonzero((mistakes(Strings(drawn, length, length)) == 0).all(-1))
    drawn[lucky] = swap(rng, drawn[lucky])
    return drawn


MISTAKES = {"crossing": cross, "swapped": swap, "flipped": flip, "random": scatter}


class DyckCorpus(Corpus[Strings]):
    repetitive = ("length", "kind", "label")

    def read_table(self, table: "pa.Table") -> Strings:
        texts = table["input"].to_pylist()
        length = np.array([len(text) // 2 for text in texts])
        brackets = np.zeros((len(texts), 2 * int(length.max(initial=1))), np.int64)
        for row, text in zip(brackets, texts, strict=True):
            row[: len(text)] = [BRACKETS.index(bracket) for bracket in text]
        kind = np.array([KINDS.index(name) for name in table["kind"].to_pylist()])
        return Strings(brackets, length, kind)


EXPECTATION = Expectation(
    predictions=(
        Prediction(
            RASP_L,
            None,
            "RASP, of which RASP-L is a part, has programs for brackets of any kinds; RASP-L is not said to",
        ),
        Prediction(
            C_RASP,
            None,
            "brackets of one kind have a program, by counting; two kinds are not treated",
            YANG_AND_CHIANG,
        ),
    ),
)


class Dyck(Task[Strings]):
    name = "dyck"
    kind = "label"
    options = DyckOptions
    vocabulary = VOCABULARY
    texts = TEXTS
    classes = CLASSES
    hardest = ("crossing", "swapped", "flipped", "random")
    labels = ("unbalanced", "balanced")
    role_letters = {"opening": "(", "closing": ")"}
    variables = {
        "mistake": Variable(
            "whether a bracket has no partner of its own kind",
            place="bracket",
            near={"before": -1, "after": 1},
            shows_at="bracket",
            pair_kinds=ANY_PAIRS,
            values=mistakes,
            answers=label_with_mistake,
        )
    }
    expectation = EXPECTATION
    length_study = LengthStudy(
        recipe="dyck",
        lengths=(12, 16, 32, 64, 128),
        quick_lengths=(16, 32),
        quick_settings=("training.steps=200",),
        quick_variants=("learned", "rotary"),
    )
    study = Study(
        recipes=("dyck",),
        quick_recipe="dyck",
        quick_settings=("training.steps=100",),
        length_options=("--encodings", "rotary,none+causal", "--poolings", "max", "--seeds", "0"),
        quick_keep=2,
    )

    def problems(
        self,
        options: DyckOptions,
        rng: np.random.Generator,
        n: int,
        length: int | None = None,
        kind: str | None = None,
    ) -> Strings:
        kinds = tuple(CLASSES) if kind is None else (kind,)
        if length is not None:
            return draw_strings(rng, n, length, kinds)
        lengths = rng.integers(options.min_length, options.max_length + 1, n)
        longest = Strings(np.zeros((n, 2 * options.max_length), np.int64), lengths, np.zeros(n, np.int64))
        for pairs in np.unique(lengths):
            own = np.flatnonzero(lengths == pairs)
            drawn = draw_strings(rng, len(own), int(pairs), kinds)
            longest.brackets[own, : 2 * pairs], longest.kind[own] = drawn.brackets, drawn.kind
        return longest

    def solve(self, problems: Strings) -> NDArray[np.int64]:
        """1 where every bracket has a partner of its own kind."""
        return (mistakes(problems) != 1).all(-1).astype(np.int64)

    def facts(self, problems: Strings) -> dict[str, NDArray]:
        return {"kind": np.array(KINDS)[problems.kind], "length": problems.length}

    def splits(self, options: DyckOptions) -> DyckCorpus:
        return DyckCorpus(self, options)

    def write(self, problems: Strings, options: DyckOptions) -> tuple[Written, NDArray[np.int64]]:
        return (problems.brackets + self.vocabulary.first, 2 * problems.length), self.solve(problems)

    def write_answers(self, problems: Strings, answers: NDArray, options: DyckOptions) -> NDArray[np.int64]:
        return answers

    def roles(self, tokens: NDArray, side: str = "input", options: Any = None) -> Roles:
        """Brackets by their place, opening and closing ones apart."""
        tokens = np.asarray(tokens)
        is_bracket = tokens >= self.vocabulary.first
        closes = tokens >= self.vocabulary.first + CLOSING
        index = np.where(is_bracket, np.cumsum(is_bracket, -1) - 1, NOT_A_PLACE)
        return Roles(("other", "opening", "closing"), is_bracket.astype(np.int64) + closes, index)

    def config(self, options: DyckOptions, model: Mapping[str, Any]) -> dict[str, Any]:
        brackets = [self.vocabulary.first + number for number in range(len(BRACKETS))]
        return super().config(options, model) | {"bracket_token_ids": brackets}

    def tokens_at(self, length: int, style: str) -> int:
        return 2 * length


TASK = Dyck()
