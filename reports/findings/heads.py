"""What the heads do, in sentences. Each function: rows of one analysis and their file -> findings."""

from collections import Counter

from ...records.rows import Row, Rows, select, values_of
from ..head_rows import excess_of, flip_of, measure_of, number_drops, relation_words, whole_drops
from ..wording import Finding, counted, drop, listed, percent, points, share


CERTAIN = 0.05  # Holm's p below which a head's drop counts
QUIET = 0.01  # share of flips without any intervention up to which a control needs no word


def is_certain(row: Row) -> bool:
    """By Holm's p; a metric that has no test, only an interval by resampling, by that."""
    return row["interval"][0] > 0 if row["p_holm"] is None else row["p_holm"] < CERTAIN


def classes_of_heads(rows: Rows, source: str) -> list[Finding]:
    drops = whole_drops(rows)
    if not drops:
        return []
    count, sure = Counter(row["class"] for row in drops), sum(row["class_is_certain"] for row in drops)
    text = (
        f"Switched off one at a time, {count['critical']} of {len(drops)} heads are critical (they cost more than 10 "
        f"points), {count['important']} important (1 to 10) and {count['redundant']} redundant (less than 1). "
        f"For {sure} of the {len(drops)} the whole 95 % interval lies in the class "
        f"({sum(r['class_is_certain'] for r in drops if r['class'] == 'redundant')} of the redundant ones). "
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
    """Heads that only zero ablation calls critical or important: what they add is a constant."""
    zero = {row["head"]: row for row in whole_drops(rows)}
    mean = {row["head"]: row for row in whole_drops(rows, "mean")}
    constant = [
        head
        for head, row in zero.items()
        if head in mean
        and row["class"] != "redundant"
        and row["class_is_certain"]
        and mean[head]["class"] == "redundant"
        and mean[head]["class_is_certain"]
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


def variable_heads(rows: Rows, source: str) -> list[Finding]:
    """By variable: heads for which both kinds of evidence agree; else those that only interchange speaks for; else
    that none is.
    """
    found = []
    for name in values_of(rows, "variable"):
        own = sorted(select(rows, variable=name), key=lambda row: -flip_of(row)["value"])
        found += _proven(own, name, source) or _half_proven(own, name, source) or _no_head(own, source)
    return found


def _proven(rows: Rows, name: str, source: str) -> list[Finding]:
    found = []
    for row in select(rows, role=f"{name} head"):
        text = (
            f"{row['head']} carries the {name}. Its output, taken from a problem that differs only in one {name}, "
            f"moves that {name} in {share(flip_of(row))} of pairs; and switching the head off costs "
            f"{drop(excess_of(row))} more on problems with a {name} than on problems without."
        )
        found.append(Finding(percent(flip_of(row)["value"], 1), text, source))
    return found


def _half_proven(rows: Rows, name: str, source: str) -> list[Finding]:
    found = []
    for row in select(rows, moves=True):
        text = (
            f"{row['head']} moves the {name} in {share(flip_of(row))} of pairs, but that it is needed where there is "
            f"a {name} more than for the rest is not shown: switching it off costs {drop(excess_of(row))} more on "
            f"problems with a {name} than on problems without."
        )
        found.append(Finding(percent(flip_of(row)["value"], 1), text, source))
    return found


def _no_head(rows: Rows, source: str) -> list[Finding]:
    most = max(rows, key=lambda row: flip_of(row)["value"])
    text = (
        f"No single head was found to bring the {most['variable']} to the answer. The one that comes closest, "
        f"{most['head']}, moves it in {share(flip_of(most))} of pairs."
    )
    return [Finding("no head", text, source)]


def aligned_heads(rows: Rows, source: str) -> list[Finding]:
    heads = select(rows, role="aligner")
    if not heads:
        return []
    best, name, figure = max((_looks_most(row) for row in heads), key=lambda found: found[2]["value"])
    low, high = figure["interval"]
    text = (
        f"{counted(len(heads), 'head')} that the model needs {'looks' if len(heads) == 1 else 'look'} at "
        f"{relation_words(name)}: {listed([row['head'] for row in heads])}. The most, {best['head']}, "
        f"puts {percent(figure['value'], 1)} of its weight there "
        f"(95 % interval {100 * low:.1f} to {100 * high:.1f} %, n = {figure['n']:,}; "
        f"a head without preference {percent(figure['uniform'], 1)})."
    )
    return [Finding(counted(len(heads), "head"), text, source)]


def _looks_most(row: Row) -> tuple[Row, str, dict]:
    """The relation that a head gives most weight to: its evidence stands beside that of a head without preference."""
    looks = {name: figure for name, figure in row.items() if isinstance(figure, dict) and "uniform" in figure}
    name = max(looks, key=lambda name: looks[name]["value"])
    return row, name, looks[name]


def control_of_interchange(rows: Rows, source: str) -> list[Finding]:
    found = []
    for control in select(rows, scope={}, study="interchange", head="none"):
        # A quiet control is shown in the table; a noisy one must be said.
        if control["metric"] == f"{control['variable']}_flip" and control["value"] > QUIET:
            text = (
                f"Read the {control['variable']} figures with care: without any intervention {share(control)} of "
                "pairs already flip."
            )
            found.append(Finding(percent(control["value"], 1), text, source))
    return found


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


HEAD_FINDINGS = {
    "ablation": (classes_of_heads, costliest_head, ablation_modes_differ),
    "atlas": (variable_heads, aligned_heads),
    "interchange": (control_of_interchange,),
    "toggles": (switched_off_repairs,),
    "gradient": (gradient_agrees,),
    "subsets": (best_ranking,),
}
