"""Figures of position encodings: tables, cosine similarities, scores by distance, and the head that uses them."""

from typing import Any

from matplotlib.figure import Figure

from ...records.rows import Rows, select
from ..length_rows import task_of_rows
from .drawing import COLORS, DASHES, DIVERGING, SEQUENTIAL, new_figure, tidy
from .panels import by, panels


def position_figures(rows: dict[str, Rows]) -> dict[str, Figure]:
    """Name -> figure, for what the rows allow."""
    positions, found = rows.get("positions", []), {}
    for name, draw, metric in (
        ("position_tables", draw_tables, "table"),
        ("scores_by_distance", draw_scores, "scores"),
    ):
        own = select(positions, metric=metric)
        if own:
            found[name] = draw(own)
    heads = best_cell(rows.get("neighbour", []), rows.get("summary", []))
    if heads:
        found["neighbour_head"] = draw_neighbour_head(heads)
    return found


def draw_tables(rows: Rows) -> Figure:
    """One line per table: its vectors, and the cosine similarity of every two of them."""
    figure, axes = new_figure(9.0, 2.9 * len(rows), len(rows), 2, squeeze=False, width_ratios=(1.7, 1))
    for (left, right), row in zip(axes, rows, strict=True):
        table = row["table"]
        reach = max(abs(value) for vector in table for value in vector)
        transposed = list(map(list, zip(*table, strict=True)))
        shown = left.imshow(
            transposed, aspect="auto", cmap=DIVERGING, vmin=-reach, vmax=reach, interpolation="nearest"
        )
        figure.colorbar(shown, ax=left, pad=0.02)
        left.set_title(f"{row['name']} ({row['source']})", fontsize=9)
        left.set_ylabel("feature", fontsize=8)
        cosine = right.imshow(row["cosine"], cmap=DIVERGING, vmin=-1, vmax=1, interpolation="nearest")
        figure.colorbar(cosine, ax=right, pad=0.02)
        right.set_title("cosine similarity of two positions", fontsize=9)
        if row["trained_up_to"] is not None:
            edge = row["trained_up_to"] - 0.5
            left.axvline(edge, color="#D55E00", lw=1.4)
            style = {"fontsize": 7, "color": "#D55E00", "va": "top", "bbox": {"fc": "white", "ec": "none", "pad": 1}}
            left.annotate("last trained", (edge, 0), (4, -3), textcoords="offset points", **style)
            right.axvline(edge, color="#D55E00", lw=1.4)
            right.axhline(edge, color="#D55E00", lw=1.4)
        for axis in (left, right):
            axis.set_xlabel("position", fontsize=8)
            axis.tick_params(labelsize=7)
    return figure


def draw_scores(rows: Rows) -> Figure:
    """Side by side: what each encoding adds to a score, by distance of the key."""
    encodings = by(rows, "encoding")
    figure, axes = panels([encoding for (encoding,) in encodings], sharex=True)
    for axis, own in zip(axes, encodings.values(), strict=True):
        axis.axvline(0, color="#666666", lw=0.7, ls=":")
        for number, row in enumerate(own):
            points = [(d, s) for d, s in zip(row["distance"], row["scores"], strict=True) if s is not None]
            label = None if row["head"] is None else f"head {row['head']}"
            style: dict[str, Any] = {
                "color": COLORS[number % len(COLORS)],
                "ls": DASHES[number % len(DASHES)],
                "lw": 1.2,
            }
            axis.plot(*zip(*points, strict=True), **style, label=label)
        source = own[0]["source"]
        note = own[0]["quantity"] if source == "no parameters" else f"{own[0]['quantity']}, {source}"
        axis.set_ylabel(note, fontsize=6.5)
        axis.tick_params(labelbottom=True, labelsize=7)
        if own[0]["head"] is not None:
            axis.legend(fontsize=6, frameon=False, loc="best")
    figure.supxlabel("distance of the key (negative: behind the query); hidden keys have no line", fontsize=9)
    figure.suptitle("What position adds to an attention score", fontsize=11)
    return figure


def best_cell(neighbour: Rows, summary: Rows) -> Rows:
    """The rows of one cell: of the variant that holds furthest on the hardest class by its worst seed, then accuracy.

    Among its seeds, the one with most weight on the neighbour. Violation pooling compares neighbours without a head,
    and is shown only where there is nothing else.
    """
    if not neighbour:
        return []
    reach = {
        (row["variant"], row["pooling"]): (
            min(far or 0 for far in row["holds_to"].values()),
            sum(found["value"] for found in row["accuracy"].values()),
        )
        for row in select(summary, kind=task_of_rows(neighbour).hardest[0])
    }
    learned = [row for row in neighbour if row["pooling"] != "violation"]
    cells = by(learned or neighbour, "variant", "pooling", "seed")
    return max(cells.values(), key=lambda rows: (reach[rows[0]["variant"], rows[0]["pooling"]], rows[0]["value"]))


def draw_neighbour_head(rows: Rows) -> Figure:
    """Above: a piece of one map around the decisive pair. Below: mean weight by distance, over all queries."""
    figure, axes = new_figure(4.3 * len(rows), 7.0, 2, len(rows), squeeze=False, height_ratios=(1.6, 1))
    for column, row in enumerate(rows):
        axis, below = axes[0][column], axes[1][column]
        first, size = row["map_starts_at"], len(row["map"])
        shown = axis.imshow(row["map"], cmap=SEQUENTIAL, vmin=0, vmax=1, interpolation="nearest")
        axis.set_xticks(range(size), row["map_values"], fontsize=6, rotation=90)
        axis.set_yticks(range(size), row["map_values"], fontsize=6)
        pair = row["position"] - first
        query, key = (pair + 1, pair) if row["looks"] == "back" else (pair, pair + 1)
        axis.plot([key], [query], marker="s", ms=13, mfc="none", mec="#D55E00", mew=1.6)
        axis.set_title(f"length {row['length']:,}: places {first} to {first + size - 1}", fontsize=9)
        axis.set_xlabel("key (its value)", fontsize=8)
        axis.set_ylabel("query (its value)", fontsize=8)
        near = {int(d): w for d, w in row["by_distance"].items() if d != "further"}
        below.bar([*near, max(near) + 2], [*near.values(), row["by_distance"]["further"]], color=COLORS[0])
        shown_distances = range(min(near), max(near) + 1, 2)
        below.set_xticks([*shown_distances, max(near) + 2], [*map(str, shown_distances), "rest"], fontsize=7)
        below.set_ylim(0, 1)
        below.set_xlabel("distance of the key", fontsize=8)
        below.set_ylabel("mean weight", fontsize=8)
        tidy(below)
    figure.colorbar(shown, ax=list(axes[0]), pad=0.02, label="weight")
    weights = ", ".join(f"{row['value']:.2f} at {row['length']}" for row in rows)
    about = rows[0]
    figure.suptitle(
        f"{about['head']} of {about['variant']}, {about['pooling']} pooling, seed {about['seed']}\n"
        f"weight on the decisive neighbour (square): {weights}; n = {about['n']}",
        fontsize=10,
    )
    return figure
