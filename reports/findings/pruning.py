"""What is left when heads are removed for good, in sentences. Each function: rows and their file -> findings."""

from ...records.rows import Rows, only, select, values_of
from ..wording import Finding, apart, drop, percent, points, share


ALLOWED = 0.01  # the joint drop up to which removals count as harmless, as for one head


def tested(rows: Rows) -> dict[str, dict]:
    """Model -> its row on the test data."""
    return {row["model"]: row for row in select(rows, study="pruning", split="test")}


def harmless_does_not_add_up(rows: Rows, source: str) -> list[Finding]:
    together, intact = (tested(rows).get(name) for name in ("all harmless one at a time", "intact"))
    if not together or not intact or together["removed"] < 2 or together["drop"]["interval"][0] <= ALLOWED:
        return []
    text = (
        f"Harmless does not add up: {together['removed']} heads each cost less than a point when they alone are "
        f"switched off; removed together they cost {drop(together['drop'])}, from {share(intact)} down to "
        f"{share(together)}."
    )
    return [Finding(points(together["drop"]["value"]), text, source)]


def removed_together(rows: Rows, source: str) -> list[Finding]:
    """How many can go jointly without fine-tuning, on the validation data on which they were chosen."""
    curve = select(rows, split="validation", fine_tuned=False, kept=True)
    within = [row for row in curve if row["removed"] and row["drop"]["value"] <= ALLOWED]
    one_at_a_time = only(rows, metric="harmless_one_at_a_time")
    if not within or one_at_a_time is None:
        return []
    last, heads = max(within, key=lambda row: row["removed"]), one_at_a_time["n"]
    text = (
        f"Chosen jointly and without any further training, {last['removed']} of {heads} heads can go within one "
        f"point: {share(last)} on the validation data on which they were chosen."
    )
    return [Finding(f"{last['removed']} of {heads}", text, source)]


def pruned_model(rows: Rows, source: str) -> list[Finding]:
    models = tested(rows)
    if "pruned" not in models or "intact" not in models:
        return []
    pruned, intact = models["pruned"], models["intact"]
    tuned = next(iter(values_of(select(rows, fine_tuned=True), "finetune_steps")), None)
    how = f"with {tuned} steps of training after each" if tuned else "without further training"
    loses = pruned["drop"]["interval"][0] > 0
    text = (
        f"{pruned['removed']} heads really removed, {how}: {share(pruned)} on the test data, "
        f"{'a loss of ' if loses else 'a drop that the interval cannot tell from zero, '}{drop(pruned['drop'])}; "
        f"{percent(1 - pruned['parameters'] / intact['parameters'], 0)} fewer parameters "
        f"({intact['parameters']:,} to {pruned['parameters']:,}), {pruned['relative_speed']:.2f} times the speed."
    )
    return [Finding(percent(pruned["value"]), text, source)]


def pruned_against_control(rows: Rows, source: str) -> list[Finding]:
    """One seed of each: says so, and says nothing more than the intervals do."""
    models = tested(rows)
    if "pruned" not in models or "control" not in models:
        return []
    pruned, control = models["pruned"], models["control"]
    verdict = {
        1: "so the pruned model is better, in this one pair of models",
        -1: "so pruning was not needed to get a model of this size, in this one pair of models",
        0: "so the two cannot be told apart",
    }[apart(pruned, control)]
    text = (
        f"The same small architecture trained from scratch reaches {share(control)}, the pruned model "
        f"{share(pruned)}: {verdict}."
    )
    return [Finding(percent(control["value"]), text, source)]


def pruned_against_chance(rows: Rows, source: str) -> list[Finding]:
    """The heads that pruning found, beside as many others."""
    models = tested(rows)
    if "random heads, no training" not in models or "the same heads, no training" not in models:
        return []
    chosen, chance = models["the same heads, no training"], models["random heads, no training"]
    text = (
        f"Without any training, {share(chosen)} are left without the {chosen['removed']} heads that pruning chose; "
        f"without as many random ones {percent(chance['random_mean']['value'])} on average over "
        f"{chance['random_sets']} sets, {percent(chance['random_best']['value'])} at best."
    )
    if "control, random heads" in models:
        scratch = share(models["control, random heads"])
        text += f" Trained from scratch, a model with as many heads at random places has {scratch}."
    return [Finding(percent(chance["random_mean"]["value"]), text, source)]


PRUNING_FINDINGS = {
    "pruning": (
        harmless_does_not_add_up,
        removed_together,
        pruned_model,
        pruned_against_control,
        pruned_against_chance,
    ),
}
