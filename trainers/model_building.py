"""From a recipe to a model: what the task knows (vocabulary, special tokens) meets what the recipe chooses."""

from pathlib import Path

from ..configuration.configuration_headcount import HeadcountConfig
from ..data_builders.tasks import ARCHITECTURES
from ..data_builders.tokenization import HeadcountTokenizer, make_tokenizer
from ..data_builders.vocabulary import BOS, EOS, PAD
from ..modeling.modeling_headcount import (
    HeadcountForCausalLM,
    HeadcountForConditionalGeneration,
    HeadcountForSequenceClassification,
    HeadcountPreTrainedModel,
)
from ..records.files import new_folder
from .recipe import Recipe
from .training_data import style_of


MODEL_CLASSES = {
    "encoder-decoder": HeadcountForConditionalGeneration,
    "decoder": HeadcountForCausalLM,
    "encoder": HeadcountForSequenceClassification,
}


def make_config(recipe: Recipe) -> HeadcountConfig:
    task, options = recipe.the_task, dict(recipe.model)
    allowed = ARCHITECTURES[task.kind]
    architecture = options.setdefault("architecture", allowed[0])
    if architecture not in allowed:
        raise ValueError(
            f"model.architecture={architecture!r} is not allowed for {task.name}; expected {' or '.join(allowed)}."
        )
    facts = {"vocab_size": task.vocabulary.size, "pad_token_id": PAD, "bos_token_id": BOS, "eos_token_id": EOS}
    facts |= task.config(recipe.options, options)
    for name in facts:
        if name in options:
            raise ValueError(f"model.{name} follows from the task and cannot be set in a recipe.")
    return HeadcountConfig(**options, **facts)


def make_model(recipe: Recipe) -> HeadcountPreTrainedModel:
    """A new model; the caller seeds torch before."""
    config = make_config(recipe)
    return MODEL_CLASSES[config.architecture](config)


def tokenizer_of(recipe: Recipe) -> HeadcountTokenizer:
    return make_tokenizer(recipe.the_task, style_of(recipe))


def save_model(folder: Path, model: HeadcountPreTrainedModel, recipe: Recipe) -> None:
    """Writes the model with its tokenizer, whole or not at all."""
    with new_folder(folder) as partial:
        model.save_pretrained(partial)
        tokenizer_of(recipe).save_pretrained(partial)
