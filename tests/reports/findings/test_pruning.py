"""What is said of pruning is what the intervals bear."""

import pytest
from small_study import figure

from headcount.records.rows import Row, row
from headcount.reports.findings.pruning import (
    harmless_does_not_add_up,
    pruned_against_control,
    pruned_model,
    removed_together,
)


def pruned(model, value, removed=0, drop_low=0.4, **more) -> Row:
    found = {"value": 0.99 - value, "n": 2000, "interval": [drop_low, 0.99 - value + 0.02]}
    about = {"split": "test", "model": model, "removed": removed, "drop": found, "parameters": 900 - 20 * removed}
    about |= {"bytes": 4, "relative_speed": 1.5, **more}
    return row("pruning", "exact_match", figure(value, 2000, 0.004), decoding="free-running", **about)


def test_harmless_does_not_add_up_only_where_it_does_not():
    rows = [pruned("intact", 0.99), pruned("all harmless one at a time", 0.53, 17)]
    (finding,) = harmless_does_not_add_up(rows, "x")
    assert finding.text.startswith("Harmless does not add up: 17 heads") and "53.00 %" in finding.text
    adds_up = [rows[0], pruned("all harmless one at a time", 0.985, 17, drop_low=-0.01)]
    assert harmless_does_not_add_up(adds_up, "x") == []


@pytest.mark.parametrize(
    "control, verdict",
    [(0.95, "the pruned model is better"), (0.9995, "pruning was not needed"), (0.992, "cannot be told apart")],
)
def test_pruned_against_control_says_what_the_intervals_say(control, verdict):
    rows = [pruned("intact", 0.99), pruned("pruned", 0.99, 21), pruned("control", control, 21)]
    assert verdict in pruned_against_control(rows, "x")[0].text
    assert pruned_against_control(rows[:2], "x") == []


def test_pruned_model_says_a_loss_only_beyond_the_interval():
    lost = pruned_model([pruned("intact", 0.99), pruned("pruned", 0.9, 10, 0.07)], "x")[0].text
    assert "a loss of 9.0 points" in lost and "22 % fewer parameters" in lost and "without further training" in lost
    same = pruned_model([pruned("intact", 0.99), pruned("pruned", 0.989, 10, -0.01)], "x")[0].text
    assert "cannot tell from zero" in same


def test_how_many_heads_can_go_together_is_told_only_if_any_can():
    def step(removed, lost):
        about = {"split": "validation", "fine_tuned": False, "kept": True, "removed": removed}
        return row("pruning", "exact_match", figure(0.99 - lost), **about, drop={"value": lost, "n": 200})

    harmless = row("pruning", "harmless_one_at_a_time", {"value": 3, "n": 6}, split="validation", heads=[])
    (finding,) = removed_together([step(0, 0.0), step(1, 0.0), step(2, 0.005), step(3, 0.2), harmless], "x")
    assert finding.figure == "2 of 6" and "2 of 6 heads can go within one point" in finding.text
    assert removed_together([step(0, 0.0), step(1, 0.2), harmless], "x") == []
