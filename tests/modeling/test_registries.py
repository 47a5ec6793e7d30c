"""The names in configuration/ and the classes in modeling/ are the same families."""

import pytest

from headcount.configuration import choices
from headcount.modeling import (
    attention,
    embeddings,
    feed_forward,
    normalizers,
    norms,
    pooling,
    position_encodings,
    position_schemes,
)


FAMILIES = {
    "POSITION_ENCODINGS": position_encodings,
    "POSITION_SCHEMES": position_schemes,
    "POOLERS": pooling,
    "ATTENTION_FUNCTIONS": attention,
    "NORMALIZERS": normalizers,
    "NORMS": norms,
    "FEED_FORWARDS": feed_forward,
    "EMBEDDINGS": embeddings,
}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_described_name_has_an_implementation_and_the_other_way_round(family):
    assert list(getattr(FAMILIES[family], family)) == list(getattr(choices, family))
