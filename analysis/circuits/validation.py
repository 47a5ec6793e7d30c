"""Methods of circuit discovery on models whose circuits are known: precision, recall and F1 of each.

Every method gets the same examples. Under `zero` what is outside of a circuit is gone. Under `mean` it still puts out
what does not depend on the example, such as places: whatever brings only that is no part of a circuit then, so that
recall says how much of a model the ablation itself leaves out.

What counts as found is told by `constructions.scoring`. A construction that is trained counts only if its training
reached its aim; else building it is an error.
"""

from collections.abc import Iterable

import numpy as np

from ...data_builders.examples import make_examples
from ...data_builders.registry import TASKS
from ...data_builders.tasks import options_of
from ...records.rows import Rows
from .constructions.catalogue import CONSTRUCTIONS, find_construction
from .constructions.construction import Construction
from .constructions.scoring import score
from .methods import METHODS


EXAMPLES = 300
ABLATIONS = ("zero", "mean")
NODES_ALONE = ("joint",)  # methods that find no edges


def validation_rows(
    construction: Construction, methods: Iterable[str] = tuple(METHODS), ablations: Iterable[str] = ABLATIONS
) -> Rows:
    """Rows of the study `constructions`, one set for each method under each ablation.

    >>> from headcount.analysis.circuits.constructions.catalogue import CONSTRUCTIONS
    >>> rows = validation_rows(CONSTRUCTIONS["sorter"], ["find_circuit"], ["zero"])
    >>> {row["metric"]: row["value"] for row in rows}["node_f1"]
    1.0
    """
    model = construction.build()
    task = TASKS[construction.task]
    options = options_of(task, dict(construction.data))
    problems = task.problems(options, np.random.default_rng(0), EXAMPLES)
    examples = make_examples(task, options, problems, model.config.architecture)
    rows: Rows = []
    for ablation in ablations:
        for name in methods:
            edges = construction.edges is not None and name not in NODES_ALONE
            found = METHODS[name](model, examples.rows, edges=edges, ablation=ablation)
            scores = score(found.nodes, found.edges, construction)
            rows += [{**each, "method": name, "mode": ablation} for each in scores]
    return rows


def construction_names(wanted: Iterable[str] | None = None) -> list[str]:
    """Those that were named, or all."""
    return [find_construction(name).name for name in dict.fromkeys(wanted or CONSTRUCTIONS)]
