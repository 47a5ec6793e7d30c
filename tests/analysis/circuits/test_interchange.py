"""The public call on any model: which sites bring the source, alone and together."""

import pytest
import torch
from hook_loop import intervened, outputs_of
from small_models import make_inputs, make_model
from stock_models import ids, make_stock

import headcount
from headcount.records.rows import only


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


@pytest.mark.parametrize("name", ["GPT-2", "Llama", "BERT", "T5"])
def test_logit_differences_of_answers_are_those_of_hooks_at_every_site_and_position(name):
    model, at = make_stock(name), 3 if name == "BERT" else -1
    base, source = {"input_ids": ids(5, 6)}, {"input_ids": ids(5, 6, seed=5)}
    if name == "T5":
        base["decoder_input_ids"] = source["decoder_input_ids"] = ids(5, 3, seed=2)
    answers = ids(5, 2, seed=9)
    every = headcount.sites(model)
    wanted = [*every, *(s.at("position", p) for s in every if s.layer == 0 for p in (0, -1, 2))]
    rows = headcount.interchange(model, base, source, wanted, answers=answers, at=at)
    assert [r["metric"] for r in rows[:3]] == ["logit_difference", "recovered", "answer_flip"]
    assert {r["n"] for r in rows} == {5} and [r["site"] for r in rows[3::3]] == wanted

    def margins(outputs):
        picked = outputs.logits[:, at].gather(-1, answers)
        return (picked[:, 0] - picked[:, 1]).numpy()

    with torch.no_grad():
        before, reached = margins(model(**base)), margins(model(**source))
    recorded = outputs_of(model, source, every)
    for number, site in enumerate(["none", *wanted]):
        own = before
        if site != "none":
            width = 3 if name == "T5" and site.startswith("decoder") else 6
            tokens = {} if site.index is None else {site: (torch.arange(width) == site.index % width)[None]}
            own = margins(intervened(model, base, {site: 0.0}, {site: recorded[site.place]}, tokens))
        difference, share, flip = rows[3 * number : 3 * number + 3]
        assert difference["value"] == pytest.approx(own.mean(), abs=1e-4), site
        assert share["value"] == pytest.approx((own - before).mean() / (reached - before).mean(), abs=1e-3), site
        assert flip["value"] == pytest.approx((own < 0).mean()), site
    last = [site for site in wanted if site.kind == "residual" and site.role is None][-1]
    assert only(rows, site=last, metric="recovered")["value"] == pytest.approx(1, abs=1e-4)


def test_answers_are_checked_and_may_be_two_lists_over_several_batches():
    model, base, source = make_stock("GPT-2"), ids(4, 6), ids(4, 6, seed=5)
    first, second = [5, 6, 7, 8], [9, 10, 11, 12]
    whole = headcount.interchange(model, base, source, ["decoder.0.mlp"], answers=(first, second))
    parted = headcount.interchange(
        model, [base[:1], base[1:]], [source[:1], source[1:]], ["decoder.0.mlp"], answers=(first, second)
    )
    assert [r["value"] for r in whole] == pytest.approx([r["value"] for r in parted], rel=1e-4)
    with pytest.raises(ValueError, match=r"answers have shape \(3, 2\) .* expected token ids, \(4, 2\)"):
        headcount.interchange(model, base, source, ["decoder.0.mlp"], answers=(first[:3], second[:3]))
    with pytest.raises(ValueError, match="an answer is not one of 40 tokens"):
        headcount.interchange(model, base, source, ["decoder.0.mlp"], answers=(first, [9, 10, 11, 40]))
    with pytest.raises(ValueError, match="answers and a metric are given"):
        headcount.interchange(model, base, source, ["decoder.0.mlp"], len, answers=(first, second))
    same = headcount.interchange(model, base, base, ["decoder.0.mlp"], answers=(first, second))
    assert only(same, metric="recovered")["value"] is None, "the runs do not differ"
