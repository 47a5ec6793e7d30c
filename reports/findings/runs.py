"""What trained models can do, in sentences. Each function: runs of one recipe, all its seeds, and their study."""

from ...data_builders.tasks import options_of
from ...records.rows import Row, only
from ...records.run_folder import Run
from ..evaluation_rows import at_lengths, by_fact, main_facts, whole
from ..study import Study, built_in_names, task_of
from ..wording import Finding, apart, at_least, counted, interval, listed, percent, share


GAP = 0.05  # teacher-forced minus free-running from which on teacher forcing flatters


def runs_by_recipe(runs: list[Run]) -> dict[str, list[Run]]:
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.recipe_name, []).append(run)
    return groups


def by_hand(run: Run) -> str:
    names = built_in_names(run)
    return f" Built in by hand: {listed(names)}." if names else ""


def answer_note(run: Run) -> str:
    """` (units first)`, where answers are not written as usual."""
    note = task_of(run).texts.answer_note(run.data_options)
    return f" ({note})" if note else ""


def free_running(runs: list[Run], study: Study) -> list[Finding]:
    """The headline: what is generated, every seed, with the teacher-forced figure and chance beside it."""
    found = [(run, row) for run in runs if (row := whole(run.evaluation, "exact_match"))]
    if not found:
        return []
    first, task = found[0][0], task_of(found[0][0])
    each = listed([f"{percent(row['value'])} ({interval(row)}, seed {run.seed})" for run, row in found])
    n = sorted({row["n"] for _, row in found})
    text = (
        f"{first.recipe_name}: free-running exact match on {task.texts.problems} that were not in training is {each}; "
        f"n = {listed([f'{number:,}' for number in n])}{' each' if len(found) > 1 else ''}, 95 % intervals."
    )
    forced = [row for run, _ in found if (row := whole(run.evaluation, "token_accuracy"))]
    if forced:
        figures = listed([percent(row["value"]) for row in forced])
        text += f" Teacher-forced, token by token, it is {figures} (n = {forced[0]['n']:,} tokens)."
    answers = task.number_of_answers(options_of(task, first.data_options))
    if answers:
        text += f" A blind guess among the {answers:,} possible answers is right in {percent(1 / answers)}."
    figure = at_least([row["value"] for _, row in found])
    return [Finding(figure, text + by_hand(first), study.source(first))]


def teacher_forcing_flatters(runs: list[Run], study: Study) -> list[Finding]:
    """Only where the gap is large and the intervals are apart."""
    found = []
    for run in runs:
        free, forced = whole(run.evaluation, "exact_match"), whole(run.evaluation, "token_accuracy")
        if free and forced and forced["value"] - free["value"] > GAP and apart(forced, free) > 0:
            text = (
                f"Teacher forcing flatters {run.name}: with the right tokens before it, a token is right in "
                f"{share(forced)}, but whole answers that it generates in {share(free)}."
            )
            found.append(Finding(f"{100 * (forced['value'] - free['value']):.1f} points", text, study.source(run)))
    return found


def weakest_part(runs: list[Run], study: Study) -> list[Finding]:
    """A part of the data on which a model is worse than on the whole split, beyond both intervals."""
    found = []
    for run in runs:
        texts = task_of(run).texts
        for split in ("test", "hard"):
            overall = whole(run.evaluation, "exact_match", split)
            if overall is None:
                continue
            parts = [row for fact in main_facts(task_of(run)) for row in by_fact(run.evaluation, fact, split)]
            weak = [row for row in parts if apart(row, overall) < 0]
            if weak:
                row = min(weak, key=lambda row: row["value"])
                ((fact, value),) = row["scope"].items()
                text = (
                    f"{run.name} is weakest on {texts.problems} of the {split} split with {texts.facts[fact]} "
                    f"{value}: {share(row)}, against {share(overall)} overall."
                )
                found.append(Finding(percent(row["value"], 1), text, study.source(run)))
    return found


