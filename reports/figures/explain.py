"""Figures of a causal account: the circuit as a wiring picture, variables by site and beside controls, the readout."""

from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure

from ...records.rows import Row, Rows, only, select, values_of
from ..wording import counted
from .drawing import COLORS, MARKERS, SEQUENTIAL, new_figure, tidy
from .panels import panels
from .wiring import draw_wiring


ARROW = " -> "
CONTROLS = {
    "none": "the directions found",
    "wrong place": "trained at other tokens",
    "untrained model": "in an untrained model",
    "random directions": "random directions",
    "whole site": "the whole stream",
    "no swap": "nothing swapped",
}


def draw_circuit(rows: Rows) -> Figure | None:
    """The circuit that was found: what each node's removal costs, and wires as wide as what cutting them costs."""
    found = only(rows, metric="faithfulness", level="edges")
    if found is None:
        return None
    own = select(rows, mode=found["searched_under"])
    removed = [row for row in select(own, metric="removal_cost") if row["value"] is not None]
    costs = {row["site"]: row["value"] for row in select(removed, level="nodes")}
    effects = {_edge(row["edge"]): row["value"] for row in select(removed, level="edges")}
    jobs = {site: f"without it {100 * cost:.1f} points are lost" for site, cost in costs.items()}
    reached = only(own, metric="faithfulness", level="edges")
    assert reached is not None
    title = (
        f"{len(jobs)} nodes and {reached['size']} of {reached['of']} edges reach {100 * reached['value']:.1f} % of "
        f"the model\n(n = {reached['n']:,}, everything else set to its mean)"
    )
    return draw_wiring(jobs, [_edge(name) for name in found["edges"]], {}, title, effects)


def _edge(name: str) -> tuple[str, str]:
    sender, reader = name.split(ARROW)
    return sender, reader


def draw_variables(rows: Rows) -> Figure | None:
    """For every variable, what a short training reaches at each layer and place."""
    found = select(rows, metric="interchange_accuracy", stage="search", scope={})
    names = values_of(found, "variable")
    if not names:
        return None
    layers = list(dict.fromkeys(row["site"].partition("@")[0] for row in found))
    places = list(dict.fromkeys(row["site"].partition("@")[2] for row in found))
    figure, axes = panels(
        [name.replace("_", " ") for name in names], 1.0 + 0.75 * len(places), 0.9 + 0.42 * len(layers), sharey=True
    )
    picture = None
    for axis, name in zip(axes, names, strict=True):
        own = {row["site"]: row["value"] for row in select(found, variable=name)}
        values = np.array([[own.get(f"{layer}@{place}", np.nan) for place in places] for layer in layers])
        picture = axis.imshow(100 * values, vmin=0, vmax=100, cmap=SEQUENTIAL, aspect="auto")
        for (line, column), value in np.ndenumerate(values):
            if not np.isnan(value):
                color = "white" if value < 0.55 else "black"
                axis.text(column, line, f"{100 * value:.0f}", ha="center", va="center", fontsize=8, color=color)
        axis.set_xticks(range(len(places)), places, fontsize=8)
        axis.set_yticks(range(len(layers)), [layer.removesuffix(".residual") for layer in layers], fontsize=8)
        axis.spines[:].set_visible(False)
    assert picture is not None
    figure.colorbar(picture, ax=axes, label="whole answers as expected (%)", shrink=0.8)
    figure.supxlabel("tokens at which the stream after a layer is swapped in a few trained directions", fontsize=8)
    return figure


def draw_accounts(rows: Rows) -> Figure | None:
    """For every variable, the share of unseen pairs that the directions account for, and that controls reach."""
    found = select(rows, metric="interchange_accuracy", stage="account", scope={})
    names = values_of(found, "variable")
    if not names:
        return None
    figure, axes = new_figure(7.2, 0.8 + 0.85 * len(names))
    for number, (control, says) in enumerate(CONTROLS.items()):
        own = {row["variable"]: row for row in select(found, control=control)}
        height = [place - 0.3 + 0.12 * number for place, name in enumerate(names) if name in own]
        chosen = [own[name] for name in names if name in own]
        _dots(axes, height, chosen, number, says)
    best = {row["variable"]: row for row in select(found, control="none")}
    labels = [
        f"{name.replace('_', ' ')}\n{_short(row['site'])}\n{counted(row['directions'], 'direction')}, n = {row['n']:,}"
        for name, row in ((each, best[each]) for each in names)
    ]
    axes.set_yticks(range(len(names)), labels, fontsize=7.5)
    return _of_shares(figure, axes, "whole answers as expected, random pairs (%); lines: 95 % intervals")


