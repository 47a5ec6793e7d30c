"""The account as a program that runs instead of the network: what it will answer when it is tampered with.

Something is taken from the run on another problem, the source: what one node puts out, or a residual stream at the
tokens of one place. For each such tampering and each token of the answer the program has a table. Its columns are some
variables of the task's algorithm, of the problem and of the source, at the token's own place and below it, and whether
the token before it is still the right one. Its entries are rules, which say whose token the network writes:

    base                             the right answer's
    source                           the right answer's of the other problem
    base, source's carry 1 below     that of the problem, if it had the other's carry out of the column below
    source, base's tri_state         that of the other problem, if its own column had this one's tri-state
    base, carry 1 below = 1          that of the problem, if there were a carry
    always 7                         the same token in all problems

Rules come from the task's own `variables`: they are statements of what a site brings to the answer. Columns and
entries are chosen on training problems (greedily, as long as held-out fit examples gain from it), and the program is
tested on others: does it predict what the network answers, and where the answer is wrong, just that wrong answer?

    answers_predicted     the share of whole answers, free-running, that the program predicts
    errors_predicted      the same of those that are wrong: the whole wrong answer must be predicted
    answers_by_default    what "the answer stays right" would predict: the control
    errors_by_source      what "the answer becomes the other problem's" would predict of the wrong ones

Shapes: N examples, T tokens of the answer, R rules, F features.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ...data_builders.examples import Examples, PlacesNearby, make_examples, tensors
from ...data_builders.tasks import NOT_A_PLACE, Variable
from ...modeling.modeling_headcount import HeadcountPreTrainedModel
from ...records.intervals import rate
from ...records.rows import Rows, row
from ...trainers.trained_run import TrainedRun
from ...trainers.training_data import style_of
from ..interventions.intervention import Intervention
from ..interventions.measures import labels_in_place
from ..interventions.plan import Progress, RoleFinders
from ..interventions.sites import Site, sites
from .free_running import free_running
from .variables import training_problems


FIT, TEST = 2_000, 600
MOST_PLACES = 4
MOST_COLUMNS = 5
LEAST_GAIN = 0.002  # share of the held-out examples that another column must gain
BELOW = 2  # how many places below its own a token's columns and rules reach
FEW_VALUES = 3

Tokens = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Scene:
    """Problems with a source beside each, and what the task says of both at every token of the answer."""

    model: HeadcountPreTrainedModel
    base: Examples
    source: Examples

    def __len__(self) -> int:
        return len(self.base)

    @cached_property
    def right(self) -> Tokens:
        """(N, T)"""
        return self._in_place(self.base.rows["labels"])

    @cached_property
    def of_source(self) -> Tokens:
        return self._in_place(self.source.rows["labels"])

    @cached_property
    def index(self) -> NDArray[np.int64]:
        """(N, T): the place that a token of the answer stands for; that of a class stands for none."""
        if self.base.task.kind == "label":
            return np.full_like(self.right, NOT_A_PLACE)
        return self._in_place(torch.from_numpy(self.base.roles("answer").index))

    @cached_property
    def values(self) -> dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Variable -> its values (N, places) in the problems and in the sources."""
        return {
            name: (about.values(self.base.problems), about.values(self.source.problems))
            for name, about in self.base.task.variables.items()
            if about.values is not None and about.answers is not None
        }

    def _in_place(self, labels: torch.Tensor) -> Tokens:
        return labels_in_place(self.model, labels).numpy()

    def roles(self, place: int, rows: NDArray[np.int64]) -> RoleFinders:
        """Of some of the problems: the tokens of one place, by the name that the task's variables have for it."""
        some = self.base[rows]
        at = np.full(len(some), place)
        sides = ("input",) if self.base.task.kind == "label" else ("input", "answer")
        return {side: PlacesNearby(some.roles(side), self.about, at) for side in sides}

    @property
    def about(self) -> Variable:
        return self.base.task.variables[next(iter(self.values))]

    def columns(self, token: int, written: Tokens) -> dict[str, NDArray[np.int64]]:
        """What a table may ask, (N,) each: variables at the token's place and below, and the token before it."""
        found: dict[str, NDArray[np.int64]] = {}
        for name, both in self.values.items():
            for side, values in zip(("base", "source"), both, strict=True):
                for distance in range(BELOW + 1):
                    own = _at(values, self.index[:, token] - distance)
                    if (own != own[0]).any():
                        found[f"{side}'s {name}{_below(distance)}"] = own
        if token:
            before, right, other = (side[:, token - 1] for side in (written, self.right, self.of_source))
            found["token before"] = np.select([before == right, before == other], [0, 1], 2)
        return found

    @cached_property
    def rules(self) -> list[dict[str, Tokens]]:
        """For every token of the answer, what a network may write, (N,) each; the simplest first."""
        return [self._rules(token) for token in range(self.right.shape[1])]

    def _rules(self, token: int) -> dict[str, Tokens]:
        found = {"base": self.right[:, token], "source": self.of_source[:, token]}
        for name, (own, others) in self.values.items():
            about = self.base.task.variables[name]
            for distance in range(BELOW + 1):
                place = self.index[:, token] - distance
                where = f"{name}{_below(distance)}"
                found[f"base, source's {where}"] = self._with(self.base, about, place, _at(others, place), token)
                found[f"source, base's {where}"] = self._with(self.source, about, place, _at(own, place), token)
                known = np.unique(own[own != NOT_A_PLACE])
                if len(known) <= FEW_VALUES:
                    for value in known.tolist():
                        given = np.full_like(place, value)
                        found[f"base, {where} = {value}"] = self._with(self.base, about, place, given, token)
        for each in np.unique(self.right[:, token]).tolist():
            found[f"always {each}"] = np.full(len(self), each)
        return found

    def _with(
        self, examples: Examples, about: Variable, place: NDArray[np.int64], value: NDArray[np.int64], token: int
    ) -> Tokens:
        """(N,): a token of the answer that is right if a variable had these values; where it has no such place, the
        token as it is.
        """
        assert about.values is not None and about.answers is not None  # chosen for them
        tokens = self._in_place(examples.rows["labels"])[:, token].copy()
        own = _at(about.values(examples.problems), place)
        rows = np.flatnonzero((own != NOT_A_PLACE) & (value != NOT_A_PLACE))
        if len(rows):
            some = examples.problems[rows]
            answers = about.answers(some, place[rows], value[rows])
            encoded = examples.task.encode(some, self.model.config.architecture, examples.options, answers)
            tokens[rows] = self._in_place(tensors(encoded)["labels"])[:, token]
        return tokens


