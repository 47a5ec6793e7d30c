"""Figures of the length study: how far each model holds, and what is diluted on the way; from result rows alone."""

import json
import math
from collections import defaultdict
from pathlib import Path

from .drawing import COLORS, DASHES, MARKERS, new_figure, save_figure, tidy


MOST_BANDS = 6  # variants in one panel whose intervals can still be told apart
KIND_TITLES = {"swap": "two neighbours exchanged", "move": "one element moved", "shuffle": "random order"}
POOLING_ORDER = ("mean", "max", "violation")
COLUMNS = 4


def draw_length_figures(output: Path) -> list[Path]:
    """Draws what the rows of the study allow; gives the files written."""
    rows = {name: read(output, name) for name in ("lengths", "dilution", "shifts")}
    written = []
    for kind in KIND_TITLES:
        chosen = [row for row in rows["lengths"] if row["kind"] == kind]
        if chosen:
            written += save_figure(extrapolation_curves(chosen, kind), output / "figures", f"extrapolation_{kind}")
    for name, draw, needed in (
        ("dilution", draw_dilution, rows["dilution"]),
        ("margins", draw_margins, rows["dilution"]),
        ("shifted_positions", draw_shifts, rows["shifts"]),
    ):
        if needed:
            written += save_figure(draw(needed), output / "figures", name)
    return written


def read(output: Path, name: str) -> list[dict]:
    return json.loads((output / "results" / f"{name}.json").read_text())


def by(rows: list[dict], *keys: str) -> dict[tuple, list[dict]]:
    groups = defaultdict(list)
    for row in rows:
        groups[tuple(row[key] for key in keys)].append(row)
    return dict(groups)


def poolings_of(rows: list[dict]) -> list[str]:
    found = {row["pooling"] for row in rows}
    return [name for name in POOLING_ORDER if name in found] + sorted(found - set(POOLING_ORDER))


def panels(titles: list[str], width: float = 3.0, height: float = 2.5, **options):
    """A figure with one panel per title, and the panels in order; what is left of the grid stays empty."""
    columns = min(COLUMNS, len(titles))
    lines = math.ceil(len(titles) / columns)
    figure, axes = new_figure(width * columns, height * lines + 0.7, lines, columns, squeeze=False, **options)
    flat = list(axes.flat)
    for axis in flat[len(titles) :]:
        axis.set_visible(False)
    for axis, title in zip(flat, titles, strict=False):
        axis.set_title(title, fontsize=9)
        tidy(axis)
    return figure, flat[: len(titles)]


def length_axis(axis, lengths: list[int]) -> None:
    axis.set_xscale("log", base=2)
    ticks = [length for length in (8, 16, 64, 256, 1024, 4096) if min(lengths) <= length <= max(lengths)]
    axis.set_xticks(ticks, [f"{tick:,}" for tick in ticks], fontsize=8)
    axis.minorticks_off()


def extrapolation_curves(rows: list[dict], kind: str):
    """A panel per variant, a colour per pooling, a line per seed with its intervals."""
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
            axis.errorbar(
                x, y, [low, high], color=COLORS[number], marker=MARKERS[number], ls=DASHES[number % len(DASHES)],
                ms=3.5, lw=1.0, elinewidth=0.6, alpha=0.75,
            )  # fmt: skip
        length_axis(axis, lengths)
        axis.set_ylim(30, 103)
        axis.tick_params(labelbottom=True, labelleft=True, labelsize=8)
        axis.set_xlabel("length", fontsize=8)
    figure.supylabel("accuracy, %", fontsize=9)
    label_series(figure, poolings)
    figure.suptitle(
        f"Accuracy by length, negatives with {KIND_TITLES[kind]}\n"
        "one line per seed, 95 % intervals; grey: training lengths; dotted: chance",
        fontsize=11,
    )
    return figure


def label_series(figure, poolings: list[str]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=COLORS[i], marker=MARKERS[i], ls=DASHES[i % len(DASHES)], ms=4, label=f"{name} pooling")
        for i, name in enumerate(poolings)
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=8, frameon=False)


