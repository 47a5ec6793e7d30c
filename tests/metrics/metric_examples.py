"""The same nine examples, cut into the inputs of each metric, and a comparison of nested results."""

import math


ANSWERS = {
    "predictions": ["579", "1188", "1000", "900", "12", "807", "", "1110", "334"],
    "references": ["579", "1188", "1000", "1000", "112", "817", "450", "1110", "333"],
}
LABELS = {"predictions": [1, 1, 0, 0, 1, 0, 1, 1, 0], "references": [1, 1, 1, 0, 0, 0, 0, 1, 0]}

# Metric -> its input columns.
INPUTS = {
    "exact_match": ANSWERS,
    "digit_accuracy": ANSWERS,
    "carry_exact_match": {**ANSWERS, "longest_carry_chain": [0, 1, 3, 3, 0, 0, 1, 2, 0]},
    "decoding_gap": {
        **ANSWERS,
        "teacher_forced_predictions": ["579", "1188", "1001", "1000", "112", "817", "450", "1110", "334"],
    },
    "sortedness_accuracy": {
        **LABELS,
        "length": [8, 16, 8, 8, 16, 16, 8, 16, 8],
        "kind": ["", "", "", "swap", "swap", "shuffle", "move", "", "shuffle"],
    },
    "calibration": {**LABELS, "confidences": [0.99, 0.8, 0.55, 0.91, 0.62, 1.0, 0.75, 0.88, 0.5]},
}


def alike(ours, theirs, tolerance: float = 1e-9) -> bool:
    """Equal in structure and in every value, floats up to `tolerance`."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return list(ours) == list(theirs) and all(alike(ours[key], theirs[key], tolerance) for key in ours)
    if isinstance(ours, list | tuple) and type(ours) is type(theirs):
        return len(ours) == len(theirs) and all(alike(a, b, tolerance) for a, b in zip(ours, theirs, strict=True))
    if isinstance(ours, float) and isinstance(theirs, float):
        return math.isclose(ours, theirs, rel_tol=0, abs_tol=tolerance)
    return ours == theirs


def row(rows: list[dict], **wanted) -> dict:
    """The one row with these values."""
    (found,) = [row for row in rows if all(row[key] == value for key, value in wanted.items())]
    return found
