"""Models from their files: every weight comes from the file, and whatever is wrong with it is one sentence."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from transformers import GenerationConfig
from transformers.utils import logging as transformers_logging

from ..configuration.configuration_headcount import HeadcountConfig
from ..modeling.modeling_headcount import HeadcountPreTrainedModel
from ..records.files import kept_inside, read_json
from .model_building import MODEL_CLASSES


WEIGHTS = "model.safetensors"


def load_model(folder: Path, architecture: str) -> HeadcountPreTrainedModel:
    """The model of a folder; a file that is missing, cut or of another model is a ValueError.

    Args:
        folder: has config.json and model.safetensors; nothing else is looked at, least of all a pickle.
        architecture: what the recipe says; a config of another one is refused.
    """
    config = read_config(folder)
    if config.architecture != architecture:
        raise ValueError(
            f"{folder / 'config.json'} has architecture={config.architecture!r}, but the recipe has "
            f"{architecture!r}; expected the same."
        )
    check_weights(folder / WEIGHTS)
    model_class = MODEL_CLASSES[architecture]
    try:
        with quiet_transformers():
            model, found = model_class.from_pretrained(
                folder, config=config, use_safetensors=True, local_files_only=True, output_loading_info=True
            )
    except (RuntimeError, OSError, KeyError, TypeError, SafetensorError) as error:
        raise ValueError(
            f"{folder / WEIGHTS} does not fit its config.json ({first_line(error)}); expected its weights."
        ) from error
    for kind, names in (("lacks", found["missing_keys"]), ("has beyond the model", found["unexpected_keys"])):
        if names:
            raise ValueError(
                f"{folder / WEIGHTS} {kind} {sorted(names)[0]!r} and {len(names) - 1} more; expected every weight of "
                "the model, and no other."
            )
    # How answers are written follows from the config; what else a file says of it would change them in silence.
    model.generation_config = GenerationConfig.from_model_config(model.config) if model.can_generate() else None
    return model


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Without its tables of weights that do not fit: the sentence says it."""
    before = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(before)


def read_config(folder: Path) -> HeadcountConfig:
    """The checked config of a model folder."""
    path = kept_inside(folder, folder / "config.json")
    content = read_json(path)
    if content.get("model_type") != "headcount":
        raise ValueError(f"{path} has model_type={content.get('model_type')!r}; expected a model of headcount.")
    try:
        return HeadcountConfig.from_dict(content)
    except (TypeError, AttributeError, KeyError, OverflowError, RecursionError) as error:
        raise ValueError(f"{path} is no config of headcount ({first_line(error)}); expected it as written.") from error
    except ValueError as error:
        raise ValueError(f"{path}: {first_line(error)}") from error


def check_weights(path: Path) -> None:
    """Raises unless this is a whole file of safetensors; only its header is read."""
    if not kept_inside(path.parent, path).is_file():
        raise ValueError(f"{path} is missing; expected the weights of the model.")
    try:
        with safe_open(path, "pt") as file:
            file.keys()
    except (SafetensorError, OSError, RuntimeError) as error:
        raise ValueError(
            f"{path} cannot be read ({first_line(error)}); expected a whole file of safetensors."
        ) from error


def first_line(error: Any) -> str:
    """What a library says, on one line and not too long; of errors that speak of its own code, only the kind."""
    is_said = isinstance(error, (str, ValueError, OSError, RuntimeError, SafetensorError))
    text = " ".join(str(error).split()) if is_said and not isinstance(error, UnicodeError) else ""
    text = text or "a file is not what its reader expects"
    return (text if len(text) <= 200 else f"{text[:197]}...").rstrip(".")
