"""Whether a variable can be read off a site by a linear map: beside it, what the same map reads from shuffled labels.

A probe shows what is there, not what is used: only an intervention does that.

Shapes: N examples, F features, K values of the variable.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...records.intervals import rate
from ...records.rows import Row, row
from ..interventions.sites import Site


RIDGE = 1e-2  # in units of the features' mean square


def probe_rows(features: Tensor, values: NDArray[np.int64], site: Site, variable: str, seed: int = 0) -> list[Row]:
    """`probe_accuracy` on one half of the examples, of a map fitted on the other; and with shuffled values."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(values))
    fit, test = order[: len(order) // 2], order[len(order) // 2 :]
    rows = []
    for shuffled in (False, True):
        known = rng.permutation(values[fit]) if shuffled else values[fit]
        right = _predicted(features[fit], known, features[test]) == values[test]
        about: dict[str, Any] = {"site": str(site), "variable": variable, "shuffled": shuffled}
        rows.append(row("variables", "probe_accuracy", rate(int(right.sum()), len(right)), **about))
    return rows


def _predicted(features: Tensor, values: NDArray[np.int64], others: Tensor) -> NDArray[np.int64]:
    """Ridge regression onto one column for each value; the largest column wins."""
    known = np.unique(values)
    targets = torch.from_numpy((values[:, None] == known).astype(np.float64))
    mean = features.double().mean(0)
    inputs = features.double() - mean
    gram = inputs.T @ inputs
    gram += RIDGE * gram.diagonal().mean() * torch.eye(len(gram), dtype=gram.dtype)
    weights = torch.linalg.solve(gram, inputs.T @ (targets - targets.mean(0)))
    scores = (others.double() - mean) @ weights + targets.mean(0)
    return known[scores.argmax(-1).numpy()]
