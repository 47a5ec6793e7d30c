"""All figures of a head study."""

from pathlib import Path

from ...records.rows import Rows
from .drawing import save_figure
from .heads import HEAD_FIGURES
from .maps import map_sheets


MAPS_DRAWN = 3  # examples with a sheet of maps each; the rows hold more


def draw_head_figures(output: Path, results: dict[str, Rows]) -> list[Path]:
    """Draws what the rows allow into OUTPUT/figures; gives the files written."""
    folder, written = output / "figures", []
    for name, draw in HEAD_FIGURES.items():
        figure = draw(results.get(name, []))
        if figure is not None:
            written += save_figure(figure, folder, name)
    for name, figure in map_sheets(results.get("maps", []), MAPS_DRAWN).items():
        written += save_figure(figure, folder, name, kinds=("png",))
    return written
