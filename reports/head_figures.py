"""Figures of the head study, each drawn from rows alone: `fn(rows) -> Figure`, or None where the rows have none."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from .drawing import COLORS, SEQUENTIAL, new_figure, tidy


CLASS_COLORS = {"critical": "#D55E00", "important": "#E69F00", "redundant": "#56B4E9"}
ROLE_COLORS = {
    "carry head": "#D55E00",
    "aligner": "#0072B2",
    "output order": "#009E73",
    "redundant": "#DDDDDD",
    "other": "#CC79A7",
}
TESTED = {
    "all harmless one at a time": ("v", "all heads harmless one at a time, together"),
    "pruned": ("*", "pruned"),
    "control": ("X", "same small architecture from scratch"),
}
LONGEST_LEVEL = 3  # characters of a token that stands level under a map; with longer ones all stand upright
MEASURES = {
    "diagonal": "diagonal",
    "previous_slot": "previous slot",
    "next_slot": "next slot",
    "first_token": "first token",
    "same_column": "same column",
    "carry_source": "carry source",
    "operator": "operator",
    "previous_output": "previous output",
    "normalized_entropy": "entropy (normalised)",
    "top_2_share": "top-2 share",
    "hoyer": "sparsity (Hoyer)",
}


def draw_ablation(rows: list[dict]) -> Figure | None:
    """Drop for every head with its interval, a panel per mode of ablation; of a share in points, coloured by class."""
    whole = [row for row in rows if "class" in row]
    is_share = bool(whole)
    whole = whole or [row for row in rows if "rank" in row]  # a metric of numbers, in its own unit
    modes = list(dict.fromkeys(row["mode"] for row in whole))
    if not whole:
        return None
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
        panels[0, 0].legend(
            handles=[Patch(facecolor=color, edgecolor="black", linewidth=0.4, label=name)
                     for name, color in CLASS_COLORS.items()],
            frameon=False, fontsize=8, loc="upper right", ncols=3,
        )  # fmt: skip
    return figure


def draw_specialization(rows: list[dict]) -> Figure | None:
    """Heads x measures; in every cell the head's value above the uniform head's."""
    values = {(row["head"], row["metric"]): row for row in rows if row["metric"] in MEASURES}
    heads = list(dict.fromkeys(head for head, _ in values))
    measures = [name for name in MEASURES if any((head, name) in values for head in heads)]
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
    axes.set_xticks(range(len(measures)), [MEASURES[name] for name in measures], rotation=40, ha="right", fontsize=8)
    axes.set_yticks(range(len(heads)), heads, fontsize=7)
    _part_layers(axes, heads)
    figure.colorbar(image, ax=axes, label="value; in brackets: uniform head", shrink=0.6)
    return figure


def draw_carry_atlas(rows: list[dict]) -> Figure | None:
    """For every head the share of pairs whose carry it moves, what its loss costs more with carries, and its role."""
    if not rows:
        return None
    heads = [row["head"] for row in rows]
    figure, (left, right) = new_figure(9.0, 1.5 + 0.25 * len(heads), columns=2, sharey=True, width_ratios=(1, 1))
    y = np.arange(len(heads))
    colors = [ROLE_COLORS[row["role"]] for row in rows]
    for axes, name, label in (
        (left, "carry_flip", "carry moved by interchange (% of pairs)"),
        (right, "carry_excess", "ablation: extra cost where there is a carry (points)"),
    ):
        values = np.array([100 * row[name]["value"] for row in rows])
        low, high = (np.array([100 * row[name]["interval"][side] for row in rows]) for side in (0, 1))
        axes.barh(y, values, color=colors, edgecolor="black", linewidth=0.4)
        axes.hlines(y, low, high, color="black", linewidth=1)
        axes.axvline(0, color="black", linewidth=0.6)
        axes.set_xlabel(label, fontsize=8)
        tidy(axes)
    left.axvline(5, color="#666666", linewidth=0.7, linestyle="--")
    left.set_yticks(y, [f"{row['head']}" for row in rows], fontsize=7)
    left.set_ylim(len(heads) - 0.4, -0.6)
    used = [role for role in ROLE_COLORS if any(row["role"] == role for row in rows)]
    figure.legend(
        handles=[Patch(facecolor=ROLE_COLORS[role], edgecolor="black", linewidth=0.4,
                       label=f"{role} ({sum(row['role'] == role for row in rows)})") for role in used],
        frameon=False, fontsize=8, loc="outside upper center", ncols=len(used),
    )  # fmt: skip
    return figure


def draw_pruning(rows: list[dict]) -> Figure | None:
    """Accuracy against heads removed, without and with fine-tuning; the count of heads harmless one at a time."""
    curves = {}
    for row in rows:
        if row.get("split") == "validation" and row.get("kept", True):
            curves.setdefault(row["fine_tuned"], []).append(row)
    if not curves:
        return None
    figure, axes = new_figure(7.2, 4.2)
    for number, fine_tuned in enumerate(sorted(curves)):
        points = sorted(curves[fine_tuned], key=lambda row: row["removed"])
        x, value = [row["removed"] for row in points], [100 * row["value"] for row in points]
        low, high = ([100 * row["interval"][side] for row in points] for side in (0, 1))
        steps = points[-1].get("finetune_steps")
        label = f"removed together, {steps} steps of fine-tuning after each" if fine_tuned else "removed together"
        axes.plot(x, value, color=COLORS[number], marker="os"[number], markersize=4, label=label)
        axes.fill_between(x, low, high, color=COLORS[number], alpha=0.2, linewidth=0)
    for row in rows:
        if row["metric"] == "harmless_one_at_a_time" and not row.get("fine_tuned"):
            axes.axvline(row["value"], color="#D55E00", linestyle="--", linewidth=1)
            text = f"{row['value']} of {row['n']} cost < 1 point\none at a time"
            axes.annotate(text, (row["value"], 4), xytext=(-4, 40), textcoords="offset points", ha="right",
                          fontsize=8, color="#B04000")  # fmt: skip
            break
    for row in rows:
        if row.get("split") == "test" and row["model"] in TESTED:
            marker, name = TESTED[row["model"]]
            label = f"test data: {name} ({100 * row['value']:.2f} %, n = {row['n']:,})"
            axes.plot(row["removed"], 100 * row["value"], marker=marker, markersize=9, linestyle="none",
                      color="black", markerfacecolor="none", label=label)  # fmt: skip
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel("heads removed")
    is_addition = any(row["metric"] == "exact_match" for row in rows)
    axes.set_ylabel("free-running exact match (%)" if is_addition else "accuracy (%)")
    axes.set_ylim(0, 103)
    axes.legend(frameon=False, fontsize=8, loc="lower left")
    tidy(axes)
    return figure


def draw_subsets(rows: list[dict]) -> Figure | None:
    """Accuracy against heads removed for the best set of each size and for every ranking."""
    best = sorted((row for row in rows if row["metric"] == "best_subset"), key=lambda row: row["size"])
    if not best:
        return None
    figure, axes = new_figure(7.2, 4.2)
    axes.plot([row["size"] for row in best], [100 * row["value"] for row in best], color="black", linewidth=2.5,
              label="best of all subsets")  # fmt: skip
    rankings = list(dict.fromkeys(row["ranking"] for row in rows if row["metric"] == "ranking_accuracy"))
    for number, ranking in enumerate(rankings):
        own = [row for row in rows if row["metric"] == "ranking_accuracy" and row["ranking"] == ranking]
        regret = next(row["value"] for row in rows if row["metric"] == "mean_regret" and row["ranking"] == ranking)
        axes.plot([row["size"] for row in own], [100 * row["value"] for row in own], color=COLORS[number],
                  marker="os^DvPX"[number % 7], markersize=4, linestyle=("--", "-.", ":")[number % 3],
                  label=f"{ranking.replace('_', ' ')} (mean regret {100 * regret:.1f} points)")  # fmt: skip
    axes.set_xlabel("heads removed")
    axes.set_ylabel("free-running exact match (%)")
    axes.legend(frameon=False, fontsize=8)
    tidy(axes)
    return figure


def shown(token: str) -> str:
    return token.replace("<eos>", "end")


def draw_maps(rows: list[dict], title: str) -> Figure:
    """All heads of the layers given, one row of panels per layer; rectangular maps, tokens on both axes."""
    columns = max(len(row["heads"]) for row in rows)
    size = 2.0 if max(len(row["keys"]) for row in rows) <= 20 else 3.0
    words = any(len(shown(token)) > LONGEST_LEVEL for row in rows for token in row["keys"])
    below = 0.9 if words else 0.5  # between two rows of panels
    width, height = 0.6 + (size + 0.5) * columns + 0.8, 0.8 + (size + below) * len(rows)
    figure, panels = new_figure(width, height, rows=len(rows), columns=columns, layout=None, squeeze=False)
    figure.subplots_adjust(
        left=0.65 / width, right=1 - 1.1 / width, bottom=below / height, top=1 - 0.6 / height, wspace=0.3,
        hspace=(below + 0.1) / size,
    )  # fmt: skip
    image = None
    for line, row in zip(panels, rows, strict=True):
        for axes in line[len(row["heads"]) :]:
            axes.set_visible(False)
        for axes, head, weights in zip(line, row["heads"], row["weights"], strict=False):
            image = axes.imshow(weights, cmap=SEQUENTIAL, vmin=0, vmax=1, aspect="auto")
            axes.set_title(f"{row['layer']}.{head}", fontsize=8)
            for axis, tokens in ((axes.xaxis, row["keys"]), (axes.yaxis, row["queries"])):
                every = max(1, len(tokens) // 20)
                axis.set_ticks(range(0, len(tokens), every), [shown(token) for token in tokens[::every]], fontsize=6)
            axes.tick_params(length=0)
            axes.tick_params(axis="x", rotation=90 if words else 0)
    for line in panels:
        line[0].set_ylabel("query", fontsize=7)
    for axes in panels[-1]:
        axes.set_xlabel("key", fontsize=7)
    figure.suptitle(title, fontsize=9, y=1 - 0.12 / height)
    scale = figure.add_axes((1 - 0.85 / width, 0.25, 0.14 / width, 0.5))
    figure.colorbar(image, cax=scale, label="attention weight")
    return figure


def map_sheets(rows: list[dict], examples: int) -> dict[str, Figure]:
    """File name -> figure: one sheet per stack and kind for the first examples, and one for the averages."""
    sheets: dict[str, list[dict]] = {}
    for row in rows:
        if row.get("example", 0) >= examples:
            continue
        stack, _, kind = row["layer"].split(".")
        which = f"example_{row['example']}" if row["analysis"] == "maps" else "average"
        sheets.setdefault(f"maps_{which}_{stack}_{kind}", []).append(row)
    figures = {}
    for name, own in sheets.items():
        first = own[0]
        if first["analysis"] == "maps":
            title = first["input"].replace("<eos>", "") + (
                f" → {first['answer'].replace('<eos>', '')}" if first["answer"] else ""
            )
        else:
            title = f"average over {first['n']:,} examples"
        figures[name] = draw_maps(own, title)
    return figures


def _part_layers(axes, heads: list[str]) -> None:
    for y in range(1, len(heads)):
        if heads[y].rsplit(".", 1)[0] != heads[y - 1].rsplit(".", 1)[0]:
            axes.axhline(y - 0.5, color="white", linewidth=2)


FIGURES = {
    "ablation": draw_ablation,
    "specialization": draw_specialization,
    "carry_atlas": draw_carry_atlas,
    "pruning": draw_pruning,
    "subsets": draw_subsets,
}
