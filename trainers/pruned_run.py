"""A run folder for a model that has lost heads, and its control: the same small architecture trained from scratch."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

from .evaluation import evaluate_model
from .loop import RunOptions, train
from .model_building import MODEL_CLASSES, make_tokenizer
from .recipe import Recipe
from .run_folder import provenance, write_rows, write_text


def pruned_recipe(recipe: Recipe, model) -> Recipe:
    """The recipe of the small architecture: everything as before, without the pruned heads."""
    heads = {name: list(numbers) for name, numbers in model.config.pruned_heads.items()}
    return replace(recipe, name=f"{recipe.name}-pruned", model={**recipe.model, "pruned_heads": heads})


def save_pruned_run(folder: Path, recipe: Recipe, corpus, model, seconds: float, cpu_start: float) -> None:
    """Recipe, model, tokenizer and evaluation, so that every verb that reads a run reads this one too."""
    partial = folder / ".model.partial"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(partial, ignore_errors=True)
        model.save_pretrained(partial)
        make_tokenizer(recipe).save_pretrained(partial)
        shutil.rmtree(folder / "model", ignore_errors=True)
        partial.rename(folder / "model")
        write_text(folder / "recipe.yaml", pruned_recipe(recipe, model).to_yaml())
        write_rows(folder, "evaluation", evaluate_model(model, recipe, corpus))
        write_text(folder / "provenance.json", json.dumps(provenance(recipe, seconds, cpu_start, 1), indent=1))
    except OSError as error:
        raise ValueError(f"{folder} cannot be written ({error.strerror}); expected a writable folder.") from error


def train_control(recipe: Recipe, model, folder: Path, overwrite: bool):
    """The small architecture, trained from scratch by the recipe in a folder of its own."""
    small = pruned_recipe(recipe, model)
    train(small, RunOptions(folder, overwrite=overwrite and folder.exists(), evaluate=False))
    return MODEL_CLASSES[model.config.architecture].from_pretrained(folder / "model")
