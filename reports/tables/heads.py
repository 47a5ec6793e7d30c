"""Tables of the study of heads: what each costs, and models that have lost some."""

from ...records.rows import Rows, select
from ..head_rows import flip_of, whole_drops
from ..study import Part
from ..wording import interval, percent
from .table import NOTHING, Table, in_points, make_table


def head_ranking(heads: Part) -> list[Table]:
    drops = sorted(whole_drops(heads.get("ablation")), key=lambda row: -row["value"])
    if not drops:
        return []
    mean = {row["head"]: row for row in whole_drops(heads.get("ablation"), "mean")}
    gradient = {row["head"]: row for row in select(heads.get("gradient"), metric="gradient_importance")}
    atlas = heads.get("atlas")
    rows = []
    for drop in drops:
        head, (low, high) = drop["head"], drop["interval"]
        row = {"head": head, "drop, points": in_points(drop["value"])}
        row |= {"95 % interval": f"{in_points(low)} to {in_points(high)}"}
        row["class"] = drop["class"] if drop["class_is_certain"] else f"{drop['class']}?"
        row["p (Holm)"] = f"{drop['p_holm']:.2g}"
        if mean:
            row["drop, mean"] = in_points(mean[head]["value"]) if head in mean else NOTHING
        if gradient:
            row["gradient"] = f"{gradient[head]['value']:.3g}" if head in gradient else NOTHING
        rows.append({**row, **_evidence(atlas, head)})
    decoding = f", {drops[0]['decoding']}" if drops[0]["decoding"] else ""
    note = (
        f"One trained model, zero ablation{decoding}, n = {drops[0]['n']:,}; intact "
        f"{percent(drops[0]['intact']['value'])}. A question mark: the interval reaches into another class."
    )
    if mean or gradient:
        note += " The intervals of the mean ablation and of the gradient are in the grid and the rows."
    if atlas:
        note += f" {atlas[0]['variable'].capitalize()} moved: n = {flip_of(atlas[0])['n']:,} pairs."
    return [make_table("Heads by what they cost", rows, note)]


def _evidence(atlas: Rows, head: str) -> dict[str, str]:
    """What interchange says of a head, variable by variable."""
    found = {}
    for row in select(atlas, head=head):
        flip = flip_of(row)
        found[f"{row['variable']} moved"] = f"{percent(flip['value'], 1)} ({interval(flip)})"
        found["role"] = row["role"]
    return found


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
