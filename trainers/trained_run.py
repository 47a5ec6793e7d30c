"""Opens a finished run: its model, its recipe, and the data to test it on."""

import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..data_builders.corpus import Corpus
from ..data_builders.folder import open_folder
from ..data_builders.hub import fetch, reason
from ..data_builders.registry import KEPT
from ..data_builders.tasks import plain_options
from ..modeling.modeling_headcount import HeadcountPreTrainedModel
from ..records.files import kept_inside, read_json
from ..records.provenance import check_model
from ..records.run_folder import CONFIG, PROVENANCE, RECIPE
from .model_building import make_config
from .model_loading import load_model
from .recipe import Recipe, load_recipe
from .training_data import make_corpus


@dataclass(frozen=True)
class TrainedRun:
    """`corpus` is what the model is tested on: the data of the run, or those of a folder."""

    folder: Path
    model: HeadcountPreTrainedModel
    recipe: Recipe
    corpus: Corpus


def load_run(place: str | Path, data: str | Path | None = None, exhaustive: bool = False) -> TrainedRun:
    """Model, recipe and corpus of a trained model of headcount.

    Args:
        place: a run folder, as `headcount train` leaves it; a model folder that knows its recipe (that of a run, or a
            published repository); or the id of such a repository on the Hub.
        data: a folder of `headcount data` to test on instead of the run's own data, checked against its hashes.
            Problems that the model was trained on are an error.
        exhaustive: test every problem there is, for tasks that can list them.

    Returns:
        A `TrainedRun` with `model`, `recipe` and `corpus`.

    >>> import headcount
    >>> tiny = ["training.steps=2", "model.num_hidden_layers=1", "model.num_attention_heads=2", "model.hidden_size=16"]
    >>> headcount.train("reverse", "runs/tiny", settings=tiny).folder.name
    'tiny'
    >>> headcount.load_run("runs/tiny").recipe.task
    'reverse'
    """
    folder, weights, recipe_path = find_model(place)
    recipe = load_recipe(str(kept_inside(recipe_path.parent, recipe_path)))
    if exhaustive and not hasattr(recipe.options, "exhaustive"):
        raise ValueError(f"--exhaustive has no effect on {recipe.task}; expected a task that can list its problems.")
    corpus = make_corpus(recipe)
    if data is not None:
        corpus = other_data(recipe, corpus, Path(data))
    if exhaustive:
        corpus = recipe.the_task.splits(replace(corpus.options, exhaustive=True))
    noted = recipe_path.parent / PROVENANCE
    check_model(weights, read_json(noted).get("model") if noted.is_file() else None)
    model = load_model(weights, make_config(recipe).architecture)
    return TrainedRun(folder, model, recipe, corpus)


def find_model(place: str | Path) -> tuple[Path, Path, Path]:
    """The folder of a trained model, that of its weights, and its recipe; what is not here is asked of the Hub."""
    folder = Path(place)
    if not folder.exists() and is_repository_id(str(place)):
        folder = download(str(place))
    if (folder / RECIPE).is_file() and (folder / CONFIG).is_file():  # a run
        return folder, folder / "model", folder / RECIPE
    if (folder / "config.json").is_file():
        for recipe in (folder / RECIPE, folder.parent / RECIPE):  # a repository, or the model folder of a run
            if recipe.is_file():
                return folder, folder, recipe
        raise ValueError(
            f"{folder} does not say what its model was trained on; expected a {RECIPE} in it, as runs and published "
            "models have (`headcount heads` takes other models with --task)."
        )
    raise ValueError(
        f"{place} holds no finished run; expected a folder with {RECIPE} and model/, a model folder, or a Hub id."
    )


def is_repository_id(text: str) -> bool:
    return re.fullmatch(r"[\w.-]+/[\w.-]+", text) is not None


def download(repo_id: str) -> Path:
    """A published model, without its figures; weights are safetensors only."""
    from huggingface_hub import snapshot_download

    try:
        patterns = ["*.json", "*.safetensors", RECIPE, *KEPT]
        return Path(fetch(lambda: snapshot_download(repo_id, allow_patterns=patterns), repo_id))
    except Exception as error:
        raise ValueError(
            f"{repo_id} is no folder here, and the Hub does not give it ({reason(error)}); expected a run folder, a "
            "model folder or the id of a published model."
        ) from error


def other_data(recipe: Recipe, trained: Corpus, folder: Path) -> Corpus:
    """The corpus of a data folder, if a model of this recipe can be tested on it."""
    corpus = open_folder(folder)
    if corpus.task.name != recipe.task:
        raise ValueError(
            f"{folder} holds {corpus.task.name} data, but the run is of {recipe.task}; expected the same."
        )
    for name in corpus.task.format_options:
        own, other = (getattr(each.options, name) for each in (trained, corpus))
        if own != other:
            raise ValueError(
                f"{folder} has {name}={other!r}, but the run was trained with {own!r}; expected the same."
            )
    if plain_options(corpus.options) != plain_options(trained.options):
        refuse_overlap(recipe, trained, corpus)
    return corpus


def refuse_overlap(recipe: Recipe, trained: Corpus, tested: Corpus) -> None:
    """Raises if the test splits hold a problem that training has seen, or, with fresh data, may have seen."""
    seen = None if recipe.training.fresh_data else trained.keys(trained.problems("train"))
    for test in (test for test in tested.tests() if test.kind is None and test.config == "default"):
        problems = tested.problems(test.split)
        known = ~trained.is_held_out(problems) if seen is None else np.isin(trained.keys(problems), seen)
        if known.any():
            raise ValueError(
                f"{int(known.sum())} of {len(problems)} problems of the split {test.split!r} were in the training "
                "data of this run; expected data that it has not seen."
            )
