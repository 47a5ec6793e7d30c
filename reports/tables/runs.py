"""Tables of trained models: every seed, tests beyond the training length, wrong answers."""

from ...data_builders.tasks import Task
from ...records.rows import select, values_of
from ...records.run_folder import Run
from ..evaluation_rows import at_lengths, whole, whole_splits
from ..study import built_in_names, task_of
from ..wording import interval, percent
from .table import NOTHING, Table, by_hand, make_table, with_interval


def run_tables(runs: list[Run]) -> list[Table]:
    """Task by task; then wrong answers of all of them."""
    found = []
    for name in dict.fromkeys(run.task for run in runs):
        own = [run for run in runs if run.task == name]
        task = task_of(own[0])
        found += label_runs(own, task) if task.kind == "label" else [*answer_runs(own, task), *longer(own, task)]
    return [*found, *wrong_answers(runs)]


def answer_runs(runs: list[Run], task: Task) -> list[Table]:
    rows = []
    for run in runs:
        free, forced = whole(run.evaluation, "exact_match"), whole(run.evaluation, "token_accuracy")
        hard = whole(run.evaluation, "exact_match", "hard")
        if free is None:
            continue
        row = {"run": run.name, "seed": str(run.seed), "free-running": percent(free["value"])}
        row |= {"95 % interval": interval(free), "n": f"{free['n']:,}"}
        row["teacher-forced tokens"] = percent(forced["value"]) if forced else NOTHING
        if hard:
            row["hard problems"] = f"{percent(hard['value'])} (n = {hard['n']:,})"
            row["hard, 95 % interval"] = interval(hard)
        rows.append({**row, **training(run), **by_hand(built_in_names(run))})
    note = (
        "Free-running: greedy exact match of what the model generates. Teacher-forced: single tokens, with the right "
        "ones before them."
    )
    if "hard" in task.texts.splits:
        note += f" The hard split: {task.texts.splits['hard']}."
    return [make_table(f"{task.texts.short_title}, every seed", rows, note)] if rows else []


def longer(runs: list[Run], task: Task) -> list[Table]:
    """Classes of problems beyond the training length."""
    rows = []
    unit = task.texts.length
    for run in runs:
        tested = at_lengths(run.evaluation, task)
        for kind in values_of(tested, "kind"):
            own = {row["length"]: row for row in select(tested, kind=kind)}
            row = {"run": run.name, "seed": str(run.seed), task.texts.kind_noun: kind}
            row |= {f"{length:,} {unit}": with_interval(own[length]) for length in sorted(own)}
            row["n each"] = "/".join(f"{n:,}" for n in sorted({part["n"] for part in own.values()}))
            rows.append({**row, **by_hand(built_in_names(run))})
    note = f"Free-running exact match with its 95 % interval, on {task.texts.problems} longer than any in training."
    title = f"{task.texts.short_title} beyond the training length, every seed"
    return [make_table(title, rows, note)] if rows else []


def label_runs(runs: list[Run], task: Task) -> list[Table]:
    """Classes of problems by length; for a task without any, whole splits."""
    tested = {run.name: at_lengths(run.evaluation, task) for run in runs}
    lengths = sorted({row["length"] for rows in tested.values() for row in rows})
    rows = []
    for run in runs:
        for split, found in whole_splits(run.evaluation, "accuracy").items():
            row = {"run": run.name, "seed": str(run.seed), "split": split, "accuracy": cell(found)}
            rows.append({**row, "n": f"{found['n']:,}", **by_hand(built_in_names(run))})
        for kind in values_of(tested[run.name], "kind"):
            own = {row["length"]: row for row in select(tested[run.name], kind=kind)}
            row = {"run": run.name, "seed": str(run.seed), task.texts.kind_noun: kind}
            row |= {f"{length:,}": cell(own[length]) if length in own else NOTHING for length in lengths}
            row["n each"] = "/".join(f"{n:,}" for n in sorted({found["n"] for found in own.values()}))
            rows.append({**row, **by_hand(built_in_names(run))})
    note = "Accuracy with its 95 % interval, by length; the classes are balanced, so 50 % is chance."
    return [make_table(f"{task.texts.short_title}, every seed", rows, note)] if rows else []


def cell(row: dict) -> str:
    return f"{with_interval(row)} (one class)" if row["one_class_only"] else with_interval(row)


def wrong_answers(runs: list[Run]) -> list[Table]:
    rows = [
        {"run": run.name, "split": r["split"], "asked": r["input"], "right": r["target"], "written": r["generated"]}
        for run in runs
        for r in select(run.evaluation, metric="wrong_answer")
    ]
    note = "As noted at evaluation, a few per split, in the order in which the model writes."
    return [make_table("Wrong answers", rows, note)] if rows else []


def training(run: Run) -> dict[str, str]:
    if not run.training:
        return {}
    last = run.training[-1]
    return {"steps": f"{last['steps']:,}", "seconds": f"{last['seconds']:,.0f}"}
