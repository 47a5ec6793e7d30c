"""Which heads carry the carry? Causal evidence from pairs of problems, not from pictures.

The two problems of a pair differ in one column only, where the digit sums are s and s + 10: the column's own answer
digit is the same, and the carry out of it is not. Into the run on one problem (base), a head's output from the run on
the other (source) is put; if that head brings the carry to the answer, the digit to the left becomes that of the other
problem, while the digit of the changed column stays: an interchange intervention (Geiger et al. 2021).

Both runs read the source's answer as far as it is written. Then one parallel pass decides what greedy decoding with
the intervention gives: it writes the source's answer if and only if every argmax is the source's digit.
"""

from collections.abc import Callable

import numpy as np
import torch

from .ablation import IGNORED, ablate, one_head_at_a_time, row_lengths
from .examples import Examples, label_columns
from .statistics import difference, rate


FLIPS = 0.05  # a head moves the carry if it flips more than this share of pairs, at the lower end of the interval
HARM = 0.01  # a head is needed if its ablation costs more than this
ALIGNED = 0.4  # a head looks at something if it gives it so much weight, and twice what a uniform head would


def interchange(model, base: Examples, source: Examples, progress: Callable | None = None) -> list[dict]:
    """Rows for every head, whole and by changed column.

    `carry_flip`: the digit to the left becomes the source's and the changed column's own digit stays;
    `whole_answer_flip`: greedy decoding writes exactly the source's answer.
    The head named `none` is the control without any intervention: its rate is that of wrong answers.
    """
    column = (base.problems.a != source.problems.a).argmax(-1)
    same_length = np.flatnonzero((row_lengths(base.rows) == row_lengths(source.rows)).all(-1).numpy())
    base, source, column = base[same_length], source[same_length], column[same_length]
    rows = {**base.rows, "labels": source.rows["labels"]}
    if not model.config.is_encoder_decoder:  # the answer is part of the sequence that is read
        rows["input_ids"] = torch.where(source.rows["labels"] != IGNORED, source.rows["input_ids"], rows["input_ids"])
    outcomes = ablate(model, rows, one_head_at_a_time(model), "resample", donors=source.rows, progress=progress)

    columns = label_columns(torch.from_numpy(outcomes.labels), base.answer_order).numpy()
    agrees = outcomes.tokens == outcomes.labels  # (V, N, T)
    own, left = (agrees[:, columns == (column + step)[:, None]] for step in (0, 1))  # (V, N) each
    flips = own & left
    found = []
    for version, gate in enumerate(outcomes.gates):
        row = {"analysis": "interchange", "head": next(iter(gate), "none"), "decoding": "free-running"}
        for metric, happened in (("carry_flip", flips[version]), ("whole_answer_flip", outcomes.right[version])):
            found.append({**row, "metric": metric, **rate(int(happened.sum()), len(happened))})
            for place in np.unique(column):
                there = happened[column == place]
                found.append({**row, "metric": metric, "column": int(place), **rate(int(there.sum()), len(there))})
    return found


def carry_excess(ablation: list[dict]) -> dict[str, dict]:
    """Head -> how much more its ablation costs on problems with a carry than on problems without."""
    drops = {
        (row["head"], row["carry"]): row
        for row in ablation
        if row["metric"] == "exact_match_drop" and row["mode"] == "zero" and "carry" in row
    }
    return {
        head: difference(drops[head, "with"], drops[head, "without"])
        for head, carry in drops
        if carry == "with" and (head, "without") in drops
    }


def carry_atlas(ablation: list[dict], flips: list[dict], specialization: list[dict]) -> list[dict]:
    """What every head is, from the rows of the other analyses, with the evidence: one row per head.

    carry head     interchange moves the carry AND ablation costs more where there is a carry
    aligner        needed, and looks at its own column of the operands
    output order   needed, decoder self-attention, which reads the answer so far, and does not move the carry
    redundant      costs less than a point, as far as the interval goes, and does not move the carry
    other          needed, but none of these; or the evidence disagrees
    """
    drop = {r["head"]: r for r in ablation if "class" in r and r["mode"] == "zero"}
    flip = {r["head"]: r for r in flips if r["metric"] == "carry_flip" and "column" not in r}
    mean_drop = {r["head"]: r for r in ablation if "class" in r and r["mode"] == "mean"}
    more = carry_excess(ablation)
    looks = {(r["head"], r["metric"]): r for r in specialization}
    rows = []
    for head in drop:
        moves, costs_more = flip[head]["interval"][0] > FLIPS, more[head]["interval"][0] > 0
        needed = drop[head]["interval"][0] > HARM
        aligned = looks.get((head, "same_column"))
        is_aligned = aligned is not None and aligned["value"] > max(ALIGNED, 2 * aligned["uniform"])
        if moves and costs_more:
            role = "carry head"
        elif needed and is_aligned:
            role = "aligner"
        elif needed and head.startswith("decoder") and ".self." in head and not moves:
            role = "output order"
        elif drop[head]["interval"][1] < HARM and not moves:
            role = "redundant"
        else:
            role = "other"
        rows.append({
            "analysis": "carry_atlas", "head": head, "role": role, "n": drop[head]["n"],
            "drop": _figure(drop[head]), "carry_flip": _figure(flip[head]), "carry_excess": _figure(more[head]),
            "same_column": _figure(aligned) if aligned else None,
            "carry_source": _figure(looks[head, "carry_source"]) if (head, "carry_source") in looks else None,
            "mean_drop": _figure(mean_drop[head]) if head in mean_drop else None,
            "moves_the_carry": moves, "costs_more_with_a_carry": costs_more,
        })  # fmt: skip
    return rows


def _figure(row: dict) -> dict:
    return {name: row[name] for name in ("value", "n", "interval", "uniform") if name in row}
