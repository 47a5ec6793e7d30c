"""Attention layers that compute their attention themselves, without asking transformers' attention interface.

Their heads are gated where they lie side by side before they are mixed: at the input of the output projection, or,
where that is another module, at the layer's own output. Which place it is stands in a table by class, because it
cannot be told for certain from the outside; `tests/coverage/` tries every class of it: a head that is closed there is
a head whose values are zero.
"""

from typing import Any

import torch
from torch import Tensor, nn

from .marks import PassingHook


# The layer's own output: the first tensor of it; its first half, before the heads of a convolution; its first two.
OUTPUT, HALF, PAIR = "", "half", "pair"
AT_OUTPUT = (OUTPUT, HALF, PAIR)
TORCH = "torch"  # torch's own attention, whose projection is never called

# Output projection -> classes; a name that several files use stands with its file.
PLACES: dict[str, tuple[str, ...]] = {
    HALF: ("ConvBertSelfAttention",),
    PAIR: ("LiltSelfAttention", "LukeSelfAttention"),
    OUTPUT: (
        *("BigBirdSelfAttention", "BlipTextSelfAttention", "BrosSelfAttention", "CanineSelfAttention"),
        *("ClapAudioSelfAttention", "CvtSelfAttention", "Data2VecVisionSelfAttention", "DisentangledSelfAttention"),
        *("DonutSwinSelfAttention", "FlavaSelfAttention", "GLPNEfficientSelfAttention", "GitSelfAttention"),
        "IBertSelfAttention",
        *("LEDEncoderSelfAttention", "LSHSelfAttention", "LayoutLMv3SelfAttention", "LocalSelfAttention"),
        *("LongformerSelfAttention", "LxmertAttention", "MaskFormerSwinSelfAttention", "MegatronBertSelfAttention"),
        *("MobileViTSelfAttention", "NystromformerSelfAttention", "PerceiverSelfAttention"),
        *("PvtEfficientSelfAttention", "RemBertSelfAttention", "RoFormerSelfAttention", "SuperGlueSelfAttention"),
        *("Swin2SRSelfAttention", "Swinv2SelfAttention", "TapasSelfAttention", "TimesformerSelfAttention"),
        *("ViltSelfAttention", "VisualBertSelfAttention", "YosoSelfAttention"),
    ),
    "attention_out": ("CpmAntAttention",),
    "c_proj": ("modeling_openai.Attention", "ImageGPTAttention"),
    "dense": ("BloomAttention", "FalconAttention", "GPTNeoXJapaneseAttention"),
    "linear_out": ("FastSpeech2ConformerAttention",),
    "o": ("LongT5LocalAttention", "MPNetSelfAttention"),
    "o_proj": (
        *("BailingHybridDeltaAttention", "Glm5NextTextLinearAttention", "KimiLinearDeltaAttention"),
        "OlmoHybridGatedDeltaNet",
    ),
    "out_lin": ("MultiHeadAttention",),
    "out_proj": (
        *("AutoformerAttention", "BarkSelfAttention", "ClvpSelfAttention", "CodeGenAttention", "DetrAttention"),
        *("GPTJAttention", "GPTNeoSelfAttention", "GroundingDinoMultiheadAttention", "GroupViTAttention"),
        *("InformerProbSparseAttention", "LEDDecoderAttention", "MMGroundingDinoMultiheadAttention"),
        *(
            "Mask2FormerAttention",
            "MptAttention",
            "MvpAttention",
            "OneFormerAttention",
            "PegasusXGlobalLocalAttention",
        ),
        *("ProphetNetAttention", "ProphetNetNgramSelfAttention", "Qwen3_5GatedDeltaNet", "Qwen3_5MoeGatedDeltaNet"),
        *("Qwen4ExpTextGatedDeltaNet", "SpeechT5Attention", "TableTransformerAttention", "TrOCRAttention"),
        *("VitsAttention", "XGLMAttention", "modeling_fsmt.Attention"),
    ),
    "output_proj": (
        *("Aimv2AttentionPoolingHead", "DeformableDetrMultiscaleDeformableAttention"),
        *("GroundingDinoMultiscaleDeformableAttention", "LwDetrMultiscaleDeformableAttention"),
        *("MMGroundingDinoMultiscaleDeformableAttention", "RTDetrMultiscaleDeformableAttention"),
        "Mask2FormerPixelDecoderEncoderMultiscaleDeformableAttention",
        "OneFormerPixelDecoderEncoderMultiscaleDeformableAttention",
        *("PPDocLayoutV2MultiscaleDeformableAttention", "PPDocLayoutV4MultiscaleDeformableAttention"),
        *("RTDetrV2MultiscaleDeformableAttention", "RfDetrMultiscaleDeformableAttention"),
    ),
    "post.linear": ("Gemma4AudioAttention",),
    "post_proj": ("FunnelRelMultiheadAttention",),
    "proj": (
        *("DeepseekOcr2SamVisionAttention", "GotOcr2VisionAttention", "HieraMaskUnitAttention", "MgpstrAttention"),
        *("PPFormulaNetVisionAttention", "PvtV2SelfAttention", "SLANeXtVisionAttention", "SamHQVisionAttention"),
        *("SamVisionAttention", "SegGptAttention", "UnlimitedOcrSamVisionAttention", "VitDetAttention"),
    ),
    "projection": ("BlipAttention",),
    "projection.linear": ("LevitAttention", "LevitAttentionSubsample"),
    "to_out": ("GraniteSpeechConformerAttention", "GraniteSpeechPlusConformerAttention"),
}
_PLACE_OF = {name: place for place, names in PLACES.items() for name in names}
TOKENS_FIRST = ("modeling_fsmt.Attention",)  # states (T, B, ...) rather than (B, T, ...)


