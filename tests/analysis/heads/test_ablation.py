"""`headcount.ablate` and its rows: every model and runner, against hooks and figures worked out by hand."""

import evaluate
import numpy as np
import pytest
import torch
from small_models import make_inputs, make_model
from stock_models import ARCHITECTURES, MASKED, close_by_hook, ids, make_stock, output_projection
from task_examples import addition, random_addition, sortedness

import headcount
from headcount.analysis.heads.ablation import ablate_examples, ablation_rows, classify, say_where_modes_disagree
from headcount.analysis.interventions.intervention import one_at_a_time
from headcount.analysis.interventions.plan import Outcomes
from headcount.analysis.interventions.sweep import RUNNERS
from headcount.modeling.stock.finding import attention_layers
from headcount.records.rows import check_row, only, parts, select
from headcount.records.rows import row as make_row


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
        check_row(row, name)
        drops = wanted[0] - wanted[1 + heads.index(row["head"])]
        assert row["value"] == pytest.approx(drops.mean(), rel=1e-3, abs=1e-4) and row["n"] == 5
        assert row["interval"][0] <= row["value"] <= row["interval"][1]
    assert {row["runner"] for row in rows} == {"loop" if name == "CLIP" else "prefix_reuse"}


@pytest.mark.parametrize("mode", ["zero", "mean", "resample"])
@pytest.mark.parametrize("name", ["BERT", "T5", "Llama"])
def test_all_runners_agree_in_every_mode(name, mode):
    model, batches = make_stock(name), [ARCHITECTURES[name].inputs(4)]
    found = {}
    for runner in ("prefix_reuse", "folding", "loop"):
        rows = headcount.ablate(model, batches, metric=score, mode=mode, runner=runner)
        found[runner] = {row["head"]: row["value"] for row in rows}
        assert {row["runner"] for row in rows} == {runner} and {row["mode"] for row in rows} == {mode}
    for head, value in found["loop"].items():
        assert found["prefix_reuse"][head] == pytest.approx(value, rel=1e-3, abs=1e-4)
        assert found["folding"][head] == pytest.approx(value, rel=1e-3, abs=1e-4)
    assert max(map(abs, found["loop"].values())) > 1e-3


@pytest.mark.parametrize("mode", ["zero", "mean", "resample"])
@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder", "encoder"])
def test_own_models_give_the_same_rows_under_the_same_labels_by_every_runner(architecture, mode):
    model, batch = make_model(architecture), make_inputs(architecture, batch=6)
    found = {runner: headcount.ablate(model, batch, mode=mode, runner=runner) for runner in RUNNERS}
    assert {row["runner"] for row in headcount.ablate(model, batch, mode=mode)} == {"shared_states"}
    for rows in found.values():
        for row, wanted in zip(rows, found["loop"], strict=True):
            assert row["value"] == pytest.approx(wanted["value"], rel=1e-3, abs=1e-4)
            for name in ("metric", "decoding", "scope", "mode", "n"):
                assert row[name] == wanted[name]
    assert {row["head"] for row in found["loop"]} == set(model.list_heads())


def test_labels_give_shares_with_intervals():
    model = make_stock("T5")
    batch = {"input_ids": ids(8, 7), "labels": ids(8, 3, seed=2)}
    with torch.inference_mode():
        batch["labels"][:4] = model(**batch).logits.argmax(-1)[:4]
        right = (model(**batch).logits.argmax(-1) == batch["labels"]).all(-1)
    whole = select(headcount.ablate(model, batch), metric="exact_match_drop", scope={})
    assert len(whole) == 24 and all(row["class"] for row in whole)
    assert all(row["intact"]["value"] == right.float().mean() and row["decoding"] == "teacher-forced" for row in whole)


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


def test_a_stopped_ablation_goes_on_and_other_settings_are_refused(tmp_path):
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
    with pytest.raises(ValueError, match="holds a sweep with another replacement"):
        headcount.ablate(model, batches, metric=score, mode="mean", resume=tmp_path / "sweep")


def test_half_precision_is_swept_too():
    model, batch = make_stock("Llama").to(torch.bfloat16), ARCHITECTURES["Llama"].inputs(3)
    rows = headcount.ablate(model, [batch], metric=score)
    assert len(rows) == 8 and any(abs(row["value"]) > 1e-3 for row in rows)
    assert rows[0]["runner"] == "prefix_reuse"


