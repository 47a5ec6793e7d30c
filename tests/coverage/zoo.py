"""Tiny random models of every architecture in the installed transformers, without a network.

Nothing here lists the architectures: they come from transformers' own tables, and a config is made small by rules on
the names and values of its fields, so that a family added by a later release is covered by itself. `OVERRIDES` holds
what the rules cannot know. `zoo_inputs.py` makes what they run on.
"""

import collections
import dataclasses
import functools
import importlib
import inspect
import itertools
import re
import warnings
from typing import Any

import torch
import transformers
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING


WIDTH, HEADS, KEY_VALUE_HEADS, INNER, VOCABULARY, POSITIONS, IMAGE, PATCH = 32, 4, 2, 48, 99, 64, 32, 8
LENGTH = 12  # tokens of a row

# What the rules cannot know: model type -> field (dots lead into sub-configs) -> value.
OVERRIDES: dict[str, dict[str, Any]] = {
    "align": {"projection_dim": 80},
    "aria": {"projector_patch_to_query_dict": {16: 4}},
    "bamba": {"attn_layer_indices": [1]},
    "BeitForSemanticSegmentation": {"num_hidden_layers": 4, "out_indices": [1, 2, 3, 4]},
    "Blip2ForImageTextRetrieval": {"qformer_config.use_qformer_text_input": True},
    "Blip2TextModelWithProjection": {"qformer_config.use_qformer_text_input": True},
    "blt": {"num_hidden_layers": 2},
    "bridgetower": {
        "contrastive_hidden_size": 32,
        "logit_scale_init_value": 2.6592,
        "hidden_size": 64,
        "text_config.hidden_size": 64,
        "vision_config.hidden_size": 64,
    },
    "bros": {"hidden_size": 64},
    "chameleon": {"vocabulary_map": {"<image>": 98} | {f"IMGIMG{'ABCDEFGH'[i]}Z": 80 + i for i in range(8)}},
    "chameleon_vqgan": {"num_embeddings": 8},
    "clap_audio_model": {"patch_embeds_hidden_size": 24},
    "clvp": {
        "text_config.hidden_size": 128,
        "text_config.projection_dim": 128,
        "speech_config.hidden_size": 128,
        "speech_config.projection_dim": 128,
        "decoder_config.hidden_size": 128,
    },
    "clvp_encoder": {"hidden_size": 128, "projection_dim": 128},
    "ConditionalDetrForSegmentation": {"encoder_attention_heads": 8, "decoder_attention_heads": 8},
    "Data2VecVisionForSemanticSegmentation": {"num_hidden_layers": 4, "out_indices": [1, 2, 3, 4]},
    "cvt": {"depth": [1, 2, 3]},
    "dac": {"encoder_hidden_size": 8},
    "dbrx": {"attn_config.rope_theta": 10000.0, "attn_config.clip_qkv": 8.0},
    "DetrForSegmentation": {"encoder_attention_heads": 8, "decoder_attention_heads": 8},
    "emu3": {"vocabulary_map": {"<image>": 98, "<|visual token 000000|>": 97, "<|visual token 000001|>": 96}},
    "emu3_vqgan": {"hidden_size": 128},
    "falcon_h1": {"mamba_d_ssm": 64, "mamba_d_head": 16},
    "florence_vision": {"projection_dim": 32},
    "fun_asr_nano": {"adaptor_config.intermediate_size": 8},
    "glm5_next_text": {"index_topk": 16},
    "granite4_vision": {
        "deepstack_layer_map": [[-1, 0]],
        "downsample_rate": "1/2",
        "text_config.hidden_size": 64,
        "vision_config.hidden_size": 64,
    },
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},
    "granitemoehybrid": {"layer_types": ["linear_attention", "full_attention"]},
    "jamba": {"attn_layer_offset": 1, "attn_layer_period": 2},
    "levit": {"patch_size": 16},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"]},
    "lilt": {"hidden_size": 48},
    "janus_vqgan": {"num_patches": 4},
    "llama4_vision_model": {"intermediate_size": 128},
    "lw_detr_vit": {"image_size": 64},
    "lw_detr": {"projector_scale_factors": [1.0]},
    "maskformer": {"fpn_feature_size": 32, "mask_feature_size": 32},
    "mamba2": {"head_dim": 16},
    "mllama_vision_model": {"vision_output_dim": 192},
    "moonshine_streaming": {"num_key_value_heads": 4},
    "muse_spark_audio": {"num_hidden_layers": 4, "out_hidden_size": 32},
    "nemotron_h_omni": {"vision_config.video_temporal_patch_size": 2},
    "neomme": {"hidden_size": 64, "head_dim": 16},
    "paddleocr_vl_text": {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [1, 1, 2]}},
    "perceiver": {
        "d_latents": 32,
        "num_self_attends_per_block": 2,
        "num_self_attention_heads": 1,
        "num_cross_attention_heads": 1,
    },
    "qwen2_5_omni_thinker": {"vision_start_token_id": 30, "vision_end_token_id": 31},
    "qwen3_omni_moe": {"talker_config.spatial_merge_size": 2},
    "Qwen3OmniMoeTalkerForConditionalGeneration": {"spatial_merge_size": 2},
    "qwen3_omni_moe_thinker": {"vision_start_token_id": 30, "vision_end_token_id": 31},
    "qwen3_omni_moe_talker_text": {"shared_expert_intermediate_size": 48},
    "reformer": {"axial_pos_embds_dim": [16, 16], "axial_pos_shape": [8, 8]},
    "ReformerModelWithLMHead": {"is_decoder": True},
    "sam2_hiera_det_model": {"global_attention_blocks": [4]},
    "seggpt": {"image_size": [64, 32]},
    "shieldgemma2": {"yes_token_index": 5, "no_token_index": 6},
    "step3p5": {"sliding_window": 8},
    "superpoint": {"keypoint_decoder_dim": 65},
    "swin2sr": {"embed_dim": 24, "num_heads": [2, 2], "depths": [2, 2]},
    "T5GemmaEncoderModel": {"is_encoder_decoder": False},
    "ViltForImagesAndTextClassification": {"num_images": 2, "modality_type_vocab_size": 3},
    "timesfm2_5": {"context_length": 128},
    "tvp": {"max_img_size": 64},
    "xlstm": {"hidden_size": 128},
    "xmod": {"default_language": "en_XX"},
    "zamba": {
        "num_hidden_layers": 4,
        "layers_block_type": ["linear_attention", "hybrid", "linear_attention", "hybrid"],
    },
}


