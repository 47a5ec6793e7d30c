"""The atlas: what every head and feed-forward sublayer is for a variable, with the evidence; one seed or several."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ...records.rows import Row, Rows, select, values_of
from ..set_rows import FEWEST_ERRORS, first_variable, typical_words
from .drawing import new_figure, patches, tidy


MOVER_COLOR, MOVER_AND_MORE_COLOR = "#D55E00", "#E69F00"
ROLE_COLORS = {
    "reader": "#0072B2",
    "output order": "#009E73",
    "other": "#CC79A7",
    "not needed alone": "#DDDDDD",
}


def draw_atlas(rows: Rows) -> Figure | None:
    """For every site the share of pairs whose variable it moves, and how its errors look; of several variables the
    first. Beside it, how many errors there are and for how many thresholds the role is the same.
    """
    if not rows:
        return None
    name = first_variable(rows)
    rows, colors = select(rows, variable=name), role_colors(name)
    y = np.arange(len(rows))
    figure, (moved, errors) = new_figure(9.6, 1.7 + 0.235 * len(rows), columns=2, sharey=True)
    _bars(moved, [row["moved"] for row in rows], [colors[row["role"]] for row in rows])
    moved.set_xlabel(f"{name} moved, swapped alone (% of {rows[0]['moved']['n']:,} pairs)", fontsize=8)
    _bars(errors, [row["errors"] for row in rows], [colors[row["role"]] for row in rows], FEWEST_ERRORS)
    errors.set_xlabel(
        f"wrong labels {typical_words(name)}, resampled alone (%)\nno bar: fewer than {FEWEST_ERRORS} wrong labels",
        fontsize=8,
    )
    for place, row in enumerate(rows):
        count = 0 if row["errors"] is None else row["errors"]["n"]
        errors.text(111, place, f"{count:,}", va="center", ha="right", fontsize=7, clip_on=False)
        errors.text(
            132, place, f"{row['agreeing']} of {row['settings']}", va="center", ha="right", fontsize=7, clip_on=False
        )
    for x, words in ((111, "wrong\nlabels"), (132, "thresholds\nthat agree")):
        errors.text(x, -0.9, words, va="bottom", ha="right", fontsize=7, clip_on=False)
    for axes in (moved, errors):
        axes.set_xlim(0, 101)
        axes.tick_params(axis="x", labelsize=8)
        tidy(axes)
    moved.set_yticks(y, [row["site"] for row in rows], fontsize=7)
    moved.set_ylim(len(rows) - 0.4, -0.6)
    _legend(figure, rows, colors)
    return figure


def draw_atlas_by_seed(rows_by_seed: dict[str, Rows]) -> Figure | None:
    """The atlas of several models side by side: a bar for what a site moves, a diamond for how its errors look."""
    rows_by_seed = {seed: rows for seed, rows in rows_by_seed.items() if rows}
    if not rows_by_seed:
        return None
    name = first_variable(next(iter(rows_by_seed.values())))
    rows_by_seed = {seed: select(rows, variable=name) for seed, rows in rows_by_seed.items()}
    every = [row for rows in rows_by_seed.values() for row in rows]
    sites, colors = values_of(every, "site"), role_colors(name)
    width = 1.6 + 1.75 * len(rows_by_seed)
    figure, grid = new_figure(
        max(width, 6.5), 1.7 + 0.21 * len(sites), columns=len(rows_by_seed), sharey=True, squeeze=False
    )
    for axes, (seed, rows) in zip(grid[0], rows_by_seed.items(), strict=True):
        places = [sites.index(row["site"]) for row in rows]
        _bars(axes, [row["moved"] for row in rows], [colors[row["role"]] for row in rows], places=places)
        for place, row in zip(places, rows, strict=True):
            if row["errors"] is not None and row["errors"]["n"] >= FEWEST_ERRORS:
                axes.plot(100 * row["errors"]["value"], place, "D", color=colors[row["role"]], mec="black", ms=5)
        axes.set_title(seed, fontsize=9)
        axes.set_xlim(-2, 104)
        axes.set_xticks([0, 50, 100])
        axes.set_xlabel("%", fontsize=8)
        axes.tick_params(axis="x", labelsize=8)
        axes.grid(axis="y", color="#EEEEEE", linewidth=0.6)
        axes.set_axisbelow(True)
        tidy(axes)
    grid[0, 0].set_yticks(range(len(sites)), sites, fontsize=8)
    grid[0, 0].set_ylim(len(sites) - 0.4, -0.6)
    marks = [
        *patches({f"bar: pairs whose {name} it moves, swapped alone": "white"}),
        Line2D(
            [],
            [],
            marker="D",
            color="white",
            mec="black",
            ms=5,
            label=f"diamond: wrong labels {typical_words(name)}, of at least {FEWEST_ERRORS}",
        ),
    ]
    used = {role: color for role, color in colors.items() if any(row["role"] == role for row in every)}
    figure.legend(handles=marks, frameon=False, fontsize=8, loc="outside upper center", ncols=2 if width > 7 else 1)
    figure.legend(handles=patches(used), frameon=False, fontsize=8, loc="outside lower center", ncols=len(used))
    return figure


def role_colors(variable: str) -> dict[str, str]:
    return {f"{variable} mover": MOVER_COLOR, f"{variable} and more": MOVER_AND_MORE_COLOR, **ROLE_COLORS}


def _bars(
    axes: Axes, figures: list[Row | None], colors: list[str], fewest: int = 0, places: list[int] | None = None
) -> None:
    """A share with its interval for every site that has one; the interval alone if it rests on fewer than so many."""
    for place, each, color in zip(places or range(len(figures)), figures, colors, strict=True):
        if each is None:
            continue
        few = each["n"] < fewest
        if not few:
            axes.barh(place, 100 * each["value"], color=color, edgecolor="black", linewidth=0.4)
        ends = (100 * end for end in each["interval"])
        axes.hlines(place, *ends, color="#BBBBBB" if few else "black", linewidth=1, linestyle=":" if few else "-")


def _legend(figure: Figure, rows: Rows, colors: dict[str, str]) -> None:
    counts = {role: sum(row["role"] == role for row in rows) for role in colors}
    used = {f"{role} ({count})": colors[role] for role, count in counts.items() if count}
    figure.legend(handles=patches(used), frameon=False, fontsize=8, loc="outside upper center", ncols=len(used))
