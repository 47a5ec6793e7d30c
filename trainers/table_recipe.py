"""What `headcount train` trains: a recipe, or two columns of a table by a recipe that fits their size."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..data_builders.registry import register_task
from ..data_builders.tables.source import Source
from ..data_builders.tables.task import Table, table_task
from .recipe import Recipe, load_recipe, make_recipe


STEPS, MOST_ROWS_PER_BATCH = 1_500, 64


@dataclass(frozen=True)
class TableColumns:
    """Which columns of a table, and how they are read; what is None was not asked for."""

    input: str | None = None
    target: str | None = None
    label: str | None = None
    config: str | None = None
    split: str | None = None
    tokens: str | None = None


def chosen_recipe(
    recipe: str | None, data: str | None, columns: TableColumns, overrides: list[str], say: Callable[[str], None]
) -> tuple[Recipe, Path | None]:
    """The recipe, and the folder of headcount data that it is to train on, if any."""
    asked = next((f"--{name}" for name, value in asdict(columns).items() if value is not None), None)
    if asked is None:
        if recipe is None:
            raise ValueError("RECIPE is missing; expected one, or --data with --input and --target or --label.")
        return load_recipe(recipe, overrides), None if data is None else Path(data)
    if data is None:
        raise ValueError(f"{asked} has no effect without --data; expected a table to take the column from.")
    if recipe is not None:
        raise ValueError(
            f"the recipe {recipe!r} has no effect beside {asked}; expected one of the two (--set changes values)."
        )
    if columns.input is None or (columns.target is None) == (columns.label is None):
        raise ValueError("a table needs --input and one of --target and --label; expected just these two columns.")
    return table_recipe(data, columns, overrides, say), None


def table_recipe(
    data: str, columns: TableColumns, overrides: list[str] | None = None, say: Callable[[str], None] = print
) -> Recipe:
    """Reads a table, makes a task of two of its columns, and a recipe that fits its size."""
    answer = columns.target if columns.label is None else columns.label
    assert columns.input is not None and answer is not None
    source = Source(data, columns.input, answer, columns.label is not None, columns.config, columns.split)
    task = table_task(source, columns.tokens or "character")
    register_task(task)
    sizes = ", ".join(f"{name} {len(rows):,}" for name, rows in task.rows.items())
    say(f"{task.texts.title}: {sizes} rows; {len(task.definition.symbols):,} different {task.definition.tokens}s")
    for split, count in task.definition.left_out.items():
        say(f"{count:,} rows of {split} hold a {task.definition.tokens} that no training row has, and are left out")
    return make_recipe(content_for(task), overrides)


def content_for(task: Table) -> dict[str, Any]:
    """What a file of the recipe would hold: the model of `reverse`, with a place for every token of a row."""
    rows = len(task.rows["train"])
    model: dict[str, Any] = {
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "hidden_size": 64,
        "intermediate_size": 256,
        "query_key_init_gain": 0.5,
        "position_embedding_type": "learned",
        "max_position_embeddings": task.definition.widest + 2,
    }
    training: dict[str, Any] = {
        "optimizer": "muon",
        "learning_rate": 0.004,
        "muon_learning_rate": 0.02,
        "muon_momentum": 0.8,
        "muon_per_head": True,
        "gradient_clip": None,
        "steps": STEPS,
        "batch_size": min(MOST_ROWS_PER_BATCH, rows),
        "evaluate_every": 250,
        "checkpoint_every": 250,
    }
    about = {"name": task.name, "task": task.name, "description": task.texts.description}
    return {**about, "data": {}, "model": model, "training": training}
