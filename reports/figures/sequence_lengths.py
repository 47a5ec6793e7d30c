"""Figures of the addition study: how far each variant holds, what is diluted on the way, and what the heads read; from
result rows alone. What is built in by hand is said in every title.
"""

import json
from collections import Counter
from pathlib import Path

from .addition_findings import KIND_TITLES, WHOLE
from .drawing import COLORS, DIVERGING, new_figure, save_figure, tidy
from .length_figures import by, line, panels, unique_handles


TICKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)
TICK_SIZE = 8
READS = ("own column", "right column", "last digit", "<bos>", "other")


def draw_addition_figures(output: Path) -> list[Path]:
    """Draws what the rows of the study allow; gives the files written."""
    names = ("lengths", "columns", "summary")
    lengths, columns, summary = (json.loads((output / "results" / f"{name}.json").read_text()) for name in names)
    order = list(dict.fromkeys(row["variant"] for row in summary))
    lengths.sort(key=lambda row: order.index(row["variant"]))
    written = []
    if not lengths:
        return written
    shown = WHOLE if any(row["variant"] == WHOLE for row in lengths) else lengths[0]["variant"]
    figures = {"accuracy_by_digits": draw_accuracy(lengths), "margin_and_entropy": draw_dilution(lengths, columns)}
    chosen = [row for row in columns if row["variant"] == shown]
    if any(row["metric"] == "bias" for row in chosen):
        figures["what_heads_read"] = draw_heads(chosen)
    for name, figure in figures.items():
        written += save_figure(figure, output / "figures", name)
    return written


def built_in_words(rows: list[dict]) -> str:
    variants = {row["variant"]: row["built_in"] for row in rows}
    counts = Counter(name for names in variants.values() for name in names)
    words = [
        name if count == len(variants) else f"{name} ({count} of {len(variants)} variants)"
        for name, count in sorted(counts.items())
    ]
    return f"built in by hand: {', '.join(words)}" if words else "nothing built in by hand"


def digit_axis(axis, lengths: list[int]) -> None:
    axis.set_xscale("log")
    ticks = [tick for tick in TICKS if min(lengths) <= tick <= max(lengths)]
    axis.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axis.tick_params(labelsize=TICK_SIZE)
    axis.minorticks_off()
    axis.set_xlabel("digits", fontsize=8)


