"""`headcount.ablate` on transformers' own models: every way gives what one pass per head with a hook gives."""

import evaluate
import numpy as np
import pytest
import torch
from small_models import make_inputs, make_model
from stock_models import ARCHITECTURES, MASKED, close_by_hook, ids, make_stock, output_projection
from transformers import GPT2Config, GPT2ForSequenceClassification

import headcount
from headcount.analysis.stock_versions import VersionRunner
from headcount.modeling.stock.finding import attention_layers
from headcount.reports.head_figures import draw_ablation


def score(outputs, batch):
    """One number per example that depends on everything a model puts out."""
    values = [value for value in outputs.values() if isinstance(value, torch.Tensor) and value.ndim > 1]
    return torch.stack([value.float().flatten(1).square().mean(1) for value in values]).sum(0)


def naive(model, batches, heads):
    """(1 + heads, N): the intact model first, then one pass per head with a hook."""
    layers, found = attention_layers(model), []
    for head in [None, *heads]:
        hook = None
        if head is not None:
            layer = layers[head.attention]
            hook = close_by_hook(
                output_projection(model, layer.path), layer.heads.index(head.number), len(layer.heads)
            )
        with torch.inference_mode():
            found.append(torch.cat([score(model(**batch), batch) for batch in batches]))
        if hook is not None:
            hook.remove()
    return torch.stack(found).numpy()


@pytest.mark.parametrize("name", MASKED)
def test_rows_are_those_of_the_naive_loop(name):
    model, batches = make_stock(name), [ARCHITECTURES[name].inputs(3), ARCHITECTURES[name].inputs(2)]
    heads = headcount.list_heads(model)
    wanted = naive(model, batches, heads)
    rows = headcount.ablate(model, batches, metric=score)
    assert [row["rank"] for row in rows] == list(range(1, len(heads) + 1))
    for row in rows:
        drops = wanted[0] - wanted[1 + heads.index(row["head"])]
        assert row["value"] == pytest.approx(drops.mean(), rel=1e-3, abs=1e-4) and row["n"] == 5
        assert row["interval"][0] <= row["value"] <= row["interval"][1]
    expected = "loop" if name == "CLIP" else "prefix reuse"
    assert {row["way"] for row in rows} == {expected}


@pytest.mark.parametrize("mode", ["zero", "mean", "resample"])
@pytest.mark.parametrize("name", ["BERT", "T5", "Llama"])
def test_all_ways_agree_in_every_mode(name, mode):
    model, batches = make_stock(name), [ARCHITECTURES[name].inputs(4)]
    found = {}
    for way in ("prefix reuse", "folding", "loop"):
        rows = headcount.ablate(model, batches, metric=score, mode=mode, way=way)
        found[way] = {row["head"]: row["value"] for row in rows}
        assert {row["way"] for row in rows} == {way} and {row["mode"] for row in rows} == {mode}
    for head, value in found["loop"].items():
        assert found["prefix reuse"][head] == pytest.approx(value, rel=1e-3, abs=1e-4)
        assert found["folding"][head] == pytest.approx(value, rel=1e-3, abs=1e-4)
    assert max(map(abs, found["loop"].values())) > 1e-3


@pytest.mark.parametrize("mode", ["zero", "mean", "resample"])
@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder", "encoder"])
def test_own_models_give_the_same_through_their_engine_and_through_the_loop(architecture, mode):
    model, batch = make_model(architecture), make_inputs(architecture, batch=6)
    own = headcount.ablate(model, [batch], mode=mode)
    stock = headcount.ablate(model, [batch], mode=mode, way="loop")
    assert own[0]["way"] == "headcount's own engine" and stock[0]["way"] == "loop"
    rises = [{row["head"]: row["value"] for row in rows if row["metric"] == "loss_rise"} for rows in (own, stock)]
    assert rises[0].keys() == rises[1].keys() == set(model.list_heads())
    if mode != "resample":  # the two draw other partners
        for head in rises[0]:
            assert rises[0][head] == pytest.approx(rises[1][head], rel=1e-3, abs=1e-4)


