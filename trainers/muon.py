"""Muon: momentum whose update is made orthogonal (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/).

torch.optim.Muon treats one matrix at a time, in bfloat16, which CPUs are slow at. Here all matrices of one shape go
through the Newton-Schulz iteration together, in their own precision, which pays for the small models of this package.

The projections of an attention layer are several matrices side by side, one for each head. A parameter group with a
`block` has its matrices cut into pieces of that shape, and every piece is made orthogonal by itself: the update of one
head does not depend on the other heads, pruned ones included, and four heads cost a fifth of one large matrix.
"""

from typing import Any

import torch
from torch import Tensor


NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)


def orthogonalize(matrices: Tensor, steps: int) -> Tensor:
    """(N, rows, columns) -> roughly the nearest (semi-)orthogonal matrices: singular values around 1.

    One step of the iteration makes p(G) X of X, with p(G) = a + b G + c G^2 and G = X X'. All of these p(G) commute,
    so they are multiplied with each other, small as they are, and only their product meets the matrices. With sides
    of 128 and 512 that takes two thirds of the time; only where both sides are equal it takes a third more.
    """
    a, b, c = NEWTON_SCHULZ
    tall = matrices.shape[-2] > matrices.shape[-1]
    gram = matrices.mT @ matrices if tall else matrices @ matrices.mT
    size = gram.diagonal(dim1=-2, dim2=-1).sum(-1)[:, None, None].sqrt() + 1e-7
    product: Tensor | None = None
    gram = gram / size**2
    for left in reversed(range(steps)):
        polynomial = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
        polynomial.diagonal(dim1=-2, dim2=-1).add_(a)
        product = polynomial if product is None else product @ polynomial
        if left:
            gram = polynomial @ (gram @ polynomial)  # of the next X
    if product is None:
        raise ValueError(f"steps={steps} is not allowed; expected a whole number >= 1.")
    product = product / size
    return matrices @ product if tall else product @ matrices


def cut(matrices: Tensor, block: tuple[int, int]) -> Tensor:
    """(N, R, C) -> (N * R/r * C/c, r, c) for a block (r, c)."""
    rows, columns = block
    return matrices.unflatten(2, (-1, columns)).unflatten(1, (-1, rows)).transpose(2, 3).reshape(-1, rows, columns)


def join(blocks: Tensor, shape: torch.Size) -> Tensor:
    """The way back from `cut`, to matrices of this shape."""
    rows, columns = blocks.shape[1:]
    down, across = shape[0] // rows, shape[1] // columns
    return blocks.view(-1, down, across, rows, columns).transpose(2, 3).reshape(-1, *shape)


class Muon(torch.optim.Optimizer):
    """For the matrices of a model; everything else (tables, biases, norms) belongs to AdamW.

    `params` may be groups with a `block` (rows, columns) of their own; without one a matrix is treated as a whole.
    """

    def __init__(self, params: Any, lr: float, momentum: float = 0.95, steps: int = 3, weight_decay: float = 0.0):
        options = {"lr": lr, "momentum": momentum, "steps": steps, "weight_decay": weight_decay, "block": None}
        super().__init__(params, options)

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            by_shape: dict[torch.Size, list[Tensor]] = {}
            for parameter in group["params"]:
                if parameter.grad is not None:
                    by_shape.setdefault(parameter.shape, []).append(parameter)
            for shape, parameters in by_shape.items():
                self._step_together(parameters, group, shape)

    def _step_together(self, parameters: list[Tensor], group: dict, shape: torch.Size) -> None:
        for parameter in parameters:
            if not self.state[parameter]:
                self.state[parameter]["momentum"] = torch.zeros_like(parameter)
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        momentum = [self.state[parameter]["momentum"] for parameter in parameters]
        torch._foreach_lerp_(momentum, gradients, 1 - group["momentum"])
        ahead = torch._foreach_lerp(gradients, momentum, group["momentum"])  # Nesterov
        block = group.get("block")  # state that was saved before there were blocks has none
        updates = join(orthogonalize(cut(torch.stack(ahead), block or (shape[0], shape[1])), group["steps"]), shape)
        if group["weight_decay"]:
            torch._foreach_mul_(parameters, 1 - group["lr"] * group["weight_decay"])
        # Tall matrices move more. Projections are square until heads are pruned; those that are left go on as before.
        scale = 1.0 if block else max(1.0, shape[0] / shape[1]) ** 0.5
        torch._foreach_add_(parameters, list(updates.unbind(0)), alpha=-group["lr"] * scale)
