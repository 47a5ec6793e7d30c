"""A sentence appears where the rows bear it, with their figures, and nowhere else."""

import pytest
from small_study import addition_lengths, addition_study, figure, summary_row

from headcount.analysis.addition_summary import summarize_addition
from headcount.reports import addition_findings, head_findings, length_findings, pruning_findings, run_findings
from headcount.reports.findings import collect_findings
from headcount.reports.study_folder import Run, read_study
from headcount.reports.wording import apart, at_least, drop, listed, percent, share


def run(name="addition-0", task="addition", seed=0, rows=(), config=None, recipe=None) -> Run:
    recipe = {"name": "addition", "task": task, "data": {"digits": 3}, **(recipe or {})}
    return Run(name, recipe, {"seed": seed}, [], list(rows), [], config or {}, f"runs/{name}")


def measured(metric, value, n=2000, split="test", half=0.002, **more) -> dict:
    return {"metric": metric, "split": split, **figure(value, n, half), **more}


def texts(findings) -> list[str]:
    return [finding.text for finding in findings]


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


def test_free_running_shows_every_seed_with_teacher_forcing_and_chance():
    runs = [
        run(
            f"addition-{seed}",
            seed=seed,
            rows=[measured("exact_match", value), measured("token_accuracy", 0.9999, 10_000)],
        )
        for seed, value in ((0, 0.99), (1, 0.97))
    ]
    (finding,) = run_findings.free_running(runs)
    assert finding.figure == "≥ 97.00 %" and finding.source == "runs/addition-0/results/evaluation.json"
    assert "99.00 % (98.80 to 99.20 %, seed 0) and 97.00 % (96.80 to 97.20 %, seed 1)" in finding.text
    assert "n = 2,000 each" in finding.text and "99.99 % and 99.99 % (n = 10,000 tokens)" in finding.text
    assert "1,999 possible answers is right in 0.05 %" in finding.text and "Built in" not in finding.text
    assert run_findings.free_running([run()]) == []


def test_what_is_built_in_is_named_beside_the_figure():
    coupled = run(rows=[measured("exact_match", 1.0)], config={"position_scheme": "coupled"})
    assert run_findings.free_running([coupled])[0].text.endswith("Built in by hand: coupled position ids.")


def test_teacher_forcing_flatters_only_where_it_does():
    gap = run(rows=[measured("exact_match", 0.349), measured("token_accuracy", 0.9985, 10_000)])
    (finding,) = run_findings.teacher_forcing_flatters([gap])
    assert "99.85 %" in finding.text and "34.90 %" in finding.text and finding.figure == "65.0 points"
    close = run(rows=[measured("exact_match", 0.999), measured("token_accuracy", 0.9998, 10_000)])
    assert run_findings.teacher_forcing_flatters([close]) == []
    few = run(rows=[measured("exact_match", 0.8, 10, half=0.3), measured("token_accuracy", 0.9, 50, half=0.1)])
    assert run_findings.teacher_forcing_flatters([few]) == [], "ten problems bear no such sentence"


def test_weakest_group_needs_intervals_that_are_apart():
    whole, weak = (
        measured("exact_match", 0.99, split="hard"),
        measured("exact_match", 0.85, 160, "hard", group="nines"),
    )
    (finding,) = run_findings.weakest_group([run(rows=[whole, {**weak, "interval": [0.79, 0.9]}])])
    assert "weakest on nines problems of the hard split: 85.00 %" in finding.text
    assert run_findings.weakest_group([run(rows=[whole, {**weak, "interval": [0.79, 0.999]}])]) == []


def test_errors_are_counted_over_seeds_and_none_is_no_proof():
    wrong = {"metric": "wrong_answer", "split": "test", "input": "506+526", "target": "1032", "generated": "0032"}
    runs = [run(rows=[measured("exact_match", 0.999), wrong]), run("addition-1", rows=[measured("exact_match", 1.0)])]
    (finding,) = run_findings.errors(runs)
    assert finding.figure == "2 of 4,000" and "asked 506+526, addition-0 writes 0032 instead of 1032" in finding.text
    (none,) = run_findings.errors(runs[1:])
    assert "no wrong answer among 2,000" in none.text and "0.15 %" in none.text


def test_sortedness_runs():
    def row(length, value, one_class=False):
        more = {"length": length, "kind": "swap", "majority_class_rate": 0.5, "one_class_only": one_class}
        return measured("accuracy", value, 200, f"test_{length}", **more)

    good = run("s-0", "sortedness", rows=[row(8, 1.0), row(64, 0.97)], recipe={"name": "sortedness"})
    (finding,) = run_findings.sorted_or_not([good])
    assert "up to length 64" in finding.text and "97.00 %" in finding.text and "at length 64 on swap" in finding.text
    assert "larger class is 50 %" in finding.text and run_findings.calls_all_the_same([good]) == []
    bad = run("s-1", "sortedness", rows=[row(8, 1.0), row(64, 0.5, True), row(32, 0.5, True)])
    assert "same class from length 32 on" in run_findings.calls_all_the_same([bad])[0].text