def test_what_looks_at_the_batch_again_after_the_last_layer_is_folded_instead():
    config = GPT2Config(**ARCHITECTURES["GPT-2"].options, num_labels=3)
    torch.manual_seed(0)
    model = GPT2ForSequenceClassification(config).eval()
    batch = {**ARCHITECTURES["GPT-2"].inputs(4), "labels": torch.tensor([0, 1, 2, 0])}
    rows = headcount.ablate(model, [batch])
    assert {row["way"] for row in rows} <= {"folding", "loop"}
    loop = {
        row["head"]: row["value"]
        for row in headcount.ablate(model, [batch], way="loop")
        if row["metric"] == "loss_rise"
    }
    for row in rows:
        if row["metric"] == "loss_rise":
            assert row["value"] == pytest.approx(loop[row["head"]], rel=1e-3, abs=1e-5)
    with pytest.raises(ValueError, match="way='prefix reuse' does not suit GPT2ForSequenceClassification"):
        headcount.ablate(model, [batch], way="prefix reuse")


def test_labels_give_shares_with_intervals_that_the_figure_draws():
    model = make_stock("T5")
    batch = {"input_ids": ids(8, 7), "labels": ids(8, 3, seed=2)}
    with torch.inference_mode():
        batch["labels"][:4] = model(**batch).logits.argmax(-1)[:4]
        right = (model(**batch).logits.argmax(-1) == batch["labels"]).all(-1)
    rows = headcount.ablate(model, [batch])
    whole = [row for row in rows if "class" in row]
    assert len(whole) == 24 and {row["metric"] for row in whole} == {"exact_match_drop"}
    assert all(row["intact"]["value"] == right.float().mean() and row["decoding"] == "teacher-forced" for row in whole)
    assert draw_ablation(rows) is not None


def test_an_evaluate_metric_counts_predictions(tmp_path):
    class Share(evaluate.Metric):
        def _info(self):
            import datasets

            features = datasets.Features(
                {"predictions": datasets.Value("int64"), "references": datasets.Value("int64")}
            )
            return evaluate.MetricInfo(description="", citation="", features=features)

        def _compute(self, predictions, references):
            return {"share": float(np.mean(np.array(predictions) == np.array(references)))}

    model, batch = make_stock("ViT", num_labels=4), ARCHITECTURES["ViT"].inputs(6)
    with torch.inference_mode():
        batch["labels"] = model(**batch).logits.argmax(-1)
    heads = headcount.list_heads(model)[:2]
    rows = headcount.ablate(model, [batch], metric=Share(cache_dir=str(tmp_path)), heads=heads)
    for row in rows:
        with torch.inference_mode(), headcount.mask_heads(model, [row["head"]]):
            share = (model(**batch).logits.argmax(-1) == batch["labels"]).float().mean().item()
        assert row["value"] == pytest.approx(1 - share) and row["interval"][0] <= row["value"] <= row["interval"][1]


def test_generation_is_measured_by_run():
    model = make_stock("BART")
    batch = {"input_ids": ids(3, 7)}
    wanted = model.generate(**batch, max_new_tokens=4, do_sample=False)

    def generate(model, batch):
        return model.generate(batch["input_ids"], max_new_tokens=4, do_sample=False)

    def same(written, batch):
        padded = torch.zeros(len(written), wanted.shape[1], dtype=torch.long)
        padded[:, : written.shape[1]] = written
        return (padded == wanted).all(-1)

    def as_texts(model, batch):
        return [" ".join(map(str, row)) for row in generate(model, batch).tolist()]

    def same_text(texts, batch):
        return torch.tensor(
            [text == " ".join(map(str, row)) for text, row in zip(texts, wanted.tolist(), strict=True)]
        )

    rows = headcount.ablate(model, [batch], metric=same, run=generate)
    texts = headcount.ablate(model, [batch], metric=same_text, run=as_texts)
    for row in texts[:2]:
        with headcount.mask_heads(model, [row["head"]]):
            assert row["value"] == 1 - same_text(as_texts(model, batch), batch).float().mean().item()
    for row in rows[:3]:
        with headcount.mask_heads(model, [row["head"]]):
            right = same(generate(model, batch), batch)
        assert row["value"] == 1 - right.float().mean().item() and row["metric"] == "same_drop"


