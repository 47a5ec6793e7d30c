"""The engine against a plain loop of hooks, example by example: own models and transformers' own, every runner."""

import itertools

import numpy as np
import pytest
import torch
from hook_loop import intervened, outputs_of, parts
from small_models import make_inputs, make_model
from stock_models import ARCHITECTURES, make_stock
from transformers import GPT2Config, GPT2ForSequenceClassification

import headcount
from headcount.analysis.interventions.batches import partners
from headcount.analysis.interventions.finished_batches import data_hash, weights_hash
from headcount.analysis.interventions.intervention import Intervention, one_at_a_time
from headcount.analysis.interventions.sites import sites
from headcount.analysis.interventions.sweep import RUNNERS, sweep


MODELS = {
    "encoder-decoder": {"architecture": "encoder-decoder"},
    "post-norm, cross positions": {
        "architecture": "encoder-decoder",
        "norm_position": "post",
        "position_embedding_type": "t5_bias",
        "cross_attention_positions": True,
    },
    "three decoder layers, sdpa": {"architecture": "encoder-decoder", "decoder_layers": 3, "attention": "sdpa"},
    "pruned": {"architecture": "encoder-decoder", "pruned_heads": {"encoder.0.self": [1], "decoder.1.cross": [0, 2]}},
    "a layer without heads": {"architecture": "encoder-decoder", "pruned_heads": {"encoder.1.self": [0, 1, 2, 3]}},
    "decoder, rotary": {"architecture": "decoder", "position_embedding_type": "rotary"},
    "decoder, log_n": {"architecture": "decoder", "attention_normalizer": "log_n"},
    "encoder, alibi": {"architecture": "encoder", "position_embedding_type": "alibi"},
    "shared keys and values, gated, rms": {
        "architecture": "encoder-decoder",
        "num_key_value_heads": 2,
        "feed_forward_type": "gated",
        "norm_type": "rms",
    },
    "decoder, shared keys and values, pruned": {
        "architecture": "decoder",
        "position_embedding_type": "rotary",
        "num_key_value_heads": 2,
        "pruned_heads": {"decoder.0.self": [1], "decoder.1.self": [2, 3]},
    },
    "encoder, window": {"architecture": "encoder", "position_embedding_type": "rotary", "attention_window": 2},
}
STOCK = ("BERT", "GPT-2", "Llama", "T5")


class EvenTokens:
    """Roles for tests: `even` and `odd` tokens by their id, `slot(i)` by their place."""

    def __init__(self, ids):
        self.ids = ids.numpy()

    def where(self, name, index=None):
        slots = np.broadcast_to(np.arange(self.ids.shape[1]), self.ids.shape)
        if name == "position":  # the engine knows it by itself; here it is counted by hand
            return slots == index % self.ids.shape[1]
        found = {"even": self.ids % 2 == 0, "odd": self.ids % 2 == 1, "slot": slots >= 0}[name]
        return found if index is None else found & (slots == index)


def build(name):
    options = dict(MODELS[name])
    return make_model(options.pop("architecture"), **options)


def interventions_of(model, replacement):
    """Every site alone, sets across layers and stacks, gates between and beyond, and roles."""
    every = sites(model)
    heads = [site for site in every if site.head is not None]
    found = [each for each in one_at_a_time(every, replacement) if each.sites]
    found += [
        Intervention([heads[0], heads[-1]], 0.0, replacement),
        Intervention([heads[2], heads[3]], {heads[2]: 0.3, heads[3]: 1.7}, replacement),
        Intervention([every[0], *(site for site in every if site.kind == "mlp")], 0.5, replacement),
        Intervention([site.at("even") for site in every if site.layer == 0], 0.25, replacement),
        Intervention([heads[-1].at("slot", 2), heads[-1].at("slot", 3), every[-1].at("odd")], 0.0, replacement),
        Intervention([heads[0]], 0.0, replacement, frozen=[site for site in every if site.kind == "mlp"]),
        Intervention([every[1]], 0.0, replacement, frozen=[heads[-1].at("even")]),
        Intervention([heads[1].at("position", 1), every[-1].at("position", -1)], 0.0, replacement),
        *(Intervention([s.at("position", 2)], 0.0, replacement) for s in every if s.kind == "residual"),
    ]
    return found


