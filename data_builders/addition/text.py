"""Addition problems as they are written: `374+814` and `1188`."""

import numpy as np
from numpy.typing import NDArray

from .columns import AdditionProblems, number_of_digits


Codes = tuple[NDArray[np.uint8], NDArray[np.int64]]  # (N, W) ASCII codes, of which every row keeps its first (N,)


def addition_texts(
    problems: AdditionProblems, total: NDArray[np.uint8], zero_pad: bool, answer_order: str
) -> tuple[Codes, Codes]:
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


def written_digits(digits: NDArray[np.uint8], lengths: NDArray[np.int64], units_first: bool) -> NDArray[np.uint8]:
    """(N, W) ASCII codes: each row's number of `lengths` digits, at the left; what follows is not part of it."""
    columns = digits.shape[1]
    codes = digits + np.uint8(ord("0"))
    if units_first:
        return codes
    if (lengths == columns).all():
        return codes[:, ::-1]
    source = lengths[:, None] - 1 - np.arange(columns)
    return np.take_along_axis(codes, np.maximum(source, 0), axis=1)


def join_columns(
    parts: list[Codes],
) -> Codes:
    """Puts texts (codes, lengths) side by side: one matrix of codes, each row's text at the left, and the lengths."""
    total = np.sum([lengths for _, lengths in parts], axis=0)
    codes = np.concatenate([codes for codes, _ in parts], axis=1)
    if (total == codes.shape[1]).all():
        return codes, total
    keep = np.concatenate([np.arange(part.shape[1]) < lengths[:, None] for part, lengths in parts], axis=1)
    joined = np.zeros((len(codes), int(total.max(initial=0))), np.uint8)
    joined[np.arange(joined.shape[1]) < total[:, None]] = codes[keep]
    return joined, total