def _at(values: NDArray[np.int64], place: NDArray[np.int64]) -> NDArray[np.int64]:
    """(N,): a variable at a place of each problem, NOT_A_PLACE where there is none."""
    inside = (place >= 0) & (place < values.shape[1])
    return np.where(inside, values[np.arange(len(values)), np.where(inside, place, 0)], NOT_A_PLACE)


def _below(distance: int) -> str:
    return f" {distance} below" if distance else ""


@dataclass(frozen=True)
class Table:
    """For one token of the answer: the columns that decide, and the rule for every combination that was seen."""

    columns: tuple[str, ...]
    entries: dict[tuple[int, ...], str]  # values of the first columns, however many -> rule; () is the usual one

    def rule(self, values: tuple[int, ...]) -> str:
        """That of the longest beginning of the columns that was seen."""
        return next(self.entries[values[:n]] for n in range(len(values), -1, -1) if values[:n] in self.entries)


Program = list[Table]  # one for every token of the answer


@dataclass(frozen=True)
class Tampering:
    """Something taken from the source's run: what one node puts out, or a stream at the tokens of one place."""

    site: Site
    place: int | None = None

    @property
    def level(self) -> str:
        return "nodes" if self.place is None else f"{self.site.stack} streams at a {self.site.role}"

    @property
    def name(self) -> str:
        return str(self.site) if self.place is None else f"{self.site}({self.place})"

    def written(self, scene: Scene) -> Tokens:
        """(N, T): what the network writes."""
        place = self.place
        roles = None if place is None else lambda rows: scene.roles(place, rows)
        swapped = Intervention((self.site,), replacement="source")
        return free_running(scene.model, scene.base.rows, swapped, scene.source.rows, roles)