def reference(model, batch, source, intervention, roles, partner, sites_used):
    """Logits of one intervention by hooks; replacements are computed here, from recorded outputs."""
    places = {site: site.partition("@")[0] for site in intervention.touched}
    inputs = called_with(model, batch)
    replaced = dict.fromkeys(intervention.sites, 0.0)
    if intervention.replacement != "zero":
        recorded = outputs_of(model, called_with(model, source), sites_used) if source is not None else None
        own = recorded if intervention.replacement == "source" else outputs_of(model, inputs, sites_used)
        for site in intervention.sites:
            place = places[site]
            replaced[site] = {
                "source": lambda place=place: own[place],
                "mean": lambda place=place: own[place].mean(0, keepdim=True),
                "resample": lambda place=place: own[place][partner],
            }[intervention.replacement]()
    if intervention.frozen:
        intact = outputs_of(model, inputs, sites_used)
        replaced |= {site: intact[places[site]] for site in intervention.frozen}
    tokens = {}
    for site in intervention.touched:
        stack, _, _, _, role, index = parts(site)
        if role is not None:
            side = "answer" if stack == "decoder" and model.config.is_encoder_decoder else "input"
            tokens[site] = torch.from_numpy(roles[side].where(role, index))
    gates = {site: intervention.gate_of(site) for site in intervention.touched}
    return intervened(model, inputs, gates, replaced, tokens).logits


def called_with(model, batch):
    inputs = {name: value for name, value in batch.items() if name != "labels"}
    if model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = model.prepare_decoder_input_ids_from_labels(batch["labels"])
    return inputs


def scored(model, logits, labels, contrasts):
    """Argmax (B, T), summed loss (B,), and logits of labels minus those of their contrasts (B, T), by hand."""
    if labels.ndim == 1:
        logits, labels, contrasts = logits[:, None], labels[:, None], contrasts[:, None]
    elif not model.config.is_encoder_decoder and "MaskedLM" not in type(model).__name__:
        logits, labels, contrasts = logits[:, :-1], labels[:, 1:], contrasts[:, 1:]
    loss = torch.nn.functional.cross_entropy(logits.transpose(1, 2), labels, reduction="none").sum(-1)
    picked = [logits.gather(-1, each[..., None])[..., 0] for each in (labels, contrasts)]
    return logits.argmax(-1), loss, picked[0] - picked[1]


def agree(model, batch, source, replacement, runner):
    roles = {"input": EvenTokens(batch["input_ids"])}
    if batch["labels"].ndim == 2:
        roles["answer"] = EvenTokens(batch["labels"])
    wanted = interventions_of(model, replacement)
    sources = source if replacement == "source" else None
    contrasts = (batch["labels"] + 1) % 2 if batch["labels"].ndim == 1 else batch["labels"].flip(0)
    outcomes = sweep(model, batch, wanted, roles=roles, sources=sources, contrasts=contrasts, runner=runner, seed=3)
    assert outcomes.interventions[1:] == wanted and not outcomes.interventions[0].sites
    partner = partners(batch, 3)
    assert sorted(partner.tolist()) == list(range(len(partner))) and (partner != torch.arange(len(partner))).all()
    changed = 0
    for version, each in enumerate(outcomes.interventions):
        logits = reference(model, batch, sources, each, roles, partner, sites(model))
        best, loss, margins = scored(model, logits, batch["labels"], contrasts)
        assert outcomes.loss[version] == pytest.approx(loss.numpy(), rel=1e-4, abs=1e-4), each.name
        assert np.array_equal(outcomes.tokens[version], best), each.name
        assert outcomes.margins[version] == pytest.approx(margins.numpy(), rel=1e-3, abs=1e-4), each.name
        changed += bool((outcomes.loss[version] != outcomes.loss[0]).any())
    assert changed == len(wanted), "an intervention had no effect"
    return outcomes


@pytest.mark.parametrize("replacement", ["zero", "mean", "resample", "source"])
@pytest.mark.parametrize("name", MODELS)
def test_shared_states_equal_the_loop_of_hooks(name, replacement):
    model = build(name)
    architecture = model.config.architecture
    batch, source = make_inputs(architecture, batch=5), make_inputs(architecture, batch=5, seed=7)
    outcomes = agree(model, batch, source, replacement, None)
    assert outcomes.runner == "shared_states"


