"""Figures of a study of lengths of a task with one label: how far each model holds, and what is diluted on the way."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ...records.rows import Rows, select, values_of
from ..length_rows import kinds_in_order, task_of_rows
from .drawing import COLORS, DASHES, MARKERS, new_figure, tidy
from .panels import by, line, panels, unique_handles


MOST_BANDS = 6  # variants in one panel whose intervals can still be told apart
POOLING_ORDER = ("mean", "max", "violation")
TICKS = (8, 16, 64, 256, 1024, 4096)


def label_figures(rows: dict[str, Rows]) -> dict[str, Figure]:
    """Name -> figure, for what the rows allow."""
    lengths, dilution, shifts = (rows.get(name, []) for name in ("lengths", "dilution", "shifts"))
    found = {
        f"extrapolation_{kind}": extrapolation_curves(select(lengths, kind=kind), kind)
        for kind in (kinds_in_order(lengths) if lengths else ())
    }
    for name, draw, needed in (
        ("dilution", draw_dilution, dilution),
        ("margins", draw_margins, dilution),
        ("shifted_positions", draw_shifts, shifts),
    ):
        if needed:
            found[name] = draw(needed)
    return found


def poolings_of(rows: Rows) -> list[str]:
    found = {row["pooling"] for row in rows}
    return [name for name in POOLING_ORDER if name in found] + sorted(found - set(POOLING_ORDER))


def length_axis(axis: Axes, lengths: list[int]) -> None:
    axis.set_xscale("log", base=2)
    ticks = [length for length in (8, 16, 64, 256, 1024, 4096) if min(lengths) <= length <= max(lengths)]
    axis.set_xticks(ticks, [f"{tick:,}" for tick in ticks], fontsize=8)
    axis.minorticks_off()


def extrapolation_curves(rows: Rows, kind: str) -> Figure:
    """A panel per variant, a colour per pooling, a line per seed with its intervals."""
    task = task_of_rows(rows)
    variants = list(by(rows, "variant"))
    poolings = poolings_of(rows)
    lengths = sorted({row["length"] for row in rows})
    figure, axes = panels([variant for (variant,) in variants], sharex=True, sharey=True)
    for axis, (variant,) in zip(axes, variants, strict=True):
        axis.axvspan(*rows[0]["trained"], color="#000000", alpha=0.08, lw=0)
        axis.axhline(50, color="#666666", lw=0.8, ls=":")
        own = [row for row in rows if row["variant"] == variant and row["value"] is not None]
        for (pooling, _), series in by(own, "pooling", "seed").items():
            number = poolings.index(pooling)
            series = sorted(series, key=lambda row: row["length"])
            x, y = [row["length"] for row in series], [100 * row["value"] for row in series]
            low = [value - 100 * row["interval"][0] for value, row in zip(y, series, strict=True)]
            high = [100 * row["interval"][1] - value for value, row in zip(y, series, strict=True)]
            style: dict[str, Any] = {"color": COLORS[number], "marker": MARKERS[number]}
            style["ls"] = DASHES[number % len(DASHES)]
            axis.errorbar(x, y, [low, high], **style, ms=3.5, lw=1.0, elinewidth=0.6, alpha=0.75)
        length_axis(axis, lengths)
        axis.set_ylim(30, 103)
        axis.tick_params(labelbottom=True, labelleft=True, labelsize=8)
        axis.set_xlabel(task.texts.length, fontsize=8)
    figure.supylabel("accuracy, %", fontsize=9)
    label_series(figure, poolings)
    figure.suptitle(
        f"Accuracy by {task.texts.length}, {kind} {task.texts.kind_noun} ({task.classes[kind]})\n"
        "one line per seed, 95 % intervals; grey: training lengths; dotted: chance",
        fontsize=11,
    )
    return figure


def label_series(figure: Figure, poolings: list[str]) -> None:
    handles = [
        Line2D([], [], color=COLORS[i], marker=MARKERS[i], ls=DASHES[i % len(DASHES)], ms=4, label=f"{name} pooling")
        for i, name in enumerate(poolings)
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=8, frameon=False)


def draw_dilution(rows: Rows) -> Figure:
    """Entropy and weight on the decisive neighbour by variant, pooled signal by pooling."""
    figure, axes = panels(
        ["attention entropy / log L", "weight on the decisive neighbour", "shift of the pooled vector"], 4.2, 4.2
    )
    pooling = "max" if any(row["pooling"] == "max" for row in rows) else rows[0]["pooling"]
    variants = [variant for (variant,) in by([row for row in rows if row["pooling"] == pooling], "variant")]
    shown = [row for row in rows if row["pooling"] == pooling]
    for metric, axis in zip(("entropy_share", "neighbour_weight"), axes, strict=False):
        for number, variant in enumerate(variants):
            for (seed,), own in by(select(shown, variant=variant, metric=metric), "seed").items():
                head = best_head(select(shown, variant=variant, seed=seed))
                line(axis, of_head(own, *head), number, variant, len(variants) <= MOST_BANDS)
        axis.set_ylim(-0.03, 1.03)
    poolings = poolings_of(rows)
    best = "alibi_directional" if "alibi_directional" in variants else variants[0]
    for number, name in enumerate(poolings):
        chosen = select(rows, metric="pooled_signal", pooling=name, variant=best)
        for own in by(chosen, "seed").values():
            line(axes[2], own, number, f"{name} pooling")
    lengths = sorted(values_of([row for row in rows if row["metric"] != "signal_exponent"], "length"))
    shortest = select(rows, metric="pooled_signal", length=lengths[0], pooling=poolings[0], variant=best)
    starts = [row["value"] for row in shortest]
    if starts:
        reference = [starts[0] * lengths[0] / length for length in lengths]
        axes[2].plot(lengths, reference, color="#666666", lw=0.9, ls=":", label="1/L")
    axes[2].set_yscale("log")
    for axis in axes:
        length_axis(axis, lengths)
        axis.set_xlabel("length", fontsize=9)
    handles, labels = unique_handles(axes[0])
    figure.legend(handles, labels, loc="outside lower center", ncols=6, fontsize=7.5, frameon=False)
    axes[2].legend(*unique_handles(axes[2]), fontsize=7.5, frameon=False)
    axes[0].set_ylabel(f"{pooling} pooling, head found at length {lengths[0]}", fontsize=8)
    axes[2].set_ylabel(f"{best}, Euclidean", fontsize=8)
    bands = "bands" if len(variants) <= MOST_BANDS else "bands on the right"
    figure.suptitle(
        f"What one decisive pair leaves behind as the sequence grows; one line per seed; {bands}: 95 % intervals",
        fontsize=10,
    )
    return figure


def best_head(rows: Rows) -> tuple[str, str]:
    """(head, direction) that gives the decisive neighbour most weight at the shortest length."""
    weights = [row for row in rows if row["metric"] == "neighbour_weight"]
    shortest = min(row["length"] for row in weights)
    found = max((row for row in weights if row["length"] == shortest), key=lambda row: row["value"])
    return found["head"], found["looks"]


def of_head(rows: Rows, head: str, looks: str) -> Rows:
    """Rows of one head; of those that differ by direction, the ones that look that way."""
    own = select(rows, head=head)
    return select(own, looks=looks) if values_of(own, "looks") else own


def draw_margins(rows: Rows) -> Figure:
    """Logit margin of problems and of their twins that differ in the decisive pair: the sign is the answer."""
    task, chosen = task_of_rows(rows), select(rows, metric="margin")
    pooling = "max" if any(row["pooling"] == "max" for row in chosen) else chosen[0]["pooling"]
    chosen = [row for row in chosen if row["pooling"] == pooling]
    variants = [variant for (variant,) in by(chosen, "variant")]
    lengths = sorted({row["length"] for row in chosen})
    figure, axes = panels(variants, sharex=True)
    for axis, variant in zip(axes, variants, strict=True):
        axis.axhline(0, color="#666666", lw=0.8, ls=":")
        for number, name in enumerate(values_of(chosen, "label")):
            for series in by(select(chosen, variant=variant, label=name), "seed").values():
                line(axis, series, number, name)
        length_axis(axis, lengths)
        axis.tick_params(labelbottom=True, labelsize=8)
        axis.set_xlabel("length", fontsize=8)
    axes[0].legend(*unique_handles(axes[0]), fontsize=7, frameon=False)
    figure.supylabel(f"logit of {task.labels[1]} minus {task.labels[0]}", fontsize=9)
    figure.suptitle(
        f"Margins by length, {pooling} pooling; one line per seed, 95 % intervals of the mean", fontsize=11
    )
    return figure


def draw_shifts(rows: Rows) -> Figure:
    """Accuracy at a training length when all position ids start further on."""
    pooling = "max" if any(row["pooling"] == "max" for row in rows) else rows[0]["pooling"]
    chosen = [row for row in rows if row["pooling"] == pooling]
    figure, axis = new_figure(7.2, 4.2)
    tidy(axis)
    axis.axhline(0.5, color="#666666", lw=0.8, ls=":")
    variants = by(chosen, "variant")
    for number, ((variant,), own) in enumerate(variants.items()):
        for series in by(own, "seed").values():
            rows_by_shift = [{**row, "length": row["shift"]} for row in series]
            line(axis, rows_by_shift, number, variant, len(variants) <= MOST_BANDS)
    axis.set_xscale("symlog", base=2, linthresh=1)
    ticks = sorted({row["shift"] for row in chosen})
    axis.set_xticks(ticks, [f"{tick:,}" for tick in ticks], fontsize=8)
    axis.minorticks_off()
    axis.set_xlabel("first position id (trained: 0)")
    axis.set_ylabel(f"accuracy at length {chosen[0]['length']}, {chosen[0]['kind']}")
    axis.set_ylim(0.4, 1.03)
    legend = unique_handles(axis)
    axis.legend(*legend, loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=7.5, frameon=False)
    axis.set_title(
        f"The same short problems at other positions; {pooling} pooling, a line per seed, n = {chosen[0]['n']} each",
        fontsize=9,
    )
    return figure
