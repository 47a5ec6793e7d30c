"""Feed-forward networks, the sublayer after attention: `cls(config)(hidden_states (B, L, E)) -> (B, L, E)`."""

import torch
from torch import Tensor, nn
from transformers.activations import ACT2FN

from ..configuration.configuration_headcount import HeadcountConfig


class FeedForward(nn.Module):
    """Two layers: up, activation, down.

    Every token by itself, so without gradients a processor takes as many at a time as its cache holds.
    """

    has_biases = True
    rows_at_once = 2048

    def __init__(self, config: HeadcountConfig):
        super().__init__()
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=self.has_biases)
        self.activation = ACT2FN[config.hidden_act]
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=self.has_biases)

    def forward(self, hidden_states: Tensor) -> Tensor:
        rows = hidden_states.shape[:-1].numel()
        if rows <= self.rows_at_once or hidden_states.device.type != "cpu" or not self._may_divide():
            return self._feed(hidden_states)
        parts = hidden_states.reshape(rows, -1).split(self.rows_at_once)
        return torch.cat([self._feed(part) for part in parts]).view_as(hidden_states)

    def _feed(self, hidden_states: Tensor) -> Tensor:
        return self.down_proj(self.activation(self.up_proj(hidden_states)))

    def _may_divide(self) -> bool:
        """Gradients want it whole, and so do hooks, which would see parts."""
        if torch.is_grad_enabled() or torch.compiler.is_compiling():
            return False
        return not any(module._forward_hooks or module._forward_pre_hooks for module in self.children())


class GatedFeedForward(FeedForward):
    """Shazeer 2020, https://arxiv.org/abs/2002.05202: what goes up is multiplied by an activation of a second matrix.

    SwiGLU with `hidden_act="silu"` (Llama), GEGLU with "gelu" (T5 1.1), ReGLU with "relu". No biases, as in the paper.
    """

    has_biases = False

    def __init__(self, config: HeadcountConfig):
        super().__init__(config)
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=self.has_biases)

    def _feed(self, hidden_states: Tensor) -> Tensor:
        return self.down_proj(self.activation(self.gate_proj(hidden_states)) * self.up_proj(hidden_states))


FEED_FORWARDS: dict[str, type[FeedForward]] = {
    "plain": FeedForward,
    "gated": GatedFeedForward,
}
