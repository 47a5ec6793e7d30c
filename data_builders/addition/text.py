"""Addition problems as they are written: `374+814` and `1188`."""

import numpy as np
import pyarrow as pa

from .arrow_columns import join_columns, string_column, written_digits
from .columns import AdditionProblems, number_of_digits, to_integers


def addition_texts(problems: AdditionProblems, total: np.ndarray, zero_pad: bool, answer_order: str) -> tuple[tuple, tuple]:
    """Codes and lengths of the inputs `374+814` and of the targets `1188` (or `8811`)."""
    rows = len(problems)
    plus = (np.full((rows, 1), ord("+"), np.uint8), np.ones(rows, np.int64))
    operands = []
    for digits in (problems.a, problems.b):
        lengths = problems.width if zero_pad else number_of_digits(digits)
        operands.append((written_digits(digits, lengths, units_first=False), lengths))
    lengths = problems.width + 1 if zero_pad else number_of_digits(total)
    target = (written_digits(total, lengths, units_first=answer_order == "reversed"), lengths)
    return join_columns([operands[0], plus, operands[1]]), target


def number_column(digits: np.ndarray, as_integers: bool) -> pa.Array:
    """Numbers as int64, or as decimal text without leading zeros where 64 bits may not hold them."""
    if as_integers:
        return pa.array(to_integers(digits))
    lengths = number_of_digits(digits)
    return string_column(written_digits(digits, lengths, units_first=False), lengths)
