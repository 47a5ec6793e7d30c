"""The figures of the dataset cards. Colours are those of Okabe and Ito, which colour-blind readers can tell apart."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
HATCHES = ("", "//", "..", "xx", "\\\\", "--")
MARKERS = ("o", "s", "^", "D", "v", "P")
BARS_UP_TO = 9

Tallies = dict[tuple[str, str], dict[str, Counter]]


def draw_counts(tallies: Tallies, path: Path, facts: dict[str, str]) -> None:
    """Share of rows by a number, one colour per split of the first config; of several facts, the first there is.

    `facts`: name of the tally -> what the axis says.
    """
    fact = next(name for name in facts if any(name in tally for tally in tallies.values()))
    first = next(config for (config, _), tally in tallies.items() if fact in tally)
    counts = {split: tally[fact] for (config, split), tally in tallies.items() if config == first}
    figure, axes = _new_figure()
    places = list(range(max(place for tally in counts.values() for place in tally) + 1))
    for number, (split, tally) in enumerate(counts.items()):
        share = [tally[place] / tally.total() for place in places]
        name = f"{split} ({tally.total():,} rows)"
        color, marker = COLORS[number % len(COLORS)], MARKERS[number % len(MARKERS)]
        if len(places) <= BARS_UP_TO:
            width = 0.8 / len(counts)
            left = [place - 0.4 + (number + 0.5) * width for place in places]
            hatch = HATCHES[number % len(HATCHES)]
            axes.bar(left, share, width, label=name, color=color, hatch=hatch, edgecolor="white")
            for x, height, place in zip(left, share, places, strict=True):
                if tally[place]:
                    label = f"{height:.0%}" if height >= 0.095 else f"{height:.1%}"
                    axes.annotate(label, (x, height), ha="center", va="bottom", fontsize=7)
        else:
            axes.plot(places, share, label=name, color=color, marker=marker, markersize=4)
    if len(places) <= BARS_UP_TO:
        axes.set_xticks(places)
    _finish(figure, axes, facts[fact], "share of rows", path)


def draw_violation_positions(tallies: Tallies, path: Path) -> None:
    """Where the first violation is, one line per kind, over all splits of the config `default`."""
    figure, axes = _new_figure()
    for number, kind in enumerate(("shuffle", "swap", "move")):
        total: Counter = Counter()
        for tally in tallies.values():
            total.update(tally[f"position/{kind}"])
        if total:
            # No rows: no point, because a logarithmic axis has no zero.
            share = [total[tenth] / total.total() or float("nan") for tenth in range(10)]
            name = f"{kind} ({total.total():,} rows)"
            axes.plot(range(10), share, label=name, color=COLORS[number], marker=MARKERS[number])
    axes.set_xticks(range(10), [f"{10 * tenth}-{10 * tenth + 10} %" for tenth in range(10)], fontsize=8)
    axes.set_yscale("log")
    _finish(figure, axes, "place of the first violation, in percent of the sequence", "share of unsorted rows", path)


def _new_figure() -> "tuple[Figure, Axes]":
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 3.8), dpi=120)
    figure.subplots_adjust(left=0.1, right=0.985, bottom=0.14, top=0.965)
    FigureCanvasAgg(figure)  # draws without a display and without touching the user's matplotlib settings
    return figure, figure.add_subplot()


def _finish(figure: "Figure", axes: "Axes", xlabel: str, ylabel: str, path: Path) -> None:
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    # Without the version of matplotlib, so that the same data give the same file.
    figure.savefig(path, metadata={"Software": None})
