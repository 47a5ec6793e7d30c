"""What is said of heads is in their rows, with control and interval, and appears nowhere else."""

from small_study import figure

from headcount.records.rows import row
from headcount.reports.findings.heads import (
    ablation_modes_differ,
    best_ranking,
    classes_of_heads,
    costliest_head,
    gradient_agrees,
    switched_off_repairs,
)


def ablated(head, value, name="critical", certain=True, mode="zero", p=0.001) -> dict:
    estimate = {"value": value, "n": 2000, "interval": [value - 0.02, value + 0.02]}
    about = {"class": name, "class_is_certain": certain, "p_holm": p, "intact": figure(0.99, 2000)}
    about |= {"head": head, "mode": mode, "ablated": figure(0.99 - value, 2000)}
    return row("ablation", "exact_match_drop", estimate, decoding="free-running", **about)


def test_classes_of_heads_count_and_say_how_certain():
    rows = [ablated("encoder.0.self.0", 0.5), ablated("encoder.0.self.1", 0.0, "not needed alone", False)]
    rows += [row("ablation", "loss_rise", {"value": 3.0}, head="encoder.0.self.0", mode="zero")]
    rows += [{**rows[0], "scope": {"longest_chain": 2}}]
    (finding,) = classes_of_heads(rows, "x")
    assert "nothing of several together" in finding.text
    assert finding.figure == "1 of 2" and "0 important" in finding.text and "1 not needed alone" in finding.text
    assert "For 1 of the 2" in finding.text and "(0 of those not needed alone)" in finding.text
    assert classes_of_heads(rows[2:], "x") == []


def test_costliest_head_must_be_beyond_chance():
    (finding,) = costliest_head([ablated("a", 0.5), ablated("b", 0.1)], "x")
    assert finding.figure == "50.0 points" and "than a: without it" in finding.text and "n = 2,000" in finding.text
    assert costliest_head([ablated("a", 0.01, p=0.4)], "x") == []


def test_constant_heads_need_both_ablations_to_be_certain():
    zero, mean = ablated("a", 0.2), ablated("a", 0.0, "not needed alone", mode="mean")
    (finding,) = ablation_modes_differ([zero, mean], "x")
    assert "What 1 head adds for the model is a constant: a costs 20.0 points" in finding.text
    assert ablation_modes_differ([zero, {**mean, "class_is_certain": False}], "x") == []
    assert ablation_modes_differ([zero], "x") == []
    other = ablated("a", 0.3, mode="resample")
    assert ablation_modes_differ([zero, mean, other], "x") == [], "what it puts out for another example is missed"
    assert ablation_modes_differ([zero, mean, {**mean, "mode": "resample"}], "x")


def test_gradient_rankings_and_repairs():
    agrees = row("gradient", "rank_correlation", {"value": -0.35, "n": 24}, compared_with="exact_match_drop")
    assert gradient_agrees([agrees], "x")[0].figure == "ρ = −0.35"
    assert gradient_agrees([{**agrees, "compared_with": "loss_rise"}], "x") == []
    assert gradient_agrees([{**agrees, "value": None}], "x") == [], "heads that all cost the same have no order"
    regrets = [
        row("subsets", "mean_regret", {"value": v, "n": 200}, ranking=name) for name, v in (("b", 0.1), ("a", 0.02))
    ]
    assert "a 2.0 points and b 10.0 points" in best_ranking(regrets, "x")[0].text
    assert best_ranking(regrets[:1], "x") == []
    texts = {"example": 0, "input": "1+1", "target": "2"}
    rows = [
        row("toggles", "exact_match", {"n": 1}, **texts, head=head, answer=answer, right=answer == "2")
        for head, answer in ((None, "3"), ("a", "2"))
    ]
    assert "1 of 1 failure" in switched_off_repairs(rows, "x")[0].text
    assert switched_off_repairs([rows[0], {**rows[1], "right": False}], "x") == []


def test_a_measure_that_is_no_share_has_no_class_but_a_costliest_head():
    about = {
        "class": None,
        "class_is_certain": None,
        "head": "encoder.0.self.0",
        "mode": "zero",
        "intact": figure(0.8),
    }
    drop = {"value": 0.3, "n": 20, "interval": [0.2, 0.4]}
    number = row("ablation", "log_likelihood_drop", drop, **about, p_holm=0.01)
    assert classes_of_heads([number], "x") == []
    assert "without it the log likelihood falls by 0.3000" in costliest_head([number], "x")[0].text
    by_resampling = {**number, "p_holm": None}
    assert costliest_head([by_resampling], "x") and not costliest_head([{**by_resampling, "interval": [-1, 1]}], "x")
    assert costliest_head([{**number, "interval": None}], "x") == [], "one example alone"
