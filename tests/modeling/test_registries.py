"""The names in configuration/ and the classes in modeling/ are the same families."""

import pytest

import headcount
from headcount.configuration import choices


@pytest.mark.parametrize(
    "family",
    ["POSITION_ENCODINGS", "POSITION_SCHEMES", "POOLERS", "ATTENTION_FUNCTIONS", "NORMALIZERS", "EMBEDDINGS"],
)
def test_every_described_name_has_an_implementation_and_the_other_way_round(family):
    assert list(getattr(headcount, family)) == list(getattr(choices, family))
