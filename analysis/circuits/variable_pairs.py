"""The pairs by which a variable is looked for in a model: to fit on, to choose by, to judge on, and its controls.

Shapes: N pairs.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...data_builders.counterfactuals import draw_counterfactuals, is_possible
from ...data_builders.examples import PairedExamples, make_pairs
from ...data_builders.tasks import MOST_PAIRED, Problems, Variable
from ...trainers.trained_run import TrainedRun
from ...trainers.training_data import style_of
from .swap import of_same_length


TRAINING_PAIRS, CHOOSING_PAIRS = 4_000, 600
MOST_IMPOSSIBLE = 0.3  # of the training pairs
PAIRS_OF_A_PLACE = 300  # from so many training pairs at each place on, places have directions of their own
TEST_PAIRS = 600
DIRECTIONS_PER_VALUE = 8  # a variable of K values gets at most so many times K - 1, and a quarter of the stream


@dataclass(frozen=True)
class Material:
    """Pairs of one variable: to fit on, to choose by, to judge on, and those that agree in it."""

    name: str
    about: Variable
    training: PairedExamples
    choosing: PairedExamples
    test: PairedExamples
    equal: PairedExamples
    possible: NDArray[np.bool_]  # of the test pairs: whether they ask for what some problem has
    values: int  # how many the variable has

    @property
    def by_place(self) -> bool:
        """Whether every place has pairs enough for directions of its own."""
        return int(np.bincount(self.training.index)[np.unique(self.test.index)].min()) >= PAIRS_OF_A_PLACE

    @property
    def places(self) -> int:
        return int(max(self.training.index.max(), self.test.index.max())) + 1 if self.by_place else 1

    @property
    def training_values(self) -> NDArray[np.int64]:
        """(N,): the variable in the bases of the training pairs, at their places."""
        return values_at(self.about, self.training)

    def directions(self, hidden: int) -> int:
        return min(DIRECTIONS_PER_VALUE * (self.values - 1), max(hidden // 4, min(8, hidden // 2)))


def chosen_variables(run: TrainedRun, wanted: Iterable[str] | None) -> list[str]:
    known = variables_of(run)
    if not known:
        raise ValueError(
            f"the task {run.recipe.task} has no variables with values; expected one whose algorithm has some."
        )
    unknown = next((name for name in wanted or () if name not in known), None)
    if unknown is not None:
        raise ValueError(f"the variable {unknown!r} is not known; expected one of {', '.join(known)}.")
    return list(dict.fromkeys(wanted)) if wanted is not None else known


def values_at(about: Variable, pairs: PairedExamples) -> NDArray[np.int64]:
    """(N,): the variable in the bases, at the places of the pairs."""
    assert about.values is not None  # chosen for them
    return about.values(pairs.base.problems)[np.arange(len(pairs)), pairs.index]


def variables_of(run: TrainedRun) -> list[str]:
    """The task's variables that have values."""
    return [name for name, about in run.recipe.the_task.variables.items() if about.values is not None]


def make_material(run: TrainedRun, name: str, test_pairs: int = TEST_PAIRS) -> Material:
    task, corpus, style = run.recipe.the_task, run.corpus, style_of(run.recipe)
    about = task.variables[name]

    def pairs(problems: Problems, kind: str, n: int, purpose: str) -> PairedExamples:
        rng = corpus.rng(f"explain/{name}/{purpose}")
        # Some pairs have no place that fits, and some have sides of other lengths: more are drawn than are needed.
        drawn = draw_counterfactuals(task, name, problems, rng, kind, 3 * n)
        return of_same_length(make_pairs(task, corpus.options, name, drawn, style, kind))[slice(n)]

    trained_on = training_problems(run, 2 * TRAINING_PAIRS)
    assert about.values is not None  # chosen for them
    found = np.unique(about.values(trained_on))
    test = corpus.sample("test", MOST_PAIRED)
    fitted = pairs(trained_on, "random", TRAINING_PAIRS + CHOOSING_PAIRS, "training")
    judged = pairs(test, "random", test_pairs, "test")

    def possible(drawn: PairedExamples) -> NDArray[np.bool_]:
        return is_possible(task, name, drawn.base.problems, drawn.source.problems, drawn.index)

    fitted = fitted[_mostly(possible(fitted))]
    held = np.arange(len(fitted)) % (1 + TRAINING_PAIRS // CHOOSING_PAIRS) == 0
    return Material(
        name,
        about,
        fitted[np.flatnonzero(~held)],
        fitted[np.flatnonzero(held)],
        judged,
        pairs(test, "equal", test_pairs, "equal"),
        possible(judged),
        int((found >= 0).sum()),
    )


def _mostly(possible: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The pairs that ask for what some problem has, and as many of the others as there may be beside them."""
    others = np.flatnonzero(~possible)
    room = int(possible.sum() * MOST_IMPOSSIBLE / (1 - MOST_IMPOSSIBLE))
    return np.sort(np.concatenate([np.flatnonzero(possible), others[:room]]))


def training_problems(run: TrainedRun, n: int) -> Problems:
    """Problems that no test has: those of the training split, or, where training made its own, others like them."""
    corpus = run.corpus
    if "train" in corpus.sizes().get("default", {}):
        return corpus.sample("train", n)
    drawn = corpus.task.problems(corpus.options, corpus.rng("explain/problems"), 2 * n)
    return drawn[~corpus.is_held_out(drawn)][:n]
