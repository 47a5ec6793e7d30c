"""Searches for sets: the smallest one is found, and tested on examples that it was not chosen on."""

import numpy as np
import pytest

from headcount.analysis.circuits.selection import halves, selection_rows
from headcount.analysis.interventions.sites import Site
from headcount.records.rows import check_row, select


NEEDED = ("decoder.0.cross.1", "decoder.1.cross.0")


def pool(size):
    return [Site(f"decoder.{layer}.cross.{head}") for layer in range(2) for head in range(size // 2)]


def trial_of(used):
    """A model in which a third of the examples need both sites, a third one of them, a third nothing."""

    def trial(sets, rows):
        used.append(rows)
        count = np.array([len(set(some) & set(NEEDED)) for some in sets])
        return count[:, None] >= rows[None] % 3

    return trial


@pytest.mark.parametrize("size, methods", [(8, ["all subsets"]), (20, ["greedy", "backwards"])])
def test_the_smallest_set_that_does_it_is_found_and_tested_elsewhere(size, methods):
    used = []
    rows = selection_rows(pool(size), trial_of(used), 300, "carry_flip", searched="cross", variable="carry")
    for row in rows:
        check_row(row, "selection")
    assert list(dict.fromkeys(row["method"] for row in rows)) == methods
    for method in methods:
        (pair,) = select(rows, method=method, size=2)
        assert set(pair["heads"]) == set(NEEDED) and pair["value"] == 1.0
        assert pair["n"] == 150 and pair["random_best"]["value"] <= 1 and pair["random_mean"]["value"] < 0.9
        assert pair["searched"] == "cross" and pair["pool"] == size
    choose, test = halves(300)
    assert not set(choose) & set(test) and {tuple(each) for each in used} == {tuple(choose), tuple(test)}


def test_growing_ends_when_almost_all_is_there_and_shrinking_when_half_is_gone():
    rows = selection_rows(pool(20), trial_of([]), 300, "carry_flip")
    assert [row["size"] for row in select(rows, method="greedy")] == [1, 2]
    sizes = [row["size"] for row in select(rows, method="backwards")]
    assert sizes == list(range(20, 0, -1))


def test_a_search_does_not_choose_on_more_than_it_needs():
    choose, test = halves(10_000)
    assert len(choose) == 300 and len(test) == 5_000