# ---------------------------------------------------------------------------------------------------- the classes


def _modeling_module(config_class: type) -> Any:
    """The modeling file beside a configuration file, or None where there is none or it lacks a dependency."""
    try:
        return importlib.import_module(config_class.__module__.replace(".configuration_", ".modeling_"))
    except ImportError:
        return None


@functools.cache
def _classes() -> dict[str, tuple[str, type[PreTrainedModel] | None]]:
    """Class name -> (model type, class); the class is None when a missing package keeps it from being imported."""
    named: dict[str, list[str]] = collections.defaultdict(list)
    for name, mapping in vars(modeling_auto).items():
        if name.startswith("MODEL") and name.endswith("MAPPING_NAMES"):
            for model_type, found in mapping.items():
                for one in found if isinstance(found, (tuple, list)) else (found,):
                    named[one].append(model_type)
    configs = {model_type: CONFIG_MAPPING[model_type] for model_type in CONFIG_MAPPING.keys()}  # noqa: SIM118
    types: dict[type, str] = {}
    for model_type, config_class in configs.items():
        if config_class not in types or config_class.model_type == model_type:
            types[config_class] = model_type
    exported: dict[str, type[PreTrainedModel]] = {}
    home: dict[str, str] = {}
    for model_type, config_class in configs.items():
        module = _modeling_module(config_class)
        for name in getattr(module, "__all__", []):
            found = getattr(module, name)
            if not (inspect.isclass(found) and issubclass(found, PreTrainedModel)) or re.search("Pre[Tt]rained", name):
                continue
            exported[name] = found
            if found.config_class is not None and found.config_class.__module__ == config_class.__module__:
                home.setdefault(name, model_type)
    result: dict[str, tuple[str, type[PreTrainedModel] | None]] = {}
    for name, found in exported.items():
        wanted = types.get(found.config_class) or next(iter(named.get(name, [])), None) or home.get(name)
        if wanted is not None:
            result[name] = (wanted, found)
    for name, model_types in named.items():
        if name not in result and model_types[0] in configs:
            module = _modeling_module(configs[model_types[0]])
            result[name] = (model_types[0], getattr(module, name, None) or getattr(transformers, name, None))
    return result


