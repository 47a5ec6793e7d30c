"""What `generate()` needs beyond transformers: head masks that survive beam search, ids that follow the tokens."""

from typing import Any

import torch
from torch import Tensor, nn
from transformers import Cache, GenerationConfig, GenerationMixin

from .heads import expand_head_mask
from .position_schemes import TOKEN_SCHEMES


# Options of generation that these models have no way to follow, and why.
NOT_SUPPORTED = {
    "prefill_chunk_size": "position ids are given for whole prompts",
    "assistant_early_exit": "every layer of the config is run",
}


class HeadcountGenerationMixin(GenerationMixin):
    def generate(
        self,
        inputs: Tensor | None = None,
        generation_config: GenerationConfig | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """transformers' `generate`, which also takes `head_mask` and, with an encoder, `decoder_head_mask` and
        `cross_attn_head_mask`, in the shapes that `forward` takes.
        """
        if kwargs.get("encoder_outputs") is not None and kwargs.get("head_mask") is not None:
            raise ValueError("head_mask has no effect on encoder_outputs that are computed already; expected None.")
        own_ids = "decoder_position_ids" if self.config.is_encoder_decoder else "position_ids"
        if self.config.position_scheme in TOKEN_SCHEMES and kwargs.get(own_ids) is not None:
            raise ValueError(
                f"{own_ids} cannot be given to generate() with position_scheme={self.config.position_scheme!r}, which "
                "makes them from the tokens; expected none."
            )
        self._refuse_what_generate_cannot_do(inputs, generation_config or self.generation_config, kwargs)
        if self.config.is_encoder_decoder:
            self._go_on_after_the_cache(kwargs)
        batch = self._batch_size(inputs, kwargs)
        if kwargs.get(own_ids) is not None:
            kwargs[own_ids] = kwargs[own_ids].expand(batch, -1)
        for name, num_layers in self._masks().items():
            if kwargs.get(name) is not None:
                mask = expand_head_mask(kwargs[name], name, num_layers, self.config.num_attention_heads, batch)
                # Beam search repeats the rows of every tensor, so every tensor needs one row per example.
                kwargs[name] = mask.expand(batch, -1, -1)
        return super().generate(inputs, generation_config, *args, **kwargs)

    def _go_on_after_the_cache(self, kwargs: dict) -> None:
        """transformers leaves out the tokens that a cache holds already if a mask covers the prompt, and makes none
        for a decoder that reads an encoder: they would be read twice, in silence.
        """
        cache, prompt = kwargs.get("past_key_values"), kwargs.get("decoder_input_ids")
        known = 0 if cache is None else int(cache.get_seq_length())
        if not known or kwargs.get("decoder_attention_mask") is not None:
            return
        if prompt is None or prompt.shape[1] <= known:
            given = "is missing" if prompt is None else f"has {prompt.shape[1]}"
            raise ValueError(
                f"past_key_values holds {known} tokens and decoder_input_ids {given}; expected all tokens so far, "
                "those in the cache and at least one more."
            )
        kwargs["decoder_attention_mask"] = torch.ones_like(prompt)

    def _refuse_what_generate_cannot_do(
        self, inputs: Tensor | None, generation_config: GenerationConfig | None, kwargs: dict
    ) -> None:
        config, scheme = self.config, self.config.position_scheme
        masks = [name for name in self._masks() if kwargs.get(name) is not None]
        if kwargs.get("assistant_model") is not None and (masks or scheme in TOKEN_SCHEMES):
            what = masks[0] if masks else f"position_scheme={scheme!r}"
            raise ValueError(f"assistant_model cannot be combined with {what}; expected generation without it.")
        for name, reason in NOT_SUPPORTED.items():
            if kwargs.get(name, getattr(generation_config, name, None)) is not None:
                raise ValueError(f"{name} is not supported: {reason}.")
        if scheme in TOKEN_SCHEMES and kwargs.get("inputs_embeds") is not None and not config.is_encoder_decoder:
            raise ValueError(f"inputs_embeds cannot be given with position_scheme={scheme!r}, which reads the tokens.")
        prompt = inputs if inputs is not None else kwargs.get("input_ids")
        grows = scheme == "coupled" and config.answer_order == "reversed" and not config.is_encoder_decoder
        if grows and prompt is not None and not bool((prompt == config.answer_start_token_id).any(-1).all()):
            raise ValueError(
                f"a prompt has no token {config.answer_start_token_id} (answer_start_token_id), after which the "
                "answer starts; position_scheme='coupled' cannot place the digits of numbers that still grow."
            )

    def prepare_inputs_for_generation(
        self, input_ids: Tensor, inputs_embeds: Tensor | None = None, **kwargs: Any
    ) -> dict:
        model_inputs = super().prepare_inputs_for_generation(input_ids, inputs_embeds=inputs_embeds, **kwargs)
        own_ids = "decoder_position_ids" if self.config.is_encoder_decoder else "position_ids"
        # transformers hands on the ids of the newest token only; relative encodings compare it with all before it.
        if self.config.position_scheme in TOKEN_SCHEMES:
            model_inputs[own_ids] = self.make_position_ids(input_ids, stack="decoder")
        elif kwargs.get(own_ids) is not None:
            model_inputs[own_ids] = kwargs[own_ids]
        if model_inputs.get("encoder_outputs") is not None:
            for done in ("head_mask", "position_ids"):  # they did their work in the encoder
                model_inputs.pop(done, None)
        return model_inputs

    def _prepare_position_ids_for_generation(self, inputs_tensor: Tensor, model_kwargs: dict) -> None:
        """None: the stack makes ids from the attention mask at every step, as in a plain forward. transformers would
        count on from the last id of the prompt, which is wrong where the prompt ends with padding.
        """

    def _get_stopping_criteria(self, *args: Any, **kwargs: Any) -> Any:
        """transformers warns beyond `max_position_embeddings` tokens, which only a table or random ids have a use for,
        and which ids that count digits reach much later.
        """
        criteria, config = super()._get_stopping_criteria(*args, **kwargs), self.config
        ends = config.position_embedding_type == "learned" or config.position_scheme == "randomized"
        for criterion in criteria:
            if hasattr(criterion, "max_position_embeddings") and (not ends or config.position_scheme in TOKEN_SCHEMES):
                criterion.max_position_embeddings = None
        return criteria

    @staticmethod
    def create_masks_for_generate(
        attention_mask: Tensor | None = None, past_key_values: Cache | None = None, **kwargs: Any
    ) -> Tensor | None:
        """With a static cache transformers would build a 4D mask here; the stack builds its own from the 2D one.

        It is as long as the cache at once: a mask that grows would be another shape, and compiled anew, at every step.
        """
        if attention_mask is None or past_key_values is None or attention_mask.ndim != 2:
            return attention_mask
        slots = past_key_values.get_mask_sizes(1, 0)[0]
        return nn.functional.pad(attention_mask, (0, max(0, slots - attention_mask.shape[1])), value=1)

    def _batch_size(self, inputs: Tensor | None, kwargs: dict) -> int:
        for value in (inputs, kwargs.get("input_ids"), kwargs.get("inputs_embeds")):
            if value is not None:
                return value.shape[0]
        encoder_outputs = kwargs.get("encoder_outputs")
        return 1 if encoder_outputs is None else encoder_outputs[0].shape[0]
