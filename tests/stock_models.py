"""Tiny random models of transformers' architectures, with inputs: what the compatibility table is made from."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import Tensor, nn


SMALL = {"vocab_size": 40, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
BERT = SMALL | {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 40,
}
BART = SMALL | {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 40,
    "decoder_start_token_id": 1,
    "forced_eos_token_id": None,
}
T5 = SMALL | {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0}
LLAMA = BERT | {"num_key_value_heads": 2}
VISION = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "image_size": 8,
    "patch_size": 4,
}


def ids(rows: int, length: int, seed: int = 0) -> Tensor:
    return torch.randint(3, 40, (rows, length), generator=torch.Generator().manual_seed(seed))


def text(rows: int) -> dict[str, Tensor]:
    """Token ids, the second half of the last row padded."""
    found = {"input_ids": ids(rows, 9), "attention_mask": torch.ones(rows, 9, dtype=torch.long)}
    found["attention_mask"][-1, 5:] = 0
    return found


def pair(rows: int) -> dict[str, Tensor]:
    return text(rows) | {"decoder_input_ids": ids(rows, 5, seed=1)}


def image(rows: int) -> dict[str, Tensor]:
    return {"pixel_values": torch.randn(rows, 3, 8, 8, generator=torch.Generator().manual_seed(0))}


def sound(rows: int) -> dict[str, Tensor]:
    return {
        "input_features": torch.randn(rows, 8, 20, generator=torch.Generator().manual_seed(0)),
        "decoder_input_ids": ids(rows, 5, seed=1),
    }


def wave(rows: int) -> dict[str, Tensor]:
    return {"input_values": torch.randn(rows, 400, generator=torch.Generator().manual_seed(0))}


@dataclass(frozen=True)
class Stock:
    """One architecture: its model class, the options of a tiny config, inputs, and what is known about it."""

    model: str
    options: dict
    inputs: Callable[[int], dict[str, Tensor]]
    stacks: str
    note: str = ""


ARCHITECTURES = {
    "BERT": Stock("BertForMaskedLM", BERT, text, "encoder"),
    "RoBERTa": Stock("RobertaForMaskedLM", BERT, text, "encoder"),
    "DistilBERT": Stock(
        "DistilBertForMaskedLM",
        SMALL | {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48, "max_position_embeddings": 40},
        text,
        "encoder",
    ),
    "ALBERT": Stock(
        "AlbertForMaskedLM",
        BERT | {"embedding_size": 16, "inner_group_num": 1},
        text,
        "encoder",
        "its layers share their weights: a head is masked in all of them at once",
    ),
    "ELECTRA": Stock("ElectraForMaskedLM", BERT | {"embedding_size": 16}, text, "encoder"),
    "XLNet": Stock(
        "XLNetLMHeadModel",
        SMALL | {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 48},
        text,
        "",
        "its heads are mixed in the same product that reads their weights; a clear error",
    ),
    "ViT": Stock("ViTForImageClassification", VISION, image, "encoder"),
    "CLIP": Stock(
        "CLIPModel",
        {"text_config": BERT, "vision_config": VISION, "projection_dim": 16},
        lambda rows: text(rows) | image(rows),
        "text, vision",
    ),
    "Whisper": Stock(
        "WhisperForConditionalGeneration",
        BART | {"num_mel_bins": 8, "max_source_positions": 10, "max_target_positions": 40},
        sound,
        "encoder, decoder",
    ),
    "Wav2Vec2": Stock(
        "Wav2Vec2ForCTC",
        BERT
        | {
            "conv_dim": (16, 16),
            "conv_stride": (5, 4),
            "conv_kernel": (10, 4),
            "num_feat_extract_layers": 2,
            "num_conv_pos_embeddings": 4,
            "num_conv_pos_embedding_groups": 2,
            "feat_extract_norm": "layer",
        },
        wave,
        "encoder",
    ),
    "BART": Stock("BartForConditionalGeneration", BART, pair, "encoder, decoder"),
    "mBART": Stock("MBartForConditionalGeneration", BART, pair, "encoder, decoder"),
    "Marian": Stock("MarianMTModel", BART | {"decoder_vocab_size": 40}, pair, "encoder, decoder"),
    "Pegasus": Stock("PegasusForConditionalGeneration", BART, pair, "encoder, decoder"),
    "T5": Stock("T5ForConditionalGeneration", T5, pair, "encoder, decoder"),
    "mT5": Stock("MT5ForConditionalGeneration", T5, pair, "encoder, decoder"),
    "GPT-2": Stock(
        "GPT2LMHeadModel", SMALL | {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 40}, text, "decoder"
    ),
    "GPT-NeoX": Stock("GPTNeoXForCausalLM", BERT, text, "decoder"),
    "OPT": Stock("OPTForCausalLM", BERT | {"ffn_dim": 48, "word_embed_proj_dim": 32}, text, "decoder"),
    "Llama": Stock("LlamaForCausalLM", LLAMA, text, "decoder", "grouped-query attention"),
    "Mistral": Stock("MistralForCausalLM", LLAMA, text, "decoder", "grouped-query attention"),
    "Qwen2": Stock("Qwen2ForCausalLM", LLAMA, text, "decoder", "grouped-query attention"),
    "Qwen3": Stock("Qwen3ForCausalLM", LLAMA | {"head_dim": 8}, text, "decoder", "grouped-query attention"),
    "Gemma": Stock("GemmaForCausalLM", LLAMA | {"head_dim": 8}, text, "decoder", "grouped-query attention"),
    "Phi": Stock("PhiForCausalLM", LLAMA, text, "decoder"),
}
# Further families, whose heads are removed as well: the table of docs/stock-models.md is long enough without them.
MLA = {"q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 4, "qk_nope_head_dim": 8, "v_head_dim": 8}
EXPERTS = {"num_local_experts": 2, "num_experts_per_tok": 1}
HUBERT = ARCHITECTURES["Wav2Vec2"].options
FURTHER = {
    "Mixtral": Stock("MixtralForCausalLM", LLAMA | EXPERTS, text, "decoder"),
    "gpt-oss": Stock("GptOssForCausalLM", LLAMA | EXPERTS | {"head_dim": 8}, text, "decoder", "sinks"),
    "Gemma 2": Stock("Gemma2ForCausalLM", LLAMA | {"head_dim": 8}, text, "decoder"),
    "Gemma 3": Stock("Gemma3ForCausalLM", LLAMA | {"head_dim": 8}, text, "decoder"),
    "Phi-3": Stock("Phi3ForCausalLM", LLAMA, text, "decoder", "one projection, sizes from the config"),
    "StarCoder2": Stock("Starcoder2ForCausalLM", LLAMA, text, "decoder"),
    "StableLM": Stock("StableLmForCausalLM", LLAMA, text, "decoder"),
    "Cohere": Stock("CohereForCausalLM", LLAMA | {"use_qk_norm": True}, text, "decoder", "a norm for every head"),
    "OLMo": Stock("OlmoForCausalLM", LLAMA, text, "decoder"),
    "Granite": Stock("GraniteForCausalLM", LLAMA, text, "decoder"),
    "GLM": Stock("GlmForCausalLM", LLAMA | {"head_dim": 8}, text, "decoder"),
    "GPTBigCode": Stock(
        "GPTBigCodeForCausalLM",
        SMALL | {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 40},
        text,
        "decoder",
        "one key/value head for all",
    ),
    "DeepSeek-V3": Stock(
        "DeepseekV3ForCausalLM",
        BERT | MLA | {"first_k_dense_replace": 2, "num_key_value_heads": 4, "n_routed_experts": 2, "n_group": 1},
        text,
        "decoder",
        "latent attention",
    ),
    "XLM-RoBERTa": Stock("XLMRobertaForMaskedLM", BERT, text, "encoder"),
    "CamemBERT": Stock("CamembertForMaskedLM", BERT, text, "encoder"),
    "ModernBERT": Stock("ModernBertForMaskedLM", BERT | {"cls_token_id": 1, "sep_token_id": 2}, text, "encoder"),
    "M2M100": Stock("M2M100ForConditionalGeneration", BART, pair, "encoder, decoder"),
    "BlenderBot": Stock("BlenderbotForConditionalGeneration", BART, pair, "encoder, decoder"),
    "UMT5": Stock("UMT5ForConditionalGeneration", T5, pair, "encoder, decoder", "a table of positions in every layer"),
    "HuBERT": Stock("HubertForCTC", HUBERT, wave, "encoder"),
    "DeiT": Stock("DeiTForImageClassification", VISION, image, "encoder"),
    "DINOv2": Stock("Dinov2ForImageClassification", VISION, image, "encoder"),
    "Swin": Stock(
        "SwinForImageClassification",
        {"embed_dim": 16, "depths": [2], "num_heads": [4], "window_size": 2, "image_size": 8, "patch_size": 2},
        image,
        "encoder",
        "a table of positions in every layer",
    ),
}
NEO = {"attention_types": [[["global", "local"], 1]], "window_size": 4, "max_position_embeddings": 40}
GPT_J = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 40, "rotary_dim": 4}
# Layers with attention code of their own.
OWN_CODE = {
    "BLOOM": Stock("BloomForCausalLM", SMALL | {"hidden_size": 32, "n_layer": 2, "n_head": 4}, text, "decoder"),
    "Falcon": Stock("FalconForCausalLM", BERT, text, "decoder", "one key/value head for all"),
    "Falcon, ALiBi": Stock("FalconForCausalLM", BERT | {"alibi": True}, text, "decoder"),
    "Falcon, every head its own": Stock("FalconForCausalLM", BERT | {"multi_query": False}, text, "decoder"),
    "Falcon, groups": Stock(
        "FalconForCausalLM", BERT | {"new_decoder_architecture": True, "num_kv_heads": 2}, text, "decoder"
    ),
    "GPT-J": Stock("GPTJForCausalLM", SMALL | GPT_J, text, "decoder"),
    "GPT-Neo": Stock(
        "GPTNeoForCausalLM", SMALL | NEO | {"hidden_size": 32, "num_layers": 2, "num_heads": 4}, text, "decoder"
    ),
    "GPT-NeoX-Japanese": Stock("GPTNeoXJapaneseForCausalLM", BERT, text, "decoder"),
    "MPT": Stock(
        "MptForCausalLM", SMALL | {"d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 40}, text, "decoder"
    ),
    "CTRL": Stock(
        "CTRLLMHeadModel",
        SMALL | {"n_embd": 32, "n_layer": 2, "n_head": 4, "dff": 48, "n_positions": 40},
        text,
        "",
        "its decoder has no cache to tell it by",
    ),
    "DeBERTa": Stock(
        "DebertaForMaskedLM", BERT | {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}, text, "encoder"
    ),
    "DeBERTa-v2": Stock(
        "DebertaV2ForMaskedLM", BERT | {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}, text, "encoder"
    ),
    "MPNet": Stock("MPNetForMaskedLM", BERT, text, "encoder", "one table of positions for all layers"),
    "XLM": Stock(
        "XLMWithLMHeadModel",
        SMALL | {"emb_dim": 32, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 40},
        text,
        "encoder",
    ),
    "SigLIP": Stock("SiglipForImageClassification", {"vision_config": VISION}, image, "vision", "torch's attention"),
}
MASKED = [name for name, stock in ARCHITECTURES.items() if stock.stacks]


def make_stock(name: str, attention: str = "sdpa", seed: int = 0, **options) -> transformers.PreTrainedModel:
    """A tiny model in evaluation mode whose heads all matter: weights are larger than those of a fresh model."""
    stock = (ARCHITECTURES | FURTHER | OWN_CODE)[name]
    model_class = getattr(transformers, stock.model)
    torch.manual_seed(seed)
    model = model_class(model_class.config_class(**{**stock.options, **options}))
    model.set_attn_implementation(attention if attention != "sdpa" or model._supports_sdpa else "eager")
    with torch.no_grad():
        for parameter in filter(lambda parameter: parameter.requires_grad, model.parameters()):
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model.eval()


def output_projection(model: nn.Module, path: str) -> nn.Module:
    """The module that mixes the heads of the attention layer at `path`."""
    module = model.get_submodule(path)
    for name in ("out_proj", "o_proj", "c_proj", "out_lin", "o", "dense"):
        if hasattr(module, name):
            return getattr(module, name)
    return model.get_submodule(path.rpartition(".")[0]).output.dense


def close_by_hook(projection: nn.Module, place: int, heads: int):
    """The usual way to ablate: a hook that zeroes a head's part of the input of the output projection."""

    def close(module, inputs):
        parts = inputs[0].unflatten(-1, (heads, -1)).clone()
        parts[..., place, :] = 0.0
        return (parts.flatten(-2),)

    return projection.register_forward_pre_hook(close)


def float_outputs(outputs) -> list[Tensor]:
    """What a model computes: its logits, or for CLIP those of both towers."""
    names = ("logits", "logits_per_image", "text_embeds", "image_embeds")
    return [outputs[name] for name in names if name in outputs]


WORDS = ["[PAD]", "[BOS]", "[EOS]", "[UNK]", *(f"w{i}" for i in range(36))]


def save_with_words(model, folder):
    """Saves a model with a tokenizer of 40 words, `w0` to `w35` and special ones, as transformers does."""
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    model.save_pretrained(folder)
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        eos_token="[EOS]",
        unk_token="[UNK]",
        model_max_length=30,
        model_input_names=["input_ids", "attention_mask"],
    ).save_pretrained(folder)
    return folder
