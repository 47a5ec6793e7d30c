"""Is a sequence of integers in non-decreasing order?"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..card_examples import Example, PublishedModel
from ..corpus import Corpus
from ..counterfactuals import ANY_PAIRS
from ..option_checks import check_flag
from ..tasks import NOT_A_PLACE, Contrast, LengthStudy, Study, Task, Variable
from ..vocabulary import Vocabulary, Written
from .card_examples import sortedness_examples
from .corpus import SortednessCorpus, draw_untaken
from .expectation import EXPECTATION
from .options import SortednessOptions
from .sequences import (
    KIND_NAMES,
    KINDS,
    VALUES,
    SortednessProblems,
    balanced_kinds,
    describe,
    put_out_of_order,
    sample_sortedness,
)
from .texts import TEXTS


VOCABULARY = Vocabulary(tuple(map(str, range(VALUES))), joiner=" ")
ENCODINGS = "sinusoidal,learned,none,rotary,alibi_directional,none+causal+log_n"
BLEND = (1 / 8, 1 / 3)  # shares of the steps between which the curriculum goes over to the mixture


@dataclass(frozen=True)
class SortednessStream:
    """Sequences that are made while training. `curriculum`: the unsorted ones start as easy shuffles and blend into
    the mixture early in training: one swapped pair among sixteen is too faint for a model that knows nothing yet.
    """

    curriculum: bool = False

    def __post_init__(self) -> None:
        check_flag("training.curriculum", self.curriculum)


def falls(problems: SortednessProblems) -> NDArray[np.int64]:
    """(N, L): 1 where a value is smaller than the one before it; the first has none before it."""
    found = np.full(problems.values.shape, NOT_A_PLACE, np.int64)
    found[:, 1:] = problems.values[:, 1:] < problems.values[:, :-1]
    return np.where(np.arange(problems.values.shape[1]) < problems.length[:, None], found, NOT_A_PLACE)


def label_with_fall(
    problems: SortednessProblems, place: NDArray[np.int64], value: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The labels if there were a fall at a place, or none."""
    found = falls(problems)
    found[np.arange(len(found)), place] = value
    return np.asarray(~(found == 1).any(-1), np.int64)


