"""Write the values of a sequence in order, equal ones as often as they are there: `7 3 3 9` -> `3 3 7 9`."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .built_in import BuiltIn
from .card_figures import draw_counts
from .expectations import C_RASP, RASP_L, Expectation, Paper, Prediction, Published
from .key_sets import hash_rows
from .letters import split_purpose
from .option_checks import check_share
from .strings import StringCorpus, StringOptions, Strings, StringTask
from .tasks import DataCard, LengthStudy, Relation, Study, Texts
from .vocabulary import Vocabulary


VALUES = 100
FEW, NARROW = 3, 10  # different values of a `repeated` sequence, and of a `narrow` one
ALPHABET = tuple(map(str, range(VALUES)))
CLASSES = {
    "random": f"values drawn from all {VALUES}",
    "repeated": f"values drawn from {FEW} only, so that each has to be written many times",
    "narrow": f"values drawn from {NARROW} neighbouring ones",
    "falling": f"values drawn from all {VALUES}, given in falling order",
}
COUPLED = BuiltIn(
    "coupled position ids",
    "position ids follow the values, and that of a value just written says whether more of its kind are left "
    "(`coupled`): neither the order of values nor counting is learned, only to look for the next larger id.",
)


@dataclass(frozen=True)
class SortingOptions(StringOptions):
    """`repeat_share`: so many of the sequences have values that come again, half of these drawn from 1 to 16
    neighbouring ones and half from 1 to 4 anywhere.
    """

    repeat_share: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_share("repeat_share", self.repeat_share)


class SortingCorpus(StringCorpus):
    repetitive = ("length", "repeats")

    def keys(self, problems: Strings) -> NDArray[np.uint64]:
        """The same values in another order are the same problem, so that no test is a shuffled training sequence."""
        return hash_rows(np.where(problems.real, self.task.solve(problems) + 1, 0))


def _trained(options: Mapping) -> str:
    return f"{options['min_length']} to {options['max_length']} values"


TEXTS = Texts(
    title="Sort a sequence",
    short_title="Sorting",
    description="write the values of a sequence in order: 7 3 3 9 -> 3 3 7 9",
    summary=lambda options: f"A small transformer that writes {_trained(options)} in order, the smallest first.",
    reads=lambda options: (
        f"It was trained on sequences of {_trained(options)} from 0 to {VALUES - 1}. Anything else it cannot read."
    ),
    length="values",
    problems="sequences",
    kinds="sequences",
    kind_noun="sequences",
    place="value of the answer",
    facts={"length": "length", "repeats": "values that come again"},
    kinds_text="; ".join(f"`{name}`: {says}" for name, says in CLASSES.items()) + ".",
    data=DataCard(
        summary="Sequences of integers, and the same integers in order.",
        method="Values are drawn uniformly, in some of the rows (`repeat_share`) from few of them, and may come "
        "again. No sequence of `train` is in `validation` or `test` in any order, and none is in both of these; the "
        "classes at longer lengths are drawn by themselves.",
        limits=f"Values are from 0 to {VALUES - 1}: long sequences have every one of them several times.",
        columns={
            "": {
                "input": "the values",
                "target": "the values in order",
                "length": "how many values",
                "repeats": "`with` or `without` a value that comes again",
            }
        },
        purpose=partial(split_purpose, CLASSES),
        balance="repeats",
        balance_text="Rows with and without a value that comes again:",
        draw=partial(draw_counts, facts={"length": "values"}),
        figure="lengths.png",
        figure_text="Share of rows by length",
    ),
)


EXPECTATION = Expectation(
    predictions=(
        Prediction(
            RASP_L,
            None,
            "values that do not come again have a program: the next one is the smallest that is larger than the last; "
            "counting equal ones is not treated",
        ),
        Prediction(
            C_RASP,
            None,
            "values that do not come again have a program; counting equal ones is not treated",
        ),
    ),
    published=Published(
        20,
        100,
        "more than 92 %",
        "a second task that is trained beside it, what comes after each value",
        Paper("Awasthi and Gupta 2023", "https://arxiv.org/abs/2310.00726"),
    ),
)


class Sorting(StringTask):
    name = "sorting"
    options = SortingOptions
    vocabulary = Vocabulary((*ALPHABET, "="), joiner=" ", answer_mark="=")
    alphabet = ALPHABET
    symbol = "value"
    coupled_order = "sorted"
    texts = TEXTS
    classes = CLASSES
    hardest = ("repeated", "narrow", "random", "falling")
    relations = {"source": Relation("the value that is to be written", ("value",), 0, reads="its source")}
    last_written = "last value"
    role_letters = {"value": "x", "answer": "y"}
    expectation = EXPECTATION
    length_study = LengthStudy(
        recipe="sorting",
        lengths=(20, 32, 64, 128, 256),
        quick_lengths=(20, 32),
        quick_settings=("training.steps=300",),
        quick_variants=("whole", "no-coupling"),
    )
    study = Study(
        recipes=("sorting",),
        quick_recipe="sorting",
        quick_settings=("training.steps=200",),
        length_options=("--variants", "whole,no-coupling,no-jitter", "--seeds", "0"),
    )

    def draw(
        self, options: SortingOptions, rng: np.random.Generator, n: int, width: int, kind: str | None
    ) -> NDArray[np.int64]:
        values = rng.integers(0, VALUES, (n, width))
        if kind == "repeated":
            chosen = rng.permuted(np.tile(np.arange(VALUES), (n, 1)), axis=1)[:, :FEW]
            return np.take_along_axis(chosen, values % FEW, axis=1)
        if kind == "narrow":
            return rng.integers(0, VALUES - NARROW + 1, (n, 1)) + values % NARROW
        if kind is None:
            size, chosen = rng.integers(1, 17, (n, 1)), rng.integers(0, VALUES, (n, 4))
            start = (rng.random((n, 1)) * (VALUES - size + 1)).astype(np.int64)
            narrow = start + (rng.random((n, width)) * size).astype(np.int64)
            few = np.take_along_axis(chosen, values % rng.integers(1, 5, (n, 1)), axis=1)
            again = np.where(rng.random((n, 1)) < 0.5, narrow, few)
            return np.where(rng.random((n, 1)) < options.repeat_share, again, values)
        return -np.sort(-values, axis=1) if kind == "falling" else values

    def solve(self, problems: Strings) -> NDArray[np.int64]:
        """The values in order; what stands after them is no part of the answer."""
        return np.sort(np.where(problems.real, problems.symbols, VALUES - 1), axis=1)

    def facts(self, problems: Strings) -> dict[str, NDArray]:
        ordered, real = self.solve(problems), problems.real
        again = ((ordered[:, 1:] == ordered[:, :-1]) & real[:, 1:]).any(-1)
        return {"length": problems.length, "repeats": np.where(again, "with", "without")}

    def splits(self, options: SortingOptions) -> SortingCorpus:
        return SortingCorpus(self, options)

    def places(self, tokens: NDArray, is_question: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Where each value comes in the answer; equal ones in the order in which they are given."""
        order = np.argsort(np.where(is_question, tokens, self.vocabulary.size), axis=-1, kind="stable")
        return np.argsort(order, axis=-1, kind="stable")

    def built_in(self, config: Mapping[str, Any]) -> list[BuiltIn]:
        return [COUPLED if found.name == COUPLED.name else found for found in super().built_in(config)]

    def longest_number(self, length: int) -> int:
        """Coupled ids count values, not places."""
        return 2 * VALUES + 1

    def config(self, options: SortingOptions, model: Mapping[str, Any]) -> dict[str, Any]:
        facts = super().config(options, model)
        if model.get("embedding_type") == "ordinal":
            facts["ordinal_token_range"] = [self.vocabulary.first, self.vocabulary.first + VALUES]
        return facts


TASK = Sorting()
