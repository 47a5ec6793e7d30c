"""What `generate()` needs beyond transformers: head masks that survive beam search, ids that follow the tokens."""

from torch import Tensor
from transformers import GenerationMixin

from .heads import expand_head_mask


TOKEN_SCHEMES = ("coupled", "abacus")


class HeadcountGenerationMixin(GenerationMixin):
    def generate(self, inputs: Tensor | None = None, *args, **kwargs):
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
        batch = self._batch_size(inputs, kwargs)
        for name, num_layers in self._masks().items():
            mask = expand_head_mask(kwargs.get(name), name, num_layers, self.config.num_attention_heads, batch)
            if mask is not None:
                # Beam search repeats the rows of every tensor, so every tensor needs one row per example.
                kwargs[name] = mask.expand(batch, -1, -1)
        return super().generate(inputs, *args, **kwargs)

    def prepare_inputs_for_generation(self, input_ids: Tensor, **kwargs):
        model_inputs = super().prepare_inputs_for_generation(input_ids, **kwargs)
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

    @staticmethod
    def create_masks_for_generate(attention_mask: Tensor | None = None, **kwargs) -> Tensor | None:
        """With a static cache transformers would build a 4D mask here; the stack builds its own from the 2D one."""
        return attention_mask

    def _batch_size(self, inputs: Tensor | None, kwargs: dict) -> int:
        for value in (inputs, kwargs.get("input_ids"), kwargs.get("inputs_embeds")):
            if value is not None:
                return value.shape[0]
        encoder_outputs = kwargs.get("encoder_outputs")
        return 1 if encoder_outputs is None else encoder_outputs[0].shape[0]
