"""Inputs for one forward of any tiny model: guessed from its signature and config, tried, repaired by its errors."""

import dataclasses
import inspect
import itertools
import re
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedModel
from zoo import IMAGE, LENGTH, PATCH, VOCABULARY, WIDTH


def _nodes(config: PreTrainedConfig) -> Iterator[PreTrainedConfig]:
    """A config and all its sub-configs, the outermost first."""
    yield config
    for value in vars(config).values():
        if isinstance(value, PreTrainedConfig):
            yield from _nodes(value)


def _find(config: PreTrainedConfig, *names: str, inside: str = "", default: Any = None) -> Any:
    """The first value of these fields in a config or its sub-configs; `inside` is a part of the sub-config's type."""
    for node in _nodes(config):
        if inside not in f"{node.model_type} {type(node).__name__}".lower():
            continue
        for name in names:
            value = node.__dict__.get(name)
            if value is not None and value != {} and not (isinstance(value, int) and value < 0):
                return value
    return default


def _square(value: Any) -> tuple[int, int]:
    """Height and width from an int or a pair."""
    if isinstance(value, (list, tuple)):
        return (int(value[-2]), int(value[-1])) if len(value) > 1 else (int(value[0]), int(value[0]))
    if isinstance(value, dict):
        return int(value.get("height", IMAGE)), int(value.get("width", IMAGE))
    return int(value), int(value)


