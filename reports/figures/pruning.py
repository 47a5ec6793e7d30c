"""The figure of pruning: accuracy against heads removed."""

from matplotlib.figure import Figure

from ...records.rows import Rows, only, select, values_of
from .drawing import COLORS, new_figure, share_label, tidy


TESTED = {
    "all harmless one at a time": ("v", "all heads harmless one at a time, together"),
    "pruned": ("*", "pruned"),
    "control": ("X", "same small architecture from scratch"),
    "random heads, no training": ("P", "as many random heads removed, no training (median set)"),
}


def draw_pruning(rows: Rows) -> Figure | None:
    """Accuracy against heads removed, without and with fine-tuning; the count of heads harmless one at a time."""
    validation = select(rows, split="validation", kept=True)  # without heads that were put back
    if not validation:
        return None
    figure, axes = new_figure(7.2, 4.2)
    for number, fine_tuned in enumerate(sorted(values_of(validation, "fine_tuned"))):
        points = sorted(select(validation, fine_tuned=fine_tuned), key=lambda row: row["removed"])
        x, value = [row["removed"] for row in points], [100 * row["value"] for row in points]
        low, high = ([100 * row["interval"][side] for row in points] for side in (0, 1))
        label = "removed together"
        if fine_tuned:
            steps = "".join(f"{count} steps of " for count in values_of(points, "finetune_steps")[:1])
            label += f", {steps}fine-tuning after each"
        axes.plot(x, value, color=COLORS[number], marker="os"[number], markersize=4, label=label)
        axes.fill_between(x, low, high, color=COLORS[number], alpha=0.2, linewidth=0)
    harmless = only(rows, metric="harmless_one_at_a_time")
    if harmless:
        axes.axvline(harmless["value"], color="#D55E00", linestyle="--", linewidth=1)
        text = f"{harmless['value']} of {harmless['n']} cost < 1 point\none at a time"
        place = {"xy": (harmless["value"], 4), "xytext": (-4, 40), "textcoords": "offset points", "ha": "right"}
        axes.annotate(text, **place, fontsize=8, color="#B04000")
    for row in select(rows, split="test"):
        if row["model"] in TESTED:
            marker, name = TESTED[row["model"]]
            label = f"test data: {name} ({100 * row['value']:.2f} %, n = {row['n']:,})"
            style = {"marker": marker, "markersize": 9, "linestyle": "none", "markerfacecolor": "none"}
            axes.plot(row["removed"], 100 * row["value"], color="black", label=label, **style)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel("heads removed")
    axes.set_ylabel(share_label(validation[0]))
    axes.set_ylim(0, 103)
    axes.legend(frameon=False, fontsize=8, loc="lower left")
    tidy(axes)
    return figure
