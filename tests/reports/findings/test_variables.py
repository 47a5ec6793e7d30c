"""What is said of a variable is in rows of swaps and errors, with n, interval, complement and control."""

from small_study import figure

from headcount.records.rows import Row, Rows, row
from headcount.reports.findings.variables import (
    controls,
    feed_forward,
    moved_together,
    movers,
    readers,
    signatures,
    ways_of_a_variable,
    where_it_sits,
)


def atlas(site, role, moved, errors=0.99, **changes) -> Row:
    evidence = {"moved": figure(moved, 1000), "errors": figure(errors, 210), "drops": {"zero": figure(0.1)}}
    evidence |= {"weights_on": {"same_column": {**figure(0.9, 2000), "uniform": 0.25}}, "settings": 81, "agreeing": 80}
    about = {"variable": "carry", "site": site, "role": role, **evidence, **changes}
    return row("atlas", "role", {"n": 1000}, **about)


def swap(site, value, size=1, metric="carry_flip", pairs="minimal", variable="carry") -> Row:
    return row("interchange", metric, figure(value, 1000), site=site, size=size, pairs=pairs, variable=variable)


def swapped(flips: dict[str, tuple[int, float]]) -> Rows:
    return [
        swap(site, value, size, metric)
        for site, (size, value) in flips.items()
        for metric in ("carry_flip", "carry_moved")
    ]


def test_movers_are_named_with_both_kinds_of_evidence_or_it_is_said_that_there_is_none():
    rows = [atlas("decoder.1.cross.1", "carry mover", 0.47), atlas("encoder.0.self.0", "not needed alone", 0.0)]
    (finding,) = movers(rows, "x")
    assert finding.text.startswith("decoder.1.cross.1 is a carry mover") and finding.figure == "47.0 %"
    assert "47.00 % (95 % interval 44.00 to 50.00 %, n = 1,000)" in finding.text
    assert "99.00 % (95 % interval 96.00 to 100.00 %, n = 210) are off by exactly one" in finding.text
    assert "80 of the 81 thresholds" in finding.text
    (none,) = movers([atlas("a", "other", 0.03), *rows[1:]], "x")
    assert none.text.startswith("No single site was found") and "a, moves it in 3.00 %" in none.text
    _, half = movers([atlas("a", "other", 0.35, 0.6), *rows[1:]], "x")
    assert "a in 35.00 %" in half.text and "60.00 %" in half.text and "not surely" in half.text
    unharmed = movers([atlas("a", "other", 0.35) | {"errors": None}], "x")[1]
    assert "no label is wrong if it is resampled" in unharmed.text


def test_every_variable_has_its_own_sentences():
    other = atlas("a", "other", 0.01, variable="borrow")
    first, second = movers([atlas("b", "carry mover", 0.5), other], "x")
    assert first.text.startswith("b is a carry mover") and "move the borrow" in second.text


def test_readers_are_told_with_a_head_without_preference_beside_them():
    assert readers([atlas("a", "carry mover", 0.5)], "x") == []
    assert "25.0 %" in readers([atlas("a", "reader", 0)], "x")[0].text


def test_signatures_need_enough_errors_and_a_difference():
    def errors(site, value, n=200, size=1):
        return row("signature", "carry_errors", figure(value, n), site=site, size=size, variable="carry")

    (finding,) = signatures([errors("a", 0.2), errors("b", 0.99), errors("c", 1.0, 19)], "x")
    assert "b makes errors of which 99.00 %" in finding.text and "2 sites made at least 20" in finding.text
    assert signatures([errors("a", 0.97), errors("b", 0.99)], "x") == []
    assert signatures([errors("a", 0.2), errors("b.*", 0.99, size=4)], "x") == [], "sets are not single sites"
    unwronged = row("signature", "carry_errors", None, site="d", size=1, variable="carry")
    assert signatures([errors("a", 0.2), unwronged], "x") == []


def test_a_set_is_compared_with_the_best_of_its_own_members():
    flips = {"decoder.0.cross.0": (1, 0.3), "decoder.0.cross.1": (1, 0.1), "decoder.1.cross.0": (1, 0.6)}
    (finding,) = moved_together(swapped({**flips, "decoder.0.cross.*": (2, 0.7)}), "x")
    assert "decoder.0.cross.* (2 sites) in 70.00 %" in finding.text
    assert "the best of them, decoder.0.cross.0, in 30.00 %" in finding.text
    assert moved_together(swapped({**flips, "decoder.0.cross.*": (2, 0.33)}), "x") == [], "within the interval"
    assert moved_together(swapped(flips), "x") == []


def test_a_set_is_the_only_way_only_if_its_complement_moves_nothing():
    name = "decoder.0.cross.*"
    (both,) = ways_of_a_variable(swapped({name: (4, 0.65), f"all but {name}": (20, 0.87)}), "x")
    assert both.text.startswith(
        "None of these sets is the only one that moves the carry: decoder.0.cross.* move it in"
    )
    assert "65.00 %" in both.text and "all other heads in 87.00 %" in both.text
    assert "does not make two ways of them" in both.text, "sites that follow each other both move it"
    mirrored = {"none": (0, 0.0), "encoder.0.mlp": (1, 0.2), "decoder.0.mlp": (1, 0.2), "encoder.*.mlp": (1, 0.5)}
    mirrored |= {"all but encoder.*.mlp": (1, 0.9), "decoder.*.mlp": (1, 0.9), "all but decoder.*.mlp": (1, 0.5)}
    (once,) = ways_of_a_variable(swapped(mirrored), "x")
    assert once.figure == "1 set" and "all other feed-forward sublayers in 90.00 %" in once.text
    (through,) = ways_of_a_variable(swapped({name: (4, 1.0), f"all but {name}": (20, 0.0)}), "x")
    assert through.text.startswith("The carry passes through decoder.0.cross.* (4 sites)")
    assert ways_of_a_variable(swapped({name: (4, 1.0)}), "x") == [], "the complement was not tested"


def test_sublayers_and_residuals_have_sentences_only_if_they_were_swapped():
    rows = swapped({"*.mlp": (4, 0.94), "encoder.0.residual@column": (1, 1.0), "encoder.0.residual@left": (1, 0.0)})
    assert "*.mlp 94.00 %" in feed_forward(rows, "x")[0].text
    (sits,) = where_it_sits(rows, "x")
    assert "encoder.0.residual, at column in 100 %" in sits.text and "at left in 0 %" in sits.text
    assert feed_forward(rows[2:], "x") == where_it_sits(rows[:2], "x") == []


def test_controls_say_what_happens_without_the_variable():
    quiet = swapped({"none": (0, 0.0), "a": (1, 0.5)})
    assert controls(quiet, "x") == []
    noisy = controls(swapped({"none": (0, 0.2)}), "x")[0].text
    assert "Read the carry figures with care" in noisy
    false = swap("a", 0.0, metric="carry_false_flip", pairs="control")
    (clear,) = controls([*quiet, false], "x")
    assert "not just any change" in clear.text and "0 % (95 % interval 0.00 to 3.00 %, n = 1,000)" in clear.text
    (doubt,) = controls([*quiet, {**false, **figure(0.4, 1000)}], "x")
    assert "not all that it moves is the carry" in doubt.text
    kept = swap("none", 0.845, 0, "carry_kept_own")
    assert "84.50 %" in controls([*quiet, kept], "x")[0].text
