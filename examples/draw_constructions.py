"""Wiring pictures of constructions, models whose circuits are known: NAME.png and NAME.svg in a folder.

python examples/draw_constructions.py pictures adder adder-graded
"""

import sys
from pathlib import Path

from headcount.analysis.circuits.constructions.catalogue import find_construction
from headcount.reports.figures.drawing import save_figure
from headcount.reports.figures.wiring import draw_wiring


def main(folder: Path, names: list[str]) -> None:
    for name in names:
        known = find_construction(name)
        if known.edges is None:
            raise SystemExit(
                f"{name} was trained, so that its edges are not known; expected one that was set by hand."
            )
        figure = draw_wiring(known.jobs, known.edges, known.decoys, name)
        save_figure(figure, folder, f"construction_{name.replace('-', '_')}", ("png",))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
