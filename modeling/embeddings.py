"""Input embeddings: `cls(config)(input_ids) -> (B, L, E)`."""

import torch
from torch import Tensor, nn
from transformers import initialization as init

from ..configuration.configuration_headcount import HeadcountConfig


class TableEmbedding(nn.Embedding):
    """One trained vector per token."""

    def __init__(self, config: HeadcountConfig):
        super().__init__(config.vocab_size, config.hidden_size)
        self.init_std = config.embedding_init_std

    def init_parameters(self) -> None:
        init.normal_(self.weight, std=self.init_std)


class OrdinalEmbedding(TableEmbedding):
    """For vocabularies that are ordered numbers: the vector of number v is the sum of trained steps 0..v.

    Neighbouring numbers start close together and the order of numbers is a direction in space: an inductive bias built
    in by hand; say so next to its results. Tokens outside of `ordinal_token_range` have plain vectors.

    With steps of 1, 2 and 3 (in one dimension), the numbers 0, 1 and 2 are embedded as 1, 3 and 6.
    """

    def __init__(self, config: HeadcountConfig):
        super().__init__(config)
        assert config.ordinal_token_range is not None  # the config insists on it
        self.first, self.end = config.ordinal_token_range

    def forward(self, input_ids: Tensor) -> Tensor:
        numbers = self.weight[self.first : self.end].cumsum(dim=0)
        table = torch.cat((self.weight[: self.first], numbers, self.weight[self.end :]))
        return nn.functional.embedding(input_ids, table)

    def init_parameters(self) -> None:
        init.normal_(self.weight, std=self.init_std)
        if not getattr(self.weight, "_is_hf_initialized", False):
            # The sum of n steps is sqrt(n) times as long as one step; this keeps numbers as long as other tokens.
            self.weight[self.first : self.end] *= (self.end - self.first) ** -0.5


EMBEDDINGS: dict[str, type[TableEmbedding]] = {
    "table": TableEmbedding,
    "ordinal": OrdinalEmbedding,
}
