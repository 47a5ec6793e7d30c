"""Interchange: flips worked out by hand, patched runs against generation, and the public call on any model."""

import numpy as np
import pytest
import torch
from small_models import make_inputs, make_model
from stock_models import ids, make_stock
from task_examples import carry_pairs

import headcount
from headcount.analysis.heads.atlas import atlas_rows
from headcount.analysis.heads.interchange import flip_rows, interchange_rows, read_answer_of_source
from headcount.analysis.interventions.intervention import Intervention, one_at_a_time
from headcount.analysis.interventions.plan import Outcomes
from headcount.analysis.interventions.sweep import sweep
from headcount.data_builders.registry import TASKS
from headcount.records.rows import check_row, row, select


@pytest.mark.parametrize("style, order", [("encoder-decoder", "plain"), ("decoder", "reversed")])
def test_flips_are_counted_as_worked_out_by_hand(style, order):
    pairs = carry_pairs(style, order)
    model = make_model(style)
    base, source = pairs.base, pairs.source
    labels = source.rows["labels"][:, 1:] if style == "decoder" else source.rows["labels"]
    columns = source.roles("answer").index
    columns = columns[:, 1:] if style == "decoder" else columns
    heads = model.list_heads()
    tokens = np.repeat(labels.numpy()[None], 1 + len(heads), 0).copy()  # every head flips the carry ...
    old_left = [base.rows["labels"][i][base.rows["labels"][i] > 2] for i in range(2)]
    digits = [each.tolist() if order == "reversed" else each.tolist()[::-1] for each in old_left]
    tokens[0, 0, columns[0] == 2], tokens[0, 1, columns[1] == 3] = digits[0][2], digits[1][3]  # ... none: as before
    tokens[1, 0, columns[0] == 1] = 12  # the first head breaks the changed column's own digit of the first pair
    tokens[2, 0, columns[0] == 0] = 12  # the second one another digit
    wanted = list(one_at_a_time(heads, "source"))
    loss = np.zeros(tokens.shape[:2], np.float32)
    rows = flip_rows(model, pairs, Outcomes(wanted, "loop", "free-running", tokens, labels.numpy(), loss))
    value = {(r["head"], r["metric"], r["scope"].get("column")): r["value"] for r in rows}
    assert value["none", "carry_flip", None] == 0 and value["none", "whole_answer_flip", None] == 0
    assert value[heads[0], "carry_flip", None] == 0.5
    assert value[heads[0], "carry_flip", 1] == 0 and value[heads[0], "carry_flip", 2] == 1
    assert value[heads[1], "carry_flip", None] == 1 and value[heads[1], "whole_answer_flip", None] == 0.5
    assert value[heads[3], "whole_answer_flip", None] == 1
    # both runs read the source's answer; only the problem differs
    read = read_answer_of_source(model, pairs)
    assert torch.equal(read["labels"], source.rows["labels"])
    assert (read["input_ids"] != source.rows["input_ids"]).sum() == 4  # one digit of each operand, in two pairs
    for each in rows:
        check_row(each, "interchange")


def test_interchange_of_a_real_model_is_what_patched_generation_gives():
    model = make_model("encoder-decoder", seed=3)
    model.generation_config.eos_token_id = None
    pairs = carry_pairs()
    inputs, others = pairs.base.rows["input_ids"], pairs.source.rows["input_ids"]
    target = model.generate(others, max_new_tokens=5, do_sample=False)[:, 1:]
    rows, sources = {"input_ids": inputs, "labels": target}, {"input_ids": others, "labels": target}
    cross = Intervention([head for head in model.list_heads() if ".cross." in head], 0.0, "source")
    found = sweep(model, rows, [cross], sources=sources)
    assert found.right[1].all(), "the source's cross-attention makes the base write the source's answer"
    rows = interchange_rows(model, pairs)
    assert {(each["head"], each["n"]) for each in select(rows, scope={})} == {
        (head, 2) for head in ("none", *model.list_heads())
    }


