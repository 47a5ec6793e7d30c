"""Figures of a study of lengths of a task that answers with a sequence: how far each variant holds, what is diluted on
the way, and what the heads read. What is built in by hand is said in every title.
"""

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...data_builders.tasks import LEARNED
from ...records.rows import Rows, only, select, values_of
from ..findings.sequence_lengths import WHOLE
from ..length_rows import as_in_summary, task_of_rows
from .drawing import COLORS, DIVERGING, new_figure, tidy
from .panels import as_percent, built_in_words, by, line, panels, unique_handles


TICKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)
TICK_SIZE = 8
OTHER = "other"  # keys that are of no use


def sequence_figures(rows: dict[str, Rows]) -> dict[str, Figure]:
    """Name -> figure, for what the rows allow."""
    lengths, columns, summary = (rows.get(name, []) for name in ("lengths", "columns", "summary"))
    if not lengths:
        return {}
    lengths = as_in_summary(lengths, summary)
    whole = only(summary, says=WHOLE)
    shown = select(columns, variant=whole["variant"] if whole else lengths[0]["variant"])
    found = {"accuracy_by_length": draw_accuracy(lengths), "margin_and_entropy": draw_dilution(lengths, columns)}
    if select(shown, metric="bias"):
        found["what_heads_read"] = draw_heads(shown)
    return found


def length_axis(axis: Axes, lengths: list[int], unit: str) -> None:
    axis.set_xscale("log")
    ticks = [tick for tick in TICKS if min(lengths) <= tick <= max(lengths)]
    axis.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axis.tick_params(labelsize=TICK_SIZE)
    axis.minorticks_off()
    axis.set_xlabel(unit, fontsize=8)


