"""Tables of the study of heads: what each costs alone, what sets do together, models that have lost some."""

from ...records.rows import Row, Rows, select, values_of
from ..head_rows import class_words, whole_drops
from ..set_rows import (
    NO_SITE,
    complement_of,
    first_variable,
    in_reading_order,
    is_complement,
    is_head,
    joint_drops,
    swaps,
    typical_words,
)
from ..study import Part
from ..wording import interval, percent
from .table import NOTHING, Table, in_points, make_table, with_interval


def head_ranking(heads: Part) -> list[Table]:
    drops = sorted(whole_drops(heads.get("ablation")), key=lambda row: -row["value"])
    if not drops:
        return []
    others = {
        mode: {row["head"]: row for row in whole_drops(heads.get("ablation"), mode)} for mode in ("mean", "resample")
    }
    gradient = {row["head"]: row for row in select(heads.get("gradient"), metric="gradient_importance")}
    atlas = heads.get("atlas")
    rows = []
    for drop in drops:
        head, (low, high) = drop["head"], drop["interval"]
        row = {"head": head, "drop, points": in_points(drop["value"])}
        row |= {"95 % interval": f"{in_points(low)} to {in_points(high)}"}
        row["class"] = class_words(drop)
        for mode, found in others.items():
            if found:
                row[f"drop, {mode}"] = in_points(found[head]["value"]) if head in found else NOTHING
        if gradient:
            row["gradient"] = f"{gradient[head]['value']:.3g}" if head in gradient else NOTHING
        rows.append({**row, **_evidence(atlas, head)})
    decoding = f", {drops[0]['decoding']}" if drops[0]["decoding"] else ""
    note = (
        f"One trained model, one head at a time, zero ablation{decoding}, n = {drops[0]['n']:,}; intact "
        f"{percent(drops[0]['intact']['value'])}. A question mark: the interval reaches into another class. What is "
        "not needed alone may be needed together with others: see the sets."
    )
    if gradient or any(others.values()):
        note += " The intervals of the other ablations and of the gradient are in the grid and the rows."
    if atlas:
        note += f" {atlas[0]['variable'].capitalize()} moved: n = {atlas[0]['moved']['n']:,} pairs."
    return [make_table("Heads by what they cost", rows, note)]


def _evidence(atlas: Rows, head: str) -> dict[str, str]:
    """What interchange and errors say of a head, variable by variable."""
    found = {}
    for row in select(atlas, site=head):
        name, errors = row["variable"], row["errors"]
        found[f"{name} moved"] = f"{percent(row['moved']['value'], 1)} ({interval(row['moved'])})"
        words = f"errors {typical_words(name)}"
        found[words] = NOTHING if errors is None else f"{percent(errors['value'], 0)} of {errors['n']:,}"
        found["role"] = row["role"]
    return found


def sets_together(heads: Part) -> list[Table]:
    """Share still right without each set, and without all others."""
    found = joint_drops(heads.get("sets"))
    modes = values_of(heads.get("sets"), "mode")
    rows = []
    for name, own in found.items():
        if is_complement(name):
            continue
        some = next(iter(own.values()))
        row = {"set": name, "sites": str(some["size"])}
        row |= {f"right, {mode}": with_interval(own[mode]["ablated"]) for mode in modes if mode in own}
        row["modes disagree"] = "yes" if some["modes_disagree"] else "no"
        rest = found.get(complement_of(name), {})
        for mode in modes:
            row[f"all but it: {mode}"] = percent(rest[mode]["ablated"]["value"], 1) if mode in rest else NOTHING
        rows.append(row)
    if not rows:
        return []
    some = next(iter(next(iter(found.values())).values()))
    note = (
        f"One trained model, all sites of a set ablated together, n = {some['n']:,}; intact "
        f"{percent(some['intact']['value'])}; in brackets 95 % intervals. All but it: every other head, or every "
        "other feed-forward sublayer. Modes disagree: their intervals have nothing in common."
    )
    return [make_table("Sets switched off together", rows, note)]


def sets_swapped(heads: Part) -> list[Table]:
    """What sets move on every kind of pairs, and what all others move."""
    interchange = heads.get("interchange")
    if not interchange:
        return []
    name = first_variable(interchange)
    interchange = select(interchange, variable=name)
    kinds = values_of(interchange, "pairs")
    flips = {kind: swaps(interchange, f"{name}_flip", kind) for kind in kinds}
    more = {
        f"{name} moved": swaps(interchange, f"{name}_moved"),
        "own place kept": swaps(interchange, f"{name}_kept_own"),
        "logits recovered": swaps(interchange, f"{name}_recovered"),
        "whole answer": swaps(interchange, "whole_answer_flip"),
        "control pairs: false flips": swaps(interchange, f"{name}_false_flip", "control"),
    }
    rows = []
    for each in in_reading_order(list(flips.get("minimal", {}).values())):
        site = each["site"]
        if is_complement(site) or is_head(site):
            continue
        row = {"set": "no intervention" if site == NO_SITE else site, "sites": str(each["size"])}
        row[f"{name} flip"] = with_interval(each)
        row["all but it: flip"] = _cell(flips["minimal"].get(complement_of(site)))
        row |= {words: _cell(found.get(site)) for words, found in more.items() if found}
        row |= {
            f"{kind} pairs: flip": _cell(own.get(site)) for kind, own in flips.items() if own and kind != "minimal"
        }
        rows.append(row)
    if not rows:
        return []
    counts = ", ".join(
        f"{kind} {own[0]['n']:,}" for kind in kinds if (own := select(interchange, scope={}, pairs=kind))
    )
    note = (
        f"One trained model; pairs: {counts}; minimal ones where nothing else is said. {name.capitalize()} moved: the "
        f"labels that show the {name} change as expected. {name.capitalize()} flip: and the label at its own place is "
        "right. The first line is the control without any intervention."
    )
    return [make_table(f"Sets swapped together: {name}", rows, note)]


def _cell(row: Row | None) -> str:
    return NOTHING if row is None else percent(row["value"], 1).replace("-", "−")


def pruned_models(pruning: Part) -> list[Table]:
    rows, tested = [], select(pruning.get("pruning"), split="test")
    for row in tested:
        low, high = row["drop"]["interval"]
        found = {"model": row["model"], "heads removed": str(row["removed"]), "accuracy": percent(row["value"])}
        found |= {
            "95 % interval": interval(row),
            "n": f"{row['n']:,}",
            "drop, points": in_points(row["drop"]["value"]),
        }
        found |= {"drop, 95 % interval": f"{in_points(low)} to {in_points(high)}"}
        found |= {"parameters": f"{row['parameters']:,}", "bytes": f"{row['bytes']:,}"}
        rows.append({**found, "speed": f"{row['relative_speed']:.2f} ×"})
    if not rows:
        return []
    decoding = f", {tested[0]['decoding']}" if tested[0]["decoding"] else ""
    speed = "Speed: forward passes per second over those of the intact model, medians in one run."
    return [make_table("Smaller models", rows, f"Test data{decoding}. {speed}")]
