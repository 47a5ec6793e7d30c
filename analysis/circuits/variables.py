"""Where a model holds the variables of its task, and how far that account goes.

For every variable: the residual stream after each layer, at the tokens of its place and of places nearby, is searched
for directions that hold it (subspace.py); the site where a short training does best, on pairs of training problems, is
trained to the end and judged on random pairs of test problems: the WHOLE answer must become the one that is right if
just this variable is the source's, whatever ripples through.

    interchange_accuracy   the share of random test pairs whose whole answer is the expected one
        stage "search"     after a short training, at every site
        stage "account"    the best of them, trained to the end; `control` none, and beside it
            no swap            the base's run as it is
            whole site         the whole stream at these tokens, all directions
            random directions  as many, drawn at random
            wrong place        as many, at other tokens of the same layer; trained as long as in the search
            untrained model    as many, in a model of the same shape with random weights; as long as in the search
    answer_kept            the share of `equal` pairs, which agree in the variable, whose answer stays the base's
    probe_accuracy         whether a linear map can read the variable there (probes.py)

Some pairs ask for what no problem has, such as a column that sums to nine and makes a carry by itself. They count in
the figure for all pairs, and are left out of training and of the scope {"counterfactual": "possible"}.

Shapes: N pairs, E hidden size, k directions.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...data_builders.counterfactuals import draw_counterfactuals, is_possible
from ...data_builders.examples import PairedExamples, make_pairs
from ...data_builders.tasks import MOST_PAIRED, Problems, Variable
from ...modeling.modeling_headcount import HeadcountPreTrainedModel
from ...records.intervals import rate
from ...records.rows import Row, Rows, row
from ...trainers.trained_run import TrainedRun, load_run
from ...trainers.training_data import style_of
from ..interventions.plan import Progress
from ..interventions.sites import Site, sites
from .probes import probe_rows
from .subspace import (
    STEPS,
    Streams,
    answers_as_expected,
    features_at,
    make_swaps,
    random_bases,
    read_streams,
    train_basis,
    value_directions,
)
from .swap import of_same_length


TRAINING_PAIRS = 2_000
TEST_PAIRS = 600
SEARCH_STEPS, SEARCH_BATCH = 60, 64
RANDOM_BASES = 3
DIRECTIONS_PER_VALUE = 8  # a variable of K values gets at most so many times K - 1, and a quarter of the stream

Bars = Callable[[str], Progress]  # title -> progress of one piece of work


@dataclass(frozen=True)
class Material:
    """Pairs of one variable: to fit on, to judge on, and those that agree in it."""

    name: str
    about: Variable
    training: PairedExamples
    test: PairedExamples
    equal: PairedExamples
    possible: NDArray[np.bool_]  # of the test pairs: whether they ask for what some problem has
    values: int  # how many the variable has

    @property
    def training_values(self) -> NDArray[np.int64]:
        """(N,): the variable in the bases of the training pairs, at their places."""
        return values_at(self.about, self.training)

    def directions(self, hidden: int) -> int:
        return min(DIRECTIONS_PER_VALUE * (self.values - 1), max(hidden // 4, min(8, hidden // 2)))


def explain_variables(
    run: str | Path | TrainedRun,
    variables: Iterable[str] | None = None,
    *,
    steps: int = STEPS,
    test_pairs: int = TEST_PAIRS,
    progress: Bars | None = None,
) -> Rows:
    """For every variable of the run's task: the site and the directions that hold it, with controls.

    Args:
        run: a trained run, or where it is.
        variables: names; without them, all that the task has.
        steps: of training, for the site that is chosen and for its controls.
        test_pairs: how many random pairs of test problems judge it.
        progress: gives a bar for each piece of work.

    Returns:
        Rows of the study `variables`.
    """
    run = load_run(run) if not isinstance(run, TrainedRun) else run
    rows: Rows = []
    for name in chosen_variables(run, variables):
        bar = None if progress is None else progress(f"variable {name}")
        rows += _explain(run, make_material(run, name, test_pairs), steps, bar)
    return rows


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

    trained_on = _training_problems(run)
    assert about.values is not None  # chosen for them
    found = np.unique(about.values(trained_on))
    test = corpus.sample("test", MOST_PAIRED)
    training, judged = (
        pairs(trained_on, "random", TRAINING_PAIRS, "training"),
        pairs(test, "random", test_pairs, "test"),
    )

    def possible(drawn: PairedExamples) -> NDArray[np.bool_]:
        return is_possible(task, name, drawn.base.problems, drawn.source.problems, drawn.index)

    return Material(
        name,
        about,
        training[np.flatnonzero(possible(training))],
        judged,
        pairs(test, "equal", test_pairs, "equal"),
        possible(judged),
        int((found >= 0).sum()),
    )


def _training_problems(run: TrainedRun) -> Problems:
    """Problems that no test has: those of the training split, or, where training made its own, others like them."""
    corpus = run.corpus
    if "train" in corpus.sizes().get("default", {}):
        return corpus.sample("train", 2 * TRAINING_PAIRS)
    drawn = corpus.task.problems(corpus.options, corpus.rng("explain/problems"), 4 * TRAINING_PAIRS)
    return drawn[~corpus.is_held_out(drawn)]


def candidate_sites(model: HeadcountPreTrainedModel, about: Variable) -> list[Site]:
    """The stream after every layer but the last that is read out, at the variable's place and at those nearby."""
    streams = [site for site in sites(model) if site.kind == "residual"]
    if streams[-1].stack == "decoder":
        streams = streams[:-1]  # there the answer is written already
    return [stream.at(place) for stream in streams for place in (about.place, *about.near)]


