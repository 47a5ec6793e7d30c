"""What trained models can do, in sentences. Each function: runs of one recipe, all its seeds -> findings."""

from .study_folder import Run
from .wording import Finding, apart, at_least, counted, interval, listed, percent, share


GAP = 0.05  # teacher-forced minus free-running from which on teacher forcing flatters
BREAKDOWNS = ("group", "longest_chain", "place")


def runs_by_recipe(runs: list[Run]) -> dict[str, list[Run]]:
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.recipe_name, []).append(run)
    return groups


def whole(run: Run, metric: str, split: str = "test") -> dict | None:
    """The row of a metric over a whole split."""
    rows = (r for r in run.evaluation if r.get("metric") == metric and r.get("split") == split)
    return next((r for r in rows if not r.keys() & set(BREAKDOWNS)), None)


def source_of(run: Run) -> str:
    return "/".join(part for part in (run.path, "results/evaluation.json") if part)


def by_hand(run: Run) -> str:
    return f" Built in by hand: {listed(run.built_in)}." if run.built_in else ""


def number_of_answers(run: Run) -> int | None:
    """How many different sums there are, for the chance of a blind guess."""
    digits = run.recipe.get("data", {}).get("digits")
    return 2 * (10**digits - 1) + 1 if isinstance(digits, int) else None


def free_running(runs: list[Run]) -> list[Finding]:
    """The headline: what is generated, every seed, with the teacher-forced figure and chance beside it."""
    found = [(run, whole(run, "exact_match")) for run in runs]
    found = [(run, row) for run, row in found if row]
    if not found:
        return []
    each = listed([f"{percent(row['value'])} ({interval(row)}, seed {run.seed})" for run, row in found])
    n = sorted({row["n"] for _, row in found})
    text = (
        f"{found[0][0].recipe_name}: free-running exact match on problems that were not in training is {each}; "
        f"n = {listed([f'{number:,}' for number in n])}{' each' if len(found) > 1 else ''}, 95 % intervals."
    )
    forced = [row for run, _ in found if (row := whole(run, "token_accuracy"))]
    if forced:
        figures = listed([percent(row["value"]) for row in forced])
        text += f" Teacher-forced, token by token, it is {figures} (n = {forced[0]['n']:,} tokens)."
    answers = number_of_answers(found[0][0])
    if answers:
        text += f" A blind guess among the {answers:,} possible answers is right in {percent(1 / answers)}."
    figure = at_least([row["value"] for _, row in found])
    return [Finding(figure, text + by_hand(found[0][0]), source_of(found[0][0]))]


def teacher_forcing_flatters(runs: list[Run]) -> list[Finding]:
    """Only where the gap is large and the intervals are apart."""
    found = []
    for run in runs:
        free, forced = whole(run, "exact_match"), whole(run, "token_accuracy")
        if free and forced and forced["value"] - free["value"] > GAP and apart(forced, free) > 0:
            text = (
                f"Teacher forcing flatters {run.name}: with the right digits before it, a token is right in "
                f"{share(forced)}, but whole answers that it generates in {share(free)}."
            )
            found.append(Finding(f"{100 * (forced['value'] - free['value']):.1f} points", text, source_of(run)))
    return found


def weakest_group(runs: list[Run]) -> list[Finding]:
    """A kind of problem on which a model is worse than on the whole split, beyond both intervals."""
    found = []
    for run in runs:
        for split in ("test", "hard"):
            overall = whole(run, "exact_match", split)
            groups = [r for r in run.evaluation if r.get("split") == split and "group" in r and "value" in r]
            weak = [row for row in groups if overall and apart(row, overall) < 0]
            if weak:
                row = min(weak, key=lambda row: row["value"])
                text = (
                    f"{run.name} is weakest on {row['group']} problems of the {split} split: {share(row)}, against "
                    f"{share(overall)} overall."
                )
                found.append(Finding(percent(row["value"], 1), text, source_of(run)))
    return found


def errors(runs: list[Run]) -> list[Finding]:
    """How many answers are wrong, one of them shown; or that none is, and what that still allows."""
    counts = []
    for run in runs:
        row = whole(run, "exact_match")
        if row:
            counts.append((run, round((1 - row["value"]) * row["n"]), row["n"]))
    if not counts:
        return []
    wrong, n = sum(count for _, count, _ in counts), sum(n for _, _, n in counts)
    name = counts[0][0].recipe_name
    if wrong == 0:
        text = (
            f"{name}: no wrong answer among {n:,} ({counted(len(counts), 'seed')}). With so many problems, an error "
            f"rate of up to about {percent(3 / n)} would still go unseen."
        )
        return [Finding(f"0 of {n:,}", text, source_of(counts[0][0]))]
    for run, _, _ in counts:
        for row in run.evaluation:
            if row.get("metric") == "wrong_answer" and row.get("split") == "test":
                backwards = run.recipe.get("data", {}).get("answer_order") == "reversed"
                text = (
                    f"{name}: {counted(wrong, 'wrong answer')} among {n:,} test problems "
                    f"({counted(len(counts), 'seed')}); for example, asked {row['input']}, {run.name} writes "
                    f"{row['generated']} instead of {row['target']}{' (units first)' if backwards else ''}."
                )
                return [Finding(f"{wrong} of {n:,}", text, source_of(run))]
    return []


def sorted_or_not(runs: list[Run]) -> list[Finding]:
    """The worst length and kind of every seed, with the majority class beside it."""
    worst = []
    for run in runs:
        rows = [r for r in run.evaluation if r.get("metric") == "accuracy" and r.get("value") is not None]
        if rows:
            worst.append((run, min(rows, key=lambda row: row["value"]), max(row["length"] for row in rows)))
    if not worst:
        return []
    each = listed([
        f"{share(row)} at length {row['length']:,} on {row['kind']} (seed {run.seed})" for run, row, _ in worst
    ])  # fmt: skip
    text = (
        f"{worst[0][0].recipe_name}: tested up to length {worst[0][2]:,}, the lowest accuracy is {each}; "
        f"the larger class is {percent(worst[0][1]['majority_class_rate'], 0)} of the test data."
    )
    figure = at_least([row["value"] for _, row, _ in worst], 1)
    return [Finding(figure, text + by_hand(worst[0][0]), source_of(worst[0][0]))]


def calls_all_the_same(runs: list[Run]) -> list[Finding]:
    found = []
    for run in runs:
        rows = [r for r in run.evaluation if r.get("one_class_only")]
        if rows:
            first = min(rows, key=lambda row: row["length"])
            text = (
                f"{run.name} gives every sequence the same class from length {first['length']:,} on ({first['kind']}, "
                f"accuracy {share(first)}): that is no accuracy of a half, it is no answer."
            )
            found.append(Finding("one class", text, source_of(run)))
    return found


RUN_FINDINGS = {
    "addition": (free_running, teacher_forcing_flatters, weakest_group, errors),
    "sortedness": (sorted_or_not, calls_all_the_same),
}
