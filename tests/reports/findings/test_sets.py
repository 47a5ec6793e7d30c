"""What is said of sets was measured on sets, and beside it stands what they leave."""

from small_study import figure

from headcount.records.rows import Row, row
from headcount.reports.findings.sets import (
    lost_together,
    modes_disagree,
    redundant_sets,
    roles_by_seed,
    sites_needed,
)
from headcount.reports.study import Part


def drop(study, value, name="critical", certain=True, mode="mean", disagree=False, **about) -> Row:
    estimate = {"value": value, "n": 400, "interval": [value - 0.02, value + 0.02]}
    more = {"class": name, "class_is_certain": certain, "modes_disagree": disagree, "intact": figure(1.0, 400)}
    more |= {"ablated": figure(1.0 - value, 400, 0.02), "mode": mode, **about}
    return row(study, "exact_match_drop", estimate, decoding="free-running", **more)


def alone(head, value, name="important", mode="mean", disagree=False) -> Row:
    return drop("ablation", value, name, head=head, mode=mode, disagree=disagree)


def joint(site, size, value, name="critical", **more) -> Row:
    return drop("sets", value, name, site=site, size=size, **more)


HEADS = [f"decoder.{layer}.cross.{number}" for layer in (0, 1) for number in (0, 1)]


def test_together_is_compared_with_the_costliest_alone():
    ablation = [alone(head, 0.01 * number) for number, head in enumerate(HEADS)]
    sets = [joint("decoder.1.cross.*", 2, 0.6), joint("decoder.0.cross.*", 2, 0.02)]
    (finding,) = lost_together(Part("heads", {"ablation": ablation, "sets": sets}))
    assert finding.figure == "60.0 points" and finding.source == "heads/results/sets.json"
    assert "decoder.1.cross.* (2 heads) leave 40.00 %" in finding.text and "decoder.1.cross.1, 97.00 %" in finding.text
    assert "decoder.0.cross.*" not in finding.text, "within the interval of the costliest"
    left = [joint("all but decoder.0.cross.*", 2, 0.6)]
    assert (
        "all but decoder.0.cross.* (2 heads)" in lost_together(Part("", {"ablation": ablation, "sets": left}))[0].text
    )
    critical = [{**each, "class": "critical"} for each in ablation]
    assert lost_together(Part("", {"ablation": critical, "sets": sets})) == []
    assert lost_together(Part("", {"ablation": ablation})) == lost_together(Part("", {"sets": sets})) == []


def test_a_set_is_redundant_only_in_every_mode_for_certain_and_with_its_complement():
    def rows(certain=True):
        small = [
            joint("decoder.0.self.*", 4, 0.0, "redundant", mode=mode, certain=certain) for mode in ("zero", "mean")
        ]
        return [*small, joint("all but decoder.0.self.*", 20, 1.0, mode="zero")]

    (finding,) = redundant_sets(Part("", {"sets": rows()}))
    assert finding.text.startswith("As a set, decoder.0.self.* (4 sites) is redundant on this data")
    assert "without all other heads 0 % set to zero" in finding.text
    assert redundant_sets(Part("", {"sets": rows(certain=False)})) == []
    assert redundant_sets(Part("", {"sets": rows()[:2]})) == [], "its complement was not tested"


def test_where_modes_disagree_it_is_said_how_often_and_why():
    ablation = [alone("a", 0.1, mode="zero"), alone("a", 0.1)]
    sets = [
        joint("encoder.0.mlp", 1, value, mode=mode, disagree=True)
        for mode, value in (("zero", 0.1), ("resample", 0.9))
    ]
    (finding,) = modes_disagree(Part("", {"ablation": ablation, "sets": sets}))
    assert finding.figure == "0 of 1 head and 1 of 1 set" and "Most for encoder.0.mlp" in finding.text
    assert "90.00 %" in finding.text and "10.00 %" in finding.text and "the default" in finding.text
    assert modes_disagree(Part("", {"ablation": ablation})) == []


def test_how_many_sites_are_needed_is_decided_on_one_half_and_told_of_the_other():
    def found(size, chosen, value, best=0.5, variable="carry"):
        about = {"searched": "carry, cross-attention", "method": "all subsets", "pool": 8, "random_sets": 5}
        about |= {"heads": ["a", "b"], "on_chosen_half": {"value": chosen, "n": 200}, "variable": variable}
        about |= {"random_mean": {"value": 0.4, "n": 200}, "random_best": {"value": best, "n": 200}}
        return row("selection", "carry_flip", figure(value), size=size, **about)

    rows = [found(1, 0.3, 0.99), found(2, 0.96, 0.93), found(3, 1.0, 1.0)]
    (finding,) = sites_needed(rows, "x")
    assert finding.figure == "2 of 8" and "On the other half: 93.00 %" in finding.text and "a and b" in finding.text
    assert "40.0 % on average, 50.0 % at best." in finding.text
    assert "cannot be told from it" in sites_needed([found(2, 0.96, 0.93, 0.95)], "x")[0].text
    assert "no smaller set was enough" in sites_needed([found(8, 1.0, 1.0)], "x")[0].text
    assert sites_needed(rows[:1], "x") == [] and sites_needed([found(2, 0.96, 0.93, variable=None)], "x") == []


def test_seeds_are_the_unit():
    def part(role):
        return Part("runs/a", {"atlas": [row("atlas", "role", variable="carry", site="b", role=role)]})

    (finding,) = roles_by_seed({"a-0": part("carry mover"), "a-1": part("other"), "a-2": Part()})
    assert finding.figure == "1 of 2 seeds" and "a-0: b; a-1: none" in finding.text
    assert roles_by_seed({"a-0": part("carry mover")}) == []