def draw_accuracy(rows: Rows) -> Figure:
    """A panel per variant, a colour per class of problems, a line per seed with its intervals."""
    variants = [variant for (variant,) in by(rows, "variant")]
    task = task_of_rows(rows)
    kinds = [kind for kind in task.classes if kind in values_of(rows, "kind")]
    lengths = sorted({row["length"] for row in rows})
    # A single panel is as wide as the title.
    width, height = max(3.0, 7.2 / len(variants)), 2.5 + 0.1 * len(kinds)  # with room for the sentences of the classes
    figure, axes = panels(variants, width, height, sharex=True, sharey=True)
    for axis, variant in zip(axes, variants, strict=True):
        own = [row for row in rows if row["variant"] == variant]
        first, last = own[0]["trained"]
        begin = min(max(first, lengths[0] / 2), 0.9 * last)  # a single length is a band too
        axis.axvspan(begin, last, color="#000000", alpha=0.08, lw=0)
        for seed in sorted({row["seed"] for row in own}):
            held_out = select(own, seed=seed, kind="test")
            for number, kind in enumerate(kinds):
                series = [row for row in select(own, seed=seed, kind=kind) if row["value"] is not None]
                line(axis, as_percent([*held_out, *series]), number, task.classes[kind])
                # Thinner than the class before, so that lines that coincide stay visible.
                axis.lines[-1].set(
                    linewidth=0.6 + 0.5 * (len(kinds) - number), markersize=3 + 0.7 * (len(kinds) - number)
                )
        tested = [row["value"] for row in select(own, kind="test")]
        if tested and max(tested) < LEARNED[task.kind]:
            axis.text(0.97, 0.5, "never fitted\nin distribution", ha="right", fontsize=8, transform=axis.transAxes)
        length_axis(axis, [lengths[0] // 2, *lengths], task.texts.length)
        axis.set_ylim(-3, 103)
        axis.tick_params(labelbottom=True, labelleft=True)
    figure.supylabel("exact match, free-running, %", fontsize=9)
    handles, labels = unique_handles(axes[0])
    ncols = 2 if len(variants) > 3 else 1
    figure.legend(handles, labels, loc="outside lower center", ncols=ncols, fontsize=8, frameon=False)
    figure.suptitle(
        f"{task.texts.short_title} beyond the training length; one line per seed, 95 % intervals\n"
        f"grey: trained; first point: held-out {task.texts.problems} of those lengths\n{built_in_words(rows)}",
        fontsize=9,
    )
    return figure


def draw_dilution(lengths: Rows, columns: Rows) -> Figure:
    """Smallest margin of an answer, attention entropy and weight outside of what is useful, by length."""
    task = task_of_rows(lengths)
    kind = [*task.classes, *task.hardest][-1]  # the easiest, which is most like the held-out problems
    titles = ["smallest logit margin of an answer"]
    titles += ["attention entropy / log keys", "weight on other keys"] if columns else []
    figure, axes = panels(titles, 4.0 if columns else 7.2, 3.4)
    variants = [variant for (variant,) in by(lengths, "variant")]
    axes[0].axhline(0, color="#666666", lw=0.8, ls=":")
    for number, variant in enumerate(variants):
        own = [row for row in lengths if row["variant"] == variant and row["value"] is not None]
        for series in by([row for row in own if row["kind"] in ("test", kind)], "seed").values():
            line(axes[0], [{**row, **row["margin"]} for row in series], number, variant)
        heads = select(columns, variant=variant)
        spread = [select(heads, metric="entropy_share"), select(heads, metric="weight", reads=OTHER)]
        for axis, chosen in zip(axes[1:], spread, strict=False):
            for series in by(chosen, "seed").values():
                line(axis, mean_over_heads(series), number, variant)
    every = sorted({row["length"] for row in lengths})
    for axis in axes:
        length_axis(axis, every, task.texts.length)
        axis.set_xlim(every[0] / 1.15, every[-1] * 1.15)
    for axis in axes[1:]:
        axis.set_ylim(-0.03, 1.03)
    handles, labels = unique_handles(axes[0])
    figure.legend(handles, labels, loc="outside lower center", ncols=6, fontsize=7.5, frameon=False)
    figure.suptitle(
        f"What is left of a decision as {task.texts.problems} grow; class {kind}, a line per seed, mean over heads\n"
        "margin: below zero the answer is wrong, band: 95 % interval of the mean\n"
        f"first point: held-out {task.texts.problems} of the training lengths\n{built_in_words(lengths)}",
        fontsize=9,
    )
    return figure


def mean_over_heads(rows: Rows) -> Rows:
    return [
        {"length": length, "value": sum(row["value"] for row in own) / len(own), "interval": None}
        for (length,), own in by(rows, "length").items()
    ]


def draw_heads(rows: Rows) -> Figure:
    """The bias table of every head, and under it what the head reads at each length: the algorithm of one seed."""
    task, seed = task_of_rows(rows), min(values_of(rows, "seed"))
    rows = select(rows, seed=seed)
    biases = by(select(rows, metric="bias"), "head")
    names = values_of(select(rows, metric="weight"), "head")[: len(biases)]
    figure, axes = new_figure(3.0 * len(names), 5.2, 2, len(names), squeeze=False, sharey="row")
    most = max(abs(row["value"]) for row in select(rows, metric="bias"))
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
        draw_reading(bottom, select(rows, metric="weight", head=name), task.texts.length)
    axes[0][0].set_ylabel("trained bias", fontsize=8)
    axes[1][0].set_ylabel("attention weight", fontsize=8)
    handles, labels = axes[1][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8, frameon=False)
    note = f" ({task.texts.difference_note})" if task.texts.difference_note else ""
    figure.suptitle(
        f"The algorithm: what each head reads while a place is written ({rows[0]['variant']}, seed {seed})\n"
        f"bias by difference of position ids{note}\n{built_in_words(rows)}",
        fontsize=9,
    )
    return figure


def difference_label(difference: int | str, count: int) -> str:
    if isinstance(difference, str):
        return difference
    reach = (count - 1) // 2
    beyond = {-reach: "≤", reach: "≥"}.get(difference, "")
    return f"{beyond}{difference:+d}" if difference else "0"


def shades(values: list[float], most: float) -> list[tuple]:
    """Colours on both sides of zero."""
    colors = matplotlib.colormaps[DIVERGING]
    return [colors(0.5 + 0.5 * value / most) for value in values]


def draw_reading(axis: Axes, rows: Rows, unit: str) -> None:
    """Weights stacked to one, a bar per length."""
    lengths = sorted(values_of(rows, "length"))
    base = [0.0] * len(lengths)
    for number, reads in enumerate(sorted(values_of(rows, "reads"), key=lambda name: name == OTHER)):
        own = {row["length"]: row["value"] for row in select(rows, reads=reads)}
        heights = [own[length] for length in lengths]
        color = "#dddddd" if reads == OTHER else COLORS[number]
        axis.bar(range(len(lengths)), heights, 0.8, base, color=color, edgecolor="white", lw=0.4, label=reads)
        base = [low + height for low, height in zip(base, heights, strict=True)]
    axis.set_xticks(range(len(lengths)), [f"{length:,}" for length in lengths])
    axis.tick_params(labelsize=TICK_SIZE)
    axis.set_xlabel(unit, fontsize=8)
    axis.set_ylim(0, 1.02)
    tidy(axis)