def _explain(run: TrainedRun, material: Material, steps: int, progress: Progress | None) -> Rows:
    model, hidden = run.model, run.model.config.hidden_size
    k, candidates = material.directions(hidden), candidate_sites(model, material.about)
    report = _Counted(progress, (len(candidates) + 1) * SEARCH_STEPS + steps)
    training, test = (read_streams(model, side) for side in (material.training, material.test))
    rows: Rows = []
    found: dict[Site, float] = {}
    bases: dict[Site, Tensor] = {}
    for site in candidates:
        own = make_swaps(training, material.training, site)
        if own:
            start = value_directions(own, material.training_values, k)
            bases[site] = train_basis(own, start, k, SEARCH_STEPS, SEARCH_BATCH, progress=report)
            found[site] = float(np.nanmean(answers_as_expected(own, bases[site], len(material.training))))
            rows.append(_judged(material, site, test, bases[site], "none", stage="search"))
            tested = make_swaps(test, material.test, site)
            rows += probe_rows(*features_at(tested, values_at(material.about, material.test)), site, material.name)
        report.next(SEARCH_STEPS)
    best = max(found, key=lambda site: found[site])
    basis = train_basis(make_swaps(training, material.training, best), bases[best], k, steps, progress=report)
    report.next(steps)
    rows.append(_judged(material, best, test, basis, "none"))
    rows += _by_parts(material, best, test, basis)
    rows += _untrained_controls(material, best, test, basis.shape[1], hidden)
    elsewhere = _elsewhere(found, best)
    if elsewhere is not None:
        rows.append(_judged(material, elsewhere, test, bases[elsewhere], "wrong place"))
    rows.append(_in_untrained_model(material, model, best, k, report))
    rows.append(_kept(material, best, read_streams(model, material.equal), basis))
    return rows


class _Counted:
    """Progress over several trainings."""

    def __init__(self, progress: Progress | None, total: int):
        self.progress, self.total, self.before = progress, total, 0

    def __call__(self, done: int, steps: int) -> None:
        if self.progress is not None:
            self.progress(self.before + done, self.total)

    def next(self, steps: int) -> None:
        self.before += steps


