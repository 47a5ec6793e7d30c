"""What the summary makes of rows, for labels and for answers."""

from headcount.analysis.lengths.summary import NEVER_LEARNED, NOT_MEASURED, ONE_CLASS, summarize
from headcount.records.intervals import rate
from headcount.records.rows import row
from headcount.reports.findings.label_lengths import goes_farthest, learned_in_distribution
from headcount.reports.findings.sequence_lengths import fitted_in_distribution, holds_farthest, holds_to_the_longest
from headcount.reports.tables.length_study import study_table
from headcount.reports.tables.lengths import answer_row as answer_cells
from headcount.reports.tables.lengths import label_row as label_cells


def label_row(seed, length, right, n=200, one_class=False):
    about = {"task": "sortedness", "variant": "x", "says": "x", "pooling": "max", "kind": "swap", "seed": seed}
    about |= {"length": length, "trained": [8, 16], "built_in": [], "training_seconds": 9.0}
    if right is None:
        return row("lengths", "accuracy", **about, not_measured="at chance at length 256")
    return row("lengths", "accuracy", rate(right, n), **about, not_measured=None, one_class_only=one_class)


def answer_row(variant, seed, kind, length, right, n=100):
    about = {"task": "addition", "variant": variant, "says": variant, "pooling": None, "kind": kind, "seed": seed}
    about |= {"length": length, "trained": [1, 20], "built_in": [], "training_seconds": 80.0 + seed}
    estimate = None if right is None else rate(right, n)
    return row("lengths", "exact_match", estimate, decoding="free-running", **about)


def test_summary_says_how_far_each_seed_holds():
    rows = [label_row(0, length, 200) for length in (8, 16, 32, 64)]
    rows += [label_row(1, 8, 200), label_row(1, 16, 199), label_row(1, 32, 190), label_row(1, 64, 200)]
    (summary,) = summarize(rows)
    assert summary["holds_to"] == {"0": 64, "1": 16}  # a gap at 32 counts
    assert summary["learned"] == 2 and summary["flags"] == []
    assert summary["accuracy"]["32"]["value"] == 390 / 400 and summary["accuracy"]["32"]["n"] == 400
    assert summary["accuracy"]["32"]["by_seed"] == {"0": 1.0, "1": 0.95}
    assert summary["in_distribution"]["n"] == 800 and list(summary["accuracy"]) == ["32", "64"]
    assert (summary["task"], summary["study"], summary["metric"]) == ("sortedness", "summary", "accuracy")


def test_summary_flags_the_two_classic_failures():
    rows = [label_row(0, 8, 110), label_row(0, 16, 100), label_row(0, 32, 100, one_class=True)]
    rows.append(label_row(0, 512, None))
    (summary,) = summarize(rows)
    assert summary["flags"] == [NEVER_LEARNED, ONE_CLASS]
    assert summary["holds_to"] == {"0": 0} and summary["one_class_from"] == {"0": 32}
    assert "512" not in summary["accuracy"]


def test_what_was_not_measured_is_not_called_not_learned():
    (summary,) = summarize([label_row(0, 32, 200), label_row(0, 64, 200)])
    assert summary["flags"] == [NOT_MEASURED] and summary["learned"] == 0
    assert summary["in_distribution"] is None and summary["value"] is None
    assert summary["in_distribution_by_seed"] == {"0": None} and summary["holds_to"] == {"0": None}
    table = study_table([summary])
    assert NOT_MEASURED in table and NEVER_LEARNED not in table and "0/1" not in table
    (shown,) = [label_cells(summary, list(summary["accuracy"]))]
    assert shown["learned"] == shown["99 % up to, by seed"] == "not measured"
    assert not goes_farthest([summary], "summary.json")
    (finding,) = learned_in_distribution([summary], "summary.json")
    assert "1 not measured there" in finding.text and "in none" not in finding.text


def test_answers_that_were_not_measured_are_not_called_never_fitted():
    (summary,) = summarize([answer_row("whole", 0, "random", 50, 100)])
    assert "never" not in study_table([summary]) and NOT_MEASURED in study_table([summary])
    shown = answer_cells(summary, list(summary["accuracy"]))
    assert shown["fitted"] == shown["holds to, by seed"] == "not measured"
    (finding,) = fitted_in_distribution([summary], "summary.json")
    assert "1 not measured there" in finding.text and "never" not in finding.text
    assert not holds_to_the_longest([summary], "summary.json") and not holds_farthest([summary], "summary.json")


def test_summary_tells_a_model_that_never_learned_from_one_that_does_not_extrapolate():
    rows = [answer_row("no-jitter", 0, "test", 20, 100), answer_row("no-jitter", 0, "random", 50, 20)]
    rows += [answer_row("whole", seed, "test", 20, 100) for seed in (0, 1)]
    rows += [answer_row("whole", 0, "random", 50, 100), answer_row("whole", 0, "random", 1000, 99)]
    rows += [answer_row("whole", 1, "random", 50, 90), answer_row("whole", 1, "random", 1000, None)]
    rows += [answer_row("alibi", 0, "test", 20, 40), answer_row("alibi", 0, "random", 50, 0)]
    whole, no_jitter, alibi = summarize(rows)  # in the order of the recipe
    assert (whole["variant"], no_jitter["variant"], alibi["variant"]) == ("whole", "no-jitter", "alibi")
    assert whole["holds_to"] == {"0": 1000, "1": 20} and whole["learned"] == 2
    assert whole["accuracy"]["50"]["value"] == 0.95 and whole["accuracy"]["1000"]["by_seed"] == {"0": 0.99, "1": None}
    assert whole["seconds"] == {"0": 80.0, "1": 81.0} and whole["pooling"] is None
    assert no_jitter["flags"] == [] and no_jitter["holds_to"] == {"0": 20}
    assert alibi["flags"] == [NEVER_LEARNED] and alibi["holds_to"] == {"0": 0}


def test_answers_count_as_learned_later_than_labels():
    (label,) = summarize([label_row(0, 16, 192)])
    (answer,) = summarize([answer_row("whole", 0, "test", 20, 96), answer_row("whole", 0, "random", 50, 96)])
    assert label["learned"] == 1 and answer["learned"] == 0


def test_groups_are_not_mixed():
    rows = [label_row(0, 16, 200), {**label_row(0, 16, 100), "pooling": "mean"}]
    rows += [{**label_row(0, 16, 150), "kind": "shuffle"}]
    found = {(each["pooling"], each["kind"]): each["value"] for each in summarize(rows)}
    assert found == {("max", "shuffle"): 0.75, ("max", "swap"): 1.0, ("mean", "swap"): 0.5}
