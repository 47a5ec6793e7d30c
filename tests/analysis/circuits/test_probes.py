"""A probe reads what is linear in the features, and nothing from shuffled labels."""

import numpy as np
import torch

from headcount.analysis.circuits.probes import probe_rows
from headcount.analysis.interventions.sites import Site
from headcount.records.rows import check_row


def test_what_is_there_is_read_and_chance_is_not():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 3, 600)
    features = torch.from_numpy(rng.normal(size=(600, 20)))
    features[:, :3] += 5 * torch.nn.functional.one_hot(torch.from_numpy(values), 3)
    real, shuffled = probe_rows(features, values, Site("encoder.0.residual@column"), "tri_state")
    assert real["value"] > 0.95 and not real["shuffled"]
    assert shuffled["value"] < 0.5 and shuffled["shuffled"]
    for each in (real, shuffled):
        check_row(each, "test")
