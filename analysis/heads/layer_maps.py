"""Attention maps by the names of layers and heads: of one call of a model, or of every call in turn.

Shapes: B rows, H heads that were chosen in a layer, Q queries, K keys.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from torch import Tensor


Item = TypeVar("Item")


class LayerMaps(Mapping[str, Item]):
    """What is known of attention layers; what is known of a head is found by its name too."""

    def __init__(self, maps: dict[str, Item], heads: dict[str, tuple[int, ...]], of_head: Callable[[Item, int], Item]):
        self._maps, self._heads, self._of_head = maps, heads, of_head

    def __getitem__(self, name: str) -> Item:
        if name in self._maps:
            return self._maps[name]
        layer, _, number = name.rpartition(".")
        if layer in self._maps and number.isdigit() and int(number) in self._heads[layer]:
            return self._of_head(self._maps[layer], self._heads[layer].index(int(number)))
        raise KeyError(
            f"there is no map of {name!r}; expected an attention layer ({', '.join(self._maps)}) or one of its heads."
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._maps)

    def __len__(self) -> int:
        return len(self._maps)

    @property
    def heads(self) -> dict[str, tuple[int, ...]]:
        """Attention layer -> the numbers of the heads whose maps are there, in their order."""
        return self._heads


class AttentionMaps(LayerMaps[Tensor]):
    """Attention layer -> weights (B, H, Q, K); a head's own, (B, Q, K), are found by its name too."""

    def __init__(self, maps: dict[str, Tensor], heads: dict[str, tuple[int, ...]]):
        super().__init__(maps, heads, lambda weights, place: weights[:, place])


class StepMaps(LayerMaps[list[Tensor]]):
    """Attention layer -> weights (B, H, Q, K) at each of its calls, which may differ in queries, keys and rows.

    A head's own, (B, Q, K), are found by its name too. `sequences` is what `generate` wrote, if it did.
    """

    def __init__(
        self, maps: dict[str, list[Tensor]], heads: dict[str, tuple[int, ...]], sequences: Tensor | None = None
    ):
        super().__init__(maps, heads, lambda steps, place: [weights[:, place] for weights in steps])
        self.sequences = sequences
