"""The figure of the board: a square for what was measured, and none for what was not."""

from matplotlib.patches import Rectangle
from small_board import write_study

from headcount.reports.board_rows import gather
from headcount.reports.figures.board import draw_board


def test_squares_and_gaps(tmp_path):
    aids = {"rotary": ["window"]}
    one = write_study(
        tmp_path / "a", "reverse", {"rotary": {0: 40}, "none": {0: 10}, "learned": {0: 0}}, built_in=aids
    )
    other = write_study(tmp_path / "b", "sortedness", {"rotary": {0: 80}})
    axis = draw_board(gather([one, other])).axes[0]
    squares = [patch for patch in axis.patches if isinstance(patch, Rectangle)]
    assert len(squares) == 4  # of six places: two were not measured
    assert {text.get_text() for text in axis.texts} == {"4 x*", "1 x", "", "≥ 8 x"}
    assert sorted(square.get_hatch() or "" for square in squares) == ["", "", "", "////"]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["Reversal (10)", "Sortedness (10)"]


def test_a_board_on_which_nothing_goes_beyond_training_can_be_drawn(tmp_path):
    axis = draw_board(gather([write_study(tmp_path / "a", "reverse", {"rotary": {0: 0}})])).axes[0]
    assert len(axis.patches) == 1
