"""The public call on any model: which sites bring the source, alone and together."""

import pytest
from small_models import make_inputs, make_model
from stock_models import ids, make_stock

import headcount


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


def test_patterns_complements_and_frozen_sites_are_taken():
    model = make_model()
    base, source = make_inputs("encoder-decoder", 12), make_inputs("encoder-decoder", 12, seed=5)
    source["labels"] = base["labels"]
    rows = headcount.interchange(model, base, source, ["decoder.*.cross.*", "*.mlp"], complements=True)
    assert [(r["site"], r["size"]) for r in rows] == [
        ("none", 0),
        ("decoder.*.cross.*", 8),
        ("all but decoder.*.cross.*", 16),
        ("*.mlp", 4),
    ]
    assert rows[1]["value"] == 1, "all that the encoder brings comes through cross-attention"
    (_, frozen) = headcount.interchange(model, base, source, ["encoder.1.residual"], frozen=["decoder.*.cross.*"])
    assert frozen["value"] == 0 and frozen["site"].startswith("encoder.1.residual, frozen: decoder.0.cross.0 + ")
    with pytest.raises(ValueError, match="is changed and frozen"):
        headcount.interchange(model, base, source, ["decoder.*.cross.*"], frozen=["decoder.0.cross.0"])
