"""How far encodings go, for tasks with labels: by the hardest class, every seed."""

from small_study import figure, summary_row

from headcount.records.rows import row
from headcount.reports.findings.label_lengths import (
    easy_class_is_a_shortcut,
    goes_all_the_way,
    goes_farthest,
    learned_in_distribution,
    one_class_failures,
)
from headcount.reports.findings.mathematics import mathematics_holds


def test_how_far_encodings_go():
    far, near = summary_row("alibi", built_in=["directional heads"]), summary_row("learned", learned=0)
    near |= {"holds_to": {"0": 0, "1": 0}, "one_class_from": {"0": 32, "1": None}}
    rows = [far, near]
    (learned,) = learned_in_distribution(rows, "x")
    assert learned.figure == "1 of 2" and "in none (learned / max)" in learned.text
    (whole,) = goes_all_the_way(rows, "x")
    assert "1 of 2 combinations stays at 99 % or more at every tested length up to 64: alibi / max, 2 of" in whole.text
    assert "built in by hand: directional heads." in whole.text
    assert goes_farthest(rows, "x") == []
    assert "learned / max from length 32 (1 of 2 seeds)" in one_class_failures(rows, "x")[0].text
    assert one_class_failures([far], "x") == []
    one_bad_seed = [{**far, "holds_to": {"0": 64, "1": 32}}]
    assert goes_all_the_way(one_bad_seed, "x") == []
    assert "in its worst seed alibi / max holds up to 32" in goes_farthest(one_bad_seed, "x")[0].text
    assert "no combination is at 99 % even at" in goes_farthest([near], "x")[0].text


def test_shuffles_are_a_shortcut_and_mathematics():
    easy, hard = summary_row("sin", "shuffle"), summary_row("sin", "swap", learned=0, in_distribution=figure(0.7, 400))
    assert "sin / max (100 %" in easy_class_is_a_shortcut([easy, hard], "x")[0].text
    assert easy_class_is_a_shortcut([easy, {**hard, "learned": 1}], "x") == []
    about = {"statement": "s", "subject": "rotary", "as_expected": True, "expected": False}
    check = row("mathematics", "residual", {"value": 0.1}, **about)
    assert mathematics_holds([check], "x")[0].text.startswith("All 1 checks")
    failed = {**check, "as_expected": False}
    assert "s (rotary: 0.1)" in mathematics_holds([check, failed], "x")[0].text


def test_not_measured_is_not_not_learned():
    rows = [summary_row("alibi"), summary_row("learned", learned=0, in_distribution=None)]
    (finding,) = learned_in_distribution(rows, "x")
    assert ", 1 not measured there" in finding.text and "in none" not in finding.text
