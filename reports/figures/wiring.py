"""A circuit as a wiring picture: nodes from the first to the last, and beside them one wire for each that is read."""

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from .drawing import COLORS, DASHES, new_figure, patches


LOGITS = "logits"
KINDS = ("self", "cross", "mlp")
HEAD, NETWORK, END, DECOY = "#CFE6F5", "#FBE7BD", "#E6E6E6", "#FFFFFF"
LEGEND = {"head": HEAD, "feed-forward network": NETWORK, "input and output": END, "decoy, which nobody reads": DECOY}
WIDE, HIGH, LANE, LETTERS = 6.0, 0.8, 0.42, 50  # a box, the distance of wires, the letters of a line


def draw_wiring(
    jobs: Mapping[str, str],
    edges: Sequence[tuple[str, str]],
    decoys: Mapping[str, str],
    title: str,
    effects: Mapping[tuple[str, str], float] | None = None,
) -> Figure:
    """Time runs down. A wire leaves its writer with a dot, and goes into every reader with an arrow.

    With `effects`, shares that are lost without an edge, an arrow is the wider the more is lost.

    >>> figure = draw_wiring({"encoder.0.mlp": "adds"}, [("encoder.embed", "encoder.0.mlp")], {}, "one node")
    >>> figure.axes[0].get_title()
    'one node'
    """
    names = in_order({*(name for edge in edges for name in edge), *jobs, *decoys})
    rows = {name: number for number, name in enumerate(names)}
    readers = {name: [reader for writer, reader in edges if writer == name] for name in names}
    wired = sorted((n for n in names if readers[n]), key=lambda n: max(rows[r] for r in readers[n]) - rows[n])
    right = WIDE + LANE * (len(wired) + 1)
    figure, axes = new_figure(0.62 * right + 0.8, 0.52 * len(names) + 0.9)
    axes.set_xlim(-0.1, right)
    axes.set_ylim(len(names) - 0.3, -0.6)
    axes.axis("off")
    axes.set_title(title)
    for name in names:
        _box(axes, rows[name], name, jobs.get(name, decoys.get(name, "")), is_decoy=name in decoys)
    arriving = {name: [writer for writer in wired if name in readers[writer]] for name in names}
    for lane, writer in enumerate(wired):
        heights = [
            rows[reader] + _share(arriving[reader].index(writer), len(arriving[reader])) for reader in readers[writer]
        ]
        widths = [_width(None if effects is None else effects.get((writer, one), 0.0)) for one in readers[writer]]
        _wire(axes, rows[writer] + HIGH / 3, heights, widths, WIDE + LANE * (lane + 1), lane)
    axes.legend(
        handles=patches({what: color for what, color in LEGEND.items() if decoys or color != DECOY}),
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        ncols=4,
        frameon=False,
        fontsize=7,
    )
    return figure


def in_order(names: set[str]) -> list[str]:
    """Nodes in the order of computation: the encoder, then the decoder, then the logits.

    >>> in_order({"logits", "encoder.0.mlp", "encoder.0.self.1", "encoder.embed"})
    ['encoder.embed', 'encoder.0.self.1', 'encoder.0.mlp', 'logits']
    """

    def when(name: str) -> tuple[int, int, int, int]:
        if name == LOGITS:
            return (2, 0, 0, 0)
        stack, layer, *rest = name.split(".")
        time = (-1, 0, 0) if not rest else (int(layer), KINDS.index(rest[0]), int(rest[1]) if rest[1:] else 0)
        return (("encoder", "decoder").index(stack), *time)

    return sorted(names, key=when)


def _share(number: int, count: int) -> float:
    """Where the arrow of one of several wires meets a box, above the dot of its own wire."""
    return -HIGH / 2 + 0.1 + (number + 0.5) / count * (HIGH * 2 / 3 - 0.1)


def _box(axes: Any, row: int, name: str, says: str, is_decoy: bool) -> None:
    is_end = name == LOGITS or name.endswith(".embed")
    face = DECOY if is_decoy else END if is_end else NETWORK if name.endswith(".mlp") else HEAD
    rim, color = ("#777777", "#555555") if is_decoy else ("black", "black")
    axes.add_patch(
        FancyBboxPatch(
            (0.0, row - HIGH / 2),
            WIDE,
            HIGH,
            boxstyle="round,pad=0,rounding_size=0.08",
            facecolor=face,
            edgecolor=rim,
            linestyle="--" if is_decoy else "-",
            linewidth=0.9,
        )
    )
    axes.text(0.12, row, name, ha="left", va="center", fontsize=7.5, weight="bold", color=color)
    axes.text(1.9, row, fill(says, LETTERS), ha="left", va="center", fontsize=7, color=color, linespacing=1.1)


def _width(effect: float | None) -> float:
    """Of a wire: from thin, where nothing is lost without it, to four times as wide, where everything is."""
    return 1.4 if effect is None else 0.8 + 2.4 * min(1.0, max(0.0, effect))


def _wire(axes: Any, start: float, ends: list[float], widths: list[float], x: float, number: int) -> None:
    style: dict[str, Any] = {"color": COLORS[number % 6], "linestyle": DASHES[number // 6 % len(DASHES)]}
    axes.plot([WIDE, x, x], [start, start, max(ends)], zorder=2, linewidth=max(widths), **style)
    axes.plot([WIDE], [start], marker="o", markersize=4, color=style["color"], zorder=3, clip_on=False)
    for end, width in zip(ends, widths, strict=True):
        axes.plot([x, WIDE + 0.1], [end, end], zorder=2, linewidth=width, **style)
        axes.plot([WIDE + 0.06], [end], marker="<", markersize=3.5 + width, color=style["color"], zorder=3)
        axes.plot([x], [end], marker="o", markersize=2.5, color=style["color"], zorder=3)