def errors(runs: list[Run], study: Study) -> list[Finding]:
    """How many answers are wrong, one of them shown; or that none is, and what that still allows."""
    rows = {run.name: row for run in runs if (row := whole(run.evaluation, "exact_match"))}
    counted_runs = [run for run in runs if run.name in rows]
    if not counted_runs:
        return []
    wrong = sum(round((1 - row["value"]) * row["n"]) for row in rows.values())
    n = sum(row["n"] for row in rows.values())
    first, seeds = counted_runs[0], counted(len(counted_runs), "seed")
    problems = task_of(first).texts.problems
    if wrong == 0:
        text = (
            f"{first.recipe_name}: no wrong answer among {n:,} ({seeds}). With so many {problems}, an error rate of "
            f"up to about {percent(3 / n)} would still go unseen."
        )
        return [Finding(f"0 of {n:,}", text, study.source(first))]
    for run in counted_runs:
        row = only(run.evaluation, metric="wrong_answer", split="test")
        if row:
            text = (
                f"{first.recipe_name}: {counted(wrong, 'wrong answer')} among {n:,} test {problems} ({seeds}); for "
                f"example, asked {row['input']}, {run.name} writes {row['generated']} instead of "
                f"{row['target']}{answer_note(run)}."
            )
            return [Finding(f"{wrong} of {n:,}", text, study.source(run))]
    return []


def lowest_accuracy(runs: list[Run], study: Study) -> list[Finding]:
    """The worst length and class of every seed, with the majority class beside it."""
    found = {run.name: rows for run in runs if (rows := tested(run))}
    tested_runs = [run for run in runs if run.name in found]
    if not tested_runs:
        return []
    worst = [min(found[run.name], key=lambda row: row["value"]) for run in tested_runs]
    each = listed([f"{share(row)} {place(row)} (seed {r.seed})" for r, row in zip(tested_runs, worst, strict=True)])
    first = tested_runs[0]
    lengths = [row["length"] for row in found[first.name] if row["length"] is not None]
    up_to = f"tested up to length {max(lengths):,}, " if lengths else ""
    text = (
        f"{first.recipe_name}: {up_to}the lowest accuracy is {each}; the larger class is "
        f"{percent(worst[0]['majority_class_rate'], 0)} of the test data."
    )
    return [Finding(at_least([row["value"] for row in worst], 1), text + by_hand(first), study.source(first))]


def tested(run: Run) -> list[Row]:
    """Classes of problems at every length; for a task without any, the whole test split."""
    row = whole(run.evaluation, "accuracy")
    return at_lengths(run.evaluation, task_of(run)) or ([row] if row else [])


def place(row: Row) -> str:
    return f"on {row['split']}" if row["kind"] is None else f"at length {row['length']:,} on {row['kind']}"


def calls_all_the_same(runs: list[Run], study: Study) -> list[Finding]:
    found = []
    for run in runs:
        rows = [row for row in tested(run) if row["one_class_only"]]
        if rows:
            first, problems = rows[0], task_of(run).texts.problems
            where = "" if first["kind"] is None else f" from length {first['length']:,} on ({first['kind']})"
            text = (
                f"{run.name} gives all {problems} the same class{where}, with an accuracy of {share(first)}: that is "
                "no accuracy of a half, it is no answer."
            )
            found.append(Finding("one class", text, study.source(run)))
    return found


ANSWER_FINDINGS = (free_running, teacher_forcing_flatters, weakest_part, errors)
LABEL_FINDINGS = (lowest_accuracy, calls_all_the_same)


def run_findings(study: Study) -> list[Finding]:
    """Of all runs, recipe by recipe."""
    found = []
    for runs in runs_by_recipe(study.runs).values():
        for find in LABEL_FINDINGS if task_of(runs[0]).kind == "label" else ANSWER_FINDINGS:
            found += find(runs, study)
    return found
