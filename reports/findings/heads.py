"""What single heads cost, in sentences. Each function: rows of one analysis and their file -> findings.

What a head costs alone says nothing of several together; that is in `sets` and `variables`.
"""

from collections import Counter

from ...records.rows import Row, Rows, select
from ..head_rows import measure_of, modes_of, number_drops, whole_drops
from ..wording import Finding, counted, drop, listed, points, share


CERTAIN = 0.05  # Holm's p below which a head's drop counts
NOT_NEEDED_ALONE = "not needed alone"  # the class of a head that costs less than a point


def is_certain(row: Row) -> bool:
    """By Holm's p; a metric that has no test, only an interval by resampling, by that."""
    return row["interval"][0] > 0 if row["p_holm"] is None else row["p_holm"] < CERTAIN


def classes_of_heads(rows: Rows, source: str) -> list[Finding]:
    drops = whole_drops(rows)
    if not drops:
        return []
    count, sure = Counter(row["class"] for row in drops), sum(row["class_is_certain"] for row in drops)
    text = (
        f"Set to zero one at a time, {count['critical']} of {len(drops)} heads are critical (they cost more than 10 "
        f"points), {count['important']} important (1 to 10) and {count[NOT_NEEDED_ALONE]} not needed alone (less "
        f"than 1), which says nothing of several together. For {sure} of the {len(drops)} the whole 95 % interval "
        f"lies in the class ({sum(r['class_is_certain'] for r in drops if r['class'] == NOT_NEEDED_ALONE)} of those "
        "not needed alone). "
        f"Intact: {share(drops[0]['intact'])}."
    )
    return [Finding(f"{count['critical']} of {len(drops)}", text, source)]


def costliest_head(rows: Rows, source: str) -> list[Finding]:
    drops = whole_drops(rows)
    if not drops:
        return _costliest_by_number(rows, source)
    row = max(drops, key=lambda row: row["value"])
    if not is_certain(row):
        return []
    text = (
        f"No head costs more in this test than {row['head']}: without it the model loses {drop(row)} and is left with "
        f"{share(row['ablated'])}."
    )
    return [Finding(points(row["value"]), text, source)]


def _costliest_by_number(rows: Rows, source: str) -> list[Finding]:
    """The same for a measure that is no share, such as the likelihood of a text."""
    row = max(number_drops(rows), key=lambda row: row["value"], default=None)
    if row is None or row["interval"] is None or not is_certain(row):  # one example alone has no interval
        return []
    low, high = row["interval"]
    text = (
        f"No head costs more in this test than {row['head']}: without it the {measure_of(row)} falls by "
        f"{row['value']:.4f} (95 % interval {low:.4f} to {high:.4f}, n = {row['n']:,}) from "
        f"{row['intact']['value']:.4f}."
    )
    return [Finding(f"{row['value']:.4f}", text, source)]


def ablation_modes_differ(rows: Rows, source: str) -> list[Finding]:
    """Heads that cost something set to zero and nothing set to values of their own: what they add is a constant."""
    zero = {row["head"]: row for row in whole_drops(rows)}
    others = [mode for mode in modes_of(rows) if mode != "zero"]
    harmless = [
        {
            row["head"]
            for row in whole_drops(rows, mode)
            if row["class"] == NOT_NEEDED_ALONE and row["class_is_certain"]
        }
        for mode in others
    ]
    mean = {row["head"]: row for row in whole_drops(rows, "mean")}
    constant = [
        head
        for head, row in zero.items()
        if head in mean
        and row["class"] != NOT_NEEDED_ALONE
        and row["class_is_certain"]
        and all(head in found for found in harmless)
    ]
    if not constant:
        return []
    words = [
        f"{head} costs {drop(zero[head])} set to zero and {drop(mean[head])} set to its mean" for head in constant
    ]
    each = listed(words)
    adds = "adds" if len(constant) == 1 else "add"
    text = f"What {counted(len(constant), 'head')} {adds} for the model is a constant: {each}."
    return [Finding(counted(len(constant), "head"), text, source)]


def gradient_agrees(rows: Rows, source: str) -> list[Finding]:
    agreements = select(rows, metric="rank_correlation")
    row = next((row for row in agreements if row["compared_with"] in ("exact_match_drop", "accuracy_drop")), None)
    if row is None or row["value"] is None:  # heads that all cost the same have no order
        return []
    text = (
        f"The gradient estimate (one backward pass) ranks the heads with a rank correlation of {row['value']:.2f} "
        f"to the measured drop (n = {row['n']} heads; 1 would be the same order, 0 is chance)."
    )
    return [Finding(f"ρ = {row['value']:.2f}".replace("-", "−"), text, source)]


def switched_off_repairs(rows: Rows, source: str) -> list[Finding]:
    """Examples that the intact model gets wrong and an ablated one right."""
    wrong = {row["example"]: row for row in rows if row["head"] is None and not row["right"]}
    repaired: dict[int, list[str]] = {}
    for row in rows:
        if row["head"] is not None and row["right"] and row["example"] in wrong:
            repaired.setdefault(row["example"], []).append(row["head"])
    if not repaired:
        return []
    example, heads = next(iter(repaired.items()))
    row = wrong[example]
    shown = f"{row['input']} = {row['target']}" if len(row["input"]) < 40 else "one example"
    text = (
        f"{len(repaired)} of {counted(len(wrong), 'failure')} shown below can be repaired by switching one head off: "
        f"{shown} is answered {row['answer']} by the intact model and rightly without any one of "
        f"{counted(len(heads), 'head')} ({listed(heads)})."
    )
    return [Finding(f"{len(repaired)} of {len(wrong)}", text, source)]


def best_ranking(rows: Rows, source: str) -> list[Finding]:
    regrets = sorted(select(rows, metric="mean_regret"), key=lambda row: row["value"])
    if len(regrets) < 2:
        return []
    each = listed([f"{row['ranking'].replace('_', ' ')} {points(row['value'])}" for row in regrets])
    text = (
        "Against the best of all subsets of heads, really evaluated, removing heads in the order of a ranking "
        f"loses on average over set sizes: {each} (n = {regrets[0]['n']:,} examples, no interval over models)."
    )
    return [Finding(points(regrets[0]["value"]), text, source)]


ALONE_FINDINGS = {"ablation": (classes_of_heads, costliest_head, ablation_modes_differ)}
OTHER_FINDINGS = {
    "toggles": (switched_off_repairs,),
    "gradient": (gradient_agrees,),
    "subsets": (best_ranking,),
}