@pytest.mark.parametrize("replacement", ["zero", "mean", "resample", "source"])
@pytest.mark.parametrize("runner", [name for name in RUNNERS if name != "shared_states"])
@pytest.mark.parametrize(
    "name", ["encoder-decoder", "decoder, rotary", "encoder, alibi", "shared keys and values, gated, rms"]
)
def test_own_models_give_the_same_by_every_runner(name, runner, replacement):
    model = build(name)
    architecture = model.config.architecture
    batch, source = make_inputs(architecture, batch=4), make_inputs(architecture, batch=4, seed=7)
    outcomes = agree(model, batch, source, replacement, runner)
    assert outcomes.runner == runner
    assert outcomes.decoding == (None if architecture == "encoder" else "free-running")


def stock_batch(name, seed=0):
    batch = {"input_ids": torch.randint(3, 40, (4, 9), generator=torch.Generator().manual_seed(seed))}
    labels = torch.randint(3, 40, (4, 5), generator=torch.Generator().manual_seed(seed + 1))
    return {**batch, "labels": labels if name == "T5" else batch["input_ids"].flip(1)}


@pytest.mark.parametrize("replacement", ["zero", "mean", "resample", "source"])
@pytest.mark.parametrize("runner", [name for name in RUNNERS if name != "shared_states"])
@pytest.mark.parametrize("name", STOCK)
def test_stock_models_give_the_same_by_every_runner(name, runner, replacement):
    model = make_stock(name)
    outcomes = agree(model, stock_batch(name), stock_batch(name, seed=7), replacement, runner)
    assert outcomes.runner == runner and outcomes.decoding == "teacher-forced"


@pytest.mark.parametrize("side", ["left", "right"])
def test_positions_are_counted_without_padding_and_from_both_ends(side):
    model, lengths = make_stock("GPT-2"), (9, 5, 7)
    ids = torch.randint(3, 40, (3, 9), generator=torch.Generator().manual_seed(0))
    mask = torch.tensor([[1] * n + [0] * (9 - n) if side == "right" else [0] * (9 - n) + [1] * n for n in lengths])
    batch = {"input_ids": ids, "attention_mask": mask}

    def size(outputs, batch):
        return (outputs.logits.square().mean(-1) * batch["attention_mask"]).sum(-1)

    wanted = [Intervention([f"decoder.0.residual@position({index})"]) for index in (2, -1, -5)]
    found = sweep(model, batch, wanted, size)
    for version, index in enumerate((2, -1, -5), start=1):
        places = [(0 if side == "right" else 9 - n) + index % n for n in lengths]
        tokens = torch.nn.functional.one_hot(torch.tensor(places), 9).bool()
        site = wanted[version - 1].sites[0]
        outputs = intervened(model, batch, {site: 0.0}, {site: 0.0}, {site: tokens})
        assert found.values[version] == pytest.approx(size(outputs, batch).numpy(), rel=1e-4)
    with pytest.raises(ValueError, match=r"@position\(5\) is not there: a row has 5 tokens and none at position 5"):
        sweep(model, batch, [Intervention(["decoder.0.mlp@position(5)"])], size)
    with pytest.raises(ValueError, match=r"@position\(-6\) is not there: a row has 5 tokens"):
        sweep(model, batch, [Intervention(["decoder.0.mlp@position(-6)"])], size)
    vision = make_stock("ViT")
    with pytest.raises(ValueError, match="has pixel_values, so its tokens cannot be counted; expected input_ids or"):
        sweep(
            vision,
            ARCHITECTURES["ViT"].inputs(2),
            [Intervention(["encoder.0.mlp@position(0)"])],
            lambda outputs, batch: outputs.logits.sum(-1),
        )


@pytest.mark.parametrize("name", ["GPT-2", "BERT", "T5", "BART", "GPT-NeoX", "OPT", "Qwen3", "Gemma", "ViT"])
def test_the_residual_after_the_last_layer_from_a_source_gives_the_outputs_of_the_source(name):
    model, batch = make_stock(name), ARCHITECTURES[name].inputs(3)
    source = {n: v if "mask" in n else v.flip(-1) for n, v in batch.items()}
    last = [site for site in sites(model) if site.kind == "residual"][-1]

    def size(outputs, batch):
        return outputs.logits.flatten(1).square().mean(-1)

    found = sweep(model, batch, [Intervention([last], 0.0, "source")], size, sources=source)
    with torch.no_grad():
        assert found.values[1] == pytest.approx(size(model(**source), source).numpy(), rel=1e-4)
    assert found.values[0] != pytest.approx(found.values[1], rel=1e-4)