@functools.cache
def model_classes() -> dict[str, list[str]]:
    """Model type -> the names of all public model classes of that architecture."""
    found: dict[str, list[str]] = collections.defaultdict(list)
    for name, (model_type, _) in _classes().items():
        found[model_type].append(name)
    return {model_type: sorted(found[model_type]) for model_type in sorted(found)}


# ---------------------------------------------------------------------------------------------------- the configs


@dataclasses.dataclass
class _Tree:
    """What the rules share over a config and its sub-configs."""

    divisor: int
    tokens: dict[str, int] = dataclasses.field(default_factory=dict)

    def token(self, name: str) -> int:
        """An id at the end of the vocabulary, the same for the same name."""
        name = re.sub(r"_index$", "_id", name)
        return self.tokens.setdefault(name, VOCABULARY - 1 - len(self.tokens))


DEPTHS = re.compile(r"^(depths?|layers|.*num_blocks|num_block_repeats|blocks|n_blocks|num_layers|encoder_depths)$")
TOKEN = re.compile(r"token_(id|index)$|^(unk|mask)_index$|token_ids$")
LAYER_COUNT = re.compile(
    r"(^|_)(num_hidden_layers|num_layers|n_layers?|layers|depth|num_blocks|num_hidden_blocks|num_attention_blocks"
    r"|num_attn_blocks)$|^n_layer|_num_layers$|layers_count$|num_decoder_layers|num_encoder_layers"
)
KV_COUNT = re.compile(r"(key_value_heads|kv_heads|num_key_heads|n_head_kv)$")
HEAD_COUNT = re.compile(r"(heads?|n_heads?|num_heads|attention_heads|attn_heads)$")
HEAD_WIDTH = re.compile(r"(head_dim|d_head|d_kv|kv_channels|head_size|dim_head|dim_per_head)$")
INNER_WIDTH = re.compile(
    r"intermediate|ffn_dim|ffn_size|ffn_hidden|d_ff$|d_inner$|mlp_dim|feed_?forward.*size|linear_units"
)
EXPERTS = re.compile(r"^(moe_)?(num_|n_)(routed_|local_)?experts$|^num_routed|^moe_num_experts$")
PER_TOKEN = re.compile(r"experts_per_tok|moe_top_?k|^moe_k$|top_k_experts|num_selected_experts|expert_top_?k")
POSITION_COUNT = re.compile(
    r"max_(\w+_)?positions?(_embeddings)?$|position_embeddings$|n_positions|n_ctx$|max_seq|max_length$|model_max_length"
    r"|max_text_len|max_sequence|max_target|max_rel|max_pos_emb"
)
WIDTHS = re.compile(
    r"(hidden_size|hidden_dim|d_model|embed_dim|n_embd|embedding_size|embedding_dim|_dim|dim|channels?|_width|width"
    r"|projection_size|proj_size|_size_per_layer_input|units|num_filters|output_size|emb_dim|hidden|features_size"
    r"|laurel_rank|codebook_dim|backbone_hidden|latent_size|dimension|filters|dims)$"
)
WIDTH_LISTS = re.compile(
    r"(sizes|dims?|channels?|channel_list|hidden_size|widths?|filters|embed_dims?|dim_per_stage)$"
)
NOT_WIDTHS = re.compile(
    r"patch_|image_|window|kernel|feature_sizes|scale|dilation|crop|frame|grid|pool|audio_channels|num_channels|ratio|rope|subsampling"
)
PICTURE = re.compile(
    r"(^|_)(image_size|img_size|image_height|image_width|input_size|crop_size|input_resolution)$|^resolution$"
)
# Values for fields that are None by default although some models of the family need them.
MISSING: dict[str, Any] = {
    "head_dim": WIDTH // HEADS,
    "num_key_value_heads": KEY_VALUE_HEADS,
    "vocab_size": VOCABULARY,
    "n_routed_experts": 4,
    "num_experts": 4,
    "num_local_experts": 4,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "top_k_experts": 2,
    "n_group": 1,
    "topk_group": 1,
    "moe_intermediate_size": INNER,
    "shared_expert_intermediate_size": INNER,
    "prediction_length": 12,
    "mlp_layer_types": ["dense", "sparse"],
    "num_code_groups": 4,
    "rope_theta": 10000.0,
    "decoder_hidden_size": WIDTH,
    "decoder_depth": 1,
    "decoder_num_heads": HEADS,
    "indexer_n_heads": HEADS,
    "indexer_kv_heads": 1,
    "indexer_head_dim": WIDTH // HEADS,
    "indexer_budget": 16,
    "indexer_compress_ratio": 4,
}
COUNTS = {
    "bottleneck_features": 32,
    "visual_prompt_size": 4,
    "max_img_size": 32,
    "num_embeddings": 64,
    "d_latents": 32,
    "codebook_size": 64,
    "decoder_start_n_embd": 32,
    "attention_window": 4,
    "coordinate_size": 4,
    "shape_size": 8,
    "rotary_dim": 4,
    "num_groups": 4,
    "num_pos_feats": 16,
    "merge_index": 0,
    "context_size": 16,
    "latent_query_num": 4,
    "num_filters": 4,
    "label_length": 4,
    "num_queries": 10,
    "num_query_tokens": 6,
    "num_latents": 6,
    "resampler_n_latents": 6,
    "num_position_embeddings": 16,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
    "query_pre_attn_scalar": 8,
    "num_kv_shared_layers": 0,
    "first_k_dense_replace": 1,
    "max_window_layers": 1,
    "n_group": 1,
    "topk_group": 1,
    "num_expert_group": 1,
    "n_groups": 1,
    "mamba_n_groups": 1,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "qk_head_dim": 16,
    "v_head_dim": 8,
    "num_nextn_predict_layers": 0,
    "sliding_window": 8,
    "attention_chunk_size": 8,
    "local_attention": 8,
    "num_codevectors_per_group": 8,
    "codevector_dim": 32,
    "num_frames": 4,
    "max_temporal_embeddings": 8,
    "image_seq_length": 16,
    "image_seq_len": 16,
    "mm_tokens_per_image": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "mamba_n_heads": 4,
    "mamba_d_head": 16,
    "mamba_num_heads": 4,
    "mamba_head_dim": 16,
    "mamba_d_state": 8,
    "ssm_state_size": 8,
    "upsample_groups": 32,
    "upsample_initial_channel": 64,
    "fifo_length": 8,
    "pos_emb_height": 8,
    "pos_emb_width": 8,
    "index_topk": 4,
    "num_parallel_samples": 4,
}