@dataclasses.dataclass
class _Inputs:
    """Makes the arguments of one forward; the fields are the guesses that may have to change."""

    model: PreTrainedModel
    rows: int
    length: int = LENGTH
    picture: str = "plain"  # plain, frames, tiles, grid, patches
    side: int = 0
    frames: int = 4
    sound: int = 64
    wave: int = 4000
    text_only: bool = False
    codes: tuple[str, int] | None = None  # the layout of several codebooks: flat or last, and how many more
    separators: int = 0
    bins: int = 0
    placeholders: dict[str, int] = dataclasses.field(default_factory=dict)
    dropped: set[str] = dataclasses.field(default_factory=set)
    added: set[str] = dataclasses.field(default_factory=set)
    shapes: dict[str, tuple[int, ...]] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        self.config = self.model.config
        self.generator = torch.Generator().manual_seed(2)
        signature = inspect.signature(self.model.forward).parameters
        self.known = {name for name, one in signature.items() if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)}
        self.required = [
            name
            for name, one in signature.items()
            if one.default is one.empty and one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)
        ]

    # small makers
    def normal(self, *shape: int) -> Tensor:
        return torch.randn(*shape, generator=self.generator)

    def whole(self, low: int, high: int, *shape: int) -> Tensor:
        return torch.randint(low, max(high, low + 1), shape, generator=self.generator)

    def height(self) -> tuple[int, int]:
        if self.side:
            return self.side, self.side
        return _square(
            _find(self.config, "image_size", "img_size", "max_img_size", "input_size", "crop_size", default=2 * IMAGE)
        )

    def channels(self) -> int:
        found = _find(self.config, "num_channels", "in_channels", "in_chans", "image_channels", default=3)
        return (int(found[0]) if isinstance(found, (list, tuple)) else int(found)) or 3

    def patch(self) -> int:
        return _square(
            _find(self.config, "patch_size", inside="vision") or _find(self.config, "patch_size", default=PATCH)
        )[0]

    def width(self) -> int:
        return int(_find(self.config, "hidden_size", "d_model", "n_embd", "embed_dim", "dim", default=WIDTH))

    def mel(self) -> int:
        """Features of one frame of sound."""
        if self.bins:
            return self.bins
        found = _find(
            self.config,
            "feature_projection_input_dim",
            "input_feat_per_channel",
            "num_mel_channels",
            "num_mel_bins",
            "n_mels",
            "mel_dim",
            "feature_size",
            "input_feat_size",
            "input_dim",
            "n_mel_bins",
            "input_size",
            "model_in_dim",
            "mel_bins",
            default=80,
        )
        return int(found)

    def vocabulary(self) -> int:
        return int(_find(self.config, "vocab_size", "n_words", default=VOCABULARY) or VOCABULARY)

    def ids(self, length: int) -> Tensor:
        top = self.vocabulary()
        return self.whole(min(VOCABULARY // 3, top // 3), max(2, min(top, VOCABULARY * 2 // 3)), self.rows, length)

    def text(self, codes: bool = True) -> Tensor:
        """Token ids, with as many placeholders in front as the features need."""
        names = {name: count for name, count in self.placeholders.items() if count}
        found = self.ids(self.length + sum(names.values()))
        name = type(self.model).__name__
        if self.codes and codes:
            books = int(_find(self.config, "num_codebooks", "num_channels", default=1)) + self.codes[1]
            top = int(_find(self.config, "codebook_size", "audio_vocab_size", "vocab_size", default=16))
            if self.codes[0] == "flat":
                return self.whole(0, min(top, 30), self.rows * books, self.length)
            return self.whole(0, min(top, 30), self.rows, self.length, books)
        if name.endswith("SequenceClassification") and self.config.is_encoder_decoder:
            found[:, -1] = self.config.eos_token_id
        if self.separators:
            found[:, 2 : 2 + 2 * self.separators : 2] = _find(self.config, "sep_token_id")
        at = 1
        for name, count in names.items():
            token = _find(self.config, *_token_names(name))
            if token is not None:
                found[:, at : at + count] = token if isinstance(token, int) else token[0]
            at += count
        return found

    def pixels(self) -> Tensor:
        height, width = self.height()
        channels, patch = self.channels(), self.patch()
        if self.picture == "frames":
            return self.normal(self.rows, self.frames, channels, height, width)
        if self.picture == "pair":
            return self.normal(self.rows, 2, channels, height, width)
        if self.picture == "frames_flat":
            frames = int(_find(self.config, "num_frames", default=self.frames))
            return self.normal(self.rows * frames, channels, height, width)
        if self.picture == "grid_rows":
            time_patch = int(_find(self.config, "temporal_patch_size", "patch_temporal", default=1) or 1)
            return self.normal(self.rows, 16, channels * time_patch * patch * patch)
        if self.picture == "grid5":
            return self.normal(1, self.rows * 16, channels, patch, patch)
        if self.picture == "packed":
            return self.normal(1, channels, patch, self.rows * 16 * patch)
        if self.picture == "many_tiles":
            return self.normal(
                self.rows, 1, int(_find(self.config, "max_num_tiles", default=4)), channels, height, width
            )
        if self.picture == "tiles":
            return self.normal(self.rows, 1, channels, height, width)
        if self.picture == "volume":
            return self.normal(self.rows, 1, 1, channels, height, width)
        if self.picture == "channels_frames":
            return self.normal(self.rows, channels, self.frames, height, width)
        if self.picture == "grid":
            time_patch = int(_find(self.config, "temporal_patch_size", "patch_temporal", default=1) or 1)
            return self.normal(self.rows * 16, channels * time_patch * patch * patch)
        if self.picture == "grid4":
            return self.normal(self.rows * 16, channels, patch, patch)
        if self.picture == "patches":
            return self.normal(self.rows, 16, channels * patch * patch)
        return self.normal(self.rows, channels, height, width)

    def make(self, name: str) -> Any:
        """The argument of this name, or None when it is not known how to make it."""
        rows, config = self.rows, self.config
        if name in self.shapes:
            return self.normal(*self.shapes[name])
        if name in ("input_ids", "decoder_input_ids_text"):
            return self.text(codes="decoder_input_ids" not in self.known)
        if name == "decoder_input_ids" and self.codes:
            return self.text()
        if name in ("decoder_input_ids", "qformer_input_ids", "protein_input_ids"):
            return self.ids(6)
        if name in (
            "pixel_values",
            "pixel_values_images",
            "image_pixel_values",
            "image",
            "images",
            "high_res_pixel_values",
        ):
            return self.pixels()
        if name in ("conditional_pixel_values", "prompt_pixel_values", "codebook_pixel_values", "prompt_masks"):
            return self.pixels()
        if name in ("pixel_values_videos", "pixel_values_video"):
            if self.picture in ("grid", "grid4"):
                return self.pixels()
            height, width = self.height()
            return self.normal(rows, self.frames, self.channels(), height, width)
        if name in ("image_grid_thw", "grid_thw", "video_grid_thw"):
            return torch.tensor([[1, 4, 4]] * rows)
        if name in ("image_grid_hw", "spatial_shapes", "target_sizes", "tgt_sizes"):
            return torch.tensor([[4, 4]] * rows)
        if name == "image_sizes":
            return torch.tensor([list(self.height())] * rows)
        if name == "pixel_mask":
            return torch.ones(rows, *self.height(), dtype=torch.long)
        if name in ("image_attention_mask", "pixel_attention_mask", "patch_attention_mask"):
            if self.picture == "patches":
                return torch.ones(rows, 16, dtype=torch.long)
            if name == "image_attention_mask" and self.picture == "tiles":
                return torch.ones(rows, self.length, 1, dtype=torch.long)
            return None
        if name in ("input_features", "audio_input_features", "audio_mel", "spectrogram", "mel_spectrogram"):
            bins = self.mel()
            if self.picture == "sound_last":
                return self.normal(rows, self.sound, int(bins))
            if self.picture == "sound_4d":
                return self.normal(rows, 1, self.sound, int(bins))
            return self.normal(rows, int(bins), self.sound)
        if name in ("input_values", "audio_values"):
            if self.picture == "wave_channel":
                return self.normal(rows, 1, self.wave)
            if self.picture == "sound_last" and "input_features" in self.known:
                return self.normal(rows, 1, self.wave)
            if self.picture == "sound_last":
                return self.normal(rows, self.sound, int(_find(config, "num_mel_bins", "feature_size", default=80)))
            return self.normal(rows, self.wave)
        if name in ("input_features_mask", "feature_attention_mask", "audio_mel_mask", "audio_attention_mask"):
            return torch.ones(rows, self.sound, dtype=torch.bool if name == "audio_mel_mask" else torch.long)
        if name in ("padding_mask", "input_values_mask"):
            return torch.ones(rows, self.wave, dtype=torch.long)
        if name in ("attention_mask", "decoder_attention_mask", "qformer_attention_mask", "protein_attention_mask"):
            other = {"attention_mask": "input_ids"}.get(name, name.replace("attention_mask", "input_ids"))
            if other in self.known:
                return torch.ones_like(self.make(other)) if other != "input_ids" else torch.ones(
                    rows, self.length + sum(self.placeholders.values()), dtype=torch.long)  # fmt: skip
            return None
        if name == "bbox":
            corner = self.whole(0, 20, rows, self.length, 2)
            return torch.cat([corner, corner + self.whole(1, 20, rows, self.length, 2)], -1)
        if name in ("mm_token_type_ids", "moe_mm_token_type_ids", "token_type_ids"):
            ids = self.text() if "input_ids" in self.known else torch.zeros(rows, self.length, dtype=torch.long)
            found = torch.zeros_like(ids)
            for number, kind in enumerate(("image", "video", "audio"), 1):
                token = _find(config, *_token_names(kind))
                if isinstance(token, int) and self.placeholders.get(kind):
                    found[ids == token] = number
            return found
        if name == "inputs_embeds":
            return self.normal(rows, self.length, self.width())
        if name in ("hidden_states", "query_embeds", "noise_embeds", "context_hidden_states", "encoder_hidden_states"):
            if name == "hidden_states" and self.picture in ("image", "wave_channel"):
                if self.picture == "image":
                    self.picture = "plain"
                    return self.pixels()
                return self.normal(rows, int(_find(config, "channels", "hidden_size", default=1)), 3200)
            if name == "hidden_states" and "grid_thw" in self.known:
                self.picture = "grid"
                return self.pixels()
            if name == "encoder_hidden_states":
                return self.normal(rows, self.length, int(_find(config, "encoder_hidden_size", default=self.width())))
            return self.normal(rows, self.length, self.width())
        if name == "is_longer":
            return torch.zeros(rows, 1, dtype=torch.bool)
        if name in ("pixel_position_ids", "image_position_ids"):
            return torch.cartesian_prod(torch.arange(4), torch.arange(4)).repeat(rows, 1, 1)
        if name == "flattened_patches":
            size = int(_find(config, "patch_embed_hidden_size", default=self.channels() * self.patch() ** 2))
            places = torch.cartesian_prod(torch.arange(1, 5), torch.arange(1, 5)).repeat(rows, 1, 1)
            return torch.cat([places.float(), self.normal(rows, 16, size)], -1)
        if name == "aspect_ratio_ids":
            return torch.ones(rows, 1, dtype=torch.long)
        if name == "aspect_ratio_mask":
            return torch.ones(rows, 1, int(_find(config, "max_num_tiles", default=4)), dtype=torch.long)
        if name == "image_embeds_position_mask":
            found = torch.zeros(rows, self.length, dtype=torch.long)
            found[:, : int(_find(config, "latent_query_num", default=4))] = 1
            return found
        if name in ("merge_sizes", "image_merge_sizes"):
            return torch.ones(rows, dtype=torch.long)
        if name == "entity_ids":
            return self.whole(1, 20, rows, 2)
        if name == "entity_attention_mask":
            return torch.ones(rows, 2, dtype=torch.long)
        if name == "entity_position_ids":
            found = torch.full((rows, 2, self.length), -1)
            found[:, :, :2] = torch.tensor([1, 2])
            return found
        if name in ("entity_start_positions", "entity_end_positions"):
            return torch.tensor([[1, 4]] * rows)
        if name in ("context_input_ids", "context_attention_mask"):
            documents = int(_find(config, "n_docs", default=2))
            found = self.ids(self.length).repeat_interleave(documents, 0)
            return found if name == "context_input_ids" else torch.ones_like(found)
        if name == "doc_scores":
            return self.normal(rows, int(_find(config, "n_docs", default=2)))
        if name == "codebook_idx":
            return 1
        if name == "region_to_phrase_position":
            return self.whole(0, 4, rows, self.length)
        if name in ("latents", "audio_latents"):
            return self.normal(rows, self.width(), self.length)
        if name in ("spkr_id", "lang_id"):
            return torch.zeros(rows, 1, dtype=torch.long)
        if name == "mask" and "hidden_states" in self.known:
            return torch.ones(rows, self.length, dtype=torch.bool)
        if name == "inputs":
            if "Image" in type(self.model).__name__:
                return self.pixels()
            return self.ids(self.length) if "MaskedLM" in type(self.model).__name__ else None
        if name in ("classes_input_ids",):
            return self.ids(self.length)
        if name == "classes_structure":
            return torch.ones(rows, dtype=torch.long)
        if name == "audio_input_ids":
            books = int(_find(config, "num_codebooks", default=4))
            return self.whole(0, 16, rows, self.length, books)
        if name in ("past_values", "future_values"):
            return self._series(name)
        if name in ("past_time_features", "future_time_features"):
            size = int(_find(config, "num_time_features", default=0))
            return self.normal(rows, self._series(name.replace("time_features", "values")).shape[1], size)
        if name in ("past_observed_mask", "future_observed_mask"):
            return torch.ones_like(self._series(name.replace("observed_mask", "values")))
        if name == "past_values_padding":
            return torch.zeros(rows, self._series("past_values").shape[1])
        if name == "freq":
            return torch.zeros(rows, 1, dtype=torch.long)
        if name in ("task_inputs", "text_inputs", "tasks_input_ids"):
            return self.ids(int(_find(config, "task_seq_len", default=self.length)))
        if name == "bool_masked_pos":
            return self._masked()
        if name in ("visual_feats",):
            return self.normal(rows, 5, int(_find(config, "visual_feat_dim", default=WIDTH)))
        if name in ("visual_pos",):
            return torch.rand(rows, 5, 4, generator=self.generator)
        if name == "visual_attention_mask" and "visual_embeds" in self.known:
            return torch.ones(rows, 5)
        if name == "visual_token_type_ids":
            return torch.ones(rows, 5, dtype=torch.long)
        if name == "state":
            return self.normal(rows, int(_find(config, "max_state_dim", default=WIDTH)))
        if name == "visual_embeds":
            return self.normal(rows, 5, int(_find(config, "visual_embedding_dim", default=WIDTH)))
        if name in ("input_points",):
            return torch.rand(rows, 1, 2, 2, generator=self.generator) * 16
        if name == "speaker_embeddings":
            return self.normal(rows, int(_find(config, "speaker_embedding_dim", default=WIDTH)))
        if name == "decoder_input_values":
            return self.normal(rows, 6, int(_find(config, "num_mel_bins", default=80)))
        if name in ("states", "actions", "rewards", "returns_to_go", "timesteps"):
            size = {"states": "state_dim", "actions": "act_dim"}.get(name)
            if name == "timesteps":
                return torch.arange(5).repeat(rows, 1)
            return self.normal(rows, 5, int(_find(config, size)) if size else 1)
        if name == "input_mask" or name.endswith("attention_mask"):
            return torch.ones(rows, self.length, dtype=torch.long)
        if name == "labels":
            return None
        return None

    def _series(self, name: str) -> Tensor:
        config = self.config
        if name == "future_values":
            length = _find(config, "prediction_length", "horizon_length", default=8)
        else:
            length = _find(config, "context_length", default=None) or _find(config, "prediction_length", default=32)
            lags = _find(config, "lags_sequence")
            if lags:
                length = int(length) + max(lags)
        channels = _find(config, "num_input_channels", default=0)
        if channels:
            return self.normal(self.rows, int(length), int(channels))
        size = int(_find(config, "input_size", default=1))
        return self.normal(self.rows, int(length)) if size == 1 else self.normal(self.rows, int(length), size)

    def _masked(self) -> Tensor:
        height, width = self.height()
        patch = self.patch()
        count = (height // patch) * (width // patch)
        tubelet = int(_find(self.config, "tubelet_size", default=0))
        if tubelet:
            count *= int(_find(self.config, "num_frames", default=self.frames)) // tubelet
        found = torch.zeros(self.rows, count, dtype=torch.bool)
        found[:, : count // 2] = True
        return found

    def arguments(self) -> dict[str, Any]:
        """All arguments that this forward should get."""
        wanted = list(self.required)
        main = self.model.main_input_name
        for name in main if isinstance(main, (list, tuple)) else [main]:
            if name in self.known:
                wanted.append(name)
        kind = type(self.model).__name__
        if "states" in self.known and "returns_to_go" in self.known:
            wanted += ["states", "actions", "rewards", "returns_to_go", "timesteps"]
            self.dropped.add("attention_mask")
        if "Entity" in kind:
            wanted += [name for name in sorted(self.known) if name.startswith("entity_") and "token" not in name]
        if kind.startswith("VisualBert"):
            wanted += ["visual_embeds", "visual_attention_mask", "visual_token_type_ids"]
        if kind.startswith("Rag"):
            wanted += ["context_input_ids", "context_attention_mask", "doc_scores"]
        if kind.endswith("SequenceClassification") and self.config.is_encoder_decoder:
            self.dropped.add("decoder_input_ids")
        usual = ["input_ids", "attention_mask", "bbox"]
        if not self.text_only:
            usual += [
                "pixel_values",
                "input_features",
                "input_values",
                "image_grid_thw",
                "grid_thw",
                "mm_token_type_ids",
                "image_sizes",
                "spatial_shapes",
                "target_sizes",
                "tgt_sizes",
                "feature_attention_mask",
                "pixel_position_ids",
                "image_position_ids",
                "flattened_patches",
                "aspect_ratio_ids",
                "aspect_ratio_mask",
                "image_embeds_position_mask",
                "image_attention_mask",
                "merge_sizes",
                "image_merge_sizes",
                "decoder_input_values",
                "speaker_embeddings",
                "is_longer",
                "pixel_attention_mask",
                "input_features_mask",
                "image_grid_hw",
                "qformer_input_ids",
                "visual_feats",
                "visual_pos",
            ]
        usual += [
            "decoder_input_ids",
            "past_time_features",
            "past_observed_mask",
            "future_values",
            "future_time_features",
        ]
        for name in usual:
            if name in self.known:
                wanted.append(name)
        wanted += sorted(self.added)
        found = {}
        for name in dict.fromkeys(wanted):
            if name in self.dropped:
                continue
            value = self.make(name)
            if value is not None:
                found[name] = value
        if type(self.model).__name__.endswith("MultipleChoice"):
            return {name: value.unsqueeze(1).repeat_interleave(2, 1) for name, value in found.items()}
        return found


def _token_names(kind: str) -> tuple[str, ...]:
    """Config fields that may hold the id of the placeholder of an image, a video or a sound."""
    return tuple(
        f"{kind}{part}" for part in ("_token_id", "_token_index", "_token", "_patch_token_id", "_soft_token_id")
    )


def _repair(inputs: _Inputs, error: Exception) -> bool:
    """Changes the guesses by what an error says; whether there was something to change."""
    text = str(error)
    found = re.search(
        r"(\w+) features and (?:\w+ )?tokens do not match,? *:?,? *tokens: (\d+), features:? (\d+)", text, re.I
    )
    if found:
        kind, features = found[1].lower(), int(found[3])
        if kind not in ("image", "video", "audio"):
            kind = "image"
        have = inputs.placeholders.get(kind, 0)
        per_row = features // inputs.rows
        if int(found[2]) == features:  # some models count features times width
            per_row //= _find(inputs.config, "hidden_size", inside="text", default=WIDTH)
        if per_row and per_row != have and features % inputs.rows == 0 and per_row < 2000:
            inputs.placeholders[kind] = per_row
            return True
        return False
    found = re.search(r"specify both `?(\w+)`? and `?(\w+)`?", text)
    if found and found[2] in inputs.known and found[2] not in inputs.dropped:
        inputs.dropped.add(found[2])
        return True
    found = re.search(r"have to specify `?(\w+)`?$", text.strip(".! "))
    if found and found[1] in inputs.known and found[1] not in inputs.added:
        inputs.added.add(found[1])
        return True
    found = re.search(r"is not a multiple of (\d+)", text)
    if found and inputs.wave % int(found[1]) and int(found[1]) < 10000:
        inputs.wave = 2 * int(found[1])
        return True
    found = re.search(r"cannot use both `(\w+)` and `(\w+)`", text)
    if found and found[2] in inputs.known and found[2] not in inputs.dropped:
        inputs.dropped.add(found[2])
        return True
    found = re.search(r"(\w+) must be given", text)
    if found and found[1] in inputs.known and found[1] not in inputs.added:
        inputs.added.add(found[1])
        return True
    if inputs.picture == "sound_last" and not inputs.bins:
        found = re.search(r"cannot be multiplied \(\d+x(\d+) and (\d+)x", text)
        if found:
            inputs.bins = inputs.mel() * int(found[2]) // int(found[1])
            return True
        found = re.search(r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\) .* dimension 2", text)
        if found and int(found[1]) == inputs.mel():
            inputs.bins = int(found[2])
            return True
    if inputs.picture == "patches" and "pixel_values" not in inputs.shapes:
        found = re.search(r"normalized_shape=\[(\d+)\].* size\[(\d+), (\d+), (\d+)\]", text)
        if found:
            inputs.shapes["pixel_values"] = (int(found[2]), int(found[3]), int(found[1]))
            return True
    found = re.search(r"Both (\w+) and (\w+) should be specified", text)
    if found and {found[1], found[2]} <= inputs.known and not {found[1], found[2]} <= inputs.added:
        inputs.added |= {found[1], found[2]}
        return True
    found = re.search(r"`(\w+)` should not be None", text)
    if found and found[1] in inputs.known and found[1] not in inputs.added:
        inputs.added.add(found[1])
        return True
    if "separator tokens" in text and not inputs.separators:
        inputs.separators = 3
        return True
    if "question token" in text and not inputs.placeholders.get("question"):
        inputs.placeholders["question"] = 1
        return True
    found = re.search(r"missing \d+ required \w+ arguments?: '(\w+)'", text)
    if found and found[1] not in inputs.added and found[1] in inputs.known:
        inputs.added.add(found[1])
        return True
    found = re.search(r"unexpected keyword argument '(\w+)'", text)
    if found and found[1] not in inputs.dropped:
        inputs.dropped.add(found[1])
        return True
    found = re.search(r"expects the mel input features to be of length (\d+), but found (\d+)", text)
    if found and int(found[1]) != inputs.sound and int(found[1]) < 10000:
        inputs.sound = int(found[1])
        return True
    found = re.search(r"size \((\d+)\*(\d+)\) doesn't match model \((\d+)\*(\d+)\)", text)
    if found and inputs.side != min(int(found[3]), int(found[4])):
        inputs.side = min(int(found[3]), int(found[4]))
        return True
    return False


def _candidates(model: PreTrainedModel, rows: int) -> Iterator[_Inputs]:
    """Guesses at the inputs, the likeliest first."""
    first = _Inputs(model, rows)
    known = first.known
    sounds = {"input_features", "input_values", "audio_mel", "spectrogram", "mel_spectrogram", "audio_values"}
    pictures = ["plain"]
    if known & {"image_grid_thw", "grid_thw", "image_grid_hw"}:
        pictures = ["grid", "grid4", "grid5", "grid_rows", "plain"]
    elif known & {"spatial_shapes", "pixel_position_ids", "image_position_ids"}:
        pictures = ["patches", "grid", "plain"]
    elif known & {"pixel_values", "pixel_values_videos", "image"}:
        pictures = ["plain", "frames", "tiles", "patches", "channels_frames", "volume", "pair", "many_tiles"]
        if known & {"aspect_ratio_ids"}:
            pictures = ["many_tiles"]
        if known & {"target_sizes", "tgt_sizes"}:
            pictures = ["packed", *pictures]
        if known & {"image_sizes"}:
            pictures = ["pair", "plain", "tiles", "frames"]
        if _find(model.config, "num_frames") and "pixel_values" in known:
            pictures = ["frames", "plain", "channels_frames", "frames_flat"]
    elif known & sounds:
        pictures = ["plain", "sound_last", "wave_channel", "sound_4d"]
    elif "hidden_states" in first.required:
        pictures = ["plain", "image", "wave_channel"]
    lengths = [64]
    if known & sounds:
        longest = _find(model.config, "max_source_positions")
        lengths = [64, 2 * longest, longest, 100] if isinstance(longest, int) and longest < 200 else [64, 96, 100]
    wave = 8000 if "XVector" in type(model).__name__ else 4000
    if known >= {"pixel_values", "image_sizes"}:
        yield _Inputs(model, rows, dropped={"image_sizes"})
    for picture in pictures:
        for side in (0, 64) if "pixel_values" in known and picture == "plain" else (0,):
            for sound in lengths:
                yield _Inputs(model, rows, picture=picture, side=side, sound=sound, wave=wave)
    if known & sounds and len(pictures) == 1:
        for picture in ("sound_last", "wave_channel", "sound_4d"):
            yield _Inputs(model, rows, picture=picture)
    if known & sounds and "pixel_values" in known:
        masks = {name for name in known if name.endswith("features_mask") or name == "feature_attention_mask"}
        for picture in pictures:
            yield _Inputs(model, rows, picture=picture, dropped=(known & sounds) | masks)
    if known & sounds:
        yield _Inputs(model, rows, picture="sound_last", dropped={"input_ids", "attention_mask"})
        yield _Inputs(model, rows, placeholders={"audio": 1})
    if known & {"input_ids", "decoder_input_ids"} and _find(model.config, "num_codebooks", "delay_pattern"):
        for text_only, layout, more in itertools.product((False, True), ("flat", "last"), (0, 1)):
            yield _Inputs(model, rows, codes=(layout, more), text_only=text_only)
    if "input_ids" in known and known & {"pixel_values", *sounds}:
        yield _Inputs(model, rows, text_only=True)
    if "inputs_embeds" in known:
        yield _Inputs(model, rows, dropped={"input_ids"}, added={"inputs_embeds"}, text_only=True)


def _tries(model: PreTrainedModel, rows: int) -> Iterator[dict[str, Any] | Exception]:
    """For every guess the arguments when a forward works, or the error."""
    for inputs in _candidates(model, rows):
        for _ in range(6):
            try:
                arguments = inputs.arguments()
                with torch.no_grad(), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    model(**arguments)
            except Exception as error:
                if _repair(inputs, error):
                    continue
                yield error
                break
            yield arguments
            return


def tiny_inputs(model: PreTrainedModel, rows: int = 3) -> dict[str, Any]:
    """Arguments with which a forward of this model works, made from its signature and its config."""
    errors = []
    for found in _tries(model, rows):
        if isinstance(found, dict):
            return found
        errors.append(found)
    raise errors[0]


# ---------------------------------------------------------------------------------------------------- the walk
