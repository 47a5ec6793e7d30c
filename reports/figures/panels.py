"""What the figures of a study of lengths share: groups of rows, a grid of panels, lines with their intervals."""

import math
import textwrap
from collections import Counter, defaultdict
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...records.rows import Rows
from .drawing import COLORS, DASHES, MARKERS, new_figure, tidy


COLUMNS = 4
TITLE_WIDTH = 100  # characters that fit over a single panel


def by(rows: Rows, *keys: str) -> dict[tuple, Rows]:
    """Rows that have the same values of some fields, in the order in which they come."""
    groups: dict[tuple, Rows] = defaultdict(list)
    for row in rows:
        groups[tuple(row[key] for key in keys)].append(row)
    return dict(groups)


def panels(titles: list[str], width: float = 3.0, height: float = 2.5, **options: Any) -> tuple[Figure, list[Axes]]:
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


def line(axis: Axes, rows: Rows, number: int, label: str, band: bool = True) -> None:
    rows = sorted(rows, key=lambda row: row["length"])
    x, y = [row["length"] for row in rows], [row["value"] for row in rows]
    low = [row["interval"][0] if row["interval"] else row["value"] for row in rows]
    high = [row["interval"][1] if row["interval"] else row["value"] for row in rows]
    color = COLORS[number % len(COLORS)]
    dash = DASHES[number // len(COLORS) % len(DASHES)]
    axis.plot(x, y, color=color, marker=MARKERS[number % len(MARKERS)], ls=dash, ms=3.5, lw=1.0, label=label)
    if band:
        axis.fill_between(x, low, high, color=color, alpha=0.12, lw=0)


def unique_handles(axis: Axes) -> tuple[list, list[str]]:
    """What a legend needs, with every label once: seeds share one."""
    handles, labels = axis.get_legend_handles_labels()
    first = dict(zip(reversed(labels), reversed(handles), strict=True))
    names = list(dict.fromkeys(labels))
    return [first[name] for name in names], names


def built_in_words(rows: Rows) -> str:
    """What the variants were given by hand, for the title of a figure."""
    variants = {row["variant"]: row["built_in"] for row in rows}
    counts = Counter(name for names in variants.values() for name in names)
    words = [
        name if count == len(variants) else f"{name} ({count} of {len(variants)} variants)"
        for name, count in sorted(counts.items())
    ]
    text = f"built in by hand: {', '.join(words)}" if words else "nothing built in by hand"
    return textwrap.fill(text, TITLE_WIDTH)


def as_percent(rows: Rows) -> Rows:
    return [{**row, "value": 100 * row["value"], "interval": [100 * end for end in row["interval"]]} for row in rows]
