"""Which seeds of a recipe hold their variables in the same places, and so may run the same algorithm.

Two seeds are alike if, for every variable, what a search reaches at each site (variables.py) differs on average by no
more than `APART`. Seeds that are alike, or linked by others that are, form a group. That they are in one group is no
proof of one algorithm; that they are not shows two ways to hold what both compute.
"""

from itertools import combinations

import numpy as np

from ...records.rows import Rows, row, select, values_of


APART = 0.15  # of interchange accuracy, the mean over sites


def seed_groups(accounts: dict[str, Rows]) -> Rows:
    """From the rows of every run: a row for each two (`apart`), and one for each run (`group`, counted from 1)."""
    names = list(accounts)
    profiles = {name: _profile(rows) for name, rows in accounts.items()}
    rows: Rows = []
    group_of = {name: {name} for name in names}
    for first, second in combinations(names, 2):
        distance = _apart(profiles[first], profiles[second])
        estimate = {"value": distance, "n": len(profiles[first])}
        rows.append(row("seed_groups", "apart", estimate, run=first, compared_with=second))
        if distance <= APART:
            joined = group_of[first] | group_of[second]
            group_of |= dict.fromkeys(joined, joined)
    numbers: dict[frozenset, int] = {}
    for name in names:
        number = numbers.setdefault(frozenset(group_of[name]), len(numbers) + 1)
        rows.append(row("seed_groups", "group", {"value": float(number), "n": len(group_of[name])}, run=name))
    return rows


def _profile(rows: Rows) -> dict[str, dict[str, float]]:
    """Variable -> site -> what the search reached there."""
    found = select(rows, study="variables", metric="interchange_accuracy", stage="search", scope={})
    return {
        variable: {each["site"]: each["value"] for each in select(found, variable=variable)}
        for variable in values_of(found, "variable")
    }


def _apart(first: dict[str, dict[str, float]], second: dict[str, dict[str, float]]) -> float:
    """The largest mean difference over variables that both have."""
    shared = [name for name in first if name in second]
    if not shared:
        raise ValueError("two accounts have no variable in common; expected runs of one task.")
    return max(
        float(np.mean([abs(first[name][site] - second[name].get(site, 0.0)) for site in first[name]]))
        for name in shared
    )
