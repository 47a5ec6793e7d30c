"""All constructions by name, and how one is saved as a model folder."""

from dataclasses import fields
from pathlib import Path
from typing import Any

from ....configuration.configuration_headcount import HeadcountConfig
from ....configuration.rules import nearest
from ....data_builders.tokenization import make_tokenizer
from ....modeling.modeling_headcount import HeadcountPreTrainedModel
from ....records.files import new_folder
from ....records.run_folder import RECIPE
from ....trainers.recipe import Recipe
from .adders import ADDERS
from .construction import Construction
from .reversers import REVERSERS
from .sorters import SORTERS
from .trained import TRAINED


CONSTRUCTIONS: dict[str, Construction] = {each.name: each for each in (*ADDERS, *SORTERS, *REVERSERS, *TRAINED)}


def find_construction(name: str) -> Construction:
    """A construction by name; any other name is a sentence.

    >>> find_construction("adder").nodes[0]
    'encoder.0.self.0'
    """
    if name not in CONSTRUCTIONS:
        raise ValueError(
            f"there is no construction {name!r}; expected one of those that `headcount ls constructions` lists."
            f"{nearest(name, CONSTRUCTIONS)}"
        )
    return CONSTRUCTIONS[name]


def save(name: str, folder: str | Path) -> Path:
    """Builds a construction and writes it as a model folder: config, safetensors, tokenizer, and the recipe that names
    its task and data. `from_pretrained` loads it, and verbs such as `headcount evaluate` take it. Those that are
    trained are trained for it, from their fixed seeds.

    >>> import headcount
    >>> folder = save("reverser", "runs/reverser")
    >>> headcount.load_run(folder).recipe.task
    'reverse'
    """
    construction, folder = find_construction(name), Path(folder)
    if folder.exists():
        raise ValueError(f"{folder} exists; expected a folder that is not there yet.")
    model = construction.build()
    recipe = recipe_of(construction, model)
    with new_folder(folder) as partial:
        model.save_pretrained(partial)
        make_tokenizer(recipe.the_task, model.config.architecture).save_pretrained(partial)
        (partial / RECIPE).write_text(recipe.to_yaml(), encoding="utf-8")
    return folder


def recipe_of(construction: Construction, model: HeadcountPreTrainedModel) -> Recipe:
    """What a recipe says of the model and its data; a construction has no training that could be repeated from it."""
    config, task = model.config, Recipe(construction.name, construction.task).the_task
    given = task.config(task.options(), {})
    facts = {*given, "vocab_size", "pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id"}
    facts |= {"pruned_heads", "is_encoder_decoder"}
    options: dict[str, Any] = {
        field.name: getattr(config, field.name)
        for field in fields(HeadcountConfig)
        if field.name in HeadcountConfig.__annotations__
        and field.name not in facts
        and getattr(config, field.name) != field.default
    }
    options["architecture"] = config.architecture
    return Recipe(construction.name, construction.task, construction.says, dict(construction.data), options)
