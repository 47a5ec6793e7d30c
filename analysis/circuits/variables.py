"""Where a model holds the variables of its task, and how far that account goes.

For every variable: the residual stream after each layer, at the tokens of its place and of places nearby, is searched
for directions that hold it (subspace.py). At each place of the variable (the units column, the tens column) the spot
where a short training does best, by other pairs of training problems, is trained to the end and judged on random pairs
of test problems: the WHOLE answer must become the one that is right if just this variable is the source's, whatever
ripples through.

    interchange_accuracy   the share of random test pairs whose whole answer is the expected one
        stage "search"     after a short training, at every spot
        stage "account"    the best spot of each place, trained to the end; `control` none, and beside it
            no swap            the base's run as it is
            whole site         the whole stream at these tokens, all directions
            random directions  as many, drawn at random
            wrong place        as many, at other tokens of the same layer; trained as long as in the search
            untrained model    as many, in a model of the same shape with random weights; as long as in the search
    answer_kept            the share of `equal` pairs, which agree in the variable, whose answer stays the base's
    probe_accuracy         whether a linear map can read the variable there (probes.py)

Some pairs ask for what no problem has, such as a column that sums to nine and makes a carry by itself. They count in
the figure for all pairs, are at most a third of the pairs to train on, and are left out of the scope
{"counterfactual": "possible"}.

Shapes: N pairs, E hidden size, k directions; P places with directions of their own, S sites of a spot.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...data_builders.examples import PairedExamples
from ...data_builders.tasks import Variable
from ...modeling.modeling_headcount import HeadcountPreTrainedModel
from ...records.intervals import rate
from ...records.rows import Row, Rows, row
from ...trainers.trained_run import TrainedRun, load_run
from ..interventions.plan import Progress
from ..interventions.sites import sites
from .probes import probe_rows
from .subspace import (
    BATCH,
    STEPS,
    Spot,
    Streams,
    Swaps,
    answers_as_expected,
    features_at,
    make_swaps,
    random_basis,
    read_streams,
    right_by_place,
    train_basis,
    value_directions,
)
from .variable_pairs import TEST_PAIRS, Material, chosen_variables, make_material, values_at


SEARCH_STEPS, SEARCH_BATCH = 40, 64
RANDOM_BASES = 3

FEW_VALUES = 3

Right = NDArray[np.float64]  # 1 or 0 for every pair, NaN for those that were not tried
Bars = Callable[[str], Progress]  # title -> progress of one piece of work


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


def candidate_spots(model: HeadcountPreTrainedModel, about: Variable) -> list[Spot]:
    """The stream after every layer but the last that is read out, at the variable's place and at those nearby."""
    streams = [site for site in sites(model) if site.kind == "residual"]
    if streams[-1].stack == "decoder":
        streams = streams[:-1]  # there the answer is written already
    return [Spot([stream.at(name)]) for stream in streams for name in (about.place, *about.near)]


@dataclass(frozen=True)
class Found:
    """A spot, its directions (P, S, E, k), and the share of pairs to choose by that they account for at each place."""

    spot: Spot
    basis: Tensor
    reached: NDArray[np.float64]


Account = dict[int, Found]  # place -> what was found for it


def _explain(run: TrainedRun, material: Material, steps: int, progress: Progress | None) -> Rows:
    model = run.model
    candidates = candidate_spots(model, material.about)
    report = _Counted(progress, (len(candidates) + 1) * SEARCH_STEPS + steps)
    streams = Sides.of(model, material)
    test = read_streams(model, material.test)
    rows: Rows = []
    searched: list[Found] = []
    for spot in candidates:
        found = _search(material, streams, spot, report)
        if found is not None:
            searched.append(found)
            account = dict.fromkeys(range(material.places), found)
            rows.append(_row(material, account, _right(material, test, account), stage="search"))
            if len(spot) == 1:
                tested = make_swaps(test, material.test, spot)
                values = values_at(material.about, material.test)
                rows += probe_rows(*features_at(tested, values)[:2], spot[0], material.name)
        report.next(SEARCH_STEPS)
    short = {
        place: max(here, key=lambda found: found.reached[place])
        for place in range(material.places)
        if (here := [found for found in searched if not np.isnan(found.reached[place])])
    }
    best = _trained_on(material, streams, short, steps, report)
    report.next(steps)
    rows += _judged(material, test, best)
    rows += _controls(material, test, best)
    elsewhere = _elsewhere(searched, best)
    if elsewhere:
        rows.append(_row(material, elsewhere, _right(material, test, elsewhere), control="wrong place"))
    rows.append(_in_untrained_model(material, model, best, report))
    rows.append(_kept(material, model, best))
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


