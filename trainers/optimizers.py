"""Optimizers by name, `fn(model, training) -> list of torch optimizers`, and the schedule of learning rates."""

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from .muon import Muon


if TYPE_CHECKING:
    from .recipe import TrainingOptions


def make_adamw(parameters: Iterable[nn.Parameter], training: "TrainingOptions") -> torch.optim.AdamW:
    return torch.optim.AdamW(
        parameters,
        lr=training.learning_rate,
        betas=training.betas,
        weight_decay=training.weight_decay,
        fused=True,
    )


def adamw(model: nn.Module, training: "TrainingOptions") -> list[torch.optim.Optimizer]:
    return [make_adamw(model.parameters(), training)]


def muon(model: nn.Module, training: "TrainingOptions") -> list[torch.optim.Optimizer]:
    """Muon for the matrices inside of the layers, AdamW for tables, norms, biases and output layers."""
    matrices = [p for name, p in model.named_parameters() if ".layers." in name and p.ndim == 2 and p.numel()]
    taken = set(map(id, matrices))
    rest = [p for p in model.parameters() if id(p) not in taken]
    blocks = parts_of_heads(model) if training.muon_per_head else {}
    groups: dict[tuple[int, int] | None, list[nn.Parameter]] = {}
    for matrix in matrices:
        groups.setdefault(blocks.get(id(matrix)), []).append(matrix)
    own_groups = [{"params": own, "block": block} for block, own in groups.items()]
    return [
        Muon(own_groups, lr=training.muon_learning_rate, momentum=training.muon_momentum),
        make_adamw(rest, training),
    ]


def parts_of_heads(model: Any) -> dict[int, tuple[int, int]]:
    """The shape of one head's part of every projection, by the id of the weight."""
    found: dict[int, tuple[int, int]] = {}
    width = model.config.hidden_size
    for attention in model.attention_modules().values():
        for projection in (attention.q_proj, attention.k_proj, attention.v_proj):
            found[id(projection.weight)] = (attention.head_dim, width)
        found[id(attention.out_proj.weight)] = (width, attention.head_dim)
    return found


OPTIMIZERS: dict[str, Callable[[nn.Module, "TrainingOptions"], list[torch.optim.Optimizer]]] = {
    "adamw": adamw,
    "muon": muon,
}


def schedule(step: int, steps: int, warmup: float, decay: str) -> float:
    """The factor on the learning rate at a step counted from 0: up linearly, then down to 0 by `decay`."""
    rise = max(1, round(warmup * steps))
    if step < rise:
        return (step + 1) / rise
    progress = (step - rise) / max(1, steps - rise)
    return {"linear": 1 - progress, "cosine": 0.5 + 0.5 * math.cos(math.pi * progress), "constant": 1.0}[decay]