@pytest.mark.parametrize("kind", ["own", "T5", "GPT-2"])
def test_the_public_call_tells_which_sites_bring_the_source(kind):
    if kind == "own":
        model, base, source = (
            make_model(),
            make_inputs("encoder-decoder", 12),
            make_inputs("encoder-decoder", 12, seed=5),
        )
        everything = ["encoder.1.residual"]
    else:
        model = make_stock(kind)
        base, source = {"input_ids": ids(12, 6)}, {"input_ids": ids(12, 6, seed=5)}
        for batch in (base, source):
            batch["labels"] = ids(12, 4, seed=2) if kind == "T5" else batch["input_ids"]
        heads = headcount.list_heads(model)
        everything = [head for head in heads if head.kind == "cross"] if kind == "T5" else heads
    if kind != "GPT-2":
        source["labels"] = base["labels"]  # both decoders read the same
    one = headcount.sites(model)[0]
    rows = headcount.interchange(model, base, source, [one, everything])
    assert [r["site"] for r in rows] == ["none", one, " + ".join(everything)]
    assert rows[0]["value"] == 0, "the control changes nothing"
    if kind != "GPT-2":
        assert rows[2]["value"] == 1, "all that the encoder brings"
    assert 0 < rows[0]["n"] <= 12 and len({r["n"] for r in rows}) == 1
    assert {r["decoding"] for r in rows} == {"free-running" if kind == "own" else "teacher-forced"}
    by_metric = headcount.interchange(model, base, source, [one], lambda outputs, batch: outputs.logits[:, 0, 5])
    assert [r["metric"] for r in by_metric] == ["<lambda>_rise"] * 2 and by_metric[0]["value"] == 0
    with pytest.raises(ValueError, match="there are no sites"):
        headcount.interchange(model, base, source, [])
    with pytest.raises(ValueError, match="the model predicts the same for every base and source"):
        headcount.interchange(model, base, base, [one])


def test_atlas_needs_both_kinds_of_evidence():
    def ablation(head, value, with_carry, without):
        found = [({}, value, 0.005), ({"carry": "with"}, with_carry, 0.01), ({"carry": "without"}, without, 0.01)]
        return [
            row(
                "ablation",
                "exact_match_drop",
                {"value": v, "n": 1000, "interval": [v - reach, v + reach]},
                scope=scope,
                decoding="free-running",
                head=head,
                mode="zero",
            )
            for scope, v, reach in found
        ]

    def flip(head, value):
        found = {"value": value, "n": 500, "interval": [value - 0.01, value + 0.01]}
        return row("interchange", "carry_flip", found, head=head)

    def looks(head, value):
        return row("specialization", "same_column", {"value": value, "n": 9}, head=head, uniform=0.25)

    cases = {
        "decoder.1.cross.0": (0.05, 0.08, 0.0, 0.5, 0.1, "carry head"),
        "decoder.1.cross.1": (0.05, 0.05, 0.05, 0.5, 0.1, "other"),  # moves the carry, but is not needed for it
        "decoder.1.cross.2": (0.05, 0.08, 0.0, 0.0, 0.1, "other"),  # needed for carries, but does not move them
        "decoder.1.cross.3": (0.30, 0.3, 0.3, 0.0, 0.9, "aligner"),
        "decoder.0.self.0": (0.30, 0.3, 0.3, 0.0, None, "output order"),
        "encoder.0.self.0": (0.0, 0.0, 0.0, 0.0, 0.9, "redundant"),
    }
    drops, flips, scores = [], [], []
    for head, (drop, with_carry, without, moved, column, _) in cases.items():
        drops += ablation(head, drop, with_carry, without)
        flips.append(flip(head, moved))
        scores += [looks(head, column)] if column is not None else []
    atlas = atlas_rows(TASKS["addition"], "carry", drops, flips, scores)
    assert {each["head"]: each["role"] for each in atlas} == {head: case[-1] for head, case in cases.items()}
    (first,) = select(atlas, head="decoder.1.cross.0")
    assert first["carry_flip"]["value"] == 0.5 and first["carry_excess"]["value"] == pytest.approx(0.08)
    assert first["moves"] and first["costs_more"] and first["mean_drop"] is None and first["carry_source"] is None