def ablated(head, value, name="critical", certain=True, mode="zero", p=0.001) -> dict:
    low, high = value - 0.02, value + 0.02
    row = {
        "head": head,
        "mode": mode,
        "metric": "exact_match_drop",
        "value": value,
        "n": 2000,
        "interval": [low, high],
    }
    row |= {"class": name, "class_is_certain": certain, "p_holm": p}
    return {**row, "intact": figure(0.99, 2000), "ablated": figure(0.99 - value, 2000)}


def test_classes_of_heads_count_and_say_how_certain():
    rows = [ablated("encoder.0.self.0", 0.5), ablated("encoder.0.self.1", 0.0, "redundant", False)]
    rows += [{"head": "encoder.0.self.0", "mode": "zero", "metric": "loss_rise", "value": 3.0}]
    (finding,) = head_findings.classes_of_heads(rows, "x")
    assert finding.figure == "1 of 2" and "0 important" in finding.text and "1 redundant" in finding.text
    assert "For 1 of the 2" in finding.text and "(0 of the redundant ones)" in finding.text
    assert head_findings.classes_of_heads(rows[2:], "x") == []


def test_costliest_head_must_be_beyond_chance():
    (finding,) = head_findings.costliest_head([ablated("a", 0.5), ablated("b", 0.1)], "x")
    assert finding.figure == "50.0 points" and "than a: without it" in finding.text and "n = 2,000" in finding.text
    assert head_findings.costliest_head([ablated("a", 0.01, p=0.4)], "x") == []


def test_constant_heads_need_both_ablations_to_be_certain():
    zero, mean = ablated("a", 0.2), ablated("a", 0.0, "redundant", mode="mean")
    (finding,) = head_findings.ablation_modes_differ([zero, mean], "x")
    assert "What 1 head adds for the model is a constant: a costs 20.0 points" in finding.text
    assert head_findings.ablation_modes_differ([zero, {**mean, "class_is_certain": False}], "x") == []
    assert head_findings.ablation_modes_differ([zero], "x") == []


def atlas(head, role, flip) -> dict:
    return {"head": head, "role": role, "carry_flip": figure(flip, 1000), "carry_excess": figure(0.05, 287),
            "moves_the_carry": flip > 0.05, "same_column": {**figure(0.9, 2000), "uniform": 0.25}}  # fmt: skip


def test_carry_heads_are_named_or_it_is_said_that_there_is_none():
    rows = [atlas("decoder.1.cross.1", "carry head", 0.47), atlas("encoder.0.self.0", "redundant", 0.0)]
    (finding,) = head_findings.carry_heads(rows, "x")
    assert finding.text.startswith("decoder.1.cross.1 carries the carry.") and finding.figure == "47.0 %"
    assert "47.00 % (95 % interval 44.00 to 50.00 %, n = 1,000)" in finding.text
    (none,) = head_findings.carry_heads([atlas("a", "other", 0.03), *rows[1:]], "x")
    assert none.text.startswith("No single head was found") and "a, moves it in 3.00 %" in none.text
    (half,) = head_findings.carry_heads([atlas("a", "other", 0.35), *rows[1:]], "x")
    assert half.text.startswith("a moves the carry in 35.00 %") and "is not shown" in half.text
    assert head_findings.aligned_heads(rows, "x") == []
    assert "25.0 %" in head_findings.aligned_heads([atlas("a", "aligner", 0)], "x")[0].text


def test_noisy_control_gradient_rankings_and_repairs():
    control = {"head": "none", "metric": "carry_flip", **figure(0.2, 100)}
    assert "Read the carry figures with care" in head_findings.control_of_interchange([control], "x")[0].text
    assert head_findings.control_of_interchange([{**control, "value": 0.0}], "x") == []
    agrees = {"with": "exact_match_drop", "value": -0.35, "n": 24}
    assert head_findings.gradient_agrees([agrees], "x")[0].figure == "ρ = −0.35"
    assert head_findings.gradient_agrees([{"with": "loss_rise", "value": 1, "n": 2}], "x") == []
    regrets = [
        {"metric": "mean_regret", "ranking": name, "value": v, "n": 200} for name, v in (("b", 0.1), ("a", 0.02))
    ]
    assert "a 2.0 points and b 10.0 points" in head_findings.best_ranking(regrets, "x")[0].text
    assert head_findings.best_ranking(regrets[:1], "x") == []
    rows = [{"example": 0, "input": "1+1", "target": "2", "answer": "3", "head": None, "right": False},
            {"example": 0, "input": "1+1", "target": "2", "answer": "2", "head": "a", "right": True}]  # fmt: skip
    assert "1 of 1 failure" in head_findings.switched_off_repairs(rows, "x")[0].text
    assert head_findings.switched_off_repairs([rows[0], {**rows[1], "right": False}], "x") == []


