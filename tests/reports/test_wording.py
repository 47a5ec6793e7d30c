"""Figures in words: never rounded to certainty."""

from small_study import figure

from headcount.reports.wording import apart, at_least, drop, listed, percent, share


def test_wording_never_rounds_to_certainty():
    assert percent(1) == "100 %" and percent(0) == "0 %"
    assert percent(0.9995) == "99.95 %" and percent(0.99999) == "> 99.99 %" and percent(0.00001) == "< 0.01 %"
    assert at_least([0.5]) == "50.00 %" and at_least([1.0, 1.0]) == "100 %" and at_least([0.9, 1.0]) == "≥ 90.00 %"
    assert share({"value": 0.5, "n": 2000, "interval": [0.478, 0.522]}) == (
        "50.00 % (95 % interval 47.80 to 52.20 %, n = 2,000)"
    )
    assert drop({"value": -0.001, "n": 10, "interval": [-0.02, 0.01]}) == (
        "−0.1 points (95 % interval −2.0 to 1.0, n = 10)"
    )
    assert listed(["a"]) == "a" and listed(["a", "b"]) == "a and b" and listed(["a", "b", "c"]) == "a, b and c"
    assert listed(["a", "b", "c", "d"], 2) == "a, b and 2 more" and listed(["a", "b"], 2) == "a and b"
    assert apart(figure(0.9), figure(0.5)) == 1 and apart(figure(0.5), figure(0.9)) == -1
    assert apart(figure(0.5), figure(0.52)) == 0