def tamperings(scene: Scene) -> list[Tampering]:
    """Every node, and every stream that is not read out yet at every place that the variables have."""
    every = sites(scene.model)
    streams = [site for site in every if site.kind == "residual"]
    if scene.base.task.kind != "label":
        streams = streams[:-1]
    places = sorted({place for own, _ in scene.values.values() for place in range(own.shape[1])})
    at = [Tampering(stream.at(scene.about.place), place) for stream in streams for place in places[:MOST_PLACES]]
    return [Tampering(site) for site in every if site.kind != "residual"] + at


def readout_rows(run: TrainedRun, fit: int = FIT, test: int = TEST, progress: Progress | None = None) -> Rows:
    """Fits a program for every tampering on training problems, and tests it on others: rows of study `readout`."""
    fitted_on = make_scene(run, training_problems(run, fit), "training")
    tested_on = make_scene(run, run.corpus.sample("test", test), "test")
    rows: Rows = []
    every = tamperings(tested_on)
    found: dict[str, list[tuple[Tokens, Tokens]]] = {}
    for number, each in enumerate(every):
        program = fit_program(fitted_on, each.written(fitted_on))
        outcome = run_program(program, tested_on), each.written(tested_on)
        found.setdefault(each.level, []).append(outcome)
        about = {"site": each.name, "level": each.level}
        rows += _tested(tested_on, [outcome], about)
        rows.append(_described(tested_on, program, about))
        if progress is not None:
            progress(number + 1, len(every))
    return [*(whole for level, own in found.items() for whole in _tested(tested_on, own, {"level": level})), *rows]


def make_scene(run: TrainedRun, problems: Any, purpose: str) -> Scene:
    """Problems, each with another one of the same length as its source."""
    task, corpus = run.recipe.the_task, run.corpus
    examples = make_examples(task, corpus.options, problems, style_of(run.recipe))
    lengths = (examples.rows["input_ids"] >= task.vocabulary.first).sum(-1).numpy()
    partner = np.arange(len(problems))
    rng = corpus.rng(f"readout/{purpose}")
    for length in np.unique(lengths):
        own = rng.permutation(np.flatnonzero(lengths == length))
        partner[own] = np.roll(own, 1)
    kept = np.flatnonzero(partner != np.arange(len(partner)))
    return Scene(run.model, examples[kept], examples[partner[kept]])


def fit_program(scene: Scene, written: Tokens) -> Program:
    """The tables that predict what is written (N, T), token by token."""
    return [
        _fit_table(scene.columns(token, written), scene.rules[token], written[:, token])
        for token in range(written.shape[1])
    ]


def _fit_table(columns: dict[str, NDArray[np.int64]], rules: dict[str, Tokens], written: Tokens) -> Table:
    """Columns are added one by one, the one that helps most first, as long as held-out examples gain from it."""
    names = list(rules)
    hits = np.stack([tokens == written for tokens in rules.values()], 1)  # (N, R)
    held = np.arange(len(written)) % 4 == 0
    chosen: list[str] = []
    group = np.zeros(len(written), np.int64)
    reached = _held_out(group, hits, held, np.full(len(written), int(hits[~held].sum(0).argmax())))
    while len(chosen) < MOST_COLUMNS and reached[0] < 1:
        tried = {
            name: _held_out(_finer(group, own), hits, held, reached[1])
            for name, own in columns.items()
            if name not in chosen
        }
        best = max(tried, key=lambda name: tried[name][0], default=None)
        if best is None or tried[best][0] < reached[0] + LEAST_GAIN:
            break
        chosen.append(best)
        group, reached = _finer(group, columns[best]), tried[best]
    entries: dict[tuple[int, ...], str] = {}
    for length in range(len(chosen) + 1):
        keys = np.stack([columns[name] for name in chosen[:length]], 1) if length else np.zeros((len(written), 0), int)
        seen, number = np.unique(keys, axis=0, return_inverse=True)
        counts = np.zeros((len(seen), len(names)))
        np.add.at(counts, number.ravel(), hits)
        for key, count in zip(seen.tolist(), counts, strict=True):
            entries[tuple(key)] = names[int(count.argmax())]
    return Table(tuple(chosen), entries)


