"""The examples of a trained run that its heads are studied on."""

from ...data_builders.examples import Examples, make_pairs
from ...trainers.evaluation import split_examples
from ...trainers.trained_run import TrainedRun
from ...trainers.training_data import style_of
from .study import StudyData, choose_shown


def load_examples(run: TrainedRun, split: str, rows: int) -> Examples:
    """At most `rows` examples of a split."""
    return split_examples(run.recipe, run.corpus, run.corpus.sample(split, rows))


def load_study_data(run: TrainedRun, rows: int) -> StudyData:
    """Examples of the test data, the ones to show, and pairs for every variable of the task, where there are any."""
    examples = load_examples(run, "test", rows)
    task, options = run.recipe.the_task, run.corpus.options
    pairs = {}
    for variable in task.variables if "pairs" in run.corpus.sizes() else ():
        found = task.pairs(variable, run.corpus)[:rows]
        pairs[variable] = make_pairs(task, options, variable, found, style_of(run.recipe))
    return StudyData(examples, choose_shown(run.model, examples), pairs)