def pruned(model, value, removed=0, drop_low=0.4, **more) -> dict:
    row = {"metric": "exact_match", "split": "test", "model": model, "removed": removed, **figure(value, 2000, 0.004)}
    row["drop"] = {"value": 0.99 - value, "n": 2000, "interval": [drop_low, 0.99 - value + 0.02]}
    return {**row, "parameters": 900 - 20 * removed, "bytes": 4, "relative_speed": 1.5, **more}


def test_harmless_does_not_add_up_only_where_it_does_not():
    rows = [pruned("intact", 0.99), pruned("all harmless one at a time", 0.53, 17)]
    (finding,) = pruning_findings.harmless_does_not_add_up(rows, "x")
    assert finding.text.startswith("Harmless does not add up: 17 heads") and "53.00 %" in finding.text
    adds_up = [rows[0], pruned("all harmless one at a time", 0.985, 17, drop_low=-0.01)]
    assert pruning_findings.harmless_does_not_add_up(adds_up, "x") == []


@pytest.mark.parametrize(
    "control, verdict",
    [(0.95, "the pruned model is better"), (0.9995, "pruning was not needed"), (0.992, "cannot be told apart")],
)
def test_pruned_against_control_says_what_the_intervals_say(control, verdict):
    rows = [pruned("intact", 0.99), pruned("pruned", 0.99, 21), pruned("control", control, 21)]
    assert verdict in pruning_findings.pruned_against_control(rows, "x")[0].text
    assert pruning_findings.pruned_against_control(rows[:2], "x") == []


def test_pruned_model_says_a_loss_only_beyond_the_interval():
    lost = pruning_findings.pruned_model([pruned("intact", 0.99), pruned("pruned", 0.9, 10, 0.07)], "x")[0].text
    assert "a loss of 9.0 points" in lost and "22 % fewer parameters" in lost and "without further training" in lost
    same = pruning_findings.pruned_model([pruned("intact", 0.99), pruned("pruned", 0.989, 10, -0.01)], "x")[0].text
    assert "cannot tell from zero" in same


def test_how_far_encodings_go():
    far, near = summary_row("alibi", built_in=["directional heads"]), summary_row("learned", learned=0)
    near |= {"holds_to": {"0": 0, "1": 0}, "one_class_from": {"0": 32, "1": None}}
    rows = [far, near]
    (learned,) = length_findings.learned_in_distribution(rows, "x")
    assert learned.figure == "1 of 2" and "in none (learned / max)" in learned.text
    (whole,) = length_findings.goes_all_the_way(rows, "x")
    assert "1 of 2 combinations stays at 99 % or more at every tested length up to 64: alibi / max, 2 of" in whole.text
    assert "built in by hand: directional heads." in whole.text
    assert length_findings.goes_farthest(rows, "x") == []
    assert "learned / max from length 32 (1 of 2 seeds)" in length_findings.one_class_failures(rows, "x")[0].text
    assert length_findings.one_class_failures([far], "x") == []
    one_bad_seed = [{**far, "holds_to": {"0": 64, "1": 32}}]
    assert length_findings.goes_all_the_way(one_bad_seed, "x") == []
    assert "in its worst seed alibi / max holds up to 32" in length_findings.goes_farthest(one_bad_seed, "x")[0].text
    assert "no combination is at 99 % even at" in length_findings.goes_farthest([near], "x")[0].text


def test_shuffles_are_a_shortcut_and_mathematics():
    easy, hard = summary_row("sin", "shuffle"), summary_row("sin", "swap", learned=0, in_distribution=figure(0.7, 400))
    assert "sin / max (100 %" in length_findings.shuffles_are_a_shortcut([easy, hard], "x")[0].text
    assert length_findings.shuffles_are_a_shortcut([easy, {**hard, "learned": 1}], "x") == []
    check = {"statement": "s", "subject": "rotary", "value": 0.1, "as_expected": True, "expected": False}
    assert length_findings.mathematics_holds([check], "x")[0].text.startswith("All 1 checks")
    failed = {**check, "as_expected": False}
    assert "s (rotary: 0.1)" in length_findings.mathematics_holds([check, failed], "x")[0].text


