"""Which seeds of a recipe hold their variables in the same places, and so may run the same algorithm.

Two runs are the farther apart, the more the figures differ that a short search reaches at each site (variables.py),
the mean over all variables and sites. Average linkage joins the nearest ones first; where a step is much longer than
all before it, it is not taken, and what is apart then are groups. That runs are in one group is no proof of one
algorithm; that they are not shows two ways to hold what both compute.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from ...records.rows import Rows, row, select


MUCH_LONGER = 1.5  # times the longest step before it

Profile = dict[tuple[str, str], float]  # (variable, site) -> what the search reached there


def seed_groups(accounts: dict[str, Rows]) -> Rows:
    """From the rows of every run: `apart` for each two of them, `step` for each joining, `group` for each run, from 1.

    Of two runs nobody can tell whether they are far apart; it takes three to have groups.
    """
    names = list(accounts)
    profiles = [_profile(rows) for rows in accounts.values()]
    distances = np.array([[_apart(first, second) for second in profiles] for first in profiles])
    rows: Rows = []
    for place, first in enumerate(names):
        for other in range(place + 1, len(names)):
            estimate = {"value": float(distances[place, other]), "n": len(profiles[place])}
            rows.append(row("seed_groups", "apart", estimate, run=first, compared_with=names[other]))
    steps, groups = _grouped(distances)
    rows += [row("seed_groups", "step", {"value": step, "n": len(names)}) for step in steps]
    for name, group in zip(names, groups, strict=True):
        rows.append(row("seed_groups", "group", {"value": float(group), "n": groups.count(group)}, run=name))
    return rows


def _profile(rows: Rows) -> Profile:
    found = select(rows, study="variables", metric="interchange_accuracy", stage="search", scope={})
    return {(each["variable"], each["site"]): each["value"] for each in found}


def _apart(first: Profile, second: Profile) -> float:
    shared = [place for place in first if place in second]
    if not shared:
        raise ValueError("two accounts have no variable in common; expected runs of one task.")
    return float(np.mean([abs(first[place] - second[place]) for place in shared]))


def _grouped(distances: NDArray[np.float64]) -> tuple[list[float], list[int]]:
    """The lengths of the steps in which runs are joined, and the group of each run, numbered as they come."""
    joined = linkage(squareform(distances, checks=False), "average")
    steps = joined[:, 2].tolist()
    long = [i for i in range(1, len(steps)) if steps[i] > MUCH_LONGER * steps[i - 1]]
    found = fcluster(joined, steps[long[0] - 1] if long else steps[-1], "distance").tolist()
    order = list(dict.fromkeys(found))
    return steps, [order.index(group) + 1 for group in found]