def draw_dilution(rows: list[dict]):
    """Entropy and weight on the decisive neighbour by variant, pooled signal by pooling."""
    figure, axes = panels(
        ["attention entropy / log L", "weight on the exchanged neighbour", "shift of the pooled vector"], 4.2, 4.2
    )
    pooling = "max" if any(row["pooling"] == "max" for row in rows) else rows[0]["pooling"]
    variants = [variant for (variant,) in by([row for row in rows if row["pooling"] == pooling], "variant")]
    shown = [row for row in rows if row["pooling"] == pooling]
    for metric, axis in zip(("entropy_share", "neighbour_weight"), axes, strict=False):
        for number, variant in enumerate(variants):
            for seed, own in by(
                [r for r in shown if r["variant"] == variant and r["metric"] == metric], "seed"
            ).items():
                head = best_head([r for r in shown if r["variant"] == variant and r["seed"] == seed[0]])
                line(axis, [r for r in own if is_head(r, head)], number, variant, len(variants) <= MOST_BANDS)
        axis.set_ylim(-0.03, 1.03)
    poolings = poolings_of(rows)
    best = "alibi_directional" if "alibi_directional" in variants else variants[0]
    for number, name in enumerate(poolings):
        chosen = [r for r in rows if r["metric"] == "pooled_signal" and r["pooling"] == name and r["variant"] == best]
        for own in by(chosen, "seed").values():
            line(axes[2], own, number, f"{name} pooling")
    lengths = sorted({row["length"] for row in rows if row.get("length")})
    starts = [r["value"] for r in rows if r["metric"] == "pooled_signal" and r["length"] == lengths[0]
              and r["pooling"] == poolings[0] and r["variant"] == best]  # fmt: skip
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
        f"What one exchanged pair leaves behind as the sequence grows; one line per seed; {bands}: 95 % intervals",
        fontsize=10,
    )
    return figure


def best_head(rows: list[dict]) -> tuple[str, str]:
    """(head, direction) that gives the exchanged neighbour most weight at the shortest length."""
    weights = [row for row in rows if row["metric"] == "neighbour_weight"]
    shortest = min(row["length"] for row in weights)
    found = max((row for row in weights if row["length"] == shortest), key=lambda row: row["value"])
    return found["head"], found["looks"]


def is_head(row: dict, head: tuple[str, str]) -> bool:
    return row["head"] == head[0] and row.get("looks", head[1]) == head[1]


def line(axis, rows: list[dict], number: int, label: str, band: bool = True) -> None:
    rows = sorted(rows, key=lambda row: row["length"])
    x, y = [row["length"] for row in rows], [row["value"] for row in rows]
    low = [row["interval"][0] if row["interval"] else row["value"] for row in rows]
    high = [row["interval"][1] if row["interval"] else row["value"] for row in rows]
    color = COLORS[number % len(COLORS)]
    dash = DASHES[number // len(COLORS) % len(DASHES)]
    axis.plot(x, y, color=color, marker=MARKERS[number % len(MARKERS)], ls=dash, ms=3.5, lw=1.0, label=label)
    if band:
        axis.fill_between(x, low, high, color=color, alpha=0.12, lw=0)


def unique_handles(axis) -> tuple[list, list[str]]:
    """What a legend needs, with every label once: seeds share one."""
    handles, labels = axis.get_legend_handles_labels()
    first = dict(zip(reversed(labels), reversed(handles), strict=True))
    names = list(dict.fromkeys(labels))
    return [first[name] for name in names], names


def draw_margins(rows: list[dict]):
    """Logit margin of sorted sequences and of their twins with one exchanged pair: the sign is the answer."""
    chosen = [row for row in rows if row["metric"] == "margin"]
    pooling = "max" if any(row["pooling"] == "max" for row in chosen) else chosen[0]["pooling"]
    chosen = [row for row in chosen if row["pooling"] == pooling]
    variants = [variant for (variant,) in by(chosen, "variant")]
    lengths = sorted({row["length"] for row in chosen})
    figure, axes = panels(variants, sharex=True)
    for axis, variant in zip(axes, variants, strict=True):
        axis.axhline(0, color="#666666", lw=0.8, ls=":")
        for number, name in enumerate(("sorted", "swap")):
            own = [row for row in chosen if row["variant"] == variant and row["class"] == name]
            for series in by(own, "seed").values():
                line(axis, series, number, {"sorted": "sorted", "swap": "one pair exchanged"}[name])
        length_axis(axis, lengths)
        axis.tick_params(labelbottom=True, labelsize=8)
        axis.set_xlabel("length", fontsize=8)
    axes[0].legend(*unique_handles(axes[0]), fontsize=7, frameon=False)
    figure.supylabel("logit of sorted minus unsorted", fontsize=9)
    figure.suptitle(
        f"Margins by length, {pooling} pooling; one line per seed, 95 % intervals of the mean", fontsize=11
    )
    return figure


def draw_shifts(rows: list[dict]):
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
    axis.set_ylabel(f"accuracy at length {chosen[0]['length']}, swap")
    axis.set_ylim(0.4, 1.03)
    legend = unique_handles(axis)
    axis.legend(*legend, loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=7.5, frameon=False)
    axis.set_title(
        f"The same short sequences at other positions; {pooling} pooling, a line per seed, n = {chosen[0]['n']} each",
        fontsize=9,
    )
    return figure