def _names(module: nn.Module) -> list[str]:
    """What a table may call the class of a module."""
    kinds = type(module).__mro__
    return [
        name for kind in kinds for name in (kind.__name__, f"{kind.__module__.rpartition('.')[2]}.{kind.__name__}")
    ]


def place_of(module: nn.Module) -> str | None:
    """Where the heads of a layer with its own code lie side by side, or None if that is not known."""
    if isinstance(module, nn.MultiheadAttention):
        return "out_proj" if hasattr(module, "kept_heads") else TORCH  # pruned, it is a layer like others
    place = next((_PLACE_OF[name] for name in _names(module) if name in _PLACE_OF), None)
    if place is None or place in AT_OUTPUT:
        return place
    parts: Any = module
    for part in place.split("."):
        parts = getattr(parts, part, None)
    return place if isinstance(parts, nn.Module) else None


def looks_like_attention(module: nn.Module) -> bool:
    """By its name, and a number of heads that it tells; attention with one head, as in image tokenizers, has none."""
    name = type(module).__name__
    counts = ("num_heads", "num_attention_heads", "n_heads", "n_head", "num_attn_heads", "nhead")
    named = "Attention" in name or "Attn" in name
    return named and any(isinstance(getattr(module, count, None), int) for count in counts) and has_weights(module)


def has_weights(module: nn.Module) -> bool:
    return next(module.parameters(), None) is not None