def _finer(group: NDArray[np.int64], column: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.unique(group * (column.max() + 2) + column + 1, return_inverse=True)[1].ravel()


def _held_out(
    group: NDArray[np.int64], hits: NDArray[np.bool_], held: NDArray[np.bool_], before: NDArray[np.int64]
) -> tuple[float, NDArray[np.int64]]:
    """The share of held-out examples for which the best rule of their group is right, and the rule (N,) of each; a
    group that was not seen has the rule that was there before.
    """
    counts = np.zeros((group.max() + 1, hits.shape[1]))
    np.add.at(counts, group[~held], hits[~held])
    rule = np.where(counts.sum(-1)[group] > 0, counts.argmax(-1)[group], before)
    return float(hits[held, rule[held]].mean()), rule


def run_program(program: Program, scene: Scene) -> Tokens:
    """(N, T): what the program writes; each token is read by the next table."""
    written = np.zeros_like(scene.right)
    for token, table in enumerate(program):
        columns, rules = scene.columns(token, written), scene.rules[token]
        absent = np.full(len(scene), NOT_A_PLACE)
        keys = np.stack([columns.get(name, absent) for name in table.columns] or [absent], 1)
        seen, number = np.unique(keys, axis=0, return_inverse=True)
        for which, key in enumerate(seen.tolist()):
            rule = table.rule(tuple(key) if table.columns else ())
            rows = number.ravel() == which
            written[rows, token] = rules.get(rule, scene.right[:, token])[rows]
    return written


def _tested(scene: Scene, found: list[tuple[Tokens, Tokens]], about: dict[str, Any]) -> Iterator[dict]:
    """How often programs (predicted, written) are right, over all answers and over those that are wrong."""
    predicted, written = (np.concatenate([each[side] for each in found]) for side in (0, 1))
    right, other = (np.concatenate([side] * len(found)) for side in (scene.right, scene.of_source))
    same, wrong = (predicted == written).all(-1), (written != right).any(-1)
    figures = {
        "answers_predicted": same,
        "answers_by_default": ~wrong,
        "errors_predicted": same[wrong],
        "errors_by_source": (other == written).all(-1)[wrong],
    }
    for metric, own in figures.items():
        if len(own):
            yield row("readout", metric, rate(int(own.sum()), len(own)), decoding="free-running", **about)


def _described(scene: Scene, program: Program, about: dict[str, Any]) -> dict:
    """The program itself: a line for every token of the answer, and how many entries its tables have."""
    size = sum(len(table.entries) for table in program)
    lines = [f"{_token_name(scene, token)}: {_in_words(table)}" for token, table in enumerate(program)]
    return row("readout", "program", {"value": float(size), "n": len(program)}, lines=lines, **about)


def _token_name(scene: Scene, token: int) -> str:
    place = int(scene.index[0, token])
    if scene.base.task.kind == "label":
        return "label"
    return scene.base.task.place_name(place) if place != NOT_A_PLACE else f"token {token}"


def _in_words(table: Table) -> str:
    usual = table.entries[()]
    if not table.columns:
        return usual
    return f"mostly {usual}; decided by {', '.join(table.columns)} ({len(table.entries)} entries)"
