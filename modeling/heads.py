"""Heads by name: `encoder.0.self.3` is head 3 of the self-attention of encoder layer 0.

Names and numbers are those of the unpruned model and never change. A head mask is a float gate per head: 1 keeps the
head, 0 removes it, anything between weakens it; gradients flow into it. Anything else is an error, for it is nearly
always a mistake; who means it asks for it with `headcount.mask_heads(model, gates, allow_any_gate=True)`.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import torch
from torch import Tensor, nn

from ..configuration.configuration_headcount import HeadcountConfig
from ..configuration.rules import nearest
from .attention import HeadcountAttention


class Head(str):
    """The name of a head, `decoder.1.cross.0`, which also knows its parts.

    >>> Head("decoder.1.cross.0").kind
    'cross'
    """

    __slots__ = ()

    @property
    def stack(self) -> str:
        return self.split(".")[0]

    @property
    def layer(self) -> int:
        return int(self.split(".")[1])

    @property
    def kind(self) -> str:
        return self.split(".")[2]

    @property
    def number(self) -> int:
        return int(self.split(".")[3])

    @property
    def attention(self) -> str:
        """The name of its attention layer."""
        return self.rpartition(".")[0]


HeadName = str | tuple[int, int]  # "decoder.1.cross.0", or (layer, head) where that says enough


def pick_heads(heads: Iterable[HeadName], known: Sequence[Head], model: str) -> list[Head]:
    """The heads that are meant, by name or as `(layer, head)`; what is not one of the known is an error.

    >>> pick_heads([(0, 1)], [Head("encoder.0.self.0"), Head("encoder.0.self.1")], "BertModel")
    ['encoder.0.self.1']
    """
    if isinstance(heads, str):
        raise TypeError(f"heads is the string {heads!r}, expected a list of head names such as [{heads!r}].")
    kinds = list(dict.fromkeys((head.stack, head.kind) for head in known))
    found = []
    for head in heads:
        if isinstance(head, tuple):
            if len(head) != 2 or len(kinds) != 1:
                several = " and ".join(f"{stack}.N.{kind}" for stack, kind in kinds)
                raise ValueError(
                    f"{head!r} does not say which head of this {model} is meant, which has {several}; expected a name "
                    f"such as {known[0]!r}."
                )
            name = f"{kinds[0][0]}.{head[0]}.{kinds[0][1]}.{head[1]}"
        else:
            name = head
        if name not in known:
            span = f"names from {known[0]!r} to {known[-1]!r}" if known else "none, since it has no heads left"
            raise ValueError(f"{head!r} is not a head of this {model}; expected {span}.{nearest(name, known)}")
        found.append(Head(name))
    return found


def check_gates(gates: Tensor, name: str, allow_any: bool = False) -> None:
    """Raises unless all gates are from 0 to 1, or with `allow_any`, finite.

    A compiled graph, or one that is run for many gates at once (`torch.vmap`), cannot look at values: nothing is
    checked there.
    """
    if torch.compiler.is_compiling() or gates.is_meta or not gates.numel():
        return
    if torch._C._functorch.is_batchedtensor(gates):
        return
    with torch.no_grad():
        low, high = torch.aminmax(gates)  # both NaN if one is
    least, most = low.item(), high.item()
    if least >= 0 and most <= 1:
        return
    expected = "expected numbers from 0 (removes a head) to 1 (keeps it)"
    if not (math.isfinite(least) and math.isfinite(most)):
        raise ValueError(f"{name} has the gate {most if math.isfinite(least) else least}; {expected}.")
    if not allow_any:
        wrong = least if least < 0 else most
        raise ValueError(
            f"{name} has the gate {wrong:g}; {expected}, or headcount.mask_heads(..., allow_any_gate=True)."
        )


def expand_head_mask(mask: Tensor, name: str, num_layers: int, num_heads: int, batch: int) -> Tensor:
    """(heads,), (layers, heads) or (batch, layers, heads) -> (batch or 1, layers, heads); any other shape raises.

    So does a gate outside of 0 to 1.
    """
    if not isinstance(mask, Tensor):
        raise TypeError(f"{name} is a {type(mask).__name__}, expected a torch.Tensor of shape ({num_heads},).")
    check_gates(mask, name)
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
    device: torch.device
    modules: Callable[[], Iterator[nn.Module]]

    def attention_modules(self) -> dict[str, HeadcountAttention]:
        """Name -> module, for example `decoder.1.cross`; in the order of computation."""
        found = {module.name: module for module in self.modules() if isinstance(module, HeadcountAttention)}
        return {name: found[name] for name in self.config.attention_layers() if name in found}

    def list_heads(self) -> list[Head]:
        """The names of all heads that are there; pruned ones are not.

        >>> from headcount import HeadcountConfig, HeadcountModel
        >>> model = HeadcountModel(HeadcountConfig(num_hidden_layers=2, num_attention_heads=4))
        >>> model.list_heads()
        ['encoder.0.self.0', 'encoder.0.self.1', ..., 'decoder.1.cross.3']
        """
        return [Head(f"{name}.{head}") for name, module in self.attention_modules().items() for head in module.heads]

    def head_mask_for(self, heads: Iterable[HeadName]) -> dict[str, Tensor]:
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
        for head in self._ever(heads):
            argument, layer, number = self.mask_entry(head)
            masks[argument][layer, number] = 0.0
        return {argument: mask.to(self.device) for argument, mask in masks.items()}

    def mask_entry(self, head: str) -> tuple[str, int, int]:
        """Where the gate of a head is: mask argument, layer, number.

        >>> from headcount import HeadcountConfig, HeadcountModel
        >>> HeadcountModel(HeadcountConfig()).mask_entry("decoder.1.cross.0")
        ('cross_attn_head_mask', 1, 0)
        """
        head = Head(head)
        return self._mask_argument(head.stack, head.kind), head.layer, head.number

    def prune_heads(self, heads: Iterable[HeadName]) -> None:
        """Removes the parameters of these heads for good and notes them in `config.pruned_heads`.

        The logits are those of the model with the heads masked; heads that are gone already stay gone. An optimizer
        made before holds the old parameters: make a new one.
        """
        modules = self.attention_modules()
        groups: dict[str, list[int]] = {}
        for head in self._ever(heads):
            groups.setdefault(head.attention, []).append(head.number)
        gone = dict(self.config.pruned_heads or {})
        with torch.no_grad():
            for name, numbers in groups.items():
                modules[name].prune(numbers)
                gone[name] = sorted({*gone.get(name, []), *numbers})
        self.config.pruned_heads = dict(sorted(gone.items()))

    def _masks(self) -> dict[str, int]:
        """The mask arguments of this model's forward, with their number of layers."""
        config = self.config
        if not config.is_encoder_decoder:
            return {"head_mask": config.num_hidden_layers}
        layers = config.decoder_layers or config.num_hidden_layers
        return {"head_mask": config.num_hidden_layers, "decoder_head_mask": layers, "cross_attn_head_mask": layers}

    def _mask_argument(self, stack: str, kind: str) -> str:
        if kind == "cross":
            return "cross_attn_head_mask"
        return "decoder_head_mask" if stack == "decoder" and self.config.is_encoder_decoder else "head_mask"

    def _ever(self, heads: Iterable[HeadName]) -> list[Head]:
        """These heads of the unpruned model; a name that does not exist raises."""
        numbers = range(self.config.num_attention_heads)
        known = [Head(f"{name}.{number}") for name in self.config.attention_layers() for number in numbers]
        return pick_heads(heads, known, type(self).__name__)