def test_layers_that_do_not_put_out_the_stream_are_found_out():
    batch = ARCHITECTURES["GPT-2"].inputs(3)

    def size(outputs, batch):
        return outputs.logits.square().mean((1, 2))

    deaf = make_stock("GPT-2")
    deaf.transformer.h[1].register_forward_pre_hook(lambda module, inputs: (torch.ones_like(inputs[0]), *inputs[1:]))
    with pytest.raises(RuntimeError, match=r"gives the same outputs with decoder.0.residual masked; expected a chang"):
        sweep(deaf, batch, [Intervention(["decoder.0.residual"]), Intervention(["decoder.1.residual"])], size)
    restless, calls = make_stock("GPT-2"), []
    restless.transformer.h[1].register_forward_pre_hook(
        lambda module, inputs: calls.append(1) or (inputs[0] * (1 + 0.1 * (len(calls) > 4)), *inputs[1:])
    )
    with pytest.raises(RuntimeError, match="residual replaced by themselves; expected layers that put out"):
        sweep(restless, batch, [Intervention(["decoder.0.residual"])], size)


def test_different_replacements_go_in_one_sweep():
    model, batch, source = make_model(), make_inputs("encoder-decoder", 4), make_inputs("encoder-decoder", 4, seed=7)
    mixed = [
        Intervention([place], 0.0, kind)
        for place in ("encoder.0.self.1", "decoder.1.mlp", "decoder.0.residual")
        for kind in ("zero", "mean", "resample", "source")
    ]
    found = {name: sweep(model, batch, mixed, sources=source, runner=name) for name in RUNNERS}
    for number, each in enumerate(mixed, start=1):
        alone = sweep(model, batch, [each], sources=source if each.replacement == "source" else None, runner="loop")
        for name, outcomes in found.items():
            assert outcomes.loss[number] == pytest.approx(alone.loss[1], rel=1e-4), (name, each)
            assert np.array_equal(outcomes.tokens[number], alone.tokens[1])


@pytest.mark.parametrize("replacement", ["zero", "mean", "resample"])
@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder", "encoder"])
def test_padded_rows_and_several_batches_give_the_same_by_every_runner(architecture, replacement):
    model = make_model(architecture, position_embedding_type="sinusoidal")
    batches = [make_inputs(architecture, batch=3, length=length, seed=length) for length in (9, 6)]
    padded = make_inputs(architecture, batch=4, padding="right")
    padded = {name: value.repeat(2, *[1] * (value.ndim - 1)) for name, value in padded.items()}  # a partner for each
    padded["input_ids"][4:] = torch.where(padded["input_ids"][4:] > 0, 5, 0)
    if architecture == "encoder-decoder":
        padded["labels"][[1, 5], 4:] = -100
    batches = [{"attention_mask": torch.ones_like(batch["input_ids"]), **batch} for batch in batches] + [padded]
    wanted = list(one_at_a_time(sites(model), replacement))
    suited = [name for name in RUNNERS if (architecture, name) != ("encoder", "prefix_reuse")]  # it pools by the mask
    found = {name: sweep(model, batches, wanted, runner=name) for name in suited}
    for name, outcomes in found.items():
        assert np.array_equal(outcomes.tokens, found["loop"].tokens), name
        assert outcomes.loss == pytest.approx(found["loop"].loss, rel=1e-3, abs=1e-4), name
    if replacement == "zero":
        for row in range(8):
            alone = {name: values[row : row + 1] for name, values in padded.items()}
            one = sweep(model, alone, wanted)
            assert one.loss[:, 0] == pytest.approx(found["loop"].loss[:, 6 + row], rel=1e-3, abs=1e-4)