@dataclass(frozen=True)
class Sides:
    """The streams of the pairs to fit on and of those to choose by."""

    training: list[Streams]
    choosing: list[Streams]

    @classmethod
    def of(cls, model: HeadcountPreTrainedModel, material: Material) -> "Sides":
        return cls(*(read_streams(model, side) for side in (material.training, material.choosing)))


def _search(material: Material, streams: Sides, spot: Spot, progress: Progress) -> Found | None:
    """What a short training reaches at a spot; None where no pair has such tokens."""
    places = range(material.places)
    swaps = _swaps(material.training, streams.training, spot, material, places)
    if not swaps:
        return None
    k = material.directions(streams.training[0].model.config.hidden_size)
    start = value_directions(swaps, material.training_values, material.places, k)
    return _fitted(material, streams, spot, start, places, progress, SEARCH_STEPS, SEARCH_BATCH)


def _fitted(
    material: Material,
    streams: Sides,
    spot: Spot,
    start: Tensor,
    places: Iterable[int],
    progress: Progress,
    steps: int,
    batch: int = BATCH,
) -> Found:
    """Trained on the pairs of some places, and chosen by others: at each place the better of start and end."""
    swaps = _swaps(material.training, streams.training, spot, material, places)
    trained = train_basis(swaps, start, steps, batch, progress=progress)
    others = _swaps(material.choosing, streams.choosing, spot, material, places)
    reached = np.stack([right_by_place(others, basis, material.places) for basis in (start, trained)])
    better = torch.from_numpy(~(reached[0] > reached[1]))
    return Found(spot, torch.where(better[:, None, None, None], trained, start), np.fmax(*reached))


def _trained_on(material: Material, streams: Sides, short: Account, steps: int, progress: Progress) -> Account:
    """The spots that were chosen, trained to the end, each on the pairs of its places."""
    account: Account = {}
    for spot in dict.fromkeys(found.spot for found in short.values()):
        places = [place for place, found in short.items() if found.spot == spot]
        found = _fitted(material, streams, spot, short[places[0]].basis, places, progress, steps)
        account |= dict.fromkeys(places, found)
    return account


def _swaps(
    pairs: PairedExamples, streams: list[Streams], spot: Spot, material: Material, places: Iterable[int]
) -> list[Swaps]:
    """The pairs of some places at a spot, by their length."""
    found = (own.only(places) for own in make_swaps(streams, pairs, spot, material.by_place))
    return [own for own in found if len(own)]


def _right(material: Material, streams: list[Streams], account: Account, pairs: PairedExamples | None = None) -> Right:
    """(N,): whether the whole answer is as expected, of each pair with the directions of its place; NaN where none."""
    pairs = material.test if pairs is None else pairs
    right = np.full(len(pairs), np.nan)
    for found in {id(each): each for each in account.values()}.values():
        places = [place for place, each in account.items() if each is found]
        own = answers_as_expected(_swaps(pairs, streams, found.spot, material, places), found.basis, len(pairs))
        right = np.where(np.isnan(own), right, own)
    return right


def _row(
    material: Material,
    account: Account,
    right: Right,
    scope: dict | None = None,
    control: str = "none",
    stage: str = "account",
) -> Row:
    right = right[~np.isnan(right)]
    return row(
        "variables",
        "interchange_accuracy",
        rate(int(right.sum()), len(right)),
        scope=scope,
        decoding="free-running" if material.test.base.task.kind != "label" else None,
        variable=material.name,
        site=spot_names(account),
        directions=next(iter(account.values())).basis.shape[-1],
        control=control,
        stage=stage,
    )


def spot_names(account: Account) -> str:
    """The spots of an account, those of the most places first."""
    names = [found.spot.name for found in account.values()]
    return ", ".join(sorted(dict.fromkeys(names), key=lambda name: -names.count(name)))