def _get(config: PreTrainedConfig, name: str) -> Any:
    """A field as it is stored, also where it differs from layer to layer; properties count as well."""
    if name in vars(config):
        return vars(config)[name]
    try:
        return getattr(config, name, None)
    except Exception:
        return None


def _largest(config: PreTrainedConfig) -> int:
    """The largest width in any list of widths of a config and its sub-configs."""
    found = [1]
    for name, value in vars(config).items():
        if isinstance(value, PreTrainedConfig):
            found.append(_largest(value))
        elif isinstance(value, (list, tuple)) and WIDTH_LISTS.search(name) and not NOT_WIDTHS.search(name):
            found.extend(one for one in value if isinstance(one, int) and not isinstance(one, bool))
    depths = _get(config, "depths")
    if isinstance(depths, (list, tuple)):
        base = _get(config, "embed_dim") or _get(config, "embedding_size")
        if isinstance(base, int) and not isinstance(_get(config, "hidden_sizes"), (list, tuple)):
            found.append(base * 2 ** (len(depths) - 1))
    return max(found)


def _staged(config: PreTrainedConfig) -> bool:
    """Whether widths of this config grow from stage to stage."""
    return any(
        isinstance(_get(config, name), (list, tuple))
        for name in (
            "depths",
            "hidden_sizes",
            "embed_dims",
            "stage_out_channels",
            "stem_channels",
            "embed_dim_per_stage",
        )
    ) and not isinstance(_get(config, "num_hidden_layers"), dict)


def _counted_widths(config: PreTrainedConfig) -> bool:
    """Whether the model computes its widths from a table and a factor, so that the table must stay as it is."""
    return any(name in vars(config) for name in ("block_configs", "width_coefficient"))


def _narrow(value: int, divisor: int) -> int:
    """A width of a stage, divided."""
    return value if value <= 8 else max(4, round(value / divisor))


