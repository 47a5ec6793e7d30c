"""HeadcountConfig: one config for encoder-decoder, decoder-only and encoder-only models, and all of its limits."""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from transformers import PreTrainedConfig

from .choices import (
    ARCHITECTURES,
    EMBEDDINGS,
    FEED_FORWARDS,
    NORMALIZERS,
    NORMS,
    POOLERS,
    POSITION_ENCODINGS,
    POSITION_SCHEMES,
)
from .rules import Rule, flag, fraction, is_whole_number, nearest, number_above, one_of, optional, share, token_list
from .rules import whole_number as at_least


# Larger than any use of these models, and small enough to be refused before memory or hours are spent on them.
MOST_LAYERS, MOST_HEADS, WIDEST = 1_000, 4_096, 1_048_576
MOST_TOKENS = MOST_POSITIONS = 10_000_000
MOST_PARAMETERS = 10_000_000_000
DTYPES = ("float32", "float64", "float16", "bfloat16")

RULES: dict[str, Rule] = {
    "architecture": one_of(ARCHITECTURES),
    "vocab_size": at_least(1, MOST_TOKENS),
    "hidden_size": at_least(1, WIDEST),
    "num_hidden_layers": at_least(1, MOST_LAYERS),
    "decoder_layers": optional(at_least(1, MOST_LAYERS)),
    "num_attention_heads": at_least(1, MOST_HEADS),
    "num_key_value_heads": optional(at_least(1, MOST_HEADS)),
    "feed_forward_type": one_of(FEED_FORWARDS),
    "intermediate_size": at_least(1, WIDEST),
    "hidden_act": one_of(("relu", "gelu", "gelu_new", "silu", "tanh")),
    "norm_type": one_of(NORMS),
    "norm_position": one_of(("pre", "post")),
    "layer_norm_eps": number_above(0),
    "dropout": fraction(),
    "attention_dropout": fraction(),
    "query_key_init_gain": number_above(0),
    "embedding_type": one_of(EMBEDDINGS),
    "embedding_init_std": number_above(0),
    "tie_word_embeddings": flag(),
    "position_embedding_type": one_of(POSITION_ENCODINGS),
    "max_position_embeddings": at_least(1, MOST_POSITIONS),
    "position_overflow": one_of(("error", "clamp")),
    "position_init_std": number_above(0),
    "rope_theta": number_above(1),
    "relative_position_range": at_least(1, MOST_POSITIONS),
    "relative_bias_first_token": flag(),
    "relative_attention_num_buckets": at_least(4, MOST_POSITIONS),
    "relative_attention_max_distance": at_least(2),
    "position_bias_scale": number_above(0),
    "fire_threshold": number_above(0),
    "cross_attention_positions": flag(),
    "position_scheme": one_of(POSITION_SCHEMES),
    "max_random_offset": at_least(0),
    "digit_token_ids": optional(token_list()),
    "bracket_token_ids": optional(token_list()),
    "answer_start_token_id": optional(at_least(0)),
    "answer_order": one_of(("plain", "reversed", "aligned", "sorted")),
    "operand_digits": optional(at_least(1, MOST_POSITIONS)),
    "align_operands": flag(),
    "attention_normalizer": one_of(NORMALIZERS),
    "score_jitter": optional(share()),
    "attention_direction": one_of(("bidirectional", "causal")),
    "attention_window": optional(at_least(1)),
    "pooling_type": one_of(POOLERS),
    "use_cache": flag(),
    "pad_token_id": optional(at_least(0)),
    "bos_token_id": optional(at_least(0)),
    "eos_token_id": optional(at_least(0)),
    "decoder_start_token_id": optional(at_least(0)),
}

