"""Heads by name: `encoder.0.self.3` is head 3 of the self-attention of encoder layer 0.

Names and numbers are those of the unpruned model and never change. A head mask is a float gate per head: 1 keeps the
head, 0 removes it, anything between weakens it; gradients flow into it.
"""

import torch
from torch import Tensor

from ..configuration.configuration_headcount import HeadcountConfig
from ..configuration.rules import nearest
from .attention import HeadcountAttention


def expand_head_mask(mask: Tensor | None, name: str, num_layers: int, num_heads: int, batch: int) -> Tensor | None:
    """(heads,), (layers, heads) or (batch, layers, heads) -> (batch or 1, layers, heads); any other shape raises."""
    if mask is None:
        return None
    if not isinstance(mask, Tensor):
        raise TypeError(f"{name} is a {type(mask).__name__}, expected a torch.Tensor of shape ({num_heads},).")
    shape = tuple(mask.shape)
    if shape == (num_heads,):
        return mask.expand(num_layers, num_heads)[None]
    if shape == (num_layers, num_heads):
        return mask[None]
    if shape == (batch, num_layers, num_heads):
        return mask
    raise ValueError(
        f"{name} has shape {shape}, expected ({num_heads},), ({num_layers}, {num_heads}) or "
        f"({batch}, {num_layers}, {num_heads}): (heads,), (layers, heads) or (batch, layers, heads)."
    )


class HeadsMixin:
    """`list_heads`, `head_mask_for` and `prune_heads` of every headcount model."""

    config: HeadcountConfig

    def attention_modules(self) -> dict[str, HeadcountAttention]:
        """Name -> module, for example `decoder.1.cross`; in the order of computation."""
        found = {module.name: module for module in self.modules() if isinstance(module, HeadcountAttention)}
        return {name: found[name] for name in self.config.attention_layers() if name in found}

    def list_heads(self) -> list[str]:
        """The names of all heads that are there; pruned ones are not.

        >>> from headcount import HeadcountConfig, HeadcountModel
        >>> model = HeadcountModel(HeadcountConfig(num_hidden_layers=2, num_attention_heads=4))
        >>> model.list_heads()
        ['encoder.0.self.0', 'encoder.0.self.1', ..., 'decoder.1.cross.3']
        """
        return [f"{name}.{head}" for name, module in self.attention_modules().items() for head in module.heads]

    def head_mask_for(self, heads: list[str]) -> dict[str, Tensor]:
        """Masks that switch off just these heads, as keyword arguments for `forward` and `generate`.

        >>> from headcount import HeadcountConfig, HeadcountModel
        >>> model = HeadcountModel(HeadcountConfig(num_hidden_layers=2, num_attention_heads=4))
        >>> masks = model.head_mask_for(["encoder.0.self.3"])
        >>> masks["head_mask"]
        tensor([[1., 1., 1., 0.],
                [1., 1., 1., 1.]])
        >>> outputs = model(torch.tensor([[5, 6]]), decoder_input_ids=torch.tensor([[1]]), **masks)
        """
        masks = {
            argument: torch.ones(size, self.config.num_attention_heads) for argument, size in self._masks().items()
        }
        self._group(heads)  # raises for a name that does not exist
        for head in heads:
            argument, layer, number = self.mask_entry(head)
            masks[argument][layer, number] = 0.0
        return {argument: mask.to(self.device) for argument, mask in masks.items()}

    def mask_entry(self, head: str) -> tuple[str, int, int]:
        """Where the gate of a head is: mask argument, layer, number.

        >>> from headcount import HeadcountConfig, HeadcountModel
        >>> HeadcountModel(HeadcountConfig()).mask_entry("decoder.1.cross.0")
        ('cross_attn_head_mask', 1, 0)
        """
        stack, layer, kind, number = head.split(".")
        return self._mask_argument(stack, kind), int(layer), int(number)

    def prune_heads(self, heads: list[str]) -> None:
        """Removes the parameters of these heads for good and notes them in `config.pruned_heads`.

        The logits are those of the model with the heads masked. An optimizer made before holds the old parameters:
        make a new one.
        """
        modules = self.attention_modules()
        with torch.no_grad():
            for name, numbers in self._group(heads).items():
                modules[name].prune(numbers)
                gone = set(self.config.pruned_heads.get(name, [])) | set(numbers)
                self.config.pruned_heads[name] = sorted(gone)
        self.config.pruned_heads = dict(sorted(self.config.pruned_heads.items()))

    def _masks(self) -> dict[str, int]:
        """The mask arguments of this model's forward, with their number of layers."""
        config = self.config
        if not config.is_encoder_decoder:
            return {"head_mask": config.num_hidden_layers}
        layers = config.decoder_layers
        return {"head_mask": config.num_hidden_layers, "decoder_head_mask": layers, "cross_attn_head_mask": layers}

    def _mask_argument(self, stack: str, kind: str) -> str:
        if kind == "cross":
            return "cross_attn_head_mask"
        return "decoder_head_mask" if stack == "decoder" and self.config.is_encoder_decoder else "head_mask"

    def _group(self, heads: list[str]) -> dict[str, list[int]]:
        """['encoder.0.self.3', ...] -> {'encoder.0.self': [3, ...]}; a name that does not exist raises."""
        if isinstance(heads, str):
            raise TypeError(f"heads is the string {heads!r}, expected a list of head names such as [{heads!r}].")
        known = [
            f"{name}.{head}"
            for name in self.config.attention_layers()
            for head in range(self.config.num_attention_heads)
        ]
        groups: dict[str, list[int]] = {}
        for head in heads:
            if head not in known:
                raise ValueError(
                    f"{head!r} is not a head of this model; expected names from {known[0]!r} to {known[-1]!r}."
                    f"{nearest(head, known)}"
                )
            name, number = head.rsplit(".", 1)
            groups.setdefault(name, []).append(int(number))
        return groups
