"""The board as one figure: tasks by encodings, how many times its training length each goes, logarithmically."""

import math

import matplotlib
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from ...records.rows import Row, Rows
from ..board_rows import column_of, ratio
from ..tables.board import by_task, columns_of, farthest_of, name_of, times
from .drawing import SEQUENTIAL, new_figure


FAILED, UNFITTED, GRID = "#ffffff", "#dddddd", "#bbbbbb"
DARK = 0.45  # of the scale: below it, letters are white
NARROWEST = 7.2  # inches, for the title
MARK = "*"  # something is built in by hand


def draw_board(rows: Rows) -> Figure:
    """A square per task and encoding; white: nothing beyond training, hatched: not fitted, none: not measured."""
    tasks, columns = by_task(rows), columns_of(rows)
    figure, axis = new_figure(max(NARROWEST, 2.8 + 0.95 * len(columns)), 2.3 + 0.5 * len(tasks))
    farthest = max([ratio(row) or 1 for row in rows], default=1)
    doublings = max(1, math.ceil(math.log2(farthest)))
    scale = LogNorm(1, 2**doublings)
    for line, own in enumerate(tasks.values()):
        for place, column in enumerate(columns):
            found = farthest_of([row for row in own if column_of(row) == column])
            draw_cell(axis, place, line, found, scale)
    axis.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(tasks) - 0.5, -0.5))
    axis.set_xticks(range(len(columns)), [column.replace("+", "\n+ ") for column in columns], fontsize=8)
    axis.set_yticks(
        range(len(tasks)),
        [f"{name_of(task)} ({max(row['trained'][1] for row in own):,})" for task, own in tasks.items()],
        fontsize=8,
    )
    axis.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
    axis.spines[:].set_visible(False)
    colors = matplotlib.cm.ScalarMappable(scale, matplotlib.colormaps[SEQUENTIAL])
    bar = figure.colorbar(colors, ax=axis, shrink=0.8, pad=0.02)
    ticks = [2**power for power in range(doublings + 1)]
    bar.set_ticks(ticks, labels=[f"{tick} x" for tick in ticks])
    bar.ax.minorticks_off()
    bar.ax.tick_params(labelsize=8)
    figure.legend(handles=legend(), loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    figure.suptitle(
        "How far tasks generalise: the farthest length with 99 % right in every class on every seed,\n"
        "as a multiple of the longest training length (in brackets); ≥: at every length that was tested\n"
        f"{MARK} something is built in by hand",
        fontsize=9,
    )
    return figure


def draw_cell(axis: Axes, place: int, line: int, row: Row | None, scale: LogNorm) -> None:
    found = None if row is None else ratio(row)
    if row is None or found is None:
        return
    color = UNFITTED if found == 0 else FAILED if found <= 1 else matplotlib.colormaps[SEQUENTIAL](scale(found))
    hatch = "////" if found == 0 else None
    square = Rectangle((place - 0.47, line - 0.45), 0.94, 0.9, facecolor=color, edgecolor=GRID, lw=0.8, hatch=hatch)
    axis.add_patch(square)
    text = f"{'' if found == 0 else times(row)}{MARK if row['built_in'] and found else ''}"
    is_dark = found > 1 and scale(found) < DARK
    axis.text(place, line, text, ha="center", va="center", fontsize=8, color="white" if is_dark else "black")


def legend() -> list[Patch]:
    return [
        Patch(facecolor=FAILED, edgecolor=GRID, label="1 x: nothing beyond training"),
        Patch(facecolor=UNFITTED, edgecolor=GRID, hatch="////", label="training lengths not fitted"),
        Patch(facecolor="none", edgecolor="none", label="empty: not measured"),
    ]
