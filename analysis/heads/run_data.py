"""The examples of a trained run that its heads are studied on."""

from ...data_builders.examples import Examples, PairedExamples, make_pairs
from ...trainers.evaluation import split_examples
from ...trainers.trained_run import TrainedRun
from ...trainers.training_data import style_of
from ..circuits.swap import of_same_length
from .study import StudyData, choose_shown


def load_examples(run: TrainedRun, split: str, rows: int) -> Examples:
    """At most `rows` examples of a split."""
    return split_examples(run.recipe, run.corpus, run.corpus.sample(split, rows))


def load_study_data(run: TrainedRun, rows: int) -> StudyData:
    """Examples of the test data, the ones to show, and pairs for every variable of the task, where there are any."""
    examples = load_examples(run, "test", rows)
    variables = run.recipe.the_task.variables if "pairs" in run.corpus.sizes() else {}
    pairs = {name: load_pairs(run, name, rows) for name, about in variables.items() if "minimal" in about.pair_kinds}
    return StudyData(examples, choose_shown(run.model, examples), pairs)


def load_pairs(
    run: TrainedRun, variable: str, rows: int, kinds: tuple[str, ...] | None = None
) -> dict[str, PairedExamples]:
    """At most `rows` pairs of these kinds, as far as the data have them; the two sides of a pair are of one length."""
    task, options, style = run.recipe.the_task, run.corpus.options, style_of(run.recipe)
    kinds = tuple(task.variables[variable].pair_kinds) if kinds is None else kinds
    found = {kind: task.pairs(variable, run.corpus, kind)[:rows] for kind in kinds}
    made = {kind: make_pairs(task, options, variable, own, style, kind) for kind, own in found.items() if len(own)}
    return {kind: own for kind, pairs in made.items() if len(own := of_same_length(pairs))}
