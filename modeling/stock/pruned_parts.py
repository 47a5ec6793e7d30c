"""What an attention layer that lost heads needs to run: blanks, its own view of the config, its part of what is given.

This file imports only torch and transformers. It travels with a model that is saved with its code; see
`pruned_model.py`.
"""

import inspect
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.pytorch_utils import Conv1D


PREFIX = "pruned_"
OF_MODELS = ("transformers.models.", "torch.nn.modules.")


def is_plain(part: Any) -> bool:
    """Whether a projection can be cut; models have linear ones of their own, those of other packages are unknown."""
    kind = type(part)
    return kind in (nn.Linear, Conv1D) or (isinstance(part, nn.Linear) and kind.__module__.startswith(OF_MODELS))


class NoHeads(nn.Module):
    """A query, key or value projection without heads: in their place it puts out blanks of one head's width.

    A layer's own code then runs as ever, and its cache keeps count of the tokens.
    """

    def __init__(self, emptied: nn.Linear | Conv1D, width: int):
        super().__init__()
        self.weight, self.bias, self.width = emptied.weight, emptied.bias, width

    def forward(self, hidden_states: Tensor) -> Tensor:
        return hidden_states.new_zeros(*hidden_states.shape[:-1], self.width)


class BiasAlone(nn.Module):
    """An output projection that no head writes to: what it puts out is its bias."""

    def __init__(self, emptied: nn.Linear | Conv1D, width: int):
        super().__init__()
        self.weight, self.bias, self.width = emptied.weight, emptied.bias, width

    def forward(self, merged: Tensor) -> Tensor:
        blank = merged.new_zeros(*merged.shape[:-1], self.width)
        return blank if self.bias is None else blank + self.bias


class LayerConfig:
    """The config as one pruned layer sees it: the model's own, but for the numbers of heads and how it attends."""

    def __init__(self, whole: Any, overrides: dict[str, int], picks: bool):
        self.__dict__.update(whole=whole, overrides=overrides, picks=picks)

    def __getattr__(self, name: str) -> Any:
        if name in ("whole", "overrides", "picks") or name.startswith("__"):  # asked for by copy and pickle
            raise AttributeError(name)
        if name in self.overrides:
            return self.overrides[name]
        value = getattr(self.whole, name)
        is_function = self.picks and name == "_attn_implementation" and value is not None
        return register(value) if is_function else value

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.whole, name, value)


def whole_config(config: Any) -> Any:
    """The model's own config, of a layer that sees it in its own way."""
    return vars(config).get("whole", config) if hasattr(config, "__dict__") else config


def register(plain: str) -> str:
    """The name of an attention function with what a pruned layer needs before it."""
    name = PREFIX + plain
    if name not in ALL_ATTENTION_FUNCTIONS:
        AttentionInterface.register(name, _attention(str(plain)))
    return name


def _attention(plain: str) -> Callable:
    def attention(
        module: Any, query: Tensor, key: Tensor, value: Tensor, *rest: Any, **options: Any
    ) -> tuple[Tensor, Tensor | None]:
        kept: Any = module.kept_heads or [0]

        def own_part(bias: Any) -> Any:
            """A bias that is made for all heads, by another layer or outside of them."""
            if isinstance(bias, Tensor) and bias.ndim == 4 and query.shape[1] < bias.shape[1] > max(kept):
                return bias[:, kept]
            return bias

        if module.key_value_of is not None:  # queries of a group were removed one by one
            key, value = key[:, module.key_value_of], value[:, module.key_value_of]
        options |= {name: own_part(options[name]) for name in ("position_bias", "attention_mask") if name in options}
        rest = (*map(own_part, rest[:1]), *rest[1:])  # the attention mask, mostly
        return _plain_function(type(module), plain)(module, query, key, value, *rest, **options)

    return attention


def _plain_function(kind: type, name: str) -> Callable:
    files = [sys.modules[parent.__module__] for parent in kind.__mro__ if parent.__module__ in sys.modules]
    if name == "eager":
        return next(own for file in files if (own := getattr(file, "eager_attention_forward", None)))
    own = next((file.ALL_ATTENTION_FUNCTIONS for file in files if hasattr(file, "ALL_ATTENTION_FUNCTIONS")), None)
    return (own or ALL_ATTENTION_FUNCTIONS)[name]


