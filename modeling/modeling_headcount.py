"""The models: `HeadcountModel` and its three heads, as transformers users know them.

None of the forwards takes `**kwargs`: an argument that would have no effect is a TypeError, not a silence.
"""

import copy
import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers import initialization as init
from transformers.cache_utils import Cache
from transformers.modeling_outputs import (
    CausalLMOutputWithCrossAttentions,
    Seq2SeqLMOutput,
    Seq2SeqModelOutput,
    SequenceClassifierOutput,
)
from transformers.utils import can_return_tuple

from ..configuration.configuration_headcount import HeadcountConfig
from .generation import HeadcountGenerationMixin
from .heads import HeadsMixin
from .layers import make_dropout
from .masking import as_padding
from .pooling import POOLERS
from .position_schemes import POSITION_SCHEMES
from .remote_code import carries_code, name_code, write_code
from .stack import HeadcountStack, StackOutput


# Arguments of `save_pretrained` that are about pushing.
HUB_OPTIONS = ("repo_id", "commit_message", "commit_description", "private", "revision", "create_pr", "tags", "token")


def shift_right(labels: Tensor, decoder_start_token_id: int, pad_token_id: int) -> Tensor:
    """Decoder inputs from labels, and the only place where they are made.

    The first input is the start token, which is also what `generate()` starts from; then every input is the label
    before it. Ignored labels (-100) become padding.

        labels  1 1 8 8 eos          inputs  start 1 1 8 8
    """
    inputs = torch.full_like(labels, decoder_start_token_id)
    inputs[:, 1:] = labels[:, :-1]
    return inputs.masked_fill(inputs == -100, pad_token_id)


def mean_loss(logits: Tensor, labels: Tensor, num_items: Tensor | int | None) -> Tensor:
    """Cross-entropy per label, or per label of the whole accumulated batch if that number is given; skips -100."""
    logits, labels = logits.flatten(0, -2), labels.flatten()
    if num_items is None:
        return nn.functional.cross_entropy(logits, labels, ignore_index=-100)
    return nn.functional.cross_entropy(logits, labels, ignore_index=-100, reduction="sum") / num_items