def test_bad_input_is_one_clear_sentence():
    model, batch = make_stock("BERT"), ARCHITECTURES["BERT"].inputs(2)
    for options, message in (
        ({"mode": "half"}, "mode='half' is not known; expected one or more of zero, mean, resample"),
        ({"heads": ["encoder.7.self.0"]}, "'encoder.7.self.0' is not a head of this BertForMaskedLM"),
        ({"metric": lambda outputs, batch: outputs.logits.mean()}, r"gave shape \(\), expected \(2,\)"),
        ({}, "expected both, or a metric"),
        ({"runner": "magic"}, "runner='magic' is not known"),
    ):
        with pytest.raises(ValueError, match=message):
            headcount.ablate(model, [batch], **{"metric": score, **options} if options else {})
    with pytest.raises(ValueError, match="there are no batches"):
        headcount.ablate(model, [], metric=score)
    with pytest.raises(ValueError, match="none to resample from"):
        headcount.ablate(model, [{name: value[:1] for name, value in batch.items()}], metric=score, mode="resample")
    assert not model.training and model.config._attn_implementation == "sdpa"


def test_the_natural_calls_work():
    gpt2 = make_stock("GPT-2")
    tokens = ids(3, 7)
    one, other = (headcount.ablate(gpt2, batch, score, heads=[(0, 1)]) for batch in ({"input_ids": tokens}, tokens))
    assert one == other and one[0]["head"] == "decoder.0.self.1"


def outcomes(*right) -> Outcomes:
    right = np.array(right, bool)
    labels = np.full((right.shape[1], 5), [3, 3, 3, 3, 2])
    tokens = np.where(right[..., None], labels, 5)
    wanted = list(one_at_a_time([f"encoder.0.self.{i}" for i in range(len(right) - 1)]))
    loss = (~right).astype(np.float32)
    return Outcomes(wanted, "shared_states", "free-running", tokens, labels, loss)


def test_rows_say_what_is_lost_where():
    examples = addition([1, 2, 9, 95], [1, 2, 1, 5])  # chains 0, 0, 1, 2
    found = outcomes([1, 1, 1, 1], [1, 1, 0, 0], [1, 1, 1, 1])
    rows = ablation_rows(make_model(), found, examples=examples)
    whole = {row["head"]: row for row in select(rows, metric="exact_match_drop", scope={})}
    first = whole["encoder.0.self.0"]
    assert first["value"] == 0.5 and first["class"] == "critical" and first["rank"] == 1
    assert first["p_value"] == 0.5 and first["p_holm"] == 1.0 and first["decoding"] == "free-running"
    assert first["intact"]["value"] == 1 and first["ablated"]["value"] == 0.5
    second = whole["encoder.0.self.1"]
    assert second["value"] == 0 and second["class"] == "not needed alone" and second["rank"] == 2
    assert not second["class_is_certain"], "four examples cannot tell 0 from 1 point"
    own = select(rows, head="encoder.0.self.0", mode="zero")
    assert {r["scope"]["carry"]: r["value"] for r in parts(own, "carry")} == {"with": 1.0, "without": 0.0}
    assert {r["scope"]["longest_chain"]: r["value"] for r in parts(own, "longest_chain")} == {0: 0.0, 1: 1.0, 2: 1.0}
    places = select(own, metric="place_accuracy_drop")
    assert [r["scope"]["place"] for r in places] == [0, 1, 2, 3]
    assert all(r["value"] == 0.5 and r["n"] == 4 and r["decoding"] == "teacher-forced" for r in places)
    assert only(own, metric="loss_rise")["value"] == 0.5
    assert not any("class" in r for r in rows if r["scope"]), "a class is about all of the data"
    for each in rows:
        check_row(each, "ablation")


def test_a_classifier_is_broken_down_by_kind_and_length():
    model = make_model("encoder", vocab_size=103)
    examples = sortedness([[1, 2, 3], [3, 2, 1], [5, 6, 7, 8], [9, 1, 2, 3]])
    rows = ablate_examples(model, examples)
    assert {r["metric"] for r in rows} == {"accuracy_drop", "loss_rise"} and {r["decoding"] for r in rows} == {None}
    own = select(rows, head="encoder.0.self.0")
    assert [r["scope"] for r in parts(own, "kind")] == [{"kind": "shuffle"}, {"kind": "sorted"}]
    assert [(r["scope"]["length"], r["n"]) for r in parts(own, "length")] == [(3, 2), (4, 2)]


def test_places_are_counted_as_evaluation_counts_them():
    found = outcomes([1, 1], [1, 1])
    right = np.array([3, 3, 3, 4, 2])
    labels = np.stack([right, right])
    tokens = np.stack([labels, labels])
    tokens[1, :, 3] = 9  # the digit written last is wrong without the head
    changed = Outcomes(found.interventions, "loop", "free-running", tokens, labels, found.loss)
    for order, place in (("plain", 0), ("reversed", 3)):
        rows = ablation_rows(make_model(), changed, examples=addition([1, 2], [3, 4], order=order))
        wrong = [r["scope"]["place"] for r in select(rows, metric="place_accuracy_drop") if r["value"] == 1]
        assert wrong == [place]


