"""What becomes of the output of heads or of a sublayer, call by call.

A layer may run more than once in a forward (ALBERT's layers are one, DiffLlama's ask for their attention twice). So a
replacement is one tensor for each of its calls, in their order: call k is replaced by what was recorded at call k.

Shapes: B rows, Q places of a module, then whatever it puts out at each.
"""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Change:
    """g * (an output) + (1 - g) * (its replacement, or nothing), for every head of a layer, or for a sublayer."""

    gate: Tensor  # (B or 1, H), or (B or 1, Q or more, H) where it differs from token to token; sublayers have no H
    replacement: tuple[Tensor, ...] | None = None  # at every call of a forward, (B or 1, Q or more, ...)

    def applied(self, output: Tensor, gate: Tensor, call: int, name: str) -> Tensor:
        """The output (B, Q, ...) of one call, numbered from 0, with the gate spread over it."""
        changed = output * gate
        if self.replacement is None:
            return changed
        if call >= len(self.replacement):
            raise ValueError(
                f"{name} runs more often than the {len(self.replacement)} times that it was recorded in a forward; "
                "expected as many."
            )
        there = rows_for(self.replacement[call], output, "replacements")
        return changed + (1 - gate) * token_wise(there, output)

    def check_calls(self, calls: int, name: str) -> None:
        """After the forward: all that was recorded has found its place."""
        if self.replacement is not None and 0 < calls < len(self.replacement):
            raise ValueError(
                f"{name} ran {calls} times and was recorded {len(self.replacement)} times in a forward; expected as "
                "many, so that each call is replaced by its own."
            )


def token_wise(values: Tensor, output: Tensor) -> Tensor:
    """Values (B or 1, tokens or 1, ...) for the tokens of an output, which may be fewer."""
    if 1 < values.shape[1] < output.shape[1]:
        raise ValueError(
            f"values were given for {values.shape[1]} tokens where the model has {output.shape[1]}; expected one for "
            "each, from a source or roles of the same length."
        )
    return values[:, : output.shape[1]].to(output)


def rows_for(values: Tensor, output: Tensor, what: str) -> Tensor:
    """Per-example values for the rows of a batch, each repeated for the beams of its example."""
    rows, batch = values.shape[0], output.shape[0]
    if rows in (1, batch):
        return values
    if batch % rows:
        raise ValueError(
            f"{what} were given for {rows} examples, but the model runs on a batch of {batch}; expected as many."
        )
    return values.repeat_interleave(batch // rows, dim=0)