def test_a_stopped_sweep_goes_on_and_other_settings_are_refused(tmp_path):
    model, batches = make_stock("BERT"), [ARCHITECTURES["BERT"].inputs(rows) for rows in (3, 2, 2)]
    calls = []

    def stops(outputs, batch):
        calls.append(len(batch["input_ids"]))
        if len(calls) == 12:
            raise KeyboardInterrupt
        return score(outputs, batch)

    stops.__name__ = "score"
    with pytest.raises(KeyboardInterrupt):
        headcount.ablate(model, batches, metric=stops, resume=tmp_path / "sweep")
    before = len(calls)
    seen = []
    options = {"resume": tmp_path / "sweep", "progress": lambda *counts: seen.append(counts)}
    rows = headcount.ablate(model, batches, metric=stops, **options)
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert len(calls) - before == 2 * 9  # the first batch, 1 + 8 versions, was kept
    assert rows == headcount.ablate(model, batches, metric=score)
    with pytest.raises(ValueError, match="holds a sweep with another mode"):
        headcount.ablate(model, batches, metric=score, mode="mean", resume=tmp_path / "sweep")


@pytest.mark.parametrize("name", ["BERT", "T5", "GPT-2"])
def test_gradient_importance_is_the_derivative_of_each_examples_loss(name):
    model, batch = make_stock(name), ARCHITECTURES[name].inputs(3)
    labels = batch.get("decoder_input_ids", batch["input_ids"]).clone()
    batch = {**batch, "labels": labels}
    rows = headcount.gradient_importance(model, [batch])
    heads = headcount.list_heads(model)
    assert [row["head"] for row in rows] == heads and all(row["n"] == 3 for row in rows)
    row, step = rows[5], 1e-3
    costs = []
    for gate in (1 + step, 1 - step):
        with torch.inference_mode(), headcount.mask_heads(model.double(), {row["head"]: gate}):
            runner = VersionRunner(model)
            outputs = runner.plain(batch)
            logits = outputs.logits[:, :-1] if name == "GPT-2" else outputs.logits
            wanted = labels[:, 1:] if name == "GPT-2" else labels
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), wanted.flatten(), reduction="none")
            costs.append(loss.view(wanted.shape).sum(-1))
    assert row["value"] == pytest.approx(float(((costs[0] - costs[1]) / (2 * step)).abs().mean()), rel=1e-3)


def test_half_precision_is_swept_too():
    model, batch = make_stock("Llama").to(torch.bfloat16), ARCHITECTURES["Llama"].inputs(3)
    rows = headcount.ablate(model, [batch], metric=score)
    assert len(rows) == 8 and any(abs(row["value"]) > 1e-3 for row in rows)
    assert rows[0]["way"] == "prefix reuse"


def test_bad_input_is_one_clear_sentence():
    model, batch = make_stock("BERT"), ARCHITECTURES["BERT"].inputs(2)
    for options, message in (
        ({"mode": "half"}, "mode='half' is not known; expected one of zero, mean, resample"),
        ({"heads": ["encoder.7.self.0"]}, "'encoder.7.self.0' is not a head of this BertForMaskedLM"),
        ({"metric": lambda outputs, batch: outputs.logits.mean()}, r"gave shape \(\), expected \(2,\)"),
        ({}, "expected both, or a metric"),
        ({"way": "magic"}, "way='magic' is not known"),
    ):
        with pytest.raises(ValueError, match=message):
            headcount.ablate(model, [batch], **{"metric": score, **options} if options else {})
    with pytest.raises(ValueError, match="there are no batches"):
        headcount.ablate(model, [], metric=score)
    with pytest.raises(ValueError, match="none to resample from"):
        headcount.ablate(model, [{name: value[:1] for name, value in batch.items()}], metric=score, mode="resample")
    assert not model.training and model.config._attn_implementation == "sdpa"