def test_small_portions_give_the_same(monkeypatch):
    model, rows = make_model("encoder-decoder"), make_inputs("encoder-decoder", batch=50)
    wanted = interventions_of(model, "mean")
    roles = {"input": EvenTokens(rows["input_ids"]), "answer": EvenTokens(rows["labels"])}
    whole = sweep(model, rows, wanted, roles=roles)
    monkeypatch.setattr("headcount.analysis.interventions.shared_states.TOKENS_AT_ONCE", 100)
    monkeypatch.setattr("headcount.analysis.interventions.shared_states.FEWEST_ROWS", 7)
    calls = []
    parts = sweep(model, rows, wanted, roles=roles, progress=lambda done, total: calls.append((done, total)))
    assert np.array_equal(whole.tokens, parts.tokens)
    assert whole.loss == pytest.approx(parts.loss, rel=1e-4)
    total = 50 * len(whole.interventions)
    assert calls[-1] == (total, total) and len(calls) > 20


def test_exact_match_is_what_generation_with_the_head_masked_gives_example_by_example():
    model = make_model("encoder-decoder")
    model.generation_config.eos_token_id = None  # random models end anywhere; compare six tokens
    inputs = make_inputs("encoder-decoder", batch=40)["input_ids"]

    def written(**masks):
        return model.generate(inputs, max_new_tokens=6, do_sample=False, **masks)[:, 1:]

    rows = {"input_ids": inputs, "labels": written()}
    outcomes = sweep(model, rows, one_at_a_time(model.list_heads()))
    assert outcomes.right[0].all()
    rates = []
    for head, right in zip(model.list_heads(), outcomes.right[1:], strict=True):
        expected = (written(**model.head_mask_for([head])) == rows["labels"]).all(-1)
        assert np.array_equal(right, expected.numpy()), head
        rates.append(right.mean())
    assert 0 < np.mean(rates) < 1, "the heads of this model make no difference, so the test says nothing"


@pytest.mark.parametrize("runner", RUNNERS)
def test_cross_attention_of_the_source_makes_the_decoder_see_the_source(runner):
    """The encoder reaches the decoder through the cross-attention heads alone, so replacing all of them is exact."""
    model = make_model("encoder-decoder")
    base, source = make_inputs("encoder-decoder", seed=1), make_inputs("encoder-decoder", seed=2)
    base["labels"] = source["labels"]
    expected = sweep(model, source, [])
    last = len(model.base_model.encoder.layers) - 1
    for every in (
        [head for head in model.list_heads() if ".cross." in head],
        [f"encoder.{last}.residual"],
    ):
        patched = sweep(model, base, [Intervention(every, 0.0, "source")], sources=source, runner=runner)
        assert np.array_equal(patched.tokens[1], expected.tokens[0])
        assert patched.loss[1] == pytest.approx(expected.loss[0], rel=1e-4)
        assert not np.array_equal(patched.loss[0], patched.loss[1])


def test_one_batch_a_tensor_a_list_and_a_loader_are_all_accepted():
    model, batch = make_stock("BERT"), ARCHITECTURES["BERT"].inputs(4)

    def size(outputs, batch):
        return outputs.logits.float().square().mean((1, 2))

    wanted = list(one_at_a_time(headcount.list_heads(model)[:2]))
    plain = {"input_ids": batch["input_ids"]}
    values = sweep(model, plain, wanted, size).values
    loader = torch.utils.data.DataLoader([{"input_ids": row} for row in batch["input_ids"]], batch_size=2)
    for same in (batch["input_ids"], [plain], [batch["input_ids"][:2], batch["input_ids"][2:]], loader):
        assert sweep(model, same, wanted, size).values == pytest.approx(values, rel=1e-4)
    with pytest.raises(ValueError, match="there are no batches; expected at least one"):
        sweep(model, [], wanted, size)
    with pytest.raises(TypeError, match="a batch is a int; expected the model's inputs by name"):
        sweep(model, [3], wanted, size)
    with pytest.raises(TypeError, match="batches is a NoneType; expected a batch, a list of batches or a DataLoader"):
        sweep(model, None, wanted, size)
    with pytest.raises(ValueError, match=r"shape \(9,\); expected input ids \(batch, tokens\)"):
        sweep(model, batch["input_ids"][0], wanted, size)