class Sortedness(Task[SortednessProblems]):
    name = "sortedness"
    kind = "label"
    options = SortednessOptions
    stream = SortednessStream
    vocabulary = VOCABULARY
    texts = TEXTS
    classes = {name: says for name, says in KINDS.items() if name != "sorted"}
    hardest = ("swap", "move", "shuffle")
    labels = ("unsorted", "sorted")
    variables = {
        "violation": Variable(
            "whether a value is smaller than the one before it",
            place="value",
            near={"before": -1},
            shows_at="value",
            pair_kinds=ANY_PAIRS,
            values=falls,
            answers=label_with_fall,
        )
    }
    length_study = LengthStudy(
        recipe="length-study",
        lengths=(*range(8, 17), 32, 64, 128, 256, 512, 1024, 4096),
        quick_lengths=(8, 16, 32, 64, 128, 256),
        quick_settings=("training.steps=800",),
        quick_variants=("sinusoidal", "learned", "none", "alibi_directional", "none+causal", "none+causal+log_n"),
    )
    expectation = EXPECTATION
    study = Study(
        recipes=("sortedness",),
        quick_recipe="sortedness-tiny",
        quick_keep=1,
        # Twelve cells, which fit into the quarter of an hour; `headcount extrapolate` alone has them all.
        length_options=("--encodings", ENCODINGS, "--poolings", "mean,max", "--seeds", "0"),
    )

    def problems(
        self,
        options: SortednessOptions,
        rng: np.random.Generator,
        n: int,
        length: int | None = None,
        kind: str | None = None,
    ) -> SortednessProblems:
        length = int(rng.integers(options.min_length, options.max_length + 1)) if length is None else length
        kinds = options.kinds if kind is None else {kind: 1.0}
        return sample_sortedness(rng, n, length, kinds, options.narrow_share if kind is None else 0.0)

    def solve(self, problems: SortednessProblems) -> NDArray[np.int64]:
        """1 where the values never decrease."""
        return np.asarray(~(falls(problems) == 1).any(-1), np.int64)

    def facts(self, problems: SortednessProblems) -> dict[str, NDArray]:
        return {"kind": np.array(KIND_NAMES)[problems.kind], "length": problems.length}

    def test_problems(self, options: SortednessOptions, kind: str, length: int, n: int) -> SortednessProblems:
        """Within the training lengths, the rows that the corpus keeps out of training, however many they are."""
        return self.splits(options).at_length(length, n).problems(f"test_{length}", kind)

    def fresh_problems(
        self,
        rng: np.random.Generator,
        n: int,
        corpus: Corpus[SortednessProblems],
        stream: SortednessStream,
        step: int,
        steps: int,
    ) -> SortednessProblems:
        """One length per batch, half of it sorted; rows with held-out values are left out."""
        if n % 2:
            raise ValueError(f"training.batch_size={n} is not allowed; expected an even number.")
        options = corpus.options
        length = int(rng.integers(options.min_length, options.max_length + 1))
        kind = balanced_kinds(rng, n, self._kinds(options, stream, step, steps))
        values = draw_untaken(rng, n, length, options.narrow_share, corpus.held_out_keys)
        put_out_of_order(rng, values, kind)
        return describe(values, kind)

    def _kinds(self, options: SortednessOptions, stream: SortednessStream, step: int, steps: int) -> dict[str, float]:
        if not stream.curriculum:
            return options.kinds
        start, end = (share * steps for share in BLEND)
        blend = min(1.0, max(0.0, (step - start) / (end - start)))
        kinds = {kind: blend * share for kind, share in options.kinds.items()}
        return kinds | {"shuffle": kinds.get("shuffle", 0.0) + 1.0 - blend}

    def contrast(self, options: SortednessOptions, length: int, n: int) -> Contrast[SortednessProblems]:
        """Sequences with two neighbours exchanged, and the same in order."""
        found = self.test_problems(options, "swap", length, max(2 * n, options.test))
        swapped = found[np.flatnonzero(found.position >= 0)[:n]]
        swapped = replace(swapped, values=swapped.values[:, :length])
        none = np.zeros(len(swapped), np.int64)
        ordered = SortednessProblems(np.sort(swapped.values, axis=-1), swapped.length, none, none - 1, none)
        return Contrast(ordered, swapped, swapped.position)

    def decisive_place(self, problems: SortednessProblems) -> NDArray[np.int64]:
        """Of the kinds with exactly one violation, where it is."""
        has_one = ~np.isin(problems.kind, [KIND_NAMES.index(name) for name in ("sorted", "shuffle")])
        return np.where(has_one, problems.position, -1)

    def splits(self, options: SortednessOptions) -> SortednessCorpus:
        return SortednessCorpus(self, options)

    def write(self, problems: SortednessProblems, options: SortednessOptions) -> tuple[Written, NDArray[np.int64]]:
        return (problems.values.astype(np.int64) + self.vocabulary.first, problems.length), problems.label

    def write_answers(
        self, problems: SortednessProblems, answers: NDArray, options: SortednessOptions
    ) -> NDArray[np.int64]:
        return answers

    def config(self, options: SortednessOptions, model: Mapping[str, Any]) -> dict[str, Any]:
        facts = super().config(options, model)
        if model.get("embedding_type") == "ordinal":
            facts["ordinal_token_range"] = [self.vocabulary.first, self.vocabulary.size]
        return facts

    def tokens_at(self, length: int, style: str) -> int:
        return length

    def card_examples(self, model: PublishedModel) -> dict[str, Example]:
        return sortedness_examples(model)


TASK = Sortedness()