def summed(reach: dict, rows: int = 100) -> list[dict]:
    return summarize_addition(addition_lengths(reach, rows), {})


def test_how_far_addition_goes():
    rows = addition_study()["summary"]
    (fitted,) = addition_findings.fitted_in_distribution(rows, "x")
    assert (
        fitted.figure == "2 of 4" and "problems of 1 to 20 digits in every seed (whole and no-jitter)" in fitted.text
    )
    assert "1 in none (alibi: never fitted, which says nothing about longer numbers)" in fitted.text
    assert fitted.text.endswith("coupled position ids (whole, no-jitter and alibi); nothing (baseline-none).")
    (far,) = addition_findings.holds_to_the_longest(rows, "x")
    assert far.figure == "1,000" and far.text.startswith("2 of 4 variants stay at 99 %")
    assert "whole, 2 of 2 seeds, with 100 % (95 % interval 98.12 to 100.00 %, n = 200) at 1,000" in far.text
    assert "baseline-none, 1 of 2 seeds (1 never fitted), with 100 %" in far.text
    assert far.text.endswith("Built in by hand: coupled position ids (whole); nothing (baseline-none).")
    assert addition_findings.holds_farthest(rows, "x") == []


def test_where_none_holds_to_the_longest_number_the_farthest_is_named():
    near = [row for row in addition_study()["summary"] if row["variant"] in ("no-jitter", "alibi")]
    assert addition_findings.holds_to_the_longest(near, "x") == []
    (finding,) = addition_findings.holds_farthest(near, "x")
    assert (
        finding.figure == "50" and "up to 200 digits" in finding.text and "no-jitter holds up to 50." in finding.text
    )
    assert finding.text.endswith("Built in by hand: coupled position ids (no-jitter).")
    never = summed({("alibi", 0): None})
    assert addition_findings.holds_farthest(never, "x") == [], "what never fitted does not fail at long numbers"
    weakest = summed({("whole", 0): 1000})
    weakest[1]["holds_to"]["0"] = 200
    assert "whole holds up to 200" in addition_findings.holds_farthest(weakest, "x")[0].text, "every class must hold"


def test_a_change_is_said_to_matter_only_where_the_rows_show_it():
    (finding,) = addition_findings.against_the_whole(addition_study()["summary"], "x")
    assert finding.figure == "0 %" and finding.text.startswith(
        "no-jitter (scores as they are) falls short of the recipe"
    )
    assert (
        "0 % (95 % interval 0.00 to 1.88 %, n = 200) against 100 %" in finding.text and "at 200 digits" in finding.text
    )
    assert "It holds up to 50 digits, the recipe up to 1,000 digits." in finding.text
    assert finding.text.endswith("Built in by hand: coupled position ids (no-jitter and whole).")
    assert "trained on" not in finding.text, "both on the same lengths"
    otherwise = [
        {**row, "trained": [20, 20]} if row["variant"] == "no-jitter" else row for row in addition_study()["summary"]
    ]
    (finding,) = addition_findings.against_the_whole(otherwise, "x")
    assert "It was trained on numbers of 20 digits, the recipe of 1 to 20 digits." in finding.text
    better = summed({("whole", 0): 50, ("log_n", 0): 1000})
    assert (
        "log_n (scores times log n, no jitter) does better" in addition_findings.against_the_whole(better, "x")[0].text
    )
    one_seed_never_fitted = summed({("whole", 0): 1000, ("alibi", 0): 50, ("alibi", 1): None})
    few = summed({("whole", 0): 1000, ("no-jitter", 0): 50}, rows=1)
    for rows in (one_seed_never_fitted, few, summed({("log_n", 0): 1000, ("no-jitter", 0): 50})):
        assert addition_findings.against_the_whole(rows, "x") == []


def test_generated_sums_agree_or_it_is_said_where_not():
    rows = addition_study()["generated"]
    assert addition_findings.generated_as_decided(rows, "x")[0].figure == "0 of 2,200"
    (finding,) = addition_findings.generated_as_decided([*rows[1:], {**rows[0], "disagree": 3}], "x")
    assert "another end on 3 of 2,200 problems (no-jitter)" in finding.text


def test_a_real_study_has_findings_of_every_part_and_their_sources_exist(study):
    found = collect_findings(read_study(study))
    assert list(found) == ["runs", "heads", "pruning", "length", "adding"]
    for finding in (finding for own in found.values() for finding in own):
        assert (study / finding.source).exists() and finding.text.endswith(".") and finding.figure


@pytest.mark.parametrize(("trained", "words"), [([1, 20], "of 1 to 20 digits"), ([20, 20], "of 20 digits")])
def test_one_training_length_is_not_a_range(trained, words):
    assert addition_findings.training_lengths([{"trained": trained}]) == words