class HeadcountPreTrainedModel(HeadsMixin, PreTrainedModel):
    """What all models share: the config, how weights start, heads by name, how a model is saved."""

    config: HeadcountConfig
    config_class = HeadcountConfig
    base_model_prefix = "model"
    supports_gradient_checkpointing = True
    accepts_loss_kwargs = True  # `num_items_in_batch`: how many labels all parts of an accumulated batch hold
    architectures_served: tuple[str, ...] = ("encoder-decoder", "decoder", "encoder")
    _no_split_modules = ["HeadcountLayer"]
    _skip_keys_device_placement = ["past_key_values"]
    _supports_sdpa = True
    _can_compile_fullgraph = True
    takes_head_masks = True  # where other models of transformers ignore them

    def __init__(self, config: HeadcountConfig, share_config: bool = False):
        config.validate()
        if config.architecture not in self.architectures_served:
            raise ValueError(
                f"{type(self).__name__} cannot serve architecture={config.architecture!r}; "
                f"expected {' or '.join(map(repr, self.architectures_served))}."
            )
        # Pruning writes into the config, and two models may be made from one; only an inner model shares its owner's.
        super().__init__(config if share_config else copy.deepcopy(config))

    def _init_weights(self, module: nn.Module) -> None:
        init_parameters = getattr(module, "init_parameters", None)
        if init_parameters is not None:
            init_parameters()
        elif isinstance(module, nn.Linear):
            init.xavier_uniform_(module.weight, gain=getattr(module, "init_gain", 1.0))
            if module.bias is not None:
                init.zeros_(module.bias)

    def gradient_checkpointing_enable(self, gradient_checkpointing_kwargs: dict | None = None, **kwargs: Any) -> None:
        if (gradient_checkpointing_kwargs or {}).get("use_reentrant"):
            raise ValueError(
                "use_reentrant=True would go backward through position biases and head masks once for every layer "
                "that shares them, which torch refuses; expected False."
            )
        super().gradient_checkpointing_enable(gradient_checkpointing_kwargs, **kwargs)

    def _resize_token_embeddings(
        self, new_num_tokens: int, pad_to_multiple_of: int | None = None, mean_resizing: bool = True
    ) -> nn.Module:
        resized = super()._resize_token_embeddings(new_num_tokens, pad_to_multiple_of, mean_resizing)
        if self.config.is_encoder_decoder:  # transformers knows of one input table; there are two
            decoder, size = self.base_model.decoder, resized.weight.shape[0]
            if self.config.tie_word_embeddings:
                decoder.embed_tokens.num_embeddings = size
            else:
                table = decoder.embed_tokens
                decoder.embed_tokens = self._get_resized_embeddings(table, size, mean_resizing=mean_resizing)
        return resized

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str | os.PathLike | None,
        *args: Any,
        output_loading_info: bool = False,
        **kwargs: Any,
    ) -> Any:
        """transformers' `from_pretrained`, which fills up weights that a file lacks with random ones, in silence.

        Here that is an error if the file was saved from this very class. A model of another class (the base model
        from a whole one, a classifier on a base model) takes what it finds, as everywhere in transformers; and who
        asks for `output_loading_info` is told by it what was missing.
        """
        model, found = super().from_pretrained(
            pretrained_model_name_or_path, *args, output_loading_info=True, **kwargs
        )
        if output_loading_info:
            return model, found
        whole = cls.__name__ in (model.config.architectures or ()) and not kwargs.get("ignore_mismatched_sizes")
        for kind, names in (("lacks", found["missing_keys"]), ("has beyond the model", found["unexpected_keys"])):
            if names and whole:
                raise ValueError(
                    f"the file of {pretrained_model_name_or_path} {kind} {sorted(names)[0]!r} and {len(names) - 1} "
                    "more; expected every weight of the model, and no other."
                )
        return model

    def save_pretrained(
        self, save_directory: str | os.PathLike, *args: Any, push_to_hub: bool = False, **kwargs: Any
    ) -> None:
        """transformers' `save_pretrained`. A model whose repository carries its own code is saved with that code."""
        hub_options = {name: kwargs.pop(name) for name in HUB_OPTIONS if name in kwargs}
        if carries_code(self.config):
            name_code(self.config)
            write_code(save_directory)
        super().save_pretrained(save_directory, *args, **kwargs)
        if push_to_hub:  # transformers would push only the files that it wrote itself
            self.push_to_hub(hub_options.pop("repo_id", Path(save_directory).name), **hub_options)

    def make_position_ids(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, stack: str | None = None
    ) -> Tensor:
        """The ids that `config.position_scheme` gives these tokens, (batch or 1, length).

        `stack` is the one that reads them, "encoder" or "decoder"; by default the first one of the model.
        """
        stack = stack or ("decoder" if self.config.architecture == "decoder" else "encoder")
        slots = torch.arange(input_ids.shape[1], device=input_ids.device)
        scheme = POSITION_SCHEMES[self.config.position_scheme]
        return scheme(slots, input_ids, attention_mask, self.config, stack, self.training)

    def _flags(self, output_attentions: bool | None, output_hidden_states: bool | None) -> dict[str, bool]:
        config = self.config
        return {
            "output_attentions": config.output_attentions if output_attentions is None else output_attentions,
            "output_hidden_states": config.output_hidden_states
            if output_hidden_states is None
            else output_hidden_states,
        }


