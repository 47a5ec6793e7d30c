"""The checks of the mathematics hold, and would notice if the mathematics were wrong."""

import pytest
import torch

from headcount.analysis.lengths.positions import mathematics
from headcount.analysis.lengths.positions.mathematics import check_mathematics, exchange, rotation
from headcount.analysis.lengths.positions.tables import position_rows, untrained_encoding
from headcount.modeling.position_encodings import POSITION_ENCODINGS, sinusoid


@pytest.fixture(scope="module")
def rows():
    return check_mathematics()


def test_everything_is_as_expected(rows):
    wrong = [row for row in rows if not row["as_expected"]]
    assert not wrong
    assert {row["holds"] for row in rows} == {True, False}  # some statements are false, and are found to be


def test_every_encoding_that_acts_in_attention_is_checked(rows):
    checked = {row["subject"] for row in rows if row["statement"].startswith("scores depend")}
    acting = {name for name, cls in POSITION_ENCODINGS.items() if cls.uses_bias()} | {"rotary"}
    assert checked == acting


def test_rotation_is_a_rotation_that_adds_up():
    turn = rotation(3)
    assert torch.allclose(turn @ turn.t(), torch.eye(64, dtype=torch.float64), atol=1e-12)
    assert torch.allclose(rotation(1) @ rotation(2), turn, atol=1e-12)


def test_a_wrong_table_is_noticed(monkeypatch):
    """Frequencies that change with the position are no rotation any more."""
    monkeypatch.setattr(mathematics, "sinusoid", lambda ids, size: sinusoid(ids**2 // 64, size))
    rows = list(mathematics.sinusoidal_is_linear())
    assert rows and not any(row["as_expected"] for row in rows)


def test_exchange_swaps_two_neighbours():
    assert exchange(torch.arange(5)[None], 1).tolist() == [[0, 2, 1, 3, 4]]


def test_the_random_state_is_left_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    check_mathematics()
    assert torch.equal(torch.rand(3), expected)


def test_position_rows_cover_every_encoding(tmp_path):
    rows = position_rows(tmp_path)
    assert {row["encoding"] for row in rows if row["metric"] == "scores"} == set(POSITION_ENCODINGS)
    directional = [row for row in rows if row.get("encoding") == "alibi_directional"]
    ahead = directional[0]["distance"].index(5)
    assert directional[0]["scores"][ahead] is None and directional[1]["scores"][ahead] == -5
    (table,) = (row for row in rows if row["metric"] == "table")
    assert table["name"] == "sinusoidal" and table["cosine"][7][7] == pytest.approx(1)
    assert untrained_encoding("t5_bias").source == "untrained"
    assert untrained_encoding("alibi").source == "no parameters"
