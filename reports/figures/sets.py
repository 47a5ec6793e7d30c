"""Figures of sets of sites that are changed together, each beside its complement."""

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...records.rows import Row, Rows, select, values_of
from ..set_rows import (
    NO_SITE,
    by_site,
    complement_of,
    first_variable,
    in_reading_order,
    is_complement,
    is_head,
    joint_drops,
)
from .drawing import COLORS, new_figure, tidy


@dataclass(frozen=True)
class Series:
    """One kind of mark: what it shows for every set."""

    label: str
    color: str
    marker: str
    figures: dict[str, Row]
    size: float = 5.0


MODE_STYLES = {"zero": ("#0072B2", "o"), "mean": ("#E69F00", "s"), "resample": ("#D55E00", "D")}
OTHERS = "all others: of heads, every other head; of feed-forward sublayers, every other one of these"
MODE_WORDS = {"zero": "set to zero", "mean": "set to its mean", "resample": "from another example"}


def draw_sets(rows: Rows) -> Figure | None:
    """Share still right without each set, and without all others, for every way of ablation."""
    found = joint_drops(rows)
    names = [name for name in found if not is_complement(name)]
    if not names:
        return None
    modes = values_of(rows, "mode")
    series = [
        Series(
            MODE_WORDS[mode],
            *MODE_STYLES[mode],
            {name: own[mode]["ablated"] for name, own in found.items() if mode in own},
        )
        for mode in modes
    ]
    example = next(iter(found[names[0]].values()))
    sizes = {name: next(iter(own.values()))["size"] for name, own in found.items()}
    figure, axes = _pair_of_panels(names, sizes, series)
    for each, title in zip(axes, ("without the set", "without all others"), strict=True):
        each.axvline(100 * example["intact"]["value"], color="#666666", linewidth=0.9, linestyle="--")
        each.set_title(title, fontsize=9)
        each.set_xlabel("share still right (%)", fontsize=8)
    intact = f"dashed: intact model, {100 * example['intact']['value']:.2f} %; n = {example['n']:,}"
    figure.supxlabel(f"{intact}; lines: 95 % intervals\n{OTHERS}", fontsize=8)
    return figure


def draw_swaps(rows: Rows) -> Figure | None:
    """What sets move if they are swapped together on pairs that differ in the variable, and what the others move."""
    if not rows:
        return None
    name = first_variable(rows)
    rows = select(rows, scope={}, variable=name)
    minimal, control = select(rows, pairs="minimal"), select(rows, pairs="control")
    wanted = {row["site"]: row for row in in_reading_order(select(minimal, metric=f"{name}_flip"))}
    names = [site for site in wanted if not is_head(site) and not is_complement(site) and site != NO_SITE]
    if not names:
        return None
    series = [
        Series(f"{name} moved", COLORS[0], "o", by_site(select(minimal, metric=f"{name}_moved"))),
        Series(
            f"{name} flip: moved, and own place right", "#D55E00", "s", by_site(select(minimal, metric=f"{name}_flip"))
        ),
        Series("whole answer as expected", "#000000", "D", by_site(select(minimal, metric="whole_answer_flip")), 4),
        Series("logits recovered", "#009E73", "^", by_site(select(minimal, metric=f"{name}_recovered"))),
        Series(
            f"control pairs: changed although the {name} did not",
            "#777777",
            "x",
            by_site(select(control, metric=f"{name}_false_flip")),
            4,
        ),
    ]
    series = [each for each in series if each.figures]
    sizes = {site: row["size"] for site, row in wanted.items()}
    figure, axes = _pair_of_panels(names, sizes, series, height=0.4)
    for each, title in zip(axes, ("the set is swapped", "all others are swapped"), strict=True):
        each.set_title(title, fontsize=9)
        each.set_xlabel("% of pairs; of logits, % of the way", fontsize=8)
    counts = " and ".join(f"{own[0]['n']:,} {kind} pairs" for kind, own in _kinds(minimal, control) if own)
    figure.supxlabel(f"{counts}; lines: 95 % intervals\n{OTHERS}", fontsize=8)
    return figure


def _kinds(minimal: Rows, control: Rows) -> list[tuple[str, Rows]]:
    return [("minimal", minimal), ("control", control)]


def _pair_of_panels(
    names: list[str], sizes: dict[str, int], series: list[Series], height: float = 0.34
) -> tuple[Figure, tuple[Axes, Axes]]:
    """Sets line by line: themselves on the left, their complements on the right, where these were tested."""
    figure, (left, right) = new_figure(9.6, 1.9 + height * len(names), columns=2, sharey=True)
    dodge = np.linspace(-0.32, 0.32, len(series)) if len(series) > 1 else np.zeros(1)
    for place, name in enumerate(names):
        if place % 2:
            for axes in (left, right):
                axes.axhspan(place - 0.5, place + 0.5, color="#F4F4F4", zorder=0)
        for axes, site in ((left, name), (right, complement_of(name))):
            _marks(axes, series, site, place + dodge)
        if not any(complement_of(name) in each.figures for each in series):
            right.text(50, place, "not tested", ha="center", va="center", fontsize=7, color="#777777")
    for axes in (left, right):
        axes.set_xlim(-4, 104)
        axes.tick_params(axis="x", labelsize=8)
        tidy(axes)
    labels = [name if sizes[name] == 1 else f"{name}  ({sizes[name]} sites)" for name in names]
    left.set_yticks(range(len(names)), labels, fontsize=8)
    left.set_ylim(len(names) - 0.5, -0.5)
    handles, words = left.get_legend_handles_labels()
    unique = dict(zip(words, handles, strict=True))
    columns = len(unique) if len(unique) <= 3 else 3
    figure.legend(unique.values(), unique.keys(), frameon=False, fontsize=8, loc="outside upper center", ncols=columns)
    return figure, (left, right)


def _marks(axes: Axes, series: list[Series], site: str, places: np.ndarray) -> None:
    for each, place in zip(series, places, strict=True):
        row = each.figures.get(site)
        if row is None:
            continue
        axes.hlines(place, *(100 * end for end in row["interval"]), color=each.color, linewidth=1.1)
        axes.plot(
            100 * row["value"],
            place,
            linestyle="none",
            marker=each.marker,
            color=each.color,
            markersize=each.size,
            label=each.label,
        )