class HeadcountModel(HeadcountPreTrainedModel):
    """The stacks without a head: an encoder, a decoder, or both, as `config.architecture` says.

    Gives `Seq2SeqModelOutput` with both stacks, `StackOutput` with one.

    >>> model = HeadcountModel(HeadcountConfig(architecture="encoder", hidden_size=16))
    >>> model(torch.tensor([[5, 6, 7]])).last_hidden_state.shape
    torch.Size([1, 3, 16])
    """

    _tied_weights_keys: dict[str, str] | None = {"decoder.embed_tokens.weight": "encoder.embed_tokens.weight"}

    def __init__(self, config: HeadcountConfig, share_config: bool = False):
        super().__init__(config, share_config)
        if not config.is_encoder_decoder:
            self._tied_weights_keys = None
        if config.architecture != "decoder":
            self.encoder = HeadcountStack(self.config, "encoder")
        if config.architecture != "encoder":
            self.decoder = HeadcountStack(self.config, "decoder")
        self.post_init()

    @property
    def first_stack(self) -> HeadcountStack:
        return self.decoder if self.config.architecture == "decoder" else self.encoder

    def get_input_embeddings(self) -> nn.Module:
        return self.first_stack.embed_tokens

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.first_stack.embed_tokens = value

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        head_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        decoder_position_ids: Tensor | None = None,
        decoder_head_mask: Tensor | None = None,
        cross_attn_head_mask: Tensor | None = None,
        decoder_inputs_embeds: Tensor | None = None,
        encoder_outputs: StackOutput | tuple | None = None,
        past_key_values: Cache | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
    ) -> Seq2SeqModelOutput | StackOutput:
        flags = self._flags(output_attentions, output_hidden_states)
        if use_cache is None:
            use_cache = self.config.use_cache and not self.training
        use_cache = use_cache and self.config.architecture != "encoder"
        own: dict[str, Any] = {
            "input_ids": input_ids,
            "attention_mask": attention_mask,
            "position_ids": position_ids,
            "head_mask": head_mask,
            "inputs_embeds": inputs_embeds,
        }
        if not self.config.is_encoder_decoder:
            other = {
                "decoder_input_ids": decoder_input_ids,
                "decoder_attention_mask": decoder_attention_mask,
                "decoder_position_ids": decoder_position_ids,
                "decoder_head_mask": decoder_head_mask,
                "cross_attn_head_mask": cross_attn_head_mask,
                "decoder_inputs_embeds": decoder_inputs_embeds,
                "encoder_outputs": encoder_outputs,
            }
            given = [name for name, value in other.items() if value is not None]
            if given:
                raise ValueError(
                    f"{given[0]} has no effect with architecture={self.config.architecture!r}; expected None."
                )
            own |= {"past_key_values": past_key_values, "use_cache": use_cache}
            return self.first_stack(**own, **flags, return_dict=True)

        if encoder_outputs is None:
            encoder_outputs = self.encoder(**own, **flags, return_dict=True)
        elif head_mask is not None or position_ids is not None:
            name = "position_ids" if head_mask is None else "head_mask"
            raise ValueError(f"{name} has no effect on encoder_outputs that are computed already; expected None.")
        decoded = self.decoder(
            input_ids=decoder_input_ids,
            attention_mask=decoder_attention_mask,
            position_ids=decoder_position_ids,
            inputs_embeds=decoder_inputs_embeds,
            head_mask=decoder_head_mask,
            cross_attn_head_mask=cross_attn_head_mask,
            encoder_hidden_states=encoder_outputs[0],
            encoder_attention_mask=attention_mask,
            encoder_position_ids=getattr(encoder_outputs, "position_ids", None),
            past_key_values=past_key_values,
            use_cache=use_cache,
            **flags,
            return_dict=True,
        )
        return Seq2SeqModelOutput(
            last_hidden_state=decoded.last_hidden_state,
            past_key_values=decoded.past_key_values,
            decoder_hidden_states=decoded.hidden_states,
            decoder_attentions=decoded.attentions,
            cross_attentions=decoded.cross_attentions,
            encoder_last_hidden_state=encoder_outputs[0],
            encoder_hidden_states=getattr(encoder_outputs, "hidden_states", None),
            encoder_attentions=getattr(encoder_outputs, "attentions", None),
        )


class LanguageModelHead(HeadcountPreTrainedModel, HeadcountGenerationMixin):
    """What both generating models share: the stacks, and an output projection that may be tied to the embeddings."""

    def __init__(self, config: HeadcountConfig):
        super().__init__(config)
        self.model = HeadcountModel(self.config, share_config=True)
        self.lm_head: nn.Module = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    def get_output_embeddings(self) -> nn.Module:
        return self.lm_head

    def set_output_embeddings(self, value: nn.Module) -> None:
        self.lm_head = value

    def read_out(self, hidden_states: Tensor) -> Tensor:
        """Scores of the next token (B, L, vocabulary) from the last states (B, L, E)."""
        if self.config.tie_word_embeddings:
            # Embeddings start at unit size per feature; without this, tied logits would start sqrt(E) too large.
            hidden_states = hidden_states * self.config.hidden_size**-0.5
        return self.lm_head(hidden_states)


