"""The Fourier picture of a model that adds modulo p: power by frequency, of the embedding and of every head."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...records.rows import Rows, only, select, values_of
from .drawing import COLORS, new_figure, tidy


# Control -> colour, dash, width and what the legend says.
STYLES = {
    "none": (COLORS[0], "-", 1.6, "trained"),
    "shuffled residues": (COLORS[1], "--", 1.0, "residues in random order"),
    "untrained model": (COLORS[6], ":", 1.2, "before training"),
}
COLUMNS = 3
NAMED = 0.1  # share of the power from which on a frequency is named


def draw_fourier(rows: Rows) -> Figure | None:
    """A panel for the embedding and for every head: share of power against frequency, with both controls."""
    subjects = values_of(rows, "subject")
    if not subjects:
        return None
    columns = min(COLUMNS, len(subjects))
    lines = -(-len(subjects) // columns)
    figure, grid = new_figure(
        3.4 * columns, 2.5 * lines + 0.5, lines, columns, squeeze=False, sharex=True, sharey=True
    )
    for axes, subject in zip(grid.flat, subjects, strict=False):
        _panel(axes, select(rows, subject=subject), subject)
    for axes in list(grid.flat)[len(subjects) :]:
        axes.set_axis_off()
    for axes in grid[:, 0]:
        axes.set_ylabel("share of power (%)", fontsize=8)
    for number, axes in enumerate(list(grid.flat)[: len(subjects)]):
        if number + columns >= len(subjects):
            axes.set_xlabel("frequency (turns over all residues)", fontsize=8)
            axes.tick_params(labelbottom=True)
    highest = max(row["value"] for row in select(rows, metric="power"))
    grid[0, 0].set_ylim(0, 115 * highest)  # for all panels, with room for the names
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, fontsize=8, loc="outside lower center", ncols=len(labels))
    return figure


def _panel(axes: Axes, rows: Rows, subject: str) -> None:
    shares = []
    for control, (color, dash, width, label) in STYLES.items():
        own = sorted(select(rows, metric="power", control=control), key=lambda row: row["frequency"])
        top = only(rows, metric="top_five_power", control=control)
        if not own or top is None:
            continue
        shares.append(f"{100 * top['value']:.0f}")
        frequency, share = [row["frequency"] for row in own], [100 * row["value"] for row in own]
        axes.plot(frequency, share, color=color, linestyle=dash, linewidth=width, label=label)
        if control == "none":
            for x, y in zip(frequency, share, strict=True):
                if y >= 100 * NAMED:
                    axes.annotate(str(x), (x, y), xytext=(0, 2), textcoords="offset points", ha="center", fontsize=7)
    axes.set_title(f"{subject}\ntop five: {' / '.join(shares)} %", fontsize=9)
    tidy(axes)