def _picks_layers(name: str, value: Any) -> bool:
    """Whether a field is a list of the numbers of some layers."""
    return (
        isinstance(value, (list, tuple))
        and len(value) > 0
        and all(isinstance(one, int) and not isinstance(one, bool) and one >= 0 for one in value)
        and all(one < other for one, other in itertools.pairwise(value))
        and re.search(r"index|indices|layer_ids|_layers$|_idx|feature_layers?$|select_layer", name) is not None
        and not name.startswith("_out")
    )


def _layer_plan(config: PreTrainedConfig) -> tuple[int, dict[str, list]]:
    """How many layers hold every kind of layer that the config names, and the lists of kinds at that length."""
    plans = {}
    for name in (
        "layer_types",
        "mlp_layer_types",
        "layers_block_type",
        "indexer_types",
        "block_types",
    ):
        value = _get(config, name)
        if isinstance(value, (list, tuple)) and value and all(isinstance(one, str) for one in value):
            plans[name] = list(dict.fromkeys(value))
    own = any(isinstance(_get(config, name), int) for name in ("num_hidden_layers", "num_layers", "depth", "n_layer"))
    chosen = [len(value) for name, value in vars(config).items() if own and _picks_layers(name, value)]
    count = max([2, *(len(kinds) for kinds in plans.values()), *(number for number in chosen if number <= 6)])
    return count, {name: kinds + [kinds[-1]] * (count - len(kinds)) for name, kinds in plans.items()}