def draw_accuracy(rows: list[dict]):
    """A panel per variant, a colour per class of problems, a line per seed with its intervals."""
    variants = [variant for (variant,) in by(rows, "variant")]
    kinds = [kind for kind in KIND_TITLES if any(row["kind"] == kind for row in rows)]
    lengths = sorted({row["length"] for row in rows})
    # A single panel is as wide as the title.
    figure, axes = panels(variants, max(3.0, 7.2 / len(variants)), sharex=True, sharey=True)
    for axis, variant in zip(axes, variants, strict=True):
        own = [row for row in rows if row["variant"] == variant]
        first, last = own[0]["trained"]
        begin = min(max(first, lengths[0] / 2), 0.9 * last)  # a single length is a band too
        axis.axvspan(begin, last, color="#000000", alpha=0.08, lw=0)
        for seed in sorted({row["seed"] for row in own}):
            held_out = [row for row in own if row["seed"] == seed and row["kind"] == "test"]
            for number, kind in enumerate(kinds):
                series = [
                    row for row in own if row["seed"] == seed and row["kind"] == kind and row["value"] is not None
                ]
                line(axis, as_percent([*held_out, *series]), number, KIND_TITLES[kind])
                # Thinner than the class before, so that lines that coincide stay visible.
                axis.lines[-1].set(
                    linewidth=0.6 + 0.5 * (len(kinds) - number), markersize=3 + 0.7 * (len(kinds) - number)
                )
        if all(row["value"] < 0.99 for row in own if row["kind"] == "test"):
            axis.text(0.97, 0.5, "never fitted\nin distribution", ha="right", fontsize=8, transform=axis.transAxes)
        digit_axis(axis, [lengths[0] // 2, *lengths])
        axis.set_ylim(-3, 103)
        axis.tick_params(labelbottom=True, labelleft=True)
    figure.supylabel("exact match, free-running, %", fontsize=9)
    handles, labels = unique_handles(axes[0])
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    figure.suptitle(
        f"Addition beyond the training length; one line per seed, 95 % intervals\n"
        f"grey: trained; first point: held-out problems of those lengths\n{built_in_words(rows)}",
        fontsize=9,
    )
    return figure


def as_percent(rows: list[dict]) -> list[dict]:
    return [{**row, "value": 100 * row["value"], "interval": [100 * end for end in row["interval"]]} for row in rows]


def draw_dilution(lengths: list[dict], columns: list[dict]):
    """Smallest margin of an answer, attention entropy and weight outside of what is useful, against digits."""
    titles = ["smallest logit margin of an answer", "attention entropy / log keys", "weight on other keys"]
    figure, axes = panels(titles, 4.0, 3.4)
    variants = [variant for (variant,) in by(lengths, "variant")]
    axes[0].axhline(0, color="#666666", lw=0.8, ls=":")
    for number, variant in enumerate(variants):
        own = [row for row in lengths if row["variant"] == variant and row["value"] is not None]
        for series in by([row for row in own if row["kind"] in ("test", "random")], "seed").values():
            line(axes[0], [{**row, **row["margin"]} for row in series], number, variant)
        heads = [row for row in columns if row["variant"] == variant]
        for axis, metric, reads in ((axes[1], "entropy_share", None), (axes[2], "weight", "other")):
            chosen = [row for row in heads if row["metric"] == metric and row.get("reads") == reads]
            for series in by(chosen, "seed").values():
                line(axis, mean_over_heads(series), number, variant)
    every = sorted({row["length"] for row in lengths})
    for axis in axes:
        digit_axis(axis, every)
        axis.set_xlim(every[0] / 1.15, every[-1] * 1.15)
    for axis in axes[1:]:
        axis.set_ylim(-0.03, 1.03)
    handles, labels = unique_handles(axes[0])
    figure.legend(handles, labels, loc="outside lower center", ncols=6, fontsize=7.5, frameon=False)
    figure.suptitle(
        "What is left of a decision as numbers grow; random problems, one line per seed, mean over heads\n"
        "left: below zero the answer is wrong, band: 95 % interval of the mean; first point: held-out problems of the "
        f"training lengths\n{built_in_words(lengths)}", fontsize=9,
    )  # fmt: skip
    return figure


def mean_over_heads(rows: list[dict]) -> list[dict]:
    return [
        {"length": length, "value": sum(row["value"] for row in own) / len(own), "interval": None}
        for (length,), own in by(rows, "length").items()
    ]


def draw_heads(rows: list[dict]):
    """The bias table of every head, and under it what the head reads at each length: the algorithm of one seed."""
    seed = min(row["seed"] for row in rows)
    rows = [row for row in rows if row["seed"] == seed]
    biases = by([row for row in rows if row["metric"] == "bias"], "head")
    names = [name for (name,) in by([row for row in rows if row["metric"] == "weight"], "head")][: len(biases)]
    figure, axes = new_figure(3.0 * len(names), 5.2, 2, len(names), squeeze=False, sharey="row")
    most = max(abs(row["value"]) for row in rows if row["metric"] == "bias")
    for number, (name, ((_,), bias)) in enumerate(zip(names, biases.items(), strict=True)):
        top, bottom = axes[0][number], axes[1][number]
        labels = [difference_label(row["difference"], len(bias)) for row in bias]
        values = [row["value"] for row in bias]
        top.bar(range(len(bias)), values, color=shades(values, most), edgecolor="#444444", lw=0.4)
        top.set_xticks(range(len(bias)), labels, rotation=90)
        top.tick_params(labelsize=TICK_SIZE)
        top.axhline(0, color="#666666", lw=0.6)
        top.set_title(name, fontsize=9)
        tidy(top)
        draw_reading(bottom, [row for row in rows if row["metric"] == "weight" and row["head"] == name])
    axes[0][0].set_ylabel("trained bias", fontsize=8)
    axes[1][0].set_ylabel("attention weight", fontsize=8)
    handles, labels = axes[1][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8, frameon=False)
    figure.suptitle(
        f"The algorithm: what each head reads while a column is written ({rows[0]['variant']}, seed {seed})\n"
        f"bias by difference of ids: +1 is the column being written, 0 the one to its right; {built_in_words(rows)}",
        fontsize=9,
    )
    return figure


def difference_label(difference: int | str, count: int) -> str:
    if isinstance(difference, str):
        return difference
    reach = (count - 1) // 2
    beyond = {-reach: "≤", reach: "≥"}.get(difference, "")
    return f"{beyond}{difference:+d}" if difference else "0"


def shades(values: list[float], most: float):
    import matplotlib

    colors = matplotlib.colormaps[DIVERGING]
    return [colors(0.5 + 0.5 * value / most) for value in values]


def draw_reading(axis, rows: list[dict]) -> None:
    """Weights stacked to one, a bar per length."""
    lengths = sorted({row["length"] for row in rows})
    base = [0.0] * len(lengths)
    for number, reads in enumerate(READS):
        own = {row["length"]: row["value"] for row in rows if row["reads"] == reads}
        heights = [own[length] for length in lengths]
        color = "#dddddd" if reads == "other" else COLORS[number]
        axis.bar(range(len(lengths)), heights, 0.8, base, color=color, edgecolor="white", lw=0.4, label=reads)
        base = [low + height for low, height in zip(base, heights, strict=True)]
    axis.set_xticks(range(len(lengths)), [f"{length:,}" for length in lengths])
    axis.tick_params(labelsize=TICK_SIZE)
    axis.set_xlabel("digits", fontsize=8)
    axis.set_ylim(0, 1.02)
    tidy(axis)