class OwnPart:
    """Before a layer: of what is given for all heads of the unpruned layer, the part of the heads that are left.

    `given` says how many dimensions such an argument has. With four, heads are the second one; with three they are the
    first, perhaps once for every example. An argument of another shape is the same for all heads and stays as it is.
    """

    def __init__(self, names: list[str], kept: list[int], heads: int, given: dict[str, int]):
        self.names, self.heads, self.given = names, heads, given
        self.kept = kept or [0]  # an empty layer runs with one blank head

    def __call__(self, module: nn.Module, inputs: tuple, options: dict) -> tuple[tuple, dict]:
        named = zip(self.names, inputs, strict=False)
        values = [self.of(value, self.given[name]) if name in self.given else value for name, value in named]
        own = {name: self.of(options[name], dims) for name, dims in self.given.items() if name in options}
        return (*values, *inputs[len(values) :]), options | own

    def of(self, value: Any, dims: int) -> Any:
        if not isinstance(value, Tensor) or value.ndim != dims:
            return value
        if dims == 4:
            return value[:, self.kept] if value.shape[1] == self.heads else value
        if value.shape[0] % self.heads:
            return value
        return value.unflatten(0, (-1, self.heads))[:, self.kept].flatten(0, 1)


def take_own_part(module: nn.Module, kept: list[int], heads: int, given: dict[str, int]) -> None:
    """One such hook, in the place of that of an earlier removal."""
    for key in [key for key, hook in module._forward_pre_hooks.items() if is_own_part(hook)]:
        del module._forward_pre_hooks[key], module._forward_pre_hooks_with_kwargs[key]
    if given:
        hook = OwnPart([*inspect.signature(module.forward).parameters], kept, heads, given)
        module.register_forward_pre_hook(hook, with_kwargs=True)


def is_own_part(hook: Any) -> bool:
    """By its name: the code that a model carries has a class of its own."""
    return type(hook).__name__ == OwnPart.__name__


class FewerHeads(nn.MultiheadAttention):
    """What torch's own attention becomes: torch takes heads and their size for a division of the states' size."""

    kept_heads: list[int]
    pruned_heads: list[int]

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        is_batched, tokens_first = query.ndim == 3, query.ndim == 3 and not self.batch_first
        states = [x.transpose(0, 1) if tokens_first else x if is_batched else x[None] for x in (query, key, value)]
        matrices = self.in_proj_weight.chunk(3) if self._qkv_same_embed_dim else self._separate()
        biases = self.in_proj_bias.chunk(3) if self.in_proj_bias is not None else (None,) * 3
        parts = [nn.functional.linear(x, w, b) for x, w, b in zip(states, matrices, biases, strict=True)]
        shape = (len(self.kept_heads), self.head_dim)
        queries, keys, values = (part.unflatten(-1, shape).transpose(1, 2) for part in parts)  # (B, H, T, D)
        scores = queries @ keys.transpose(-1, -2) * self.head_dim**-0.5
        if attn_mask is not None:  # (Q, K), or that for every example and head
            ever = len(self.kept_heads) + len(self.pruned_heads)
            mask = attn_mask if attn_mask.ndim == 2 else attn_mask.unflatten(0, (-1, ever))[:, self.kept_heads]
            scores = _hidden(scores, mask)
        if key_padding_mask is not None:
            scores = _hidden(scores, key_padding_mask.reshape(len(scores), 1, 1, -1))
        weights = scores.softmax(-1)
        attended = nn.functional.dropout(weights, self.dropout, self.training) @ values
        output = self.out_proj(attended.transpose(1, 2).flatten(-2))
        shown = weights.sum(1) / max(1, shape[0]) if average_attn_weights else weights
        output = output.transpose(0, 1) if tokens_first else output if is_batched else output[0]
        return output, (shown if is_batched else shown[0]) if need_weights else None

    def _separate(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.q_proj_weight, self.k_proj_weight, self.v_proj_weight


def _hidden(scores: Tensor, mask: Tensor) -> Tensor:
    """torch hides what is True, or adds numbers."""
    return scores.masked_fill(mask, float("-inf")) if mask.dtype == torch.bool else scores + mask
