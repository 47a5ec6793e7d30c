"""Muon: momentum whose update is made orthogonal (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/).

torch.optim.Muon treats one matrix at a time, in bfloat16, which CPUs are slow at. Here all matrices of one shape go
through the Newton-Schulz iteration together, in their own precision, which pays for the small models of this package.
"""

import torch
from torch import Tensor


NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)


def orthogonalize(matrices: Tensor, steps: int) -> Tensor:
    """(N, rows, columns) -> roughly the nearest (semi-)orthogonal matrices: singular values around 1."""
    a, b, c = NEWTON_SCHULZ
    tall = matrices.shape[-2] > matrices.shape[-1]
    update = matrices.mT if tall else matrices
    update = update / (update.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        gram = update @ update.mT
        polynomial = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
        update = torch.baddbmm(update, polynomial, update, beta=a)
    return update.mT if tall else update


class Muon(torch.optim.Optimizer):
    """For the matrices of a model; everything else (tables, biases, norms) belongs to AdamW."""

    def __init__(self, params, lr: float, momentum: float = 0.95, steps: int = 3, weight_decay: float = 0.0):
        super().__init__(params, {"lr": lr, "momentum": momentum, "steps": steps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None) -> None:
        for group in self.param_groups:
            by_shape: dict[torch.Size, list[Tensor]] = {}
            for parameter in group["params"]:
                if parameter.grad is not None:
                    by_shape.setdefault(parameter.shape, []).append(parameter)
            for shape, parameters in by_shape.items():
                self._step_together(parameters, group, scale=max(1.0, shape[0] / shape[1]) ** 0.5)

    def _step_together(self, parameters: list[Tensor], group: dict, scale: float) -> None:
        for parameter in parameters:
            if not self.state[parameter]:
                self.state[parameter]["momentum"] = torch.zeros_like(parameter)
        gradients = [parameter.grad for parameter in parameters]
        momentum = [self.state[parameter]["momentum"] for parameter in parameters]
        torch._foreach_lerp_(momentum, gradients, 1 - group["momentum"])
        ahead = torch._foreach_lerp(gradients, momentum, group["momentum"])  # Nesterov
        updates = orthogonalize(torch.stack(ahead), group["steps"])
        if group["weight_decay"]:
            torch._foreach_mul_(parameters, 1 - group["lr"] * group["weight_decay"])
        torch._foreach_add_(parameters, list(updates.unbind(0)), alpha=-group["lr"] * scale)