def _rope(value: dict, head: int) -> dict:
    """Rope parameters with lists that fit heads of `head` features."""
    if any(isinstance(one, dict) for one in value.values()):
        return {name: _rope(one, head) if isinstance(one, dict) else one for name, one in value.items()}
    value = dict(value)
    half = max(1, int(head * (value.get("partial_rotary_factor") or 1.0)) // 2)
    for name, one in value.items():
        if isinstance(one, (list, tuple)) and name == "mrope_section":
            rest = half // len(one)
            value[name] = [rest] * (len(one) - 1) + [half - rest * (len(one) - 1)]
        elif isinstance(one, (list, tuple)) and name.endswith("_factor"):
            value[name] = list(one)[:half]
        elif name == "original_max_position_embeddings":
            value[name] = POSITIONS
    return value


def _integer(name: str, value: int, config: PreTrainedConfig, tree: _Tree, layers: int) -> int:
    """The tiny value of an integer field."""
    if TOKEN.search(name):
        return value if value < VOCABULARY // 3 else tree.token(name)
    if name in COUNTS:
        return min(value, COUNTS[name])
    if value <= 1:
        return value
    if "vocab_size" in name or name.endswith("vocab"):
        return min(value, VOCABULARY)
    if LAYER_COUNT.search(name):
        if name in ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "depth"):
            return min(value, layers)
        return min(value, 2)
    if KV_COUNT.search(name):
        heads = _get(config, re.sub(KV_COUNT, "attention_heads", name))
        heads = heads if isinstance(heads, int) else _get(config, "num_attention_heads")
        return HEADS if isinstance(heads, int) and 0 < heads <= value else KEY_VALUE_HEADS
    if HEAD_COUNT.search(name):
        return min(value, HEADS)
    if HEAD_WIDTH.search(name):
        return min(value, WIDTH // HEADS)
    if name.endswith("_rank"):
        return min(value, 16)
    if PER_TOKEN.search(name):
        return min(value, 2)
    if EXPERTS.search(name):
        return min(value, 4)
    if PICTURE.search(name):
        return min(value, 2 * IMAGE if _staged(config) else IMAGE)
    if name == "patch_size":
        return min(value, PATCH)
    if name == "window_size" and _staged(config):
        return 2
    if POSITION_COUNT.search(name):
        return min(value, POSITIONS)
    if INNER_WIDTH.search(name):
        return min(value, INNER)
    if _counted_widths(config):
        return value
    if WIDTHS.search(name) and not NOT_WIDTHS.search(name):
        return _narrow(value, tree.divisor) if _staged(config) else min(value, WIDTH)
    return value


def _sequence(name: str, value: Any, config: PreTrainedConfig, tree: _Tree, layers: int, was: int) -> Any:
    """The tiny value of a list or a tuple."""
    kind = type(value)
    if name == "backbone_feature_sizes":
        return kind([[16, 16], [8, 8], [4, 4]])
    if name == "image_grid_pinpoints":
        return kind([[IMAGE, IMAGE]])
    numbers = [one for one in value if isinstance(one, int) and not isinstance(one, bool)]
    if not value or len(numbers) != len(value):
        return kind(value[:layers]) if len(value) == was and was > 4 else value
    if TOKEN.search(name):
        return kind(_integer(name, one, config, tree, layers) for one in value[:1])
    if len(value) == was and was > 4:
        return kind(_integer(name, one, config, tree, layers) for one in value[:layers])
    if DEPTHS.search(name):
        return kind(min(one, 2) for one in value)
    if PICTURE.search(name):
        return kind(min(one, 2 * IMAGE if _staged(config) else IMAGE) for one in value)
    if name == "patch_size":
        return kind(min(one, PATCH) for one in value)
    if name.endswith(("feature_layer", "feature_layers")):
        return kind(max(one, -layers) if one < 0 else min(one, layers - 1) for one in value)
    if _picks_layers(name, value):
        return kind(range(max(0, layers - len(value)), layers))
    if name.endswith("blocks_per_stage"):
        return kind(min(one, 2) for one in value)
    if WIDTH_LISTS.search(name) and not NOT_WIDTHS.search(name) and not _counted_widths(config):
        if len(set(value)) == 1 and len(value) > 1 and not _staged(config):
            return kind(min(one, WIDTH) for one in value)
        return kind(_narrow(one, tree.divisor) for one in value)
    return value


def _backbone() -> PreTrainedConfig:
    """A small convolutional backbone in place of one from timm."""
    return transformers.ResNetConfig(
        embedding_size=8,
        hidden_sizes=[16, 32, 64, 128],
        depths=[1, 1, 1, 1],
        out_features=["stage1", "stage2", "stage3", "stage4"],
    )


def _optional(spec: Any) -> PreTrainedConfig | None:
    """The sub-config that a composite config leaves out by default."""
    kind = getattr(spec, "config_class", spec)
    try:
        if kind is transformers.AutoConfig:
            kind = CONFIG_MAPPING[spec.model_type]
        return kind(**getattr(spec, "init_kwargs", {}))
    except Exception:
        return None


def _shrink(config: PreTrainedConfig, tree: _Tree, extra: dict[str, Any]) -> PreTrainedConfig:
    """A config like this one with small sizes; `extra` wins over the rules."""
    if config.model_type == "timm_backbone":
        return _backbone()
    cls = type(config)
    extra = OVERRIDES.get(config.model_type, {}) | extra
    fields = {field.name: field for field in dataclasses.fields(cls)}
    common = getattr(PreTrainedConfig, "__dataclass_fields__", {})
    layers, plans = _layer_plan(config)
    was = _get(config, "num_hidden_layers") or _get(config, "num_layers") or _get(config, "depth")
    was = was if isinstance(was, int) else 0
    outputs = _get(config, "_out_indices")
    stages = _get(config, "stage_names")
    flat = stages and was and len(stages) == was + 1
    if flat and outputs and len(outputs) > 1:
        layers = max(layers, len(outputs))
    options: dict[str, Any] = {}
    for name, field in fields.items():
        value = _get(config, name)
        default = field.default
        if name in common and not TOKEN.search(name):
            continue
        if isinstance(value, PreTrainedConfig):
            prefix = name + "."
            inside = {key[len(prefix) :]: one for key, one in extra.items() if key.startswith(prefix)}
            options[name] = _shrink(value, tree, inside)
        elif name in plans:
            options[name] = plans[name]
        elif value is None:
            if re.search(r"^(image|video|audio)_token_(id|index)$", name):
                options[name] = tree.token(name)
            elif name == "pad_token_id" and "vocab_size" in fields:
                options[name] = 0
            elif name in getattr(cls, "sub_configs_defaults", {}) and re.match("(vision|audio|text)_", name):
                found = _optional(cls.sub_configs_defaults[name])
                if found is not None:
                    options[name] = _shrink(found, tree, {})
            elif name in MISSING:
                options[name] = MISSING[name]
            elif name == "sliding_window" and any("sliding" in kind for kind in plans.get("layer_types", [])):
                options[name] = COUNTS["sliding_window"]
        elif isinstance(value, (bool, str, float)):
            if default is not dataclasses.MISSING and value != default and default is not None:
                options[name] = value
        elif isinstance(value, int):
            if default is None and not TOKEN.search(name):
                continue
            tiny = _integer(name, value, config, tree, layers)
            if tiny != default:
                options[name] = tiny
        elif isinstance(value, (list, tuple)):
            if default is None and len(value) == was and was > 4:
                continue
            tiny = _sequence(name, value, config, tree, layers, was)
            options[name] = tiny
        elif isinstance(value, dict) and "rope" in name:
            if not value and "layer_types" in plans:
                kinds = dict.fromkeys(plans["layer_types"])
                value = {kind: {"rope_type": "default", "rope_theta": 10000.0} for kind in kinds}
            elif "mrope_section" in (_get(config, "ignore_keys_at_rope_validation") or ()):
                value = {"mrope_section": [1, 1, 2]} | value
            options[name] = _rope(value, extra.get("head_dim", WIDTH // HEADS))
    if flat and outputs and len(outputs) > 1:
        options["out_indices"] = list(range(1, len(outputs) + 1))
        options["out_features"] = None
    elif flat:
        options.pop("out_features", None)
        options.pop("out_indices", None)
    elif outputs:
        options["out_indices"] = list(outputs)
        options["out_features"] = None
    if config.is_encoder_decoder and _get(config, "decoder_start_token_id") is None:
        options["decoder_start_token_id"] = 0
    if "width_coefficient" in fields:
        options |= {"width_coefficient": 0.25, "depth_coefficient": 0.25, "hidden_dim": 320}
    options.update({name: value for name, value in extra.items() if "." not in name})
    try:
        return cls(**options | {name: list(one) for name, one in options.items() if name == "hidden_sizes"})
    except TypeError:
        return cls(**options)


def tiny_config(model_type: str) -> PreTrainedConfig:
    """A config of this architecture with small sizes, made from its defaults by rules."""
    extra = OVERRIDES.get(model_type, {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _tiny(CONFIG_MAPPING[model_type], extra)


def _tiny(config_class: type[PreTrainedConfig], extra: dict[str, Any]) -> PreTrainedConfig:
    if config_class.model_type in ("encoder-decoder", "vision-encoder-decoder", "speech-encoder-decoder", "rag"):
        return _pair(config_class)
    config = config_class()
    largest = _largest(config)
    tree = _Tree(divisor=4 if largest <= 1024 else 16)
    return _shrink(config, tree, extra)


def _pair(config_class: type[PreTrainedConfig]) -> PreTrainedConfig:
    """A config of an encoder and a decoder that the user combines."""
    if config_class.model_type == "rag":
        encoder, decoder = tiny_config("dpr"), tiny_config("bart")
        return config_class(question_encoder=encoder.to_dict(), generator=decoder.to_dict(), n_docs=2)
    first = {"encoder-decoder": "bert", "vision-encoder-decoder": "vit", "speech-encoder-decoder": "wav2vec2"}
    encoder, decoder = tiny_config(first[config_class.model_type]), tiny_config("bert")
    config = config_class.from_encoder_decoder_configs(encoder, decoder)
    config.decoder_start_token_id, config.pad_token_id = 1, 0
    return config


# ---------------------------------------------------------------------------------------------------- the models


def tiny_model(class_name: str, attention: str = "eager") -> PreTrainedModel:
    """A model of this class with small random parameters, none of them zero, in eval mode and float32."""
    model_type, cls = _classes()[class_name]
    if cls is None:
        raise ImportError(f"{class_name} needs a package that is not installed")
    config_class = cls.config_class or CONFIG_MAPPING[model_type]
    extra = OVERRIDES.get(model_type if config_class is CONFIG_MAPPING[model_type] else config_class.model_type, {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config = _tiny(config_class, extra | OVERRIDES.get(class_name, {}))
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = cls._from_config(config, attn_implementation=attention)
        except ValueError as error:
            if "attn_implementation" not in str(error) and "attention" not in str(error).lower():
                raise
            model = cls._from_config(config)
    model = model.float().eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.is_floating_point():
                parameter.nan_to_num_(0.0, 0.0, 0.0).clamp_(-10, 10)
                parameter.add_(0.05 * torch.randn(parameter.shape, generator=generator))
    return model


# ---------------------------------------------------------------------------------------------------- the inputs
