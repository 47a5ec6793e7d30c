"""Whole cards of runs whose every figure is fixed, word by word, for every kind of task."""

import difflib

import pytest
from fixed_runs import CARDS, RECIPES, card_of


@pytest.mark.parametrize("name", RECIPES)
def test_the_whole_card_is_as_it_was(name):
    stored = (CARDS / f"{name}.md").read_text(encoding="utf-8")
    lines = difflib.unified_diff(stored.splitlines(), card_of(name).splitlines(), "stored", "now", lineterm="")
    assert stored == card_of(name), "\n".join(lines)


def test_what_is_built_in_by_hand_is_named():
    """A window, a clip of differences, a bias for the first token, the order of the answer: none is trained."""
    assert "every token sees its 4 neighbours on each side only (`attention_window`)" in card_of("sortedness-windowed")
    long = card_of("addition-long")
    for words in ("apart only up to 6", "the first token has a bias of its own", "the answer is written units first"):
        assert "Built in by hand: " in long and words in long
    assert "Built in" not in card_of("reverse")
