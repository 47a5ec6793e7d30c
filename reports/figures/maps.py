"""Figures of attention maps: all heads of some layers on one sheet."""

from matplotlib.figure import Figure

from ...records.rows import Row, Rows
from ..head_rows import is_average
from .drawing import SEQUENTIAL, new_figure


LONGEST_LEVEL = 3  # characters of a token that stands level under a map; with longer ones all stand upright


def shown(token: str) -> str:
    return token.replace("<eos>", "end")


def draw_maps(rows: Rows, title: str) -> Figure:
    """All heads of the layers given, one row of panels per layer; rectangular maps, tokens on both axes."""
    columns = max(len(row["heads"]) for row in rows)
    size = 2.0 if max(len(row["keys"]) for row in rows) <= 20 else 3.0
    words = any(len(shown(token)) > LONGEST_LEVEL for row in rows for token in row["keys"])
    below = 0.9 if words else 0.5  # between two rows of panels
    width, height = 0.6 + (size + 0.5) * columns + 0.8, 0.8 + (size + below) * len(rows)
    figure, panels = new_figure(width, height, rows=len(rows), columns=columns, layout=None, squeeze=False)
    margins = {"left": 0.65 / width, "right": 1 - 1.1 / width, "bottom": below / height, "top": 1 - 0.6 / height}
    figure.subplots_adjust(**margins, wspace=0.3, hspace=(below + 0.1) / size)
    image = None
    for line, row in zip(panels, rows, strict=True):
        for axes in line[len(row["heads"]) :]:
            axes.set_visible(False)
        for axes, head, weights in zip(line, row["heads"], row["weights"], strict=False):
            image = axes.imshow(weights, cmap=SEQUENTIAL, vmin=0, vmax=1, aspect="auto")
            axes.set_title(f"{row['layer']}.{head}", fontsize=8)
            for axis, tokens in ((axes.xaxis, row["keys"]), (axes.yaxis, row["queries"])):
                every = max(1, len(tokens) // 20)
                axis.set_ticks(range(0, len(tokens), every), [shown(token) for token in tokens[::every]], fontsize=6)
            axes.tick_params(length=0)
            axes.tick_params(axis="x", rotation=90 if words else 0)
    for line in panels:
        line[0].set_ylabel("query", fontsize=7)
    for axes in panels[-1]:
        axes.set_xlabel("key", fontsize=7)
    figure.suptitle(title, fontsize=9, y=1 - 0.12 / height)
    if image is not None:
        scale = figure.add_axes((1 - 0.85 / width, 0.25, 0.14 / width, 0.5))
        figure.colorbar(image, cax=scale, label="attention weight")
    return figure


def map_sheets(rows: Rows, examples: int) -> dict[str, Figure]:
    """File name -> figure: one sheet per stack and kind for the first examples, and one for the averages."""
    sheets: dict[str, Rows] = {}
    for row in rows:
        if not is_average(row) and row["example"] >= examples:
            continue
        stack, _, kind = row["layer"].split(".")
        which = "average" if is_average(row) else f"example_{row['example']}"
        sheets.setdefault(f"maps_{which}_{stack}_{kind}", []).append(row)
    return {name: draw_maps(own, title_of(own[0])) for name, own in sheets.items()}


def title_of(row: Row) -> str:
    if is_average(row):
        return f"average over {row['n']:,} examples"
    question = row["input"].replace("<eos>", "")
    return f"{question} → {row['answer'].replace('<eos>', '')}" if row["answer"] else question
