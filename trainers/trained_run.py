"""Opens a finished run: its model, its recipe, and the data to test it on."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from ..data_builders.columns import problem_keys
from ..data_builders.folder import check_folder
from ..modeling.modeling_headcount import HeadcountPreTrainedModel
from .model_building import MODEL_CLASSES, make_config
from .recipe import Recipe, load_recipe
from .training_data import make_corpus


def load_run(
    folder: Path, data: Path | None = None, exhaustive: bool = False
) -> tuple[HeadcountPreTrainedModel, Recipe, object]:
    """Model, recipe and corpus of a run folder; `data` is a folder of `headcount data` to test on instead.

    A corpus folder is checked against its hashes and then drawn again from the options in its manifest, which gives
    the same rows. Problems that the model was trained on are an error.
    """
    if not (folder / "recipe.yaml").exists() or not (folder / "model" / "config.json").exists():
        raise ValueError(f"{folder} holds no finished run; expected a folder with recipe.yaml and model/.")
    recipe = load_recipe(str(folder / "recipe.yaml"))
    if exhaustive and recipe.task != "addition":
        raise ValueError("--exhaustive has no effect on sortedness; expected an addition run.")
    tested = recipe
    if data is not None:
        manifest = check_folder(data)
        if manifest["task"] != recipe.task:
            raise ValueError(
                f"{data} holds {manifest['task']} data, but the run is of {recipe.task}; expected the same."
            )
        tested = replace(recipe, data=manifest["options"])
        for name in ("answer_order", "zero_pad"):
            own, other = (make_corpus(r).options.__dict__.get(name) for r in (recipe, tested))
            if own != other:
                raise ValueError(
                    f"{data} has {name}={other!r}, but the run was trained with {own!r}; expected the same."
                )
    if exhaustive:
        tested = replace(tested, data={**tested.data, "exhaustive": True})
    corpus = make_corpus(tested)
    if data is not None and recipe.task == "addition":
        refuse_overlap(recipe, corpus)
    model_class = MODEL_CLASSES[make_config(recipe).architecture]
    return model_class.from_pretrained(folder / "model"), tested, corpus


def refuse_overlap(recipe: Recipe, tested) -> None:
    """Raises if the test splits hold a problem that training has seen, or, with fresh data, may have seen."""
    trained = make_corpus(recipe)
    seen = None if recipe.training.fresh_data else problem_keys(trained.problems("train"), ordered=False)
    for split in ("test", "hard"):
        if split not in tested.splits().get("default", {}):
            continue
        problems = tested.problems(split)
        if seen is None:
            known = ~trained.is_held_out(problems)
        elif problems.columns != trained.options.digits:
            continue  # numbers of another width
        else:
            known = np.isin(problem_keys(problems, ordered=False), seen)
        if known.any():
            raise ValueError(
                f"{int(known.sum())} of {len(problems)} problems of the split {split!r} were in the training data of "
                "this run; expected data that it has not seen."
            )
