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
from typing import Any

import numpy as np

from ...data_builders.tasks import NOT_A_PLACE
from ...records.intervals import rate
from ...records.rows import Rows, row
from ...trainers.trained_run import TrainedRun
from ..interventions.intervention import Intervention
from ..interventions.plan import Progress
from ..interventions.sites import Site, sites
from .free_running import free_running
from .readout_program import Program, fit_program, run_program
from .readout_scene import Scene, Tokens, make_scene
from .variable_pairs import training_problems


FIT, TEST = 2_000, 600
MOST_PLACES = 4


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
    lines = [f"{_token_name(scene, token)}: {table.in_words()}" for token, table in enumerate(program)]
    return row("readout", "program", {"value": float(size), "n": len(program)}, lines=lines, **about)


def _token_name(scene: Scene, token: int) -> str:
    place = int(scene.index[0, token])
    if scene.base.task.kind == "label":
        return "label"
    return scene.base.task.place_name(place) if place != NOT_A_PLACE else f"token {token}"
