"""The parity of a string of bits: is the number of ones odd? `1011` -> `1`; with a scratchpad, the parity so far at
every place: `1011` -> `1101`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .built_in import BuiltIn
from .card_figures import draw_counts
from .corpus import Corpus
from .counterfactuals import ANY_PAIRS
from .expectations import C_RASP, RASP_L, Expectation, Paper, Prediction, Published
from .letters import split_purpose
from .option_checks import check_flag, check_share
from .strings import StringCorpus, StringOptions, Strings, StringTask
from .tasks import NOT_A_PLACE, DataCard, LengthStudy, Relation, Study, Texts, Variable
from .vocabulary import Vocabulary, Written


RARE = 1 / 8  # share of the ones of a `sparse` string, and of the zeros of a `dense` one
SHARES = {"random": 1 / 2, "sparse": RARE, "dense": 1 - RARE}
CLASSES = {
    "random": "ones and zeros equally likely",
    "sparse": "one bit of eight is a one, so that a parity has to be kept over long stretches",
    "dense": "seven bits of eight are ones, so that the parity changes at nearly every place",
}
SCRATCHPAD = BuiltIn(
    "scratchpad", "the parity so far is written at every place, so that no step has to look at more than one bit."
)


@dataclass(frozen=True)
class ParityOptions(StringOptions):
    """`scratchpad`: the parity so far is written at every place, and the last one is the answer."""

    scratchpad: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_flag("scratchpad", self.scratchpad)


@dataclass(frozen=True)
class ParityStream:
    """Strings that are made while training. `uneven_share`: so many of them have a share of ones of their own, any
    from 0 to 1. Of evenly drawn bits no few say anything about the parity, and a model that has to look at all of them
    at once finds no slope to go down; strings with few ones, or few zeros, are where it can begin.
    """

    uneven_share: float = 0.0

    def __post_init__(self) -> None:
        check_share("training.uneven_share", self.uneven_share)


class ParityCorpus(StringCorpus):
    repetitive = ("length", "parity")


def running_parities(problems: Strings) -> NDArray[np.int64]:
    """(N, L): the parity of the bits up to every place."""
    return np.where(problems.real, np.cumsum(problems.symbols, axis=1) % 2, NOT_A_PLACE)


def with_running_parity(problems: Strings, place: NDArray[np.int64], value: NDArray[np.int64]) -> NDArray[np.int64]:
    """The answers with another parity at a place: whatever follows from it is the other one too."""
    found, rows = np.cumsum(problems.symbols, axis=1) % 2, np.arange(len(problems))
    changed = (found[rows, place] != value)[:, None] & (np.arange(found.shape[1]) >= place[:, None])
    return found ^ changed


def _trained(options: Mapping) -> str:
    return f"{options['min_length']} to {options['max_length']} bits"


TEXTS = Texts(
    title="Parity of a string of bits",
    short_title="Parity",
    description="is the number of ones odd? 1011 -> 1; with a scratchpad, the parity so far: 1011 -> 1101",
    summary=lambda options: (
        f"A small transformer that says whether a string of {_trained(options)} has an odd number of ones"
        f"{', and writes the parity so far at every place' if options['scratchpad'] else ''}."
    ),
    reads=lambda options: f"It was trained on strings of {_trained(options)}. Anything else it cannot read.",
    length="bits",
    problems="strings",
    kinds="strings",
    kind_noun="strings",
    place="bit of the answer",
    facts={"length": "length", "parity": "parity"},
    kinds_text="; ".join(f"`{name}`: {says}" for name, says in CLASSES.items()) + ".",
    answer_note=lambda options: "The last bit that it writes is the answer." if options["scratchpad"] else "",
    data=DataCard(
        summary="Strings of bits, and their parity.",
        method="Bits are drawn uniformly. No string of `train` is in `validation` or `test`, and none is in both of "
        "these; the classes at longer lengths are drawn by themselves.",
        limits="There are only 2 to the power of their length strings of one length: short ones are soon used up.",
        columns={
            "": {
                "input": "the bits",
                "target": "the parity of all of them, or of those up to every place (`scratchpad`)",
                "length": "how many bits",
                "parity": "`odd` or `even`, as the number of ones is",
            }
        },
        purpose=partial(split_purpose, CLASSES),
        balance="parity",
        balance_text="Rows by parity:",
        draw=partial(draw_counts, facts={"length": "bits"}),
        figure="lengths.png",
        figure_text="Share of rows by length",
    ),
)


EXPECTATION = Expectation(
    predictions=(
        Prediction(
            RASP_L,
            False,
            "no short program is known for the answer alone; written step by step with index hints there is one",
        ),
        Prediction(C_RASP, False, "a program compares counts, and cannot take a count modulo two"),
    ),
    published=Published(
        20,
        50,
        "near perfect",
        "the answer alone, by one block that is run once for every bit",
        Paper("Fan et al. 2024", "https://arxiv.org/abs/2409.15647"),
    ),
)


class Parity(StringTask):
    name = "parity"
    options = ParityOptions
    stream = ParityStream
    vocabulary = Vocabulary(("0", "1", "="), answer_mark="=")
    alphabet = ("0", "1")
    symbol = "bit"
    texts = TEXTS
    classes = CLASSES
    hardest = ("random", "dense", "sparse")
    format_options = ("scratchpad",)
    relations = {"source": Relation("the bit at the place that is to be written", ("bit",), 0, reads="its bit")}
    variables = {
        "running_parity": Variable(
            "the parity of the bits up to a place",
            place="bit",
            near={"next": 1, "before": -1},
            shows_at="bit",
            pair_kinds=ANY_PAIRS,
            values=running_parities,
            answers=with_running_parity,
        )
    }
    last_written = "last parity"
    role_letters = {"bit": "x", "answer": "y"}
    expectation = EXPECTATION
    length_study = LengthStudy(
        recipe="parity-scratchpad",
        lengths=(20, 32, 64, 128, 256),
        quick_lengths=(20, 32),
        quick_settings=("training.steps=300",),
        quick_variants=("whole", "answer-only"),
    )
    study = Study(
        recipes=("parity-scratchpad", "parity"),
        quick_recipe="parity-scratchpad",
        quick_settings=("training.steps=200",),
        length_options=("--variants", "whole,no-jitter,answer-only", "--seeds", "0"),
    )

    def draw(self, options: Any, rng: np.random.Generator, n: int, width: int, kind: str | None) -> NDArray[np.int64]:
        return (rng.random((n, width)) < SHARES[kind or "random"]).astype(np.int64)

    def fresh_problems(
        self,
        rng: np.random.Generator,
        n: int,
        corpus: Corpus[Strings],
        stream: ParityStream,
        step: int,
        steps: int,
    ) -> Strings:
        even = super().fresh_problems(rng, n, corpus, stream, step, steps)
        bits = (rng.random(even.symbols.shape) < rng.random((n, 1))).astype(np.int64)
        uneven = Strings(bits, even.length)
        chosen = (rng.random(n) < stream.uneven_share) & ~corpus.is_held_out(uneven)
        return Strings(np.where(chosen[:, None], uneven.symbols, even.symbols), even.length)

    def solve(self, problems: Strings) -> NDArray[np.int64]:
        """(N, L): the parity up to every place; the one at the last place of a string is its parity."""
        return np.cumsum(problems.symbols, axis=1) % 2

    def facts(self, problems: Strings) -> dict[str, NDArray]:
        odd = (problems.symbols * problems.real).sum(-1) % 2 == 1
        return {"length": problems.length, "parity": np.where(odd, "odd", "even")}

    def splits(self, options: ParityOptions) -> ParityCorpus:
        return ParityCorpus(self, options)

    def write_answers(self, problems: Strings, answers: NDArray, options: ParityOptions) -> Written:
        if options.scratchpad:
            return super().write_answers(problems, answers, options)
        last = np.take_along_axis(answers, problems.length[:, None] - 1, axis=1)
        return last + self.vocabulary.first, np.ones(len(problems), np.int64)

    def config(self, options: ParityOptions, model: Mapping[str, Any]) -> dict[str, Any]:
        return super().config(options, model) | {"answer_order": "aligned" if options.scratchpad else "plain"}

    def built_in(self, config: Mapping[str, Any]) -> list[BuiltIn]:
        return super().built_in(config) + ([SCRATCHPAD] if config.get("answer_order") == "aligned" else [])

    def number_of_answers(self, options: ParityOptions) -> int | None:
        return None if options.scratchpad else 2


TASK = Parity()