# Options that do something only under another field's values. Set under any other value they would be ignored in
# silence, so that is an error. A field with two entries needs one of them to hold. What describes the vocabulary and
# the task (digit_token_ids, bracket_token_ids, answer_start_token_id, answer_order, operand_digits, align_operands) is
# a fact and not an option, and may stay unused.
EFFECTIVE_WHEN: dict[str, dict[str, tuple[str, ...]]] = {
    "decoder_layers": {"architecture": ("encoder-decoder",)},
    "decoder_start_token_id": {"architecture": ("encoder-decoder",)},
    "cross_attention_positions": {"architecture": ("encoder-decoder",)},
    "attention_direction": {"architecture": ("encoder-decoder", "encoder")},
    "pooling_type": {"architecture": ("encoder",)},
    "tie_word_embeddings": {"architecture": ("encoder-decoder", "decoder")},
    "norm_position": {"norm_type": ("layer", "rms")},
    "layer_norm_eps": {"norm_type": ("layer", "rms")},
    "ordinal_token_range": {"embedding_type": ("ordinal",)},
    "max_position_embeddings": {"position_embedding_type": ("learned",), "position_scheme": ("randomized",)},
    "position_overflow": {"position_embedding_type": ("learned",)},
    "position_init_std": {"position_embedding_type": ("learned",)},
    "rope_theta": {"position_embedding_type": ("rotary",)},
    "relative_position_range": {"position_embedding_type": ("relative_bias", "relative_key")},
    "relative_bias_first_token": {"position_embedding_type": ("relative_bias",)},
    "relative_attention_num_buckets": {"position_embedding_type": ("t5_bias",)},
    "relative_attention_max_distance": {"position_embedding_type": ("t5_bias",)},
    "position_bias_scale": {"position_embedding_type": ("t5_bias", "relative_bias", "fire")},
    "fire_threshold": {"position_embedding_type": ("fire",)},
    "max_random_offset": {"position_scheme": ("coupled", "abacus")},
}

# Keyword arguments that transformers' own machinery passes to every config.
TRANSFORMERS_KEYS = {
    "model_type",
    "auto_map",
    "custom_pipelines",
    "attn_implementation",
    "experts_implementation",
    "output_attentions",
    "num_labels",
    "torch_dtype",
    "name_or_path",
    "_name_or_path",
    "_commit_hash",
    "quantization_config",
    "transformers_weights",
}


def reject_unknown(names: Iterable[str]) -> None:
    known = [field.name for field in fields(HeadcountConfig)]
    for name in names:
        if name not in known and name not in TRANSFORMERS_KEYS:
            raise ValueError(f"{name!r} is not a field of HeadcountConfig.{nearest(name, known)}")


def check_labels(id2label: Any, num_labels: Any) -> None:
    """Before transformers makes as many names as it is told to."""
    if num_labels is not None and not (is_whole_number(num_labels) and 1 <= num_labels <= MOST_HEADS):
        raise ValueError(
            f"num_labels={num_labels!r} is not allowed; expected a whole number from 1 to {MOST_HEADS:,}."
        )
    if id2label is None:
        return
    numbers = [str(number) for number in id2label] if isinstance(id2label, dict) else []
    whole = len(numbers) <= MOST_HEADS and sorted(numbers) == sorted(map(str, range(len(numbers))))
    if not numbers or not whole or not all(isinstance(name, str) for name in id2label.values()):
        raise ValueError(
            f"id2label={id2label!r} is not allowed; expected the names of the labels by number, {{0: 'no', 1: 'yes'}}."
        )