class PlaceGate(PassingHook):
    """Before the output projection, or after the layer if its heads lie there: `apply` gets heads (B, Q, H, D)."""

    def __init__(self, apply: Any, module: nn.Module, heads: int, place: str):
        self.apply, self.module, self.heads, self.place = apply, module, heads, place
        self.is_turned = any(name in TOKENS_FIRST for name in _names(module))

    def __call__(self, module: nn.Module, inputs: tuple, output: Any = None) -> Any:
        if self.place in AT_OUTPUT:
            return self.gated_output(output)
        return (self.gated(inputs[0]), *inputs[1:])

    def gated_output(self, output: Any) -> Any:
        if isinstance(output, Tensor):
            return self.gated(output)
        if self.place == PAIR:
            parts = (*self.gated_pair(*output[:2]), *output[2:])
        else:
            parts = (self.gated_output(output[0]), *output[1:])
        return type(output)(*parts) if hasattr(output, "_fields") else type(output)(parts)

    def gated_pair(self, first: Tensor, second: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Two parts of what heads put out: for other tokens, or beside one another for the same."""
        if second is None:
            return self.gated(first), None
        if first.shape[-1] == second.shape[-1]:
            both = self.gated(torch.cat([first, second], dim=1))
            return both[:, : first.shape[1]], both[:, first.shape[1] :]
        if not self.heads:
            return self.gated_all(first), second
        heads = [self.split(states) for states in (first, second)]
        own, others = self.apply(self.module, torch.cat(heads, dim=-1)).split([part.shape[-1] for part in heads], -1)
        return own.flatten(-2), others.flatten(-2)

    def gated(self, states: Tensor) -> Tensor:
        if self.place == HALF:
            own, others = states.chunk(2, dim=-1)
            return torch.cat([self.gated_all(own), others], dim=-1)
        if self.is_turned:
            return self.gated_all(states.transpose(0, 1)).transpose(0, 1)
        return self.gated_all(states)

    def gated_all(self, states: Tensor) -> Tensor:
        if not self.heads:  # all pruned: nothing is left to gate
            self.apply(self.module, states[..., None])
            return states
        heads = self.split(states)
        middle = heads.shape[1:-2]  # tokens, or rows and columns of an image, or nothing
        heads = heads[:, None] if not middle else heads.flatten(1, -3)
        return self.apply(self.module, heads).flatten(-2).reshape(states.shape)

    def split(self, states: Tensor) -> Tensor:
        """(..., H, D)"""
        if not isinstance(states, Tensor) or states.ndim < 2 or states.shape[-1] % self.heads:
            shape = tuple(states.shape) if isinstance(states, Tensor) else type(states).__name__
            raise ValueError(
                f"{type(self.module).__name__} has {shape} where the outputs of its {self.heads} heads were expected "
                "side by side, so they cannot be masked; expected another architecture."
            )
        return states.unflatten(-1, (self.heads, states.shape[-1] // self.heads))


class TorchGate(PassingHook):
    """After torch's own attention layer: its output once more, from heads that are gated before they are mixed.

    The layer never calls its projection, so there is nothing to hook: it is computed with an identity in its place.
    """

    def __init__(self, apply: Any):
        self.apply = apply

    def __call__(self, module: nn.MultiheadAttention, inputs: tuple, options: dict, output: tuple) -> tuple:
        if module.training and module.dropout:
            raise ValueError("torch's attention with dropout cannot be masked in training; expected model.eval().")
        names = ("query", "key", "value", "key_padding_mask", "need_weights", "attn_mask", "average_attn_weights")
        given = dict(zip(names, inputs, strict=False)) | options
        query, key, value = (given.pop(name) for name in names[:3])
        first = module.batch_first and query.ndim == 3
        if first:
            query, key, value = (states.transpose(0, 1) for states in (query, key, value))
        separate = {}
        if not module._qkv_same_embed_dim:
            separate = {f"{name}_proj_weight": getattr(module, f"{name}_proj_weight") for name in "qkv"}
        attention: Any = nn.functional.multi_head_attention_forward
        weights = (module.in_proj_weight, module.in_proj_bias, module.bias_k, module.bias_v, module.add_zero_attn)
        identity = torch.eye(module.embed_dim).to(query), torch.zeros(module.embed_dim).to(query)
        options = {**given, **separate, "need_weights": False, "use_separate_proj_weight": bool(separate)}
        heads, _ = attention(
            *(query, key, value, module.embed_dim, module.num_heads, *weights, 0.0, *identity),
            training=False,
            **options,
        )  # (Q, B, E), or (Q, E) of one example
        rows = heads.transpose(0, 1) if heads.ndim == 3 else heads[None]
        gated = self.apply(module, rows.unflatten(-1, (module.num_heads, -1))).flatten(-2)
        mixed = module.out_proj(gated)
        mixed = mixed if first else mixed.transpose(0, 1) if heads.ndim == 3 else mixed[0]
        return (mixed, *output[1:])
