"""Error signatures: offsets of wrong digits, counted by hand; and rows for every site."""

import numpy as np
import pytest
from small_models import make_model
from task_examples import addition, random_addition

from headcount.analysis.circuits import signature
from headcount.analysis.circuits.signature import signature_rows
from headcount.analysis.interventions.plan import Outcomes
from headcount.analysis.interventions.sets import find_sets
from headcount.data_builders.registry import TASKS
from headcount.records.rows import check_row, only, select


def test_offsets_count_around_the_circle_and_only_between_digits():
    task = TASKS["addition"]
    nine, zero, plus = (task.vocabulary.id_of(symbol) for symbol in "90+")
    written, right = np.array([zero, nine, nine, plus]), np.array([nine, zero, nine, nine])
    assert task.offsets(written, right).tolist() == [1, 9, 0, -1]


def test_wrong_digits_above_the_units_are_counted_by_hand(monkeypatch):
    """Answers 0657 and 0646: a tens digit one too high, a hundreds digit four too low, and units that do not count."""
    model, examples = make_model(), addition([221, 231], [436, 415])
    labels = examples.rows["labels"].numpy()
    tokens = np.repeat(labels[None], 2, 0).copy()
    tokens[1, 0, 2] += 1
    tokens[1, 1, 1] -= 4
    tokens[1, :, 3] -= 1

    def sweep(model, rows, wanted, progress):
        return Outcomes(wanted, "loop", "free-running", tokens, labels, np.zeros((2, 2), np.float32))

    monkeypatch.setattr(signature, "sweep", sweep)
    rows = signature_rows(model, examples, "carry", find_sets(model, ["encoder.0.mlp"]))
    for row in rows:
        check_row(row, "signature")
    share = only(rows, metric="carry_errors", site="encoder.0.mlp")
    assert (share["value"], share["n"], share["labels"]) == (0.5, 2, 6)
    offsets = {row["scope"]["offset"]: row["value"] for row in select(rows, metric="error_offset")}
    assert offsets == {offset: 0.5 if offset in (1, 6) else 0.0 for offset in range(1, 10)}
    intact = only(rows, metric="carry_errors", site="none")
    assert intact["value"] is None and intact["n"] == 0, "no wrong digit, no share"


def test_every_set_has_a_signature():
    model, examples = make_model(), random_addition(20)
    sets = find_sets(model, ["decoder.*.cross.*", "decoder.0.mlp"])
    rows = signature_rows(model, examples, "carry", sets)
    for site in ("none", "decoder.*.cross.*", "decoder.0.mlp"):
        whole = only(rows, metric="carry_errors", site=site)
        parts = select(rows, metric="error_offset", site=site)
        digits = sum(round(row["value"] * row["n"]) for row in parts)
        assert 0 < digits <= whole["n"], "what is no digit has no offset"
        by_one = sum(row["value"] for row in parts if row["scope"]["offset"] in (1, 9))
        assert whole["value"] == pytest.approx(by_one)
