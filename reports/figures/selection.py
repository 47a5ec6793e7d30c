"""How many sites it takes: what the best set of each size does on data it was not chosen on, beside random sets."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ...records.rows import Rows, select, values_of
from .drawing import new_figure, tidy
from .panels import by


STYLES = {"all subsets": ("#0072B2", "o"), "greedy": ("#009E73", "s"), "backwards": ("#D55E00", "^")}
RANDOM = "#777777"


def draw_selection(rows: Rows) -> Figure | None:
    """A panel per search: share against size, with its interval; a band from the mean of random sets to their best."""
    searches = values_of(rows, "searched")
    if not searches:
        return None
    figure, grid = new_figure(max(4.0, 3.5 * len(searches)), 3.6, columns=len(searches), sharey=True, squeeze=False)
    for axes, searched in zip(grid[0], searches, strict=True):
        _panel(axes, select(rows, searched=searched))
        axes.set_title(searched.replace(", ", ":\n", 1), fontsize=9)
    grid[0, 0].set_ylabel("share on the held-out half (%)", fontsize=8)
    found = {
        label: handle for axes in grid[0] for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        found.values(), found.keys(), frameon=False, fontsize=8, loc="outside lower center", ncols=min(3, len(found))
    )
    return figure


def _panel(axes: Axes, rows: Rows) -> None:
    random = by(sorted(rows, key=lambda row: row["size"]), "size")
    sizes = [size for (size,) in random]
    mean = [100 * sum(row["random_mean"]["value"] for row in own) / len(own) for own in random.values()]
    best = [100 * max(row["random_best"]["value"] for row in own) for own in random.values()]
    axes.plot(sizes, mean, color=RANDOM, linestyle="--", linewidth=1.2, label="random sets of that size, mean")
    axes.fill_between(sizes, mean, best, color=RANDOM, alpha=0.2, linewidth=0, label="up to the best of them")
    for method in values_of(rows, "method"):
        own = sorted(select(rows, method=method), key=lambda row: row["size"])
        color, marker = STYLES[method]
        x = [row["size"] for row in own]
        low, high = ([100 * row["interval"][side] for row in own] for side in (0, 1))
        axes.vlines(x, low, high, color=color, linewidth=1)
        axes.plot(
            x,
            [100 * row["value"] for row in own],
            color=color,
            marker=marker,
            markersize=4,
            linewidth=1.2,
            label=method,
        )
    axes.axhline(95, color="#AAAAAA", linewidth=0.7, linestyle=":")
    metric = rows[0]["metric"].replace("_", " ")
    axes.set_xlabel(f"sites, of {rows[0]['pool']}  ({metric}, n = {rows[0]['n']:,})", fontsize=8)
    axes.set_ylim(-3, 103)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    tidy(axes)