def test_what_looks_at_the_batch_again_after_the_last_layer_is_folded_instead():
    torch.manual_seed(0)
    model = GPT2ForSequenceClassification(GPT2Config(**ARCHITECTURES["GPT-2"].options, num_labels=3)).eval()
    batch = {**ARCHITECTURES["GPT-2"].inputs(4), "labels": torch.tensor([0, 1, 2, 0])}
    wanted = list(one_at_a_time(sites(model)))
    found, loop = sweep(model, batch, wanted), sweep(model, batch, wanted, runner="loop")
    assert found.runner in ("folding", "loop") and "prefix_reuse does not suit" in found.notes[0]
    assert found.loss == pytest.approx(loop.loss, rel=1e-3, abs=1e-5)
    with pytest.raises(ValueError, match="prefix_reuse does not suit GPT2ForSequenceClassification"):
        sweep(model, batch, wanted, runner="prefix_reuse")


def test_every_group_of_the_first_batch_is_compared_with_the_loop():
    """A first layer that goes wrong in larger batches spoils only the group that grows there."""
    model, batch = make_stock("BERT"), ARCHITECTURES["BERT"].inputs(3)

    def spoil(module, inputs, output):
        return output + 0.1 * (len(output) > 3)

    hook = model.bert.encoder.layer[0].output.register_forward_hook(spoil)
    wanted = list(one_at_a_time(headcount.list_heads(model)))
    found = sweep(model, batch, wanted, lambda outputs, batch: outputs.logits.square().mean((1, 2)))
    assert found.runner == "loop" and len(found.notes) == 2
    hook.remove()
    again = sweep(model, batch, wanted, lambda outputs, batch: outputs.logits.square().mean((1, 2)))
    assert again.runner == "prefix_reuse" and found.values == pytest.approx(again.values, rel=1e-4)


def test_a_model_that_does_not_answer_to_its_gates_is_found_out():
    batch = ARCHITECTURES["BERT"].inputs(3)

    def size(outputs, batch):
        return outputs.logits.square().mean((1, 2))

    deaf = make_stock("BERT")
    for layer in deaf.bert.encoder.layer:
        torch.nn.init.zeros_(layer.attention.output.dense.weight)
        torch.nn.init.zeros_(layer.output.dense.weight)
    with pytest.raises(RuntimeError, match="gives the same outputs with heads masked; expected a change"):
        sweep(deaf, batch, [Intervention(["encoder.0.self.0"])], size)
    for layer in deaf.bert.encoder.layer:
        torch.nn.init.zeros_(layer.output.dense.bias)
    with pytest.raises(RuntimeError, match="gives the same outputs with sublayers masked; expected a change"):
        sweep(deaf, batch, [Intervention(["encoder.0.mlp"])], size)
    restless = make_stock("BERT")
    calls = itertools.count()  # random numbers are drawn alike in every pass
    restless.bert.encoder.layer[1].register_forward_hook(lambda module, inputs, output: output + next(calls))
    with pytest.raises(RuntimeError, match="gives another logits through the attention interface"):
        sweep(restless, batch, [Intervention(["encoder.0.self.0"])], size)


def test_a_stopped_sweep_goes_on_and_another_one_is_refused(tmp_path):
    model, batches = make_stock("T5"), [stock_batch("T5", seed) for seed in range(3)]
    wanted = list(one_at_a_time(sites(model)[:3]))
    seen = []

    def stop(done, total):
        seen.append((done, total))
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(model, batches, wanted, resume=tmp_path / "sweep", progress=stop)
    found = sweep(model, batches, wanted, resume=tmp_path / "sweep")
    whole = sweep(model, batches, wanted)
    assert np.array_equal(found.loss, whole.loss) and found.runner == whole.runner == "prefix_reuse"
    for options, changed in (({"seed": 1}, "seed"), ({"metric": lambda outputs, batch: 0}, "metric")):
        with pytest.raises(ValueError, match=f"holds a sweep with another {changed}"):
            sweep(model, batches, wanted, resume=tmp_path / "sweep", **options)
    with pytest.raises(ValueError, match="holds a sweep with another replacement"):
        sweep(model, batches, list(one_at_a_time(sites(model)[:3], "mean")), resume=tmp_path / "sweep")
    with pytest.raises(ValueError, match="holds a sweep with another data"):
        sweep(model, batches[:2], wanted, resume=tmp_path / "sweep")
    (tmp_path / "sweep" / "sweep.json").unlink()
    with pytest.raises(ValueError, match=r"holds batches without sweep\.json"):
        sweep(model, batches, wanted, resume=tmp_path / "sweep")


