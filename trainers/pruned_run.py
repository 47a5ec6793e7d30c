"""A run folder for a model that has lost heads, and its control: the same small architecture trained from scratch."""

from dataclasses import replace
from pathlib import Path

from ..data_builders.corpus import Corpus
from ..data_builders.registry import keep_task, origin_note
from ..modeling.modeling_headcount import HeadcountPreTrainedModel
from ..records.files import write_json, write_text
from ..records.provenance import model_hashes, provenance
from ..records.rows import write_rows
from ..records.run_folder import PROVENANCE, RECIPE, is_run
from .evaluation import evaluate_model
from .loop import Interrupted, RunOptions, train_recipe
from .model_building import save_model
from .model_loading import load_model
from .recipe import Recipe


def pruned_recipe(recipe: Recipe, model: HeadcountPreTrainedModel) -> Recipe:
    """The recipe of the small architecture: everything as before, without the pruned heads."""
    heads = {name: list(numbers) for name, numbers in (model.config.pruned_heads or {}).items()}
    return replace(recipe, name=f"{recipe.name}-pruned", model={**recipe.model, "pruned_heads": heads})


def save_pruned_run(
    folder: Path, recipe: Recipe, corpus: Corpus, model: HeadcountPreTrainedModel, seconds: float, cpu_start: float
) -> None:
    """Recipe, model, tokenizer and evaluation, so that every verb that reads a run reads this one too."""
    save_model(folder / "model", model, recipe)
    keep_task(recipe.the_task, folder)
    write_text(folder / RECIPE, pruned_recipe(recipe, model).to_yaml())
    write_rows(folder, "evaluation", evaluate_model(model, recipe, corpus))
    found = provenance(recipe.name, recipe.training.seed, seconds, cpu_start, 1)
    found |= origin_note(recipe.the_task)
    write_json(folder / PROVENANCE, {**found, "model": model_hashes(folder / "model")})


def train_control(recipe: Recipe, model: HeadcountPreTrainedModel, folder: Path) -> HeadcountPreTrainedModel:
    """The small architecture, trained from scratch by the recipe in a folder of its own, or on if it is there."""
    small = pruned_recipe(recipe, model)
    try:
        train_recipe(small, RunOptions(folder, resume=is_run(folder), evaluate=False))
    except Interrupted as stopped:  # its advice is for whoever trains
        raise KeyboardInterrupt from stopped
    return load_model(folder / "model", model.config.architecture)