def _judged(material: Material, streams: list[Streams], account: Account) -> Rows:
    """The account, whole and by what is asked for: possible or not, at which place, how many labels change (ripples),
    and by the other variables of few values that the source has at the place.
    """
    pairs, right = material.test, _right(material, streams, account)
    scopes: list[tuple[dict, NDArray[np.bool_]]] = [
        ({"counterfactual": name}, chosen)
        for name, chosen in (("possible", material.possible), ("impossible", ~material.possible))
    ]
    before, after = (side.rows["labels"].numpy() for side in (pairs.base, pairs.expected))
    if before.ndim > 1:
        changed = (before != after).sum(-1)
        amounts = {"none": changed == 0, "one": changed == 1, "several": changed > 1}
        scopes += [({"labels that change": name}, chosen) for name, chosen in amounts.items()]
    scopes += _source_scopes(pairs, material.name)
    rows = [_row(material, account, right)]
    for place in np.unique(pairs.index).tolist():
        found = account.get(place if material.by_place else 0)
        if found is not None:
            rows.append(_row(material, {0: found}, right[pairs.index == place], {material.about.place: place}))
    here = ~np.isnan(right)
    return rows + [_row(material, account, right[chosen], scope) for scope, chosen in scopes if (here & chosen).any()]


def _source_scopes(pairs: PairedExamples, name: str) -> list[tuple[dict, NDArray[np.bool_]]]:
    """By what else is true of the source at the place: whether the variable is made there or comes from elsewhere."""
    scopes: list[tuple[dict, NDArray[np.bool_]]] = []
    for other, about in pairs.base.task.variables.items():
        if other != name and about.values is not None and about.place == pairs.about.place:
            values = about.values(pairs.source.problems)[np.arange(len(pairs)), pairs.index]
            known = np.unique(values)
            if 1 < len(known) <= FEW_VALUES:
                scopes += [({f"source's {other}": int(value)}, values == value) for value in known]
    return scopes


def _controls(material: Material, streams: list[Streams], account: Account) -> Iterator[Row]:
    """The same spots with no directions, with all of them, and with random ones."""

    def with_basis(make: Callable[[Tensor], Tensor]) -> Account:
        new = {id(found): Found(found.spot, make(found.basis), found.reached) for found in account.values()}
        return {place: new[id(found)] for place, found in account.items()}

    none = with_basis(lambda basis: torch.zeros(*basis.shape[:-1], 1))
    yield _row(material, none, _right(material, streams, none), control="no swap")
    whole = with_basis(lambda basis: torch.eye(basis.shape[-2]).expand(*basis.shape[:-1], -1))
    yield _row(material, whole, _right(material, streams, whole), control="whole site")
    drawn = [with_basis(partial(random_basis, seed=seed)) for seed in range(RANDOM_BASES)]
    right = np.concatenate([_right(material, streams, each) for each in drawn])
    yield _row(material, drawn[0], right, control="random directions")


def _elsewhere(searched: list[Found], best: Account) -> Account:
    """For every place, the same layer at other tokens: of those nearby the one that did worst in the search."""
    found: Account = {}
    for place, own in best.items():
        others = [
            each
            for each in searched
            if each.spot.stream == own.spot.stream
            and not set(each.spot) & set(own.spot)
            and not np.isnan(each.reached[place])
        ]
        if others:
            found[place] = min(others, key=lambda each: each.reached[place])
    return found


def _in_untrained_model(material: Material, model: HeadcountPreTrainedModel, best: Account, progress: Progress) -> Row:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        fresh = type(model)(model.config).eval()
    streams, test = Sides.of(fresh, material), read_streams(fresh, material.test)
    own = {found.spot: _search(material, streams, found.spot, progress) for found in best.values()}
    account = {place: there for place, found in best.items() if (there := own[found.spot]) is not None}
    return _row(material, account, _right(material, test, account), control="untrained model")


def _kept(material: Material, model: HeadcountPreTrainedModel, account: Account) -> Row:
    right = _right(material, read_streams(model, material.equal), account, material.equal)
    right = right[~np.isnan(right)]
    about: dict[str, Any] = {
        "variable": material.name,
        "site": spot_names(account),
        "directions": next(iter(account.values())).basis.shape[-1],
        "pairs": "equal",
    }
    return row("variables", "answer_kept", rate(int(right.sum()), len(right)), **about)