@pytest.mark.parametrize(
    "value, interval, name, certain",
    [
        (0.2, [0.12, 0.3], "critical", True),
        (0.2, [0.05, 0.4], "critical", False),
        (0.05, [0.02, 0.09], "important", True),
        (0.001, [-0.002, 0.004], "not needed alone", True),
        (0.001, [-0.02, 0.03], "not needed alone", False),
    ],
)
def test_classes_are_certain_only_if_the_whole_interval_says_so(value, interval, name, certain):
    assert classify({"value": value, "interval": interval}) == {"class": name, "class_is_certain": certain}


def test_redundant_is_said_of_sets_alone():
    drop = {"value": 0.001, "interval": [-0.002, 0.004]}
    assert classify(drop, alone=False)["class"] == "redundant" and classify(drop)["class"] == "not needed alone"


@pytest.mark.parametrize("kind", ["own", "GPT-2", "T5"])
def test_sets_are_ablated_together_as_masks_would(kind):
    model = make_model() if kind == "own" else make_stock(kind)
    batch = make_inputs("encoder-decoder", 8) if kind == "own" else {"input_ids": ids(8, 6)}
    if kind != "own":
        batch["labels"] = ids(8, 4, seed=2) if kind == "T5" else batch["input_ids"]
    pattern = "decoder.*.self.*" if kind == "GPT-2" else "decoder.*.cross.*"
    chosen = [
        head for head in headcount.list_heads(model) if f".{pattern.split('.')[2]}." in head and "decoder" in head
    ]

    def metric(outputs, batch):
        return outputs.logits[:, 0, 7]

    rows = headcount.ablate(model, batch, metric, sets=[pattern, [chosen[0], "decoder.0.mlp"]])
    assert {(row["site"], row["size"]) for row in rows} == {
        (pattern, len(chosen)),
        (f"{chosen[0]} + decoder.0.mlp", 2),
    }
    (whole,) = [row for row in rows if row["site"] == pattern]
    with torch.no_grad():
        inputs = {name: value for name, value in batch.items() if name != "labels"}
        if model.config.is_encoder_decoder:
            inputs["decoder_input_ids"] = model.prepare_decoder_input_ids_from_labels(batch["labels"])
        before = metric(model(**inputs), batch)
        with headcount.mask_heads(model, chosen):
            after = metric(model(**inputs), batch)
    assert whole["value"] == pytest.approx(float((before - after).mean()), abs=1e-5)


def test_modes_side_by_side_say_where_they_disagree():
    model, examples = make_model(), random_addition(30)
    rows = headcount.ablate(model, examples.rows, mode=["zero", "mean", "resample"], sets=["decoder.*.cross.*"])
    drops = [row for row in rows if row["metric"] == "exact_match_drop"]
    assert [row["mode"] for row in drops] == ["zero", "mean", "resample"]
    assert all(isinstance(row["modes_disagree"], bool) for row in rows)
    assert not any("modes_disagree" in row for row in headcount.ablate(model, examples.rows)), (
        "one mode, nothing to say"
    )
    apart = [
        make_row(
            "ablation", "exact_match_drop", {"value": v, "n": 9, "interval": [v - 0.1, v + 0.1]}, head="a", mode=mode
        )
        for mode, v in (("zero", 0.0), ("mean", 0.15), ("resample", 0.5))
    ]
    assert [each["modes_disagree"] for each in say_where_modes_disagree(apart)] == [True] * 3
    assert [each["modes_disagree"] for each in say_where_modes_disagree(apart[:2])] == [False] * 2


def test_what_makes_no_sense_for_sets_is_one_sentence():
    model, batch = make_model(), make_inputs("encoder-decoder")
    with pytest.raises(ValueError, match="heads and sets are both given"):
        headcount.ablate(model, batch, heads=["encoder.0.self.0"], sets=["decoder.*"])
    with pytest.raises(ValueError, match="complements stand beside sets"):
        headcount.ablate(model, batch, complements=True)
    with pytest.raises(ValueError, match=r"mode=.* is not known; expected one or more of"):
        headcount.ablate(model, batch, mode=[])


def test_examples_give_the_rows_of_the_public_call():
    model, examples = make_model(), random_addition(20)
    rows = ablate_examples(model, examples)
    public = headcount.ablate(model, examples.rows)
    assert [r for r in rows if r["scope"] == {}] == public