class HeadcountForConditionalGeneration(LanguageModelHead):
    """Encoder-decoder that writes an answer: addition as sequence to sequence.

    >>> model = HeadcountForConditionalGeneration(HeadcountConfig())
    >>> model(torch.tensor([[5, 6, 2]]), labels=torch.tensor([[6, 5, 2]])).logits.shape
    torch.Size([1, 3, 16])
    """

    architectures_served = ("encoder-decoder",)
    _tied_weights_keys = {"lm_head.weight": "model.encoder.embed_tokens.weight"}

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        head_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        decoder_position_ids: Tensor | None = None,
        decoder_head_mask: Tensor | None = None,
        cross_attn_head_mask: Tensor | None = None,
        decoder_inputs_embeds: Tensor | None = None,
        encoder_outputs: StackOutput | tuple | None = None,
        past_key_values: Cache | None = None,
        labels: Tensor | None = None,
        num_items_in_batch: Tensor | int | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
    ) -> Seq2SeqLMOutput:
        """`labels` (batch, length), -100 where nothing is to be learned; decoder inputs are made from them."""
        if labels is not None and decoder_input_ids is None and decoder_inputs_embeds is None:
            decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
        outputs = self.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            position_ids=position_ids,
            head_mask=head_mask,
            inputs_embeds=inputs_embeds,
            decoder_input_ids=decoder_input_ids,
            decoder_attention_mask=decoder_attention_mask,
            decoder_position_ids=decoder_position_ids,
            decoder_head_mask=decoder_head_mask,
            cross_attn_head_mask=cross_attn_head_mask,
            decoder_inputs_embeds=decoder_inputs_embeds,
            encoder_outputs=encoder_outputs,
            past_key_values=past_key_values,
            use_cache=False if labels is not None else use_cache,
            output_attentions=output_attentions,
            output_hidden_states=output_hidden_states,
            return_dict=True,
        )
        logits = self.read_out(outputs.last_hidden_state)
        loss = None if labels is None else mean_loss(logits, labels, num_items_in_batch)
        rest = {name: value for name, value in outputs.items() if name != "last_hidden_state"}
        return Seq2SeqLMOutput(loss=loss, logits=logits, **rest)

    def prepare_decoder_input_ids_from_labels(self, labels: Tensor) -> Tensor:
        start, pad = self.config.decoder_start_token_id, self.config.pad_token_id
        assert start is not None and pad is not None  # the config insists on both
        return shift_right(labels, start, pad)


class HeadcountForCausalLM(LanguageModelHead):
    """Decoder only: continues its prompt.

    >>> model = HeadcountForCausalLM(HeadcountConfig(architecture="decoder"))
    >>> model.generate(torch.tensor([[1, 5]]), max_new_tokens=2, min_new_tokens=2).shape
    torch.Size([1, 4])
    """

    architectures_served = ("decoder",)
    _tied_weights_keys = {"lm_head.weight": "model.decoder.embed_tokens.weight"}

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        head_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        past_key_values: Cache | None = None,
        labels: Tensor | None = None,
        num_items_in_batch: Tensor | int | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
    ) -> CausalLMOutputWithCrossAttentions:
        """`labels` (batch, length) are the tokens themselves, -100 where nothing is to be learned; shifted in here."""
        outputs = self.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            position_ids=position_ids,
            head_mask=head_mask,
            inputs_embeds=inputs_embeds,
            past_key_values=past_key_values,
            use_cache=False if labels is not None else use_cache,
            output_attentions=output_attentions,
            output_hidden_states=output_hidden_states,
            return_dict=True,
        )
        logits = self.read_out(outputs.last_hidden_state)
        loss = None if labels is None else mean_loss(logits[:, :-1], labels[:, 1:], num_items_in_batch)
        return CausalLMOutputWithCrossAttentions(
            loss=loss,
            logits=logits,
            past_key_values=outputs.past_key_values,
            hidden_states=outputs.hidden_states,
            attentions=outputs.attentions,
        )


class HeadcountForSequenceClassification(HeadcountPreTrainedModel):
    """Encoder, pooling and a linear classifier: "is this sequence sorted?".

    >>> model = HeadcountForSequenceClassification(HeadcountConfig(architecture="encoder", pooling_type="max"))
    >>> model(torch.tensor([[5, 6, 7]])).logits.shape
    torch.Size([1, 2])
    """

    architectures_served = ("encoder",)

    def __init__(self, config: HeadcountConfig):
        super().__init__(config)
        self.model = HeadcountModel(self.config, share_config=True)
        self.pooler = POOLERS[config.pooling_type](self.config)
        self.dropout = make_dropout(config)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        head_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        num_items_in_batch: Tensor | int | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
    ) -> SequenceClassifierOutput:
        outputs = self.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            position_ids=position_ids,
            head_mask=head_mask,
            inputs_embeds=inputs_embeds,
            output_attentions=output_attentions,
            output_hidden_states=output_hidden_states,
            return_dict=True,
        )
        logits = self.read_out(outputs.last_hidden_state, attention_mask)
        loss = None if labels is None else mean_loss(logits, labels, num_items_in_batch)
        return SequenceClassifierOutput(
            loss=loss, logits=logits, hidden_states=outputs.hidden_states, attentions=outputs.attentions
        )

    def read_out(self, hidden_states: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Scores of the classes (B, labels) from the last states (B, L, E)."""
        return self.classifier(self.dropout(self.pooler(hidden_states, as_padding(attention_mask))))


__all__ = [
    "HeadcountForCausalLM",
    "HeadcountForConditionalGeneration",
    "HeadcountForSequenceClassification",
    "HeadcountModel",
    "HeadcountPreTrainedModel",
]
