"""What heads and feed-forward sublayers put out, read and mixed between rows of a batch with gradients.

The engine of interventions reads without them; training needs them on both sides of a swap.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from ....modeling.modeling_headcount import HeadcountPreTrainedModel
from ....modeling.stock.sublayers import sublayer_paths
from ...interventions.sites import Site


Outputs = dict[str, Tensor]  # attention layer -> (B, Q, heads * D), sublayer -> (B, L, E)


@dataclass(frozen=True)
class Mix:
    """For every row of the batch: the row whose output comes in the place of its own, and whether it does (B,)."""

    share: Tensor  # 1 takes the other row's output, 0 keeps its own
    rows: Tensor


@contextmanager
def read_and_mix(
    model: HeadcountPreTrainedModel, mixes: Mapping[Site, Mix], outputs: Outputs | None = None
) -> Iterator[Outputs]:
    """Within the context, sites put out what other rows did in an earlier run, `outputs`; gives back this run's.

    >>> import torch
    >>> from headcount import HeadcountConfig, HeadcountForConditionalGeneration
    >>> model = HeadcountForConditionalGeneration(HeadcountConfig(num_hidden_layers=1, num_attention_heads=2))
    >>> inputs = {"input_ids": torch.tensor([[5, 6, 2], [6, 5, 2]]), "labels": torch.tensor([[6, 5, 2], [5, 6, 2]])}
    >>> with read_and_mix(model, {}) as outputs:
    ...     plain = model(**inputs).logits
    >>> with read_and_mix(model, {Site("encoder.0.mlp"): Mix(torch.ones(2), torch.tensor([1, 0]))}, outputs):
    ...     swapped = model(**inputs).logits
    >>> torch.allclose(plain, swapped)
    False
    """
    found: Outputs = {}
    by_module: dict[str, dict[Site, Mix]] = {}
    for site, mix in mixes.items():
        by_module.setdefault(site.module, {})[site] = mix

    def change(name: str, own: Tensor, parts: int) -> Tensor:
        found[name] = own
        if name not in by_module:
            return own
        assert outputs is not None  # mixes come with the run that they take from
        states = list(own.chunk(parts, dim=-1))
        for site, mix in by_module[name].items():
            part = 0 if site.head is None else site.head.number
            other = outputs[name].chunk(parts, dim=-1)[part][mix.rows]
            share = mix.share[:, None, None]
            states[part] = (1 - share) * states[part] + share * other
        return torch.cat(states, dim=-1)

    def before(name: str, heads: int, module: nn.Module, inputs: tuple[Tensor]) -> tuple[Tensor]:
        return (change(name, inputs[0], heads),)

    def after(name: str, module: nn.Module, inputs: tuple[Tensor], output: Tensor) -> Tensor:
        return change(name, output, 1)

    with ExitStack() as stack:
        for name, attention in model.attention_modules().items():
            hook = partial(before, name, attention.num_heads)
            stack.callback(attention.out_proj.register_forward_pre_hook(hook).remove)
        for name, path in sublayer_paths(model).items():
            if name.endswith(".mlp"):
                stack.callback(model.get_submodule(path).register_forward_hook(partial(after, name)).remove)
        yield found
