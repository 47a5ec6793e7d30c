"""The atlas: a role needs every leg of its evidence, and says how far it hangs on thresholds."""

import pytest

from headcount.analysis.heads.atlas import VARIED, atlas_rows
from headcount.data_builders.registry import TASKS
from headcount.records.rows import only, row


def estimate(value, n=500, reach=0.004):
    return {"value": value, "n": n, "interval": [max(0.0, value - reach), min(1.0, value + reach)]}


def atlas(cases):
    """Site -> (moved, share of errors off by one, n errors, drops by mode, weight on the own column)."""
    drops, swaps, errors, looks = [], [], [], []
    for site, (moved, typical, wrong, by_mode, weight) in cases.items():
        about = {"site": site, "size": 1, "pairs": "minimal", "variable": "carry"}
        swaps.append(row("interchange", "carry_moved", estimate(moved), **about))
        found = estimate(typical, wrong) if wrong else None
        errors.append(row("signature", "carry_errors", found, site=site, variable="carry"))
        for mode, value in by_mode.items():
            name = "site" if site.endswith("mlp") else "head"
            drops.append(row("ablation", "exact_match_drop", estimate(value), mode=mode, **{name: site}))
        if weight is not None:
            looks.append(row("specialization", "same_column", {"value": weight, "n": 9}, head=site, uniform=0.2))
    return atlas_rows(TASKS["addition"], "carry", drops, swaps, errors, looks)


ALL = {"zero": 0.05, "mean": 0.04, "resample": 0.2}
NONE = dict.fromkeys(ALL, 0.0)


@pytest.mark.parametrize(
    "site, evidence, role",
    [
        ("decoder.0.cross.1", (0.36, 0.996, 460, ALL, 0.1), "carry mover"),
        ("decoder.0.cross.2", (0.36, 0.5, 460, ALL, 0.9), "carry and more"),  # moves it, but is wrong in other ways
        ("decoder.0.cross.0", (0.36, 1.0, 8, ALL, 0.1), "carry and more"),  # too few errors to tell
        ("encoder.0.self.3", (0.0, 0.99, 88, ALL, 0.1), "other"),  # wrong as without a carry, but moves none
        ("encoder.0.self.2", (0.0, 0.6, 600, ALL, 0.9), "reader"),
        ("decoder.0.self.1", (0.0, 0.6, 600, ALL, None), "output order"),
        ("decoder.0.self.0", (0.0, 0.0, 0, NONE, 0.9), "not needed alone"),
        ("decoder.0.self.2", (0.0, 0.0, 0, {**NONE, "resample": 0.1}, None), "output order"),  # one mode is enough
        ("decoder.1.mlp", (0.3, 0.7, 100, ALL, None), "carry and more"),
        ("decoder.0.mlp", (0.0, 0.7, 100, ALL, None), "other"),
        ("encoder.1.mlp", (0.3, 0.99, 500, ALL, None), "carry mover"),
    ],
)
def test_roles(site, evidence, role):
    (found,) = atlas({site: evidence})
    assert found["site"] == site and found["role"] == role
    assert found["moved"]["value"] == evidence[0] and set(found["drops"]) == set(evidence[3])
    assert (found["errors"] is None) == (evidence[2] == 0)


def test_a_role_that_hangs_on_a_threshold_says_so():
    clear, narrow = (
        only(atlas({"decoder.0.cross.1": (moved, 0.996, 460, ALL, 0.1)}), metric="role") for moved in (0.36, 0.06)
    )
    assert clear["role"] == narrow["role"] == "carry mover"
    assert clear["agreeing"] == clear["settings"] == len(VARIED)
    assert 0 < narrow["agreeing"] < narrow["settings"], "a share of 6 % does not survive a threshold of 10 %"
