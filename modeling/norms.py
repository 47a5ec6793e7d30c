"""Norms, before a sublayer (`pre`) or after it (`post`): `cls(config)(hidden_states (B, L, E)) -> (B, L, E)`."""

from torch import nn
from transformers import initialization as init

from ..configuration.configuration_headcount import HeadcountConfig


class LayerNorm(nn.LayerNorm):
    """Mean 0 and variance 1 over the features of a token, then a trained gain and bias (Ba et al. 2016)."""

    def __init__(self, config: HeadcountConfig):
        super().__init__(config.hidden_size, eps=config.layer_norm_eps)

    def init_parameters(self) -> None:
        init.ones_(self.weight)
        init.zeros_(self.bias)


class RMSNorm(nn.RMSNorm):
    """Mean square 1 over the features of a token, then a trained gain (Zhang & Sennrich 2019)."""

    def __init__(self, config: HeadcountConfig):
        super().__init__(config.hidden_size, eps=config.layer_norm_eps)

    def init_parameters(self) -> None:
        init.ones_(self.weight)


class NoNorm(nn.Identity):
    """States as they are: every sublayer reads the plain sum of what was written before it."""

    def __init__(self, config: HeadcountConfig):
        super().__init__()


NORMS: dict[str, type[nn.Module]] = {
    "layer": LayerNorm,
    "rms": RMSNorm,
    "none": NoNorm,
}
