"""The error signature: how answers are wrong without a site, a little bar chart of offsets for each."""

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...records.rows import Row, Rows, select
from ..set_rows import FEWEST_ERRORS, first_variable, shown_offset, signature_of, typical_words
from .drawing import new_figure, patches, tidy


COLUMNS = 5
TYPICAL, ANYTHING = "#D55E00", "#999999"


def draw_signature(rows: Rows) -> Figure | None:
    """One panel per site with enough wrong labels, single sites before sets, the most typical errors first."""
    if not rows:
        return None
    name = first_variable(rows)
    rows = select(rows, variable=name)
    whole = [row for row in select(rows, scope={}, metric=f"{name}_errors") if row["n"] >= FEWEST_ERRORS]
    whole = [row for row in whole if row["size"]]
    single, sets = (
        sorted((row for row in whole if (row["size"] > 1) is several), key=lambda row: (-row["value"], -row["n"]))
        for several in (False, True)
    )
    groups = [own for own in (single, sets) if own]
    if not groups:
        return None
    lines = [math.ceil(len(own) / COLUMNS) for own in groups]
    columns = COLUMNS if max(len(own) for own in groups) >= COLUMNS else max(len(own) for own in groups)
    figure, grid = new_figure(
        2.05 * columns, 1.55 * sum(lines) + 1.0, sum(lines), columns, sharey=True, sharex=True, squeeze=False
    )
    for axes in grid.flat:
        axes.set_visible(False)
    first_line = 0
    for own, count in zip(groups, lines, strict=True):
        places = [axes for line in grid[first_line : first_line + count] for axes in line]
        for number, (axes, row) in enumerate(zip(places, own, strict=False)):
            axes.set_visible(True)
            _panel(axes, row, select(rows, metric="error_offset", site=row["site"]), name)
            if number % columns == 0:
                which = ("sets, together" if row["size"] > 1 else "single sites") + "\n" if not number else ""
                axes.set_ylabel(f"{which}% of wrong labels", fontsize=7)
            if number + columns >= len(own):
                axes.tick_params(labelbottom=True)
        first_line += count
    words = typical_words(name)
    figure.legend(
        handles=patches({words: TYPICAL, "any other error": ANYTHING}),
        frameon=False,
        fontsize=8,
        loc="outside upper center",
        ncols=2,
    )
    figure.supxlabel("wrong label minus right label; the site is resampled, sets are resampled together", fontsize=8)
    return figure


def _panel(axes: Axes, whole: Row, offsets: Rows, variable: str) -> None:
    found, modulus = signature_of(variable), len(offsets) + 1
    typical = () if found is None else found.offsets
    for row in offsets:
        offset = row["scope"]["offset"]
        color = TYPICAL if offset in typical else ANYTHING
        axes.bar(shown_offset(offset, modulus), 100 * row["value"], color=color, edgecolor="black", linewidth=0.3)
    shown = sorted(shown_offset(offset, modulus) for offset in range(1, modulus))
    axes.set_xticks(shown, [f"{offset:+d}".replace("-", "−") for offset in shown], fontsize=6)
    axes.set_ylim(0, 100)
    axes.set_yticks([0, 50, 100], ["0", "50", "100"], fontsize=7)
    site = whole["site"].replace(" + ", " +\n")
    title = f"{site}\n{whole['n']:,} errors, {100 * whole['value']:.0f} % {_short(variable)}"
    is_mover_like = whole["interval"][0] > 0.9
    axes.set_title(title, fontsize=7, fontweight="bold" if is_mover_like else "normal")
    tidy(axes)


def _short(variable: str) -> str:
    return typical_words(variable).replace("exactly ", "")