def test_a_sweep_knows_its_data_and_its_model_by_their_content():
    long = np.arange(5000)
    changed = long.copy()
    changed[2500] = 0
    assert str(long) == str(changed) and data_hash([{"ids": long}]) != data_hash([{"ids": changed}])
    assert data_hash([{"ids": torch.zeros(2, 3)}]) != data_hash([{"ids": torch.zeros(3, 2)}])
    first, second = make_stock("GPT-2"), make_stock("GPT-2")
    second.load_state_dict(first.state_dict())
    assert weights_hash(first) == weights_hash(second)
    second.config.activation_function = "relu"
    assert weights_hash(first) != weights_hash(second)


def test_the_model_is_left_as_it_was():
    model, rows = make_model("encoder-decoder"), make_inputs("encoder-decoder")
    model.train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    for runner in RUNNERS:
        sweep(model, rows, one_at_a_time(sites(model)), runner=runner)
    assert model.training
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_free_running_is_said_only_where_one_pass_decides_it():
    model, rows = make_model("encoder-decoder"), make_inputs("encoder-decoder")
    assert {sweep(model, rows, [], runner=runner).decoding for runner in RUNNERS} == {"free-running"}
    rows["labels"][0, 2] = -100  # what stands there is not judged, but read
    assert {sweep(model, rows, [], runner=runner).decoding for runner in RUNNERS} == {"teacher-forced"}
    assert sweep(make_model("encoder"), make_inputs("encoder"), []).decoding is None
    assert sweep(make_stock("T5"), stock_batch("T5"), []).decoding == "teacher-forced"


def test_wrong_arguments_are_one_clear_sentence():
    model, rows = make_model("encoder-decoder"), make_inputs("encoder-decoder")
    with pytest.raises(ValueError, match=r"'encoder.9.self.0' is not a head of this HeadcountForConditional"):
        sweep(model, rows, [Intervention(["encoder.9.self.0"])])
    with pytest.raises(ValueError, match=r"'encoder.9.mlp' is not a site of this HeadcountFor.*Did you mean"):
        sweep(model, rows, [Intervention(["encoder.9.mlp"])])
    with pytest.raises(ValueError, match="sources and replacement='source' belong together; expected sources too"):
        sweep(model, rows, [Intervention(["encoder.0.mlp"], 0.0, "source")])
    with pytest.raises(ValueError, match="expected an intervention with replacement='source' too"):
        sweep(model, rows, [], sources=rows)
    with pytest.raises(ValueError, match="expected one of the same length for each"):
        sweep(model, rows, [Intervention(["encoder.0.mlp"], 0.0, "source")], sources=make_inputs("decoder", length=7))
    with pytest.raises(ValueError, match="a site names a role, but roles were not given"):
        sweep(model, rows, [Intervention(["encoder.0.mlp@first"])])
    with pytest.raises(ValueError, match="runner='magic' is not known; expected one of shared_states, prefix_reuse"):
        sweep(model, rows, [], runner="magic")
    with pytest.raises(TypeError, match="an intervention is a str"):
        sweep(model, rows, ["encoder.0.mlp"])
    with pytest.raises(ValueError, match="none to resample from"):
        sweep(model, {n: v[:1] for n, v in rows.items()}, [Intervention(["encoder.0.mlp"], 0.0, "resample")])
    with pytest.raises(ValueError, match="does not suit: attention_mask hides tokens before others"):
        sweep(model, make_inputs("encoder-decoder", padding="left"), [], runner="shared_states")
    assert sweep(model, make_inputs("encoder-decoder", padding="left"), []).runner == "prefix_reuse"
    model.prune_heads(["encoder.0.self.0"])
    with pytest.raises(ValueError, match=r"'encoder.0.self.0' is not a head of this"):
        sweep(model, rows, [Intervention(["encoder.0.self.0"])])
    with pytest.raises(ValueError, match="need the model's own forward"):
        sweep(model, rows, [Intervention(["encoder.0.mlp"], 0.0, "mean")], run=lambda model, batch: None)


def test_rows_that_are_not_examples_have_no_partners():
    batch = {"input_ids": torch.ones(12, 5, dtype=torch.long), "attention_mask": torch.ones(3, 5, dtype=torch.long)}
    with pytest.raises(ValueError, match="attention_mask has 3 rows where the batch has 12"):
        partners(batch, 0)
