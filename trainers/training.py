"""`headcount.train` and `headcount.evaluate`: from Python what the verbs of these names do."""

from collections.abc import Iterable
from pathlib import Path

from ..records.rows import Rows
from .evaluation import evaluate_model
from .loop import RunOptions, train_recipe
from .recipe import Recipe, load_recipe
from .trained_run import TrainedRun, load_run


def train(
    recipe: str | Recipe,
    output: str | Path,
    *,
    seed: int | None = None,
    settings: Iterable[str] = (),
    data: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
) -> TrainedRun:
    """Trains a recipe and leaves a run folder: recipe, checkpoints, metrics, model, evaluation.

    Args:
        recipe: name of a recipe (`headcount ls recipes`), path of a YAML file or of a Python file with a task, which
            is run, or a `Recipe`.
        output: folder for the run.
        seed: of the run; default: the recipe's.
        settings: KEY=VALUE, such as `"training.batch_size=128"`.
        data: a folder of `headcount data` with the recipe's own data, to train and test on.
        resume: go on where an earlier run in the folder stopped.
        overwrite: replace an earlier run in the folder.

    Returns:
        The run: `model`, `recipe` and `corpus`.

    >>> import headcount
    >>> tiny = ["training.steps=2", "model.num_hidden_layers=1", "model.num_attention_heads=2", "model.hidden_size=16"]
    >>> run = headcount.train("reverse", "runs/tiny", settings=tiny)
    >>> run.model.config.hidden_size
    16
    """
    if isinstance(recipe, Recipe):
        if seed is not None or list(settings):
            raise ValueError("seed and settings have no effect on a Recipe; expected its name, or neither of them.")
        chosen = recipe
    else:
        chosen = load_recipe(recipe, [*settings, *([f"training.seed={seed}"] if seed is not None else [])])
    folder = Path(output)
    data = None if data is None else Path(data)
    train_recipe(chosen, RunOptions(folder, data=data, resume=resume, overwrite=overwrite))
    return load_run(folder)


def evaluate(run: str | Path | TrainedRun, data: str | Path | None = None, exhaustive: bool = False) -> Rows:
    """What a trained model gets right, free-running and teacher-forced side by side, with intervals.

    Args:
        run: a run folder, a model folder, a Hub id, or what `load_run` and `train` give.
        data: a folder of `headcount data` to test on; default: the run's own data.
        exhaustive: test every problem there is, for tasks that can list them.

    Returns:
        Rows: `exact_match` or `accuracy` of every test, and parts of them.

    >>> import headcount
    >>> tiny = ["training.steps=2", "model.num_hidden_layers=1", "model.num_attention_heads=2", "model.hidden_size=16"]
    >>> run = headcount.train("reverse", "runs/tiny", settings=tiny)
    >>> row = headcount.evaluate(run)[0]
    >>> row["metric"], row["decoding"], row["n"]
    ('exact_match', 'free-running', 1000)
    """
    if isinstance(run, TrainedRun):
        if data is not None or exhaustive:
            raise ValueError("data and exhaustive have no effect on a run that is loaded; give them to load_run.")
    else:
        run = load_run(run, data, exhaustive)
    return evaluate_model(run.model, run.recipe, run.corpus)
