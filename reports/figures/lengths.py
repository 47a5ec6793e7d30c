"""All figures of a study of lengths, for any task; from result rows alone."""

from pathlib import Path

from ...records.run_folder import read_results
from ..length_rows import task_of_rows
from .drawing import save_figure
from .label_lengths import label_figures
from .positions import position_figures
from .sequence_lengths import sequence_figures


def draw_length_study(output: Path) -> list[Path]:
    """Draws what the rows in OUTPUT/results allow, into OUTPUT/figures.

    Args:
        output: a folder that `headcount extrapolate` wrote; all of its rows are of one task.

    Returns:
        The files written; none without any row.
    """
    rows = {name: found for name, found in read_results(output).items() if found}
    if not rows:
        return []
    is_label = task_of_rows(next(iter(rows.values()))).kind == "label"
    figures = (label_figures if is_label else sequence_figures)(rows) | position_figures(rows)
    return [path for name, figure in figures.items() for path in save_figure(figure, output / "figures", name)]
