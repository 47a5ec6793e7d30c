"""The causal account of a trained model: which parts are enough, which reads which, where its variables are.

    circuit     nodes and edges that are enough together (find_circuit.py), scored on other examples
    shortcuts   how good estimates by gradients would have been
    variables   where the variables of the task's algorithm sit, and in which directions
    readout     the account as a program: what it predicts that the model answers when it is tampered with

Every part is a function of a run that gives rows; what is claimed was measured by intervention, beside its controls.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

from ...records.rows import Rows
from ...trainers.trained_run import TrainedRun, load_run
from ..heads.run_data import load_examples
from .find_circuit import find_circuit
from .readout import readout_rows
from .shortcuts import shortcut_rows
from .variable_pairs import variables_of
from .variables import Bars, explain_variables


CIRCUIT_ROWS = 1_000  # test examples, of which one half is searched on and the other half scores
SHORTCUT_ROWS = 200


def explain(
    run: str | Path | TrainedRun, variables: Iterable[str] | None = None, *, progress: Bars | None = None
) -> Rows:
    """A causal account of a trained model, with what speaks against it.

    >>> import headcount
    >>> from headcount.analysis.circuits.constructions.catalogue import save
    >>> rows = headcount.explain(save("sorter", "runs/sorter"))  # a model whose circuit is known
    >>> next(row["nodes"] for row in rows if row["metric"] == "faithfulness")
    ['encoder.0.self.0', 'encoder.0.mlp']

    Args:
        run: what `headcount.train` or `headcount.load_run` gives, or where it is: a run, a model folder, a Hub id.
        variables: names from the task's `variables`; without them, all whose values the task tells.
        progress: gives a bar for each piece of work.

    Returns:
        Rows of the studies `circuit`, `shortcuts`, `variables` and `readout`.
    """
    run = run if isinstance(run, TrainedRun) else load_run(run)
    wanted = None if variables is None else list(variables)
    return [found for name in parts_for(run) for found in PARTS[name](run, wanted, progress)]


def explain_circuit(run: TrainedRun, variables: list[str] | None = None, progress: Bars | None = None) -> Rows:
    examples = load_examples(run, "test", CIRCUIT_ROWS)
    bar = None if progress is None else progress("circuit")
    return find_circuit(run.model, examples.rows, progress=bar).rows


def explain_shortcuts(run: TrainedRun, variables: list[str] | None = None, progress: Bars | None = None) -> Rows:
    examples = load_examples(run, "test", SHORTCUT_ROWS)
    return shortcut_rows(run.model, examples.rows)


def explain_readout(run: TrainedRun, variables: list[str] | None = None, progress: Bars | None = None) -> Rows:
    return readout_rows(run, progress=None if progress is None else progress("readout"))


PARTS: dict[str, Callable[[TrainedRun, list[str] | None, Bars | None], Rows]] = {
    "circuit": explain_circuit,
    "shortcuts": explain_shortcuts,
    "variables": lambda run, wanted, progress: explain_variables(run, wanted, progress=progress),
    "readout": explain_readout,
}
OF_VARIABLES = ("variables", "readout")


def parts_for(run: TrainedRun) -> list[str]:
    """Those that make sense: variables are the task's to name."""
    return [name for name in PARTS if name not in OF_VARIABLES or variables_of(run)]
