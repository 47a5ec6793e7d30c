"""Methods of circuit discovery on models whose circuits are known: precision, recall and F1 of each.

Every method gets the same examples, and searches under mean ablation. What counts as found is told by
`constructions.scoring`. A construction that is trained counts only if its training reached its aim.
"""

from collections.abc import Iterable

import numpy as np

from ...data_builders.examples import make_examples
from ...data_builders.registry import TASKS
from ...data_builders.tasks import options_of
from ...records.rows import Rows
from .constructions.catalogue import CONSTRUCTIONS
from .constructions.construction import Construction
from .constructions.scoring import score
from .methods import METHODS


EXAMPLES = 300
NODES_ALONE = ("joint",)  # methods that find no edges


def validation_rows(construction: Construction, methods: Iterable[str] = tuple(METHODS)) -> Rows:
    """Rows of the study `constructions`, one set for each method."""
    model = construction.build()
    task = TASKS[construction.task]
    options = options_of(task, dict(construction.data))
    problems = task.problems(options, np.random.default_rng(0), EXAMPLES, task.trained_lengths(options)[1])
    examples = make_examples(task, options, problems, model.config.architecture)
    rows: Rows = []
    for name in methods:
        edges = construction.edges is not None and name not in NODES_ALONE
        found = METHODS[name](model, examples.rows, edges=edges)
        rows += [{**each, "method": name} for each in score(found.nodes, found.edges, construction)]
    return rows


def construction_names(wanted: Iterable[str] | None = None) -> list[str]:
    """Those that were named, or all."""
    chosen = list(dict.fromkeys(wanted or CONSTRUCTIONS))
    unknown = next((name for name in chosen if name not in CONSTRUCTIONS), None)
    if unknown is not None:
        raise ValueError(f"there is no construction {unknown!r}; `headcount ls constructions` lists them.")
    return chosen
