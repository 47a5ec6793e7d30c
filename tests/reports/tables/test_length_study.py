"""The table that `headcount extrapolate` prints."""

from headcount.analysis.lengths.summary import summarize
from headcount.records.intervals import rate
from headcount.records.rows import row
from headcount.reports.tables.length_study import study_table


def length_row(task, metric, kind, length, right, trained, **about):
    fixed = {"variant": "x", "says": "x", "pooling": None, "seed": 0, "built_in": [], "training_seconds": 1.0}
    fixed |= {"task": task, "kind": kind, "length": length, "trained": trained}
    return row("lengths", metric, None if right is None else rate(right, 10_000), **{**fixed, **about})


def test_labels_show_the_hardest_class_and_what_is_not_measured():
    rows = [
        length_row("sortedness", "accuracy", kind, length, right, [8, 16], pooling="max", built_in=["window"])
        for kind, length, right in (
            ("shuffle", 16, 10_000),
            ("shuffle", 64, 10_000),
            ("swap", 16, 10_000),
            ("swap", 64, 9_999),
            ("swap", 512, None),
        )
    ]
    title, header, line, built_in = study_table(summarize(rows)).splitlines()
    assert title == "accuracy in % by length, all seeds pooled (chance 50; - not measured)"
    assert header.split() == ["variant", "pooling", "class", "learned", "8-16", "64", "holds", "to,", "by", "seed"]
    assert line.split() == ["x", "max", "swap", "1/1", "100", ">", "99.9", "64"]
    assert built_in == "built in by hand: window"


def test_answers_show_every_class_and_no_pooling():
    rows = [length_row("addition", "exact_match", "test", 20, 4_000, [1, 20])]
    rows += [length_row("addition", "exact_match", kind, 50, 1_250, [1, 20]) for kind in ("random", "full_chain")]
    title, header, *lines = study_table(summarize(rows)).splitlines()
    assert title.startswith("exact match in % by digits") and "pooling" not in header
    assert [line.split()[:5] for line in lines] == [
        ["x", "random", "0/1", "40.0", "12.5"],
        ["x", "full_chain", "0/1", "40.0", "12.5"],
    ]
    assert all(line.endswith("never learned in distribution") for line in lines)
