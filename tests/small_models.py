"""Small models and inputs that tests share."""

import copy

import torch

import headcount
from headcount.modeling.attention import HeadcountAttention


MODEL_CLASSES = {
    "encoder-decoder": headcount.HeadcountForConditionalGeneration,
    "decoder": headcount.HeadcountForCausalLM,
    "encoder": headcount.HeadcountForSequenceClassification,
}


def tiny_config(architecture: str = "encoder-decoder", **options) -> headcount.HeadcountConfig:
    small = {
        "vocab_size": 20,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 48,
        "digit_token_ids": list(range(3, 13)),
        "answer_start_token_id": 14,
        "bracket_token_ids": [3, 4, 5, 6],
    }
    if options.get("position_embedding_type", "learned") == "learned":
        small["max_position_embeddings"] = 64
    return headcount.HeadcountConfig(architecture=architecture, **{**small, **options})


def make_model(architecture: str = "encoder-decoder", seed: int = 0, attention: str = "eager", **options):
    """A tiny model in evaluation mode whose parameters are all nonzero, biases and norms included."""
    torch.manual_seed(seed)
    model = MODEL_CLASSES[architecture](tiny_config(architecture, **options))
    model.set_attn_implementation(attention)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model.eval()


def ungrouped(model):
    """The same model with a copy of its keys and values for every head: it computes the same, without groups."""
    config = copy.deepcopy(model.config)
    config.num_key_value_heads = None
    twin, weights = type(model)(config), model.state_dict()
    for path, attention in model.named_modules():
        if isinstance(attention, HeadcountAttention):
            size = attention.head_dim
            places = [attention.groups.index(head // attention.group_size) for head in attention.heads]
            rows = [place * size + i for place in places for i in range(size)]
            for name in ("k_proj.weight", "k_proj.bias", "v_proj.weight", "v_proj.bias"):
                weights[f"{path}.{name}"] = weights[f"{path}.{name}"][rows]
    twin.load_state_dict(weights)
    twin.set_attn_implementation(model.config._attn_implementation)
    return twin.eval()


def serves(encoding: str, architecture: str) -> bool:
    return encoding != "alibi_directional" or architecture == "encoder"


def make_inputs(architecture: str, batch: int = 3, length: int = 9, padding: str | None = None, seed: int = 1) -> dict:
    """Token ids without special tokens, with labels; `padding` is None, "left" or "right"."""
    generator = torch.Generator().manual_seed(seed)
    inputs = {"input_ids": torch.randint(3, 20, (batch, length), generator=generator)}
    if padding:
        real = torch.arange(length)[None] < torch.arange(length, length - 2 * batch, -2)[:, None]
        inputs["attention_mask"] = (real if padding == "right" else real.flip(-1)).long()
        inputs["input_ids"] = inputs["input_ids"] * inputs["attention_mask"]
    if architecture == "encoder-decoder":
        inputs["labels"] = torch.randint(3, 20, (batch, 6), generator=generator)
    elif architecture == "decoder":
        inputs["labels"] = inputs["input_ids"].masked_fill(inputs["input_ids"] == 0, -100)
    else:
        inputs["labels"] = torch.randint(0, 2, (batch,), generator=generator)
    return inputs
