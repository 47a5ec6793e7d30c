"""Figures of the head study, each drawn from rows alone: `fn(rows) -> Figure`, or None where the rows have none."""

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...records.rows import Rows, select, values_of
from ..head_rows import modes_of, number_drops, whole_drops
from .atlas import draw_atlas
from .drawing import COLORS, MARKERS, SEQUENTIAL, new_figure, patches, share_label, tidy
from .fourier import draw_fourier
from .selection import draw_selection
from .sets import draw_sets, draw_swaps
from .signature import draw_signature


CLASS_COLORS = {"critical": "#D55E00", "important": "#E69F00", "not needed alone": "#56B4E9"}
# Measures of attention that every task has; between them stand the relations of the task.
SLOTS = {
    "diagonal": "diagonal",
    "previous_slot": "previous slot",
    "next_slot": "next slot",
    "first_token": "first token",
}
SPREAD = {
    "previous_output": "previous output",
    "normalized_entropy": "entropy (normalised)",
    "top_2_share": "top-2 share",
    "hoyer": "sparsity (Hoyer)",
}
NOT_A_SHARE = ("entropy_bits",)


def draw_ablation(rows: Rows) -> Figure | None:
    """Drop for every head with its interval, a panel per mode of ablation; of a share in points, coloured by class."""
    modes = modes_of(rows)
    whole = [row for mode in modes for row in whole_drops(rows, mode)]
    numbers = [row for mode in modes for row in number_drops(rows, mode)]
    is_share = bool(whole)
    whole = whole or numbers  # a metric of numbers, in its own unit
    if not whole:
        return None
    modes = values_of(whole, "mode")
    heads = list(dict.fromkeys(row["head"] for row in whole))
    figure, panels = new_figure(9.0, 1.1 + 2.3 * len(modes), rows=len(modes), sharex=True, squeeze=False)
    for axes, mode in zip(panels[:, 0], modes, strict=True):
        own = {row["head"]: row for row in whole if row["mode"] == mode}
        for x, head in enumerate(heads):
            row = own[head]
            scale, color = (100, CLASS_COLORS[row["class"]]) if is_share else (1, COLORS[0])
            axes.bar(x, scale * row["value"], color=color, edgecolor="black", linewidth=0.4, width=0.8)
            if row["interval"] is not None:  # one example alone has none
                axes.plot([x, x], [scale * bound for bound in row["interval"]], color="black", linewidth=1)
        intact = next(iter(own.values()))["intact"]
        if not is_share:
            axes.set_ylabel(next(iter(own.values()))["metric"].replace("_", " "))
            axes.set_title(f"{mode} ablation; intact model {intact['value']:.4f}, n = {intact['n']:,}", fontsize=9)
            tidy(axes)
            continue
        axes.axhline(10, color="#666666", linewidth=0.7, linestyle="--")
        axes.axhline(1, color="#666666", linewidth=0.7, linestyle=":")
        axes.set_yscale("symlog", linthresh=1)
        axes.set_ylim(bottom=-0.5)
        axes.set_yticks([0, 1, 10, 100], ["0", "1", "10", "100"])
        axes.set_ylabel("drop (points)")
        axes.set_title(f"{mode} ablation; intact model {100 * intact['value']:.2f} %, n = {intact['n']:,}", fontsize=9)
        tidy(axes)
    last = panels[-1, 0]
    last.set_xticks(range(len(heads)), heads, rotation=90, fontsize=7)
    last.set_xlim(-0.7, len(heads) - 0.3)
    if is_share:
        handles = patches(CLASS_COLORS)
        panels[0, 0].legend(handles=handles, frameon=False, fontsize=8, loc="upper right", ncols=3)
    return figure


def draw_specialization(rows: Rows) -> Figure | None:
    """Heads x measures; in every cell the head's value above the uniform head's."""
    values = {(row["head"], row["metric"]): row for row in rows if row["metric"] not in NOT_A_SHARE}
    heads = list(dict.fromkeys(head for head, _ in values))
    found = list(dict.fromkeys(metric for _, metric in values))
    relations = [name for name in found if name not in SLOTS and name not in SPREAD]
    measures = [name for name in (*SLOTS, *relations, *SPREAD) if name in found]
    if not heads:
        return None
    table = np.full((len(heads), len(measures)), np.nan)
    for y, head in enumerate(heads):
        for x, measure in enumerate(measures):
            if (head, measure) in values:
                table[y, x] = values[head, measure]["value"]
    figure, axes = new_figure(1.8 + 0.72 * len(measures), 1.4 + 0.27 * len(heads))
    image = axes.imshow(table, cmap=SEQUENTIAL, vmin=0, vmax=1, aspect="auto")
    for y, head in enumerate(heads):
        for x, measure in enumerate(measures):
            row = values.get((head, measure))
            if row:
                color = "black" if table[y, x] > 0.55 else "white"
                axes.text(
                    x,
                    y,
                    f"{row['value']:.2f} ({row['uniform']:.2f})",
                    ha="center",
                    va="center",
                    fontsize=6,
                    color=color,
                )
    axes.set_xticks(
        range(len(measures)),
        [(SLOTS | SPREAD).get(name, name.replace("_", " ")) for name in measures],
        rotation=40,
        ha="right",
        fontsize=8,
    )
    axes.set_yticks(range(len(heads)), heads, fontsize=7)
    _part_layers(axes, heads)
    figure.colorbar(image, ax=axes, label="value; in brackets: uniform head", shrink=0.6)
    return figure


def draw_subsets(rows: Rows) -> Figure | None:
    """Accuracy against heads removed for the best set of each size and for every ranking."""
    best = sorted(select(rows, metric="best_subset"), key=lambda row: row["size"])
    if not best:
        return None
    figure, axes = new_figure(7.2, 4.2)
    sizes, values = [row["size"] for row in best], [100 * row["value"] for row in best]
    axes.plot(sizes, values, color="black", linewidth=2.5, label="best of all subsets")
    ranked = select(rows, metric="ranking_accuracy")
    regrets = {row["ranking"]: row["value"] for row in select(rows, metric="mean_regret")}
    for number, ranking in enumerate(values_of(ranked, "ranking")):
        own = select(ranked, ranking=ranking)
        axes.plot(
            [row["size"] for row in own],
            [100 * row["value"] for row in own],
            color=COLORS[number % len(COLORS)],
            marker=MARKERS[number % len(MARKERS)],
            markersize=4,
            linestyle=("--", "-.", ":")[number % 3],
            label=f"{ranking.replace('_', ' ')} (mean regret {100 * regrets[ranking]:.1f} points)",
        )
    axes.set_xlabel("heads removed")
    axes.set_ylabel(share_label(best[0]))
    axes.legend(frameon=False, fontsize=8)
    tidy(axes)
    return figure


def _part_layers(axes: Axes, heads: list[str]) -> None:
    for y in range(1, len(heads)):
        if heads[y].rsplit(".", 1)[0] != heads[y - 1].rsplit(".", 1)[0]:
            axes.axhline(y - 0.5, color="white", linewidth=2)


# Name of the figure -> what draws it; maps have sheets of their own.
HEAD_FIGURES: dict[str, Callable[[Rows], Figure | None]] = {
    "ablation": draw_ablation,
    "sets": draw_sets,
    "interchange": draw_swaps,
    "signature": draw_signature,
    "selection": draw_selection,
    "specialization": draw_specialization,
    "atlas": draw_atlas,
    "subsets": draw_subsets,
    "fourier": draw_fourier,
}
