"""Pruned models of transformers, saved and loaded.

What was removed is noted among the weights, so that every way to save a model saves it, and `from_pretrained` reads it
wherever headcount is imported: see `headcount/auto_registration.py`. For places where headcount is not installed, the
code that reads it can travel with the model.
"""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import transformers
from transformers import PreTrainedModel
from transformers.models.auto import modeling_auto

from ...records.files import new_folder, read_json
from ...records.litter import is_empty
from .. import modeling_headcount
from ..modeling_headcount import HeadcountPreTrainedModel
from . import pruned_model, pruned_parts
from .pruning_notes import saved_without


CODE = "pruned_model"


def save_pruned(
    model: PreTrainedModel, folder: str | os.PathLike, overwrite: bool = False, with_code: bool = False
) -> Path:
    """`save_pretrained`, with a folder that is there whole or not at all.

    >>> import headcount
    >>> model = headcount.HeadcountModel(headcount.HeadcountConfig())
    >>> headcount.prune_heads(model, ["decoder.1.cross.0"])
    >>> headcount.save_pruned(model, "smaller").name
    'smaller'

    Args:
        model: a model that `prune_heads` may have made smaller.
        folder: a new or empty one.
        overwrite: replace what is there.
        with_code: of a transformers model, also write the code that loads it where headcount is not installed, by
            `from_pretrained(folder, trust_remote_code=True)` of an Auto class.

    Returns:
        The folder.
    """
    folder = Path(folder)
    if folder.exists() and not overwrite and (not folder.is_dir() or not is_empty(folder)):
        raise ValueError(f"{folder} is there already; expected another folder, or overwrite=True.")
    if with_code and isinstance(model, HeadcountPreTrainedModel):
        raise ValueError("with_code is for models of transformers; headcount's own take theirs along by push_to_hub.")
    with new_folder(folder) as partial:
        model.save_pretrained(partial)
        if with_code:
            _write_code(model, Path(partial))
    return folder


def load_pruned(
    folder: str | os.PathLike, model_class: type[PreTrainedModel] | None = None, **options: Any
) -> PreTrainedModel:
    """A saved model without the heads that were removed, whoever saved it: `save_pretrained`, Trainer, `save_pruned`.

    It is `from_pretrained` of the class that was saved.

    >>> import headcount
    >>> from transformers import GPT2Config, GPT2LMHeadModel
    >>> model = GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=2, n_embd=8, vocab_size=9))
    >>> headcount.prune_heads(model, [(0, 1)])
    >>> model.save_pretrained("smaller")
    >>> headcount.list_heads(headcount.load_pruned("smaller"))
    ['decoder.0.self.0']

    Args:
        folder: a model folder, such as a checkpoint of transformers' Trainer.
        model_class: by default the one that config.json names.
        options: those of `from_pretrained`.

    Returns:
        A model of that class.
    """
    folder = Path(folder)
    kind = model_class or _model_class(folder)
    saved_without(folder)  # a file that cannot be read is said in a sentence
    return kind.from_pretrained(folder, **options)


def _model_class(folder: Path) -> type[PreTrainedModel]:
    path = folder / "config.json"
    if not path.is_file():
        raise ValueError(f"{folder} holds no config.json; expected a folder that save_pretrained wrote.")
    names = read_json(path).get("architectures")
    name = names[0] if isinstance(names, list) and names else None
    found = getattr(modeling_headcount, str(name), None) or getattr(transformers, str(name), None)
    if not (isinstance(found, type) and issubclass(found, PreTrainedModel)):
        raise ValueError(
            f"{path} names the model class {name!r}; expected one of transformers or headcount, or model_class=..."
        )
    return found


def _write_code(model: PreTrainedModel, folder: Path) -> None:
    """Two files of code, the first with a class for every Auto class that knows the config; config.json names it."""
    classes = {
        name: kind.__name__
        for name, auto in vars(modeling_auto).items()
        if name.startswith("AutoModel") and (mapping := getattr(auto, "_model_mapping", None)) is not None
        for kind in _as_tuple(mapping.get(type(model.config), ()))
        if kind is type(model) or (name == "AutoModel" and hasattr(transformers, kind.__name__))
    }
    if not classes:
        raise ValueError(
            f"no Auto class of transformers loads a {type(model).__name__}, so its code cannot travel; expected "
            "with_code=False."
        )
    source = Path(str(pruned_model.__file__)).read_text(encoding="utf-8")
    for name in dict.fromkeys(classes.values()):
        source += f"\n\nclass {name}(Smaller, transformers.{name}):\n    pass\n"
    source = source.replace("\nimport torch\n", "\nimport torch\nimport transformers\n", 1)
    shutil.copy(str(pruned_parts.__file__), folder)
    (folder / f"{CODE}.py").write_text(source, encoding="utf-8")
    path = folder / "config.json"
    config = read_json(path) | {"auto_map": {auto: f"{CODE}.{name}" for auto, name in classes.items()}}
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def _as_tuple(found: Any) -> tuple:
    return found if isinstance(found, tuple) else (found,)
