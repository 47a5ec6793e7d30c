"""Small runs and data folders that tests share. Trained for a moment only: their answers are mostly wrong."""

from pathlib import Path

from headcount.data_builders.addition.options import AdditionOptions
from headcount.data_builders.folder import write_folder
from headcount.trainers.loop import RunOptions, train_recipe
from headcount.trainers.recipe import load_recipe


FEW_STEPS = ["training.steps=12", "training.evaluate_every=12", "training.checkpoint_every=12"]
FEW_PROBLEMS = {"train": 300, "validation": 40, "test": 40, "hard": 20, "pairs": 0}
ADDITION = [*FEW_STEPS, *(f"data.{name}={rows}" for name, rows in FEW_PROBLEMS.items())]
SORTEDNESS = [*FEW_STEPS, "data.train=100", "data.validation=40", "data.test=20"]
LONG_ADDITION = [
    *FEW_STEPS,
    *("data.digits=3", "data.validation=20", "data.test=40", "data.hard=20", "data.long_test=10"),
    *("data.test_lengths=[4,6]", "model.hidden_size=16", "model.intermediate_size=16"),
]
REVERSE = [
    *FEW_STEPS,
    *("data.train=200", "data.validation=20", "data.test=40", "data.test_lengths=[12]", "data.long_test=10"),
]


def small_run(folder: Path, recipe: str = "addition-tiny", settings: list[str] | None = None, seed: int = 0) -> Path:
    chosen = load_recipe(recipe, [*(ADDITION if settings is None else settings), f"training.seed={seed}"])
    train_recipe(chosen, RunOptions(folder), say=lambda text: None)
    return folder


def small_data(folder: Path, **options) -> Path:
    """The data of `small_run`, as a folder."""
    chosen = {"digits": 2, "answer_order": "reversed", "sampling": "carry_balanced", **FEW_PROBLEMS, **options}
    write_folder("addition", AdditionOptions(**chosen), folder)
    return folder
