"""Tables for the terminal say what the rows say, for own models and for measures that are no share."""

from small_study import figure

from headcount.records.rows import row
from headcount.reports.tables.evaluation import evaluation_lines
from headcount.reports.tables.terminal import head_ranking_text


def test_evaluation_has_a_line_for_every_figure():
    about = {"task": "addition", "split": "test", "kind": None, "length": None}
    free = {"decoding": "free-running", **about}
    rates = {"true_positive_rate": 1.0, "true_negative_rate": None, "majority_class_rate": 0.5}
    long = {**free, "split": "test_50", "kind": "random", "length": 50}
    rows = [
        row("evaluation", "exact_match", figure(0.99999, 2000, 0), **free),
        row("evaluation", "exact_match", figure(0.5), scope={"group": "nines"}, **free),
        row("evaluation", "wrong_answer", {"n": 1}, **free, input="1+1", target="2", generated="3"),
        row("evaluation", "exact_match", figure(0.9), **long),
        row("evaluation", "accuracy", {**figure(0.75), **rates}, **about),
    ]
    head, whole, part, wrong, at_length, labels = evaluation_lines(rows).splitlines()
    assert head.startswith("what") and "> 99.99 %" in whole and "2,000" in whole, "never rounded to certainty"
    assert part.startswith("test exact_match (free-running) group nines ") and "50.00 %" in part
    assert wrong == "  wrong: 1+1 = 2, generated 3 (test)"
    assert at_length.startswith("test_50 exact_match (free-running) length 50 kind random ")
    assert labels.endswith("positives 100 %  negatives -  majority 50.0 %")


def test_heads_by_what_they_cost_in_points_or_in_the_unit_of_the_measure():
    def ablated(head, value, name, p):
        about = {"head": head, "mode": "zero", "runner": "loop", "intact": figure(0.9), "p_holm": p}
        about |= {"class": name, "class_is_certain": name and name != "not needed alone"}
        metric = "exact_match_drop" if name else "log_likelihood_drop"
        return row("ablation", metric, figure(value, 40), **about)

    gradient = [row("gradient", "gradient_importance", {"value": 0.1, "n": 9}, head=head) for head in ("a", "b")]
    shares = [ablated("a", 0.01, "not needed alone", 1.0), ablated("b", 0.5, "critical", 0.001)]
    text = head_ranking_text({"ablation": shares, "gradient": gradient}).splitlines()
    assert (
        text[1].split()[:2] == ["b", "50.00"]
        and "critical " in text[1]
        and "not needed alone?" in text[2]
        and "p (Holm)" not in text[0]
    )
    evidence = {"variable": "carry", "moved": figure(0.25), "errors": figure(0.98, 50), "role": "carry mover"}
    atlas = [row("atlas", "role", {"n": 9}, **evidence, site="b")]
    text = head_ranking_text({"ablation": shares, "gradient": gradient, "atlas": atlas}).splitlines()
    assert "carry moved" in text[0] and text[1].split()[-8:] == ["25.0", "%", "98", "%", "of", "50", "carry", "mover"]
    numbers = [ablated("a", 0.125, None, None)]
    text = head_ranking_text({"ablation": numbers, "gradient": gradient}).splitlines()
    assert text[1].split()[1] == "0.1250" and "log_likelihood_drop" in text[2]


def test_sets_stand_under_the_heads_each_with_its_complement():
    def lost(site, size, right, mode):
        about = {"site": site, "size": size, "mode": mode, "intact": figure(0.9), "ablated": figure(right)}
        return row("sets", "exact_match_drop", figure(0.9 - right, 40), **about)

    drop = {"class": "critical", "class_is_certain": True, "intact": figure(0.9), "runner": "loop"}
    alone = [row("ablation", "exact_match_drop", figure(0.5, 40), head="a", mode="zero", **drop)]
    gradient = [row("gradient", "gradient_importance", {"value": 0.1, "n": 9}, head="a")]
    names = {"decoder.0.cross.*": 4, "all but decoder.0.cross.*": 20, "decoder.0.self.*": 4}
    sets = [lost(name, size, 0.25, mode) for mode in ("zero", "mean") for name, size in names.items()]
    about = {"size": 4, "pairs": "minimal", "variable": "carry", "site": "decoder.0.cross.*"}
    swapped = [row("interchange", f"carry_{word}", figure(0.66, 30), **about) for word in ("flip", "moved")]
    results = {"ablation": alone, "gradient": gradient, "sets": sets, "interchange": swapped}
    lines = head_ranking_text(results).splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("set "))
    assert lines[first].split() == ["set", "sites", "zero", "mean", "carry", "flip", "carry", "moved"]
    assert lines[first + 1].split() == ["decoder.0.cross.*", "4", "25.0", "%", "25.0", "%", "66.0", "%", "66.0", "%"]
    assert [line.rsplit("*")[0] for line in lines[first + 2 : first + 4]] == [
        "all but decoder.0.cross.",
        "decoder.0.self.",
    ]
    assert "n = 40" in lines[-1] and "30 minimal pairs" in lines[-1]
