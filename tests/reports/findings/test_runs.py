"""What is said of trained models is in their rows, with every seed, and appears nowhere else."""

from pathlib import Path

from small_study import figure

from headcount.records.rows import Row, row
from headcount.records.run_folder import Run
from headcount.reports.findings.runs import (
    calls_all_the_same,
    errors,
    free_running,
    lowest_accuracy,
    run_findings,
    teacher_forcing_flatters,
    weakest_part,
)
from headcount.reports.study import Study


FOLDER = Path("study")


def run(name="addition-0", task="addition", seed=0, rows=(), config=None, recipe=None, data=None) -> Run:
    data = {"digits": 3} if task == "addition" else {}
    recipe = {"name": "addition", "task": task, "data": data, **(recipe or {})}
    return Run(FOLDER / "runs" / name, recipe, {"seed": seed}, config or {}, rows={"evaluation": list(rows)})


def found_by(find, runs: list[Run]):
    return find(runs, Study(FOLDER, {}, runs))


def measured(metric, value, n=2000, split="test", half=0.002, scope=None, **more) -> Row:
    about = {"split": split, "kind": None, "length": None, **more}
    return row("evaluation", metric, figure(value, n, half), scope=scope, **about)


def test_free_running_shows_every_seed_with_teacher_forcing_and_chance():
    runs = [
        run(
            f"addition-{seed}",
            seed=seed,
            rows=[measured("exact_match", value), measured("token_accuracy", 0.9999, 10_000)],
        )
        for seed, value in ((0, 0.99), (1, 0.97))
    ]
    (finding,) = found_by(free_running, runs)
    assert finding.figure == "≥ 97.00 %" and finding.source == "runs/addition-0/results/evaluation.json"
    assert "99.00 % (98.80 to 99.20 %, seed 0) and 97.00 % (96.80 to 97.20 %, seed 1)" in finding.text
    assert "n = 2,000 each" in finding.text and "99.99 % and 99.99 % (n = 10,000 tokens)" in finding.text
    assert "1,999 possible answers is right in 0.05 %" in finding.text and "Built in" not in finding.text
    assert found_by(free_running, [run()]) == []


def test_what_is_built_in_is_named_beside_the_figure():
    coupled = run(rows=[measured("exact_match", 1.0)], config={"position_scheme": "coupled"})
    assert found_by(free_running, [coupled])[0].text.endswith("Built in by hand: coupled position ids.")


def test_teacher_forcing_flatters_only_where_it_does():
    gap = run(rows=[measured("exact_match", 0.349), measured("token_accuracy", 0.9985, 10_000)])
    (finding,) = found_by(teacher_forcing_flatters, [gap])
    assert "99.85 %" in finding.text and "34.90 %" in finding.text and finding.figure == "65.0 points"
    close = run(rows=[measured("exact_match", 0.999), measured("token_accuracy", 0.9998, 10_000)])
    assert found_by(teacher_forcing_flatters, [close]) == []
    few = run(rows=[measured("exact_match", 0.8, 10, half=0.3), measured("token_accuracy", 0.9, 50, half=0.1)])
    assert found_by(teacher_forcing_flatters, [few]) == [], "ten problems bear no such sentence"


def test_weakest_part_needs_intervals_that_are_apart():
    whole, weak = (
        measured("exact_match", 0.99, split="hard"),
        measured("exact_match", 0.85, 160, "hard", scope={"group": "nines"}),
    )
    (finding,) = found_by(weakest_part, [run(rows=[whole, {**weak, "interval": [0.79, 0.9]}])])
    assert "weakest on problems of the hard split with carry group nines: 85.00 %" in finding.text
    assert found_by(weakest_part, [run(rows=[whole, {**weak, "interval": [0.79, 0.999]}])]) == []


def test_errors_are_counted_over_seeds_and_none_is_no_proof():
    texts = {"input": "506+526", "target": "1032", "generated": "0032"}
    wrong = row("evaluation", "wrong_answer", {"n": 1}, decoding="free-running", split="test", **texts)
    runs = [run(rows=[measured("exact_match", 0.999), wrong]), run("addition-1", rows=[measured("exact_match", 1.0)])]
    (finding,) = found_by(errors, runs)
    assert finding.figure == "2 of 4,000" and "asked 506+526, addition-0 writes 0032 instead of 1032" in finding.text
    (none,) = found_by(errors, runs[1:])
    assert "no wrong answer among 2,000" in none.text and "0.15 %" in none.text


def test_runs_of_a_task_with_labels():
    def tested(length, value, one_class=False):
        more = {"length": length, "kind": "swap", "majority_class_rate": 0.5, "one_class_only": one_class}
        return measured("accuracy", value, 200, f"test_{length}", **more)

    good = run("s-0", "sortedness", rows=[tested(8, 1.0), tested(64, 0.97)], recipe={"name": "sortedness"})
    (finding,) = found_by(lowest_accuracy, [good])
    assert "up to length 64" in finding.text and "97.00 %" in finding.text and "at length 64 on swap" in finding.text
    assert "larger class is 50 %" in finding.text and found_by(calls_all_the_same, [good]) == []
    bad = run("s-1", "sortedness", rows=[tested(8, 1.0), tested(64, 0.5, True), tested(32, 0.5, True)])
    assert "same class from length 32 on" in found_by(calls_all_the_same, [bad])[0].text


def test_a_task_that_only_has_whole_splits_is_told_too():
    """Without classes at lengths, labels are judged by the whole split; answers of another task by their facts."""
    rates = {"majority_class_rate": 0.5, "one_class_only": True}
    labels = run("s-0", "sortedness", rows=[measured("accuracy", 0.5, 200, **rates)])
    assert "the lowest accuracy is 50.00 %" in found_by(lowest_accuracy, [labels])[0].text
    assert "s-0 gives all sequences the same class, with an accuracy" in found_by(calls_all_the_same, [labels])[0].text
    weak = measured("exact_match", 0.2, 300, scope={"repeats": "with"})
    strings = run("reverse-0", "reverse", rows=[measured("exact_match", 0.9), weak])
    told = [finding.text for finding in run_findings(Study(FOLDER, {}, [strings]))]
    assert any("exact match on strings that were not in training is 90.00 %" in text for text in told)
    assert any("weakest on strings of the test split with letters that come again with: 20.00 %" in t for t in told)
    assert not any("blind guess" in text for text in told), "nobody counts the answers of this task"