def _judged(
    material: Material, site: Site, streams: list[Streams], basis: Tensor, control: str, stage: str = "account"
) -> Row:
    """The share of test pairs whose whole answer is as expected; pairs without such tokens are not counted."""
    right = answers_as_expected(make_swaps(streams, material.test, site), basis, len(material.test))
    return _row(material, site, basis.shape[1], right[~np.isnan(right)], control=control, stage=stage)


def _row(
    material: Material, site: Site, k: int, right: NDArray[np.float64], scope: dict | None = None, **about: Any
) -> Row:
    return row(
        "variables",
        "interchange_accuracy",
        rate(int(right.sum()), len(right)),
        scope=scope,
        decoding="free-running" if material.test.base.task.kind != "label" else None,
        variable=material.name,
        site=str(site),
        directions=k,
        **about,
    )


def _by_parts(material: Material, site: Site, streams: list[Streams], basis: Tensor) -> Rows:
    """The account by what is asked for: possible or not, at which place, and how many labels change (ripples)."""
    pairs = material.test
    right = answers_as_expected(make_swaps(streams, pairs, site), basis, len(pairs))
    here = ~np.isnan(right)
    scopes: list[tuple[dict, NDArray[np.bool_]]] = [
        ({"counterfactual": name}, chosen)
        for name, chosen in (("possible", material.possible), ("impossible", ~material.possible))
    ]
    places = np.unique(pairs.index[here]).tolist()
    scopes += [({material.about.place: place}, pairs.index == place) for place in places]
    before, after = (side.rows["labels"].numpy() for side in (pairs.base, pairs.expected))
    if before.ndim > 1:
        changed = (before != after).sum(-1)
        amounts = {"none": changed == 0, "one": changed == 1, "several": changed > 1}
        scopes += [({"labels that change": name}, chosen) for name, chosen in amounts.items()]
    return [
        _row(material, site, basis.shape[1], right[here & chosen], scope, control="none", stage="account")
        for scope, chosen in scopes
        if (here & chosen).any()
    ]


def _untrained_controls(material: Material, site: Site, streams: list[Streams], k: int, hidden: int) -> Iterator[Row]:
    swaps, n = make_swaps(streams, material.test, site), len(material.test)

    def right(basis: Tensor) -> NDArray[np.float64]:
        found = answers_as_expected(swaps, basis, n)
        return found[~np.isnan(found)]

    yield _row(material, site, 0, right(torch.zeros(hidden, 1)), control="no swap", stage="account")
    yield _row(material, site, hidden, right(torch.eye(hidden)), control="whole site", stage="account")
    drawn = np.concatenate([right(basis) for basis in random_bases(hidden, k, RANDOM_BASES)])
    yield _row(material, site, k, drawn, control="random directions", stage="account")


def _elsewhere(found: dict[Site, float], best: Site) -> Site | None:
    """The same layer at other tokens: of those nearby the one that did worst in the search."""
    others = [site for site in found if site.module == best.module and site.role != best.role]
    return min(others, key=lambda site: found[site]) if others else None


def _in_untrained_model(
    material: Material, model: HeadcountPreTrainedModel, site: Site, k: int, progress: Progress
) -> Row:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        fresh = type(model)(model.config).eval()
    training, test = (read_streams(fresh, side) for side in (material.training, material.test))
    swaps = make_swaps(training, material.training, site)
    start = value_directions(swaps, material.training_values, k)
    basis = train_basis(swaps, start, k, SEARCH_STEPS, SEARCH_BATCH, progress=progress)
    return _judged(material, site, test, basis, "untrained model")


def _kept(material: Material, site: Site, streams: list[Streams], basis: Tensor) -> Row:
    right = answers_as_expected(make_swaps(streams, material.equal, site), basis, len(material.equal))
    right = right[~np.isnan(right)]
    about: dict[str, Any] = {
        "variable": material.name,
        "site": str(site),
        "directions": basis.shape[1],
        "pairs": "equal",
    }
    return row("variables", "answer_kept", rate(int(right.sum()), len(right)), **about)
