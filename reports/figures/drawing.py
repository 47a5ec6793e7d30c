"""What all figures share: colours that colour-blind readers can tell apart, a drawing without a display, saving.

Colours are those of Okabe and Ito; series differ by marker and dash too, so that grey prints stay legible.
"""

from functools import partial
from pathlib import Path
from typing import Any, Literal

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from ...records.files import write_by


COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000", "#999999")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = ("-", "--", "-.", ":")
SEQUENTIAL = "cividis"  # amounts from zero up
DIVERGING = "PuOr_r"  # amounts on both sides of zero


def new_figure(
    width: float = 7.2,
    height: float = 3.8,
    rows: int = 1,
    columns: int = 1,
    layout: Literal["constrained"] | None = "constrained",
    **options: Any,
) -> tuple[Figure, Any]:
    """(figure, axes): drawn by Agg, without a display and without touching the user's matplotlib settings.

    `layout=None` leaves the margins to the caller, which is much quicker where there are many panels.
    """
    figure = Figure(figsize=(width, height), dpi=130, layout=layout)
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, **options)
    return figure, axes


def tidy(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)


def patches(colors: dict[str, str]) -> list[Patch]:
    """What a legend of colours needs."""
    return [Patch(facecolor=c, edgecolor="black", linewidth=0.4, label=name) for name, c in colors.items()]


def share_label(row: dict) -> str:
    """What an axis of right answers is called, by how the answers came about."""
    return "free-running exact match (%)" if row["decoding"] == "free-running" else "accuracy (%)"


METADATA = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}


def save_figure(figure: Figure, folder: Path, name: str, kinds: tuple[str, ...] = ("png", "svg")) -> list[Path]:
    """Writes NAME.png and NAME.svg, each whole or not at all."""
    return [
        write_by(folder / f"{name}.{kind}", partial(figure.savefig, metadata=METADATA[kind], format=kind))
        for kind in kinds
    ]
