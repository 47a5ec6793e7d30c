"""The two length studies, by task: what their cells are tested on, and which analyses each cell leaves.

`results` are files in the results folder of a cell, in the order in which they are made; those in `by_length` are made
again when more lengths, kinds or rows are asked for than before.
"""

from dataclasses import dataclass

from ..data_builders.choices import KINDS, PROBLEM_CLASSES


@dataclass(frozen=True)
class LengthFamily:
    kinds: tuple[str, ...]
    results: tuple[str, ...]
    by_length: tuple[str, ...]


LENGTH_FAMILIES = {
    "sortedness": LengthFamily(
        kinds=tuple(kind for kind in KINDS if kind != "sorted"),
        results=("lengths", "dilution", "shifts", "neighbour"),
        by_length=("lengths", "dilution"),
    ),
    "addition": LengthFamily(
        kinds=tuple(PROBLEM_CLASSES),
        results=("lengths", "generated", "columns"),
        by_length=("lengths", "generated", "columns"),
    ),
}
