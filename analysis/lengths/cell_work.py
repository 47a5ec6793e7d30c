"""What the worker of a length study does: trains one cell after the other, and measures it."""

import json
import os
import shutil
import sys
import traceback
from pathlib import Path
from typing import Any

import torch

from ...data_builders.corpus import Corpus
from ...modeling.modeling_headcount import HeadcountPreTrainedModel
from ...records.memory import keep_freed_memory
from ...records.rows import only, read_rows, results_path, write_rows
from ...records.run_folder import is_run
from ...records.stopping import ParentLine
from ...trainers.loop import Interrupted, RunOptions, TrainingStopped, train_recipe
from ...trainers.trained_run import load_run
from .analyses import LENGTH_ANALYSES
from .asked import Asked, begin, forget, is_finished, last_question, write_asked
from .cells import Cell


def work(cell: Cell, folder: Path, asked: Asked, overwrite: bool = False) -> None:
    """Leaves a run folder with the rows of every analysis that applies; what is there is not computed again."""
    if overwrite:
        forget(folder)
    options = RunOptions(folder, resume=not overwrite and is_run(folder), overwrite=overwrite, evaluate=False)
    train_recipe(cell.load_recipe(), options)
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)  # a finished cell has no use for them
    run = load_run(folder)
    if is_finished(folder, asked):
        return
    asked = asked.joined(last_question(folder))
    facts = {**describe_cell(cell, folder), **describe_model(run.model, run.corpus)}
    names = [name for name, each in LENGTH_ANALYSES.items() if each.applies(run.corpus.task, run.model.config)]
    begin(folder, asked, [name for name in LENGTH_ANALYSES if LENGTH_ANALYSES[name].by_length])
    for name in names:
        if not results_path(folder, name).exists():
            lengths = read_rows(results_path(folder, "lengths")) if name != "lengths" else []
            rows = LENGTH_ANALYSES[name].measure(run.model, run.corpus, asked, lengths)
            write_rows(folder, name, [{**row, **facts} for row in rows])
    write_asked(folder, asked, names)


def describe_cell(cell: Cell, folder: Path) -> dict[str, Any]:
    training = only(read_rows(results_path(folder, "training")), study="training")
    seconds = None if training is None else training["seconds"]
    return {"variant": cell.variant, "says": cell.says, "seed": cell.seed, "training_seconds": seconds}


def describe_model(model: HeadcountPreTrainedModel, corpus: Corpus) -> dict[str, Any]:
    """What every row of a cell says: read off the model itself, with what was built in by hand."""
    config, task = model.config, corpus.task
    return {
        "task": task.name,
        "encoding": config.position_embedding_type,
        "pooling": config.pooling_type if config.architecture == "encoder" else None,
        "scheme": config.position_scheme,
        "normalizer": config.attention_normalizer,
        "direction": config.attention_direction,
        "window": config.attention_window,
        "jitter": config.score_jitter,
        "layers": config.num_hidden_layers,
        "trained": list(task.trained_lengths(corpus.options)),
        "built_in": [each.name for each in task.built_in(config.to_dict())],
        **{name: getattr(corpus.options, name) for name in task.format_options},
    }


def follow(orders: ParentLine) -> None:
    """Carries out order after order, until the process that gives them is gone."""
    if "OMP_NUM_THREADS" not in os.environ:  # torch heeds it; told in this way to take several, it is slow
        torch.set_num_threads(1)
    keep_freed_memory()
    for line in orders:
        order, error = json.loads(line), None
        print(f"== {order['folder']}", file=sys.stderr, flush=True)
        cell = Cell(**{**order["cell"], "settings": tuple(order["cell"]["settings"])})
        asked = Asked(tuple(order["asked"]["lengths"]), tuple(order["asked"]["kinds"]), order["asked"]["rows"])
        try:
            work(cell, Path(order["folder"]), asked, order["overwrite"])
        except Interrupted as stopped:
            raise KeyboardInterrupt from stopped
        except (ValueError, OSError, RuntimeError, TrainingStopped) as problem:
            traceback.print_exc()
            error = f"{problem}" or type(problem).__name__
        orders.answer(json.dumps({"error": error}))
