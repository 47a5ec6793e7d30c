"""From a recipe to a model: what the task knows (vocabulary, special tokens) meets what the recipe chooses."""

from ..configuration.configuration_headcount import HeadcountConfig
from ..data_builders.addition_options import AdditionOptions
from ..data_builders.tokenization import (
    ADDITION_VOCABULARY,
    BOS,
    DIGIT_IDS,
    EOS,
    EQUALS_ID,
    PAD,
    SORTEDNESS_VOCABULARY,
    VALUE_RANGE,
    addition_tokenizer,
    sortedness_tokenizer,
)
from ..modeling.modeling_headcount import (
    HeadcountForCausalLM,
    HeadcountForConditionalGeneration,
    HeadcountForSequenceClassification,
    HeadcountPreTrainedModel,
)
from .recipe import Recipe
from .training_data import addition_style


MODEL_CLASSES = {
    "encoder-decoder": HeadcountForConditionalGeneration,
    "decoder": HeadcountForCausalLM,
    "encoder": HeadcountForSequenceClassification,
}
TASK_ARCHITECTURES = {"addition": ("encoder-decoder", "decoder"), "sortedness": ("encoder",)}


def make_config(recipe: Recipe) -> HeadcountConfig:
    options = dict(recipe.model)
    default, allowed = TASK_ARCHITECTURES[recipe.task][0], TASK_ARCHITECTURES[recipe.task]
    architecture = options.setdefault("architecture", default)
    if architecture not in allowed:
        raise ValueError(
            f"model.architecture={architecture!r} is not allowed for {recipe.task}; expected {' or '.join(allowed)}."
        )
    tokens = {"pad_token_id": PAD, "bos_token_id": BOS, "eos_token_id": EOS}
    if recipe.task == "addition":
        facts = {
            "vocab_size": ADDITION_VOCABULARY,
            "digit_token_ids": DIGIT_IDS,
            "answer_start_token_id": EQUALS_ID,
            **problem_format(recipe),
        }
    else:
        facts = {
            "vocab_size": SORTEDNESS_VOCABULARY,
            "id2label": {0: "unsorted", 1: "sorted"},
            "label2id": {"unsorted": 0, "sorted": 1},
        }
        if options.get("embedding_type") == "ordinal":
            facts["ordinal_token_range"] = VALUE_RANGE
    for name in facts | tokens:
        if name in options:
            raise ValueError(f"model.{name} follows from the task and cannot be set in a recipe.")
    return HeadcountConfig(**options, **facts, **tokens)


def problem_format(recipe: Recipe) -> dict:
    """How the recipe writes its addition problems, as fields of the config."""
    options = AdditionOptions(**recipe.data)
    varied = options.min_digits is not None
    return {
        "answer_order": options.answer_order,
        "operand_digits": options.digits if options.zero_pad and not varied else None,
        "align_operands": options.zero_pad and varied,
    }


def make_model(recipe: Recipe) -> HeadcountPreTrainedModel:
    """A new model; the caller seeds torch before."""
    config = make_config(recipe)
    return MODEL_CLASSES[config.architecture](config)


def make_tokenizer(recipe: Recipe):
    return addition_tokenizer(addition_style(recipe)) if recipe.task == "addition" else sortedness_tokenizer()