class HeadcountConfig(PreTrainedConfig):
    """Everything that makes a headcount model, checked on construction.

    >>> config = HeadcountConfig(architecture="encoder", vocab_size=103, position_embedding_type="rotary")
    >>> HeadcountConfig(position_embedding_type="rotery")
    Traceback (most recent call last):
    ValueError: position_embedding_type='rotery' is not allowed; expected one of none, ... Did you mean 'rotary'?

    Fields that need a word beyond their name:

    - `num_hidden_layers`: layers of the encoder, or of the only stack; `decoder_layers` (encoder-decoder only) is
      the same number unless given.
    - `num_key_value_heads`: neighbouring heads share keys and values in so many groups of equal size; as many as heads
      unless given, so that every head has its own.
    - `query_key_init_gain`: factor on the first weights of queries and keys; below 1, heads start by looking more
      evenly.
    - `position_embedding_type` is how attention sees positions, `position_scheme` which integer id a token gets.
    - `position_overflow`: what `learned` does with an id outside of its table: `error`, or `clamp` to its ends.
    - `position_bias_scale`: factor on trained bias tables; 10 to 20 lets Adam move them at the pace of the rest.
    - `relative_bias_first_token`: `relative_bias` gives the key with id 0 a bias of its own.
    - `cross_attention_positions`: `rotate` and `bias` of the encoding act in cross-attention too, on the difference
      of decoder and encoder ids; meant for ids that are comparable, such as `coupled`.
    - `max_random_offset`: `coupled` and `abacus` add one random offset per batch, up to this, while training.
    - `digit_token_ids`, `answer_start_token_id`, `answer_order` tell `coupled` and `abacus` how to read the tokens,
      `bracket_token_ids` (opening brackets, then those that close them) tells `nested`.
    - `operand_digits`: numbers are written with exactly so many digits; `align_operands`: with as many as the longer
      one has. Zeros in front fill up; otherwise there are none. The pipeline `integer-addition` writes them so.
    - `score_jitter=r`: while training, a random factor from U(r, 1) multiplies the scores of each head; in half of the
      batches it is the same for all heads of a stack.
    - `attention_direction`: of the encoder. `attention_window=w`: self-attention sees neighbours within w tokens only.
    - `pruned_heads`: heads that are gone, by attention layer: `{"encoder.0.self": [3], "decoder.1.cross": [0, 2]}`.
    """

    model_type = "headcount"
    keys_to_ignore_at_inference = ["past_key_values"]

    architecture: str = "encoder-decoder"
    vocab_size: int = 16
    hidden_size: int = 128
    num_hidden_layers: int = 2
    decoder_layers: int | None = None
    num_attention_heads: int = 4
    num_key_value_heads: int | None = None
    feed_forward_type: str = "plain"
    intermediate_size: int = 512
    hidden_act: str = "relu"
    norm_type: str = "layer"
    norm_position: str = "pre"
    layer_norm_eps: float = 1e-5
    dropout: float = 0.0
    attention_dropout: float = 0.0
    query_key_init_gain: float = 1.0

    embedding_type: str = "table"
    ordinal_token_range: list[int] | None = None
    embedding_init_std: float = 1.0
    tie_word_embeddings: bool = False

    position_embedding_type: str = "learned"
    max_position_embeddings: int = 512
    position_overflow: str = "error"
    position_init_std: float = 1.0
    rope_theta: float = 10000.0
    relative_position_range: int = 6
    relative_bias_first_token: bool = False
    relative_attention_num_buckets: int = 32
    relative_attention_max_distance: int = 128
    position_bias_scale: float = 10.0
    fire_threshold: float = 16.0
    cross_attention_positions: bool = False

    position_scheme: str = "sequential"
    max_random_offset: int = 0
    digit_token_ids: list[int] | None = None
    bracket_token_ids: list[int] | None = None
    answer_start_token_id: int | None = None
    answer_order: str = "reversed"
    operand_digits: int | None = None
    align_operands: bool = False

    attention_normalizer: str = "softmax"
    score_jitter: float | None = None
    attention_direction: str = "bidirectional"
    attention_window: int | None = None

    pooling_type: str = "mean"
    pruned_heads: dict[str, list[int]] | None = None

    use_cache: bool = True
    pad_token_id: int | None = 0
    bos_token_id: int | None = 1
    eos_token_id: int | None = 2
    decoder_start_token_id: int | None = None
    is_encoder_decoder: bool | None = None

    def __post_init__(self, **kwargs: Any) -> None:
        reject_unknown(kwargs)
        if self.architecture == "encoder-decoder":
            if self.decoder_layers is None:
                self.decoder_layers = self.num_hidden_layers
            if self.decoder_start_token_id is None:
                self.decoder_start_token_id = self.bos_token_id
        if self.is_encoder_decoder is None:
            self.is_encoder_decoder = self.architecture == "encoder-decoder"
        if self.pruned_heads is None:
            self.pruned_heads = {}
        check_labels(self.id2label, kwargs.get("num_labels"))
        for name, value in (("dtype", self.dtype), ("torch_dtype", kwargs.get("torch_dtype"))):
            if value is not None and str(value).removeprefix("torch.") not in DTYPES:
                raise ValueError(f"{name}={value!r} is not allowed; expected one of {', '.join(DTYPES)}.")
        super().__post_init__(**kwargs)
        self.validate()
        self.pruned_heads = {name: sorted(set(heads)) for name, heads in sorted(self.pruned_heads.items()) if heads}

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **kwargs: Any) -> Any:
        # transformers sets overriding values after construction; taking them in here validates them with the rest.
        names = {field.name for field in fields(cls)} - {"dtype"}
        overrides = {name: kwargs.pop(name) for name in list(kwargs) if name in names}
        if not kwargs.get("return_unused_kwargs"):
            reject_unknown([name for name in kwargs if not name.startswith("_")])
        config_dict = {**config_dict, **overrides}
        for name in ("attn_implementation", "_attn_implementation", "experts_implementation"):
            # transformers would fetch and run what a file names here; how attention is computed is the user's choice.
            config_dict.pop(name, None)
        if not cls.__module__.startswith("transformers_modules."):
            # headcount is installed and has registered its own pipeline; the entry of a published model would make
            # transformers insist on the copy that the repository carries.
            config_dict.pop("custom_pipelines", None)
        return super().from_dict(config_dict, **kwargs)

    def get_text_config(self, decoder: bool | None = None, encoder: bool | None = None) -> "HeadcountConfig":
        """The config itself wherever both stacks are alike; transformers would copy it three times per `generate()`,
        to rename `decoder_layers` to `num_hidden_layers`.
        """
        if self.decoder_layers in (None, self.num_hidden_layers):
            return self
        return super().get_text_config(decoder=decoder, encoder=encoder)

    @property
    def head_dim(self) -> int:
        return self.hidden_size // self.num_attention_heads

    @property
    def group_size(self) -> int:
        """How many heads share their keys and values."""
        return self.num_attention_heads // (self.num_key_value_heads or self.num_attention_heads)

    @property
    def output_attentions(self) -> bool:
        # transformers forbids this together with sdpa; headcount computes the maps by eager for that call.
        return self._output_attentions

    @output_attentions.setter
    def output_attentions(self, value: bool) -> None:
        self._output_attentions = value

    def attention_layers(self) -> list[str]:
        """The names of all attention layers: `encoder.0.self`, ..., `decoder.1.self`, `decoder.1.cross`."""
        if self.architecture == "decoder":
            return [f"decoder.{i}.self" for i in range(self.num_hidden_layers)]
        names = [f"encoder.{i}.self" for i in range(self.num_hidden_layers)]
        if self.architecture == "encoder-decoder":
            assert self.decoder_layers is not None  # num_hidden_layers where it was left out
            names += [f"decoder.{i}.{kind}" for i in range(self.decoder_layers) for kind in ("self", "cross")]
        return names

    def validate(self) -> None:
        """Raises a ValueError that names the field, its value and what is allowed."""
        reject_unknown([name for name in vars(self) if not name.startswith("_")])
        for name, rule in RULES.items():
            value = getattr(self, name)
            if not rule.accepts(value):
                hint = nearest(value, rule.names) if isinstance(value, str) else ""
                raise ValueError(f"{name}={value!r} is not allowed; expected {rule.allowed}.{hint}")
        self._check_no_dead_options()
        self._check_architecture()
        self._check_size()
        self._check_positions()
        self._check_tokens()
        self._check_pruned_heads()

    def _check_no_dead_options(self) -> None:
        defaults = {field.name: field.default for field in fields(self)}
        for name, conditions in EFFECTIVE_WHEN.items():
            if getattr(self, name) == defaults[name]:
                continue
            if not any(getattr(self, owner) in values for owner, values in conditions.items()):
                wanted = " or ".join(f"{owner}={'/'.join(values)}" for owner, values in conditions.items())
                given = ", ".join(f"{owner}={getattr(self, owner)!r}" for owner in conditions)
                raise ValueError(f"{name}={getattr(self, name)!r} has no effect with {given}; it needs {wanted}.")

    def _check_architecture(self) -> None:
        if self.is_encoder_decoder != (self.architecture == "encoder-decoder"):
            raise ValueError(
                f"is_encoder_decoder={self.is_encoder_decoder} contradicts architecture={self.architecture!r}; "
                "leave it out, it follows from the architecture."
            )
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"hidden_size={self.hidden_size} is not allowed; "
                f"expected a multiple of num_attention_heads={self.num_attention_heads}."
            )
        if self.num_key_value_heads is not None and self.num_attention_heads % self.num_key_value_heads:
            raise ValueError(
                f"num_key_value_heads={self.num_key_value_heads} is not allowed; expected a number that divides "
                f"num_attention_heads={self.num_attention_heads}."
            )
        if self.problem_type not in (None, "single_label_classification") or self.num_labels < 2:
            raise ValueError(
                f"problem_type={self.problem_type!r} with num_labels={self.num_labels} is not allowed; expected "
                "classification with one of at least two labels."
            )
        if self.embedding_type == "ordinal":
            bounds = self.ordinal_token_range
            if not (isinstance(bounds, list) and len(bounds) == 2 and all(map(is_whole_number, bounds))):
                raise ValueError(
                    f"ordinal_token_range={bounds!r} is not allowed with embedding_type='ordinal'; expected "
                    "[first, end]: the token ids of the smallest number and one past the largest."
                )
            if not 0 <= bounds[0] < bounds[1] <= self.vocab_size:
                raise ValueError(
                    f"ordinal_token_range={bounds!r} is not allowed; expected 0 <= first < end <= "
                    f"vocab_size={self.vocab_size}."
                )
            if self.tie_word_embeddings:
                raise ValueError(
                    "tie_word_embeddings=True is not allowed with embedding_type='ordinal'; expected False."
                )

    def _check_size(self) -> None:
        width = self.hidden_size
        attention = 2 * width**2 + 2 * width**2 // self.group_size
        feed_forward = (3 if self.feed_forward_type == "gated" else 2) * width * self.intermediate_size
        layers = self.num_hidden_layers * (attention + feed_forward)
        layers += (self.decoder_layers or 0) * (2 * attention + feed_forward)
        tables = self.vocab_size + (self.max_position_embeddings if self.position_embedding_type == "learned" else 0)
        parameters = layers + tables * width
        if parameters > MOST_PARAMETERS:
            raise ValueError(
                f"hidden_size={width} with num_hidden_layers={self.num_hidden_layers}, intermediate_size="
                f"{self.intermediate_size} and vocab_size={self.vocab_size} makes {parameters:,} parameters; expected "
                f"at most {MOST_PARAMETERS:,}."
            )

    def _check_positions(self) -> None:
        encoding = self.position_embedding_type
        if encoding == "rotary" and self.head_dim % 2:
            raise ValueError(
                f"position_embedding_type='rotary' cannot serve heads of {self.head_dim} dimensions; expected an even "
                "hidden_size / num_attention_heads."
            )
        if encoding == "sinusoidal" and self.hidden_size % 2:
            raise ValueError(
                f"position_embedding_type='sinusoidal' cannot serve hidden_size={self.hidden_size}; expected it even."
            )
        if encoding == "alibi_directional":
            if self.architecture != "encoder" or self.attention_direction != "bidirectional":
                raise ValueError(
                    "position_embedding_type='alibi_directional' cannot serve causal attention, where its "
                    "forward-looking heads would see themselves only; expected architecture='encoder' with "
                    "attention_direction='bidirectional'."
                )
            if self.num_attention_heads % 2:
                raise ValueError(
                    f"num_attention_heads={self.num_attention_heads} is not allowed with "
                    "position_embedding_type='alibi_directional'; expected an even number."
                )
        if self.position_scheme != "sequential" and encoding == "none":
            raise ValueError(
                f"position_scheme={self.position_scheme!r} has no effect with position_embedding_type='none'; "
                "expected an encoding that looks at positions."
            )
        if self.cross_attention_positions and encoding in ("none", "sinusoidal", "learned"):
            raise ValueError(
                f"cross_attention_positions=True has no effect with position_embedding_type={encoding!r}, which acts "
                "on the embeddings only; expected one that acts inside of attention, such as rotary or relative_bias."
            )
        if self.relative_attention_max_distance <= self.relative_attention_num_buckets // 2:
            raise ValueError(
                f"relative_attention_max_distance={self.relative_attention_max_distance} is not allowed; expected "
                f"more than half of relative_attention_num_buckets={self.relative_attention_num_buckets}."
            )
        if self.position_scheme in ("coupled", "abacus") and self.digit_token_ids is None:
            raise ValueError(
                f"digit_token_ids=None is not allowed with position_scheme={self.position_scheme!r}; expected the "
                "list of the token ids of the digits."
            )
        if self.position_scheme == "nested":
            if not self.bracket_token_ids or len(self.bracket_token_ids) % 2:
                raise ValueError(
                    f"bracket_token_ids={self.bracket_token_ids} is not allowed with position_scheme='nested'; "
                    "expected the token ids of the opening brackets, then of those that close them."
                )
            if encoding not in ("relative_bias", "relative_key"):
                raise ValueError(
                    f"position_scheme='nested' cannot serve position_embedding_type={encoding!r}: its ids are far "
                    "apart; expected an encoding that clips differences, relative_bias or relative_key."
                )
        needs_marker = self.position_scheme == "coupled" and self.architecture != "encoder-decoder"
        if self.position_scheme == "coupled" and self.answer_order == "sorted" and not needs_marker:
            raise ValueError(
                "answer_order='sorted' is not allowed with position_scheme='coupled' and "
                "architecture='encoder-decoder', whose decoder does not see how many of a value there are; expected "
                "architecture='decoder'."
            )
        if needs_marker and self.answer_start_token_id is None:
            raise ValueError(
                "answer_start_token_id=None is not allowed with position_scheme='coupled' in a single stack; expected "
                "the token id that stands before the answer, such as that of '='."
            )

    def _check_tokens(self) -> None:
        singles = ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id", "answer_start_token_id")
        ids = {name: getattr(self, name) for name in singles if getattr(self, name) is not None}
        for name in ("digit_token_ids", "bracket_token_ids"):
            ids.update({f"{name}[{i}]": token for i, token in enumerate(getattr(self, name) or [])})
        for name, token in ids.items():
            if not 0 <= token < self.vocab_size:
                raise ValueError(f"{name}={token} is not allowed; expected an id below vocab_size={self.vocab_size}.")
        special = {name: token for name, token in ids.items() if name in singles}
        for name, token in special.items():
            if token in (self.digit_token_ids or []):
                raise ValueError(f"{name}={token} is not allowed; expected an id that is not in digit_token_ids.")
        if self.is_encoder_decoder:
            for name in ("pad_token_id", "decoder_start_token_id", "eos_token_id"):
                if getattr(self, name) is None:
                    raise ValueError(
                        f"{name}=None is not allowed with architecture='encoder-decoder'; expected a token id, so "
                        "that decoder inputs and generation agree."
                    )

    def _check_pruned_heads(self) -> None:
        layers = self.attention_layers()
        if not isinstance(self.pruned_heads, dict):
            raise ValueError(
                f"pruned_heads={self.pruned_heads!r} is not allowed; expected a dict such as {{{layers[0]!r}: [0]}}."
            )
        for name, heads in self.pruned_heads.items():
            if name not in layers:
                raise ValueError(
                    f"pruned_heads names {name!r}, which is not an attention layer.{nearest(name, layers)}"
                )
            if not isinstance(heads, list):
                raise ValueError(f"pruned_heads[{name!r}]={heads!r} is not allowed; expected a list of head numbers.")
            bad = [head for head in heads if not (is_whole_number(head) and 0 <= head < self.num_attention_heads)]
            if bad:
                raise ValueError(
                    f"pruned_heads[{name!r}] holds {bad[0]!r}; "
                    f"expected heads from 0 to {self.num_attention_heads - 1}."
                )


__all__ = ["HeadcountConfig"]
