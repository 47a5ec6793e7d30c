"""Wiring pictures show every node and every edge, and nothing that is read crosses a text."""

import pytest

from headcount.analysis.circuits.constructions.adders import ADDERS
from headcount.reports.figures.wiring import WIDE, draw_wiring, in_order


@pytest.mark.parametrize("known", ADDERS, ids=lambda known: known.name)
def test_all_of_a_circuit_is_in_the_picture_and_legible(known):
    figure = draw_wiring(known.jobs, known.edges, known.decoys, known.name)
    (axes,) = figure.axes
    figure.canvas.draw()
    shown = {text.get_text() for text in axes.texts}
    assert {*known.jobs, *known.decoys, "encoder.embed", "logits"} <= shown
    arrows = [line for line in axes.lines if line.get_marker() == "<"]
    assert len(arrows) == len(known.edges)
    to_data = axes.transData.inverted()
    for text in axes.texts:
        assert to_data.transform(text.get_window_extent())[1][0] <= WIDE, text.get_text()
    for line in axes.lines:  # wires run beside the boxes
        assert min(line.get_xdata()) >= WIDE


def test_time_runs_down():
    names = {"logits", "decoder.0.cross.1", "decoder.0.self.0", "decoder.embed", "encoder.1.self.0", "encoder.0.mlp"}
    assert in_order(names) == [
        "encoder.0.mlp",
        "encoder.1.self.0",
        "decoder.embed",
        "decoder.0.self.0",
        "decoder.0.cross.1",
        "logits",
    ]