def _of_shares(figure: Figure, axes, says: str) -> Figure:  # type: ignore[no-untyped-def]
    """Lines of shares in percent, the first on top."""
    axes.invert_yaxis()
    axes.set_xlim(-2, 102)
    axes.set_xlabel(says, fontsize=8)
    axes.grid(axis="x", color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)
    tidy(axes)
    figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize=8)
    return figure


def _short(site: str) -> str:
    return site.replace(".residual", "")


def _dots(axes, heights: list[float], rows: list[Row], number: int, label: str) -> None:  # type: ignore[no-untyped-def]
    color, marker = COLORS[number], MARKERS[number]
    values = [100 * row["value"] for row in rows]
    spans = [[100 * (row["value"] - row["interval"][0]) for row in rows]]
    spans += [[100 * (row["interval"][1] - row["value"]) for row in rows]]
    size = 7 if number == 0 else 5
    axes.errorbar(values, heights, xerr=spans, fmt=marker, ms=size, color=color, elinewidth=0.9, label=label)


def draw_seeds(rows: Rows) -> Figure | None:
    """Several runs side by side: what is accounted for in each; runs that are alike share a mark."""
    found = select(rows, metric="interchange_accuracy", stage="account", scope={}, control="none")
    runs, names = values_of(found, "run"), values_of(found, "variable")
    groups = {row["run"]: int(row["value"]) for row in select(rows, study="seed_groups", metric="group")}
    if len(runs) < 2:
        return None
    figure, axes = panels([name.replace("_", " ") for name in names], 2.2, 0.9 + 0.28 * len(runs), sharey=True)
    for axis, name in zip(axes, names, strict=True):
        for line, run in enumerate(runs):
            row = only(found, variable=name, run=run)
            if row is not None:
                _dots(axis, [line], [row], groups.get(run, 1) - 1, "")
                first, *others = _short(row["site"]).split(", ")
                label = f"{first} +{len(others)}" if others else first
                axis.text(100 * row["value"], line - 0.22, label, fontsize=6, ha="right")
        axis.set_yticks(range(len(runs)), [f"{run} (group {groups.get(run, 1)})" for run in runs], fontsize=7.5)
        axis.set_xlim(0, 104)
        axis.set_ylim(len(runs) - 0.5, -0.6)
        axis.grid(axis="x", color="#DDDDDD", linewidth=0.6)
    figure.supxlabel(
        "whole answers as expected (%); runs of one group hold their variables in the same places", fontsize=8
    )
    return figure


def draw_readout(rows: Rows) -> Figure | None:
    """How much of what the model answers, and of what it gets wrong, the program predicts."""
    own = [row for row in select(rows, study="readout", metric="answers_predicted") if "site" in row]
    if not own:
        return None
    figure, axes = new_figure(7.2, 1.1 + 0.24 * len(own))
    series = {
        "answers_predicted": "answers predicted",
        "errors_predicted": "wrong answers predicted, as they are",
        "answers_by_default": "answers that stay right",
    }
    for number, (metric, says) in enumerate(series.items()):
        chosen = [
            (line, found) for line, row in enumerate(own) if (found := only(rows, metric=metric, site=row["site"]))
        ]
        _dots(axes, [line for line, _ in chosen], [found for _, found in chosen], number, says)
    axes.set_yticks(range(len(own)), [_short(row["site"]) for row in own], fontsize=7.5)
    return _of_shares(figure, axes, "share of whole answers, problems not fitted on (%); lines: 95 % intervals")


EXPLAIN_FIGURES: dict[str, Callable[[Rows], Figure | None]] = {
    "circuit": draw_circuit,
    "variables": draw_variables,
    "variables_and_controls": draw_accounts,
    "readout": draw_readout,
    "seed_groups": draw_seeds,
}
