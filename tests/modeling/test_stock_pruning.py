"""Heads removed from transformers' own models: the output is the masked model's, and it survives saving."""

import pytest
import torch
from small_models import make_inputs, make_model
from stock_models import ARCHITECTURES, make_stock
from transformers import AutoModelForMaskedLM

import headcount
from headcount.modeling.stock.pruning_notes import saved_without


PRUNED = ["BERT", "RoBERTa", "DistilBERT", "ViT", "BART", "Marian", "T5", "GPT-2"]


def logits(model, inputs):
    with torch.no_grad():
        return model(**inputs).logits


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("name", PRUNED)
def test_pruned_is_masked_with_fewer_parameters_and_survives_saving(name, attention, tmp_path):
    model, inputs = make_stock(name, attention), ARCHITECTURES[name].inputs(3)
    heads = headcount.list_heads(model)
    removed = [head for head in heads if (head.layer + head.number) % 3 == 0]
    before = model.num_parameters()
    with headcount.mask_heads(model, removed):
        masked = logits(model, inputs)
    headcount.prune_heads(model, removed[:2])
    headcount.prune_heads(model, removed[2:])
    size = 32 * 8  # hidden size by head dimension: a head's share of each of four matrices
    biases = 0 if name == "T5" else 3 * 8
    assert before - model.num_parameters() == len(removed) * (4 * size + biases)
    assert headcount.list_heads(model) == [head for head in heads if head not in removed]
    torch.testing.assert_close(logits(model, inputs), masked, rtol=1e-5, atol=1e-5)

    headcount.save_pruned(model, tmp_path / "small")
    assert sorted(saved_without(tmp_path / "small")) == sorted(removed)
    loaded = headcount.load_pruned(tmp_path / "small", attn_implementation=attention).eval()
    assert type(loaded) is type(model) and headcount.list_heads(loaded) == headcount.list_heads(model)
    torch.testing.assert_close(logits(loaded, inputs), masked, rtol=1e-5, atol=1e-5)
    left = headcount.list_heads(loaded)[0]
    with headcount.mask_heads(loaded, [left]):
        again = logits(loaded, inputs)
    whole = make_stock(name, attention)
    with headcount.mask_heads(whole, [*removed, left]):
        torch.testing.assert_close(again, logits(whole, inputs), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["T5", "BART", "GPT-2"])
def test_pruned_models_generate(name):
    model, inputs = make_stock(name), {"input_ids": ARCHITECTURES[name].inputs(2)["input_ids"]}
    removed = [head for head in headcount.list_heads(model) if head.number == head.layer]
    options = {"max_new_tokens": 6, "num_beams": 2}
    with headcount.mask_heads(model, removed):
        masked = model.generate(**inputs, **options)
    headcount.prune_heads(model, removed)
    assert torch.equal(model.generate(**inputs, **options), masked)


DECODERS = {"BERT, decoder": ("BERT", {"is_decoder": True, "add_cross_attention": True})}
DECODERS["RoBERTa, decoder"] = ("RoBERTa", DECODERS["BERT, decoder"][1])
DECODERS["GPT-2, cross-attention"] = ("GPT-2", {"add_cross_attention": True})


@pytest.mark.parametrize("which", ["a layer of each kind", "all"])
@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("name", [*PRUNED, *DECODERS])
def test_a_layer_may_lose_all_its_heads_and_keeps_its_bias(name, attention, which, tmp_path):
    base, options = DECODERS.get(name, (name, {}))
    model, inputs = make_stock(base, attention, **options), ARCHITECTURES[base].inputs(3)
    if name in DECODERS:
        states = torch.randn(3, 6, 32, generator=torch.Generator().manual_seed(0))
        inputs["encoder_hidden_states"] = states
    heads = headcount.list_heads(model)
    removed = [head for head in heads if which == "all" or head.layer == 0] + heads[-1:]
    with headcount.mask_heads(model, removed):
        masked = logits(model, inputs)
    headcount.prune_heads(model, removed)
    headcount.prune_heads(model, removed)  # what is gone already stays gone
    left = [head for head in heads if head not in removed]
    assert headcount.list_heads(model) == left
    torch.testing.assert_close(logits(model, inputs), masked, rtol=1e-5, atol=1e-5)
    with headcount.mask_heads(model, left):
        nothing = logits(model, inputs)
    maps = headcount.attention_maps(model, inputs)
    assert [layer.shape[1] for layer in maps.values()].count(0) >= (1 if which != "all" else len(maps))

    headcount.save_pruned(model, tmp_path / "small")
    loaded = headcount.load_pruned(tmp_path / "small", attn_implementation=attention).eval()
    assert headcount.list_heads(loaded) == left and loaded.num_parameters() == model.num_parameters()
    torch.testing.assert_close(logits(loaded, inputs), masked, rtol=1e-5, atol=1e-5)
    whole = make_stock(base, attention, **options)
    with headcount.mask_heads(whole, heads):
        torch.testing.assert_close(nothing, logits(whole, inputs), rtol=1e-5, atol=1e-5)
    with headcount.mask_heads(loaded, torch.zeros(len(left))):
        torch.testing.assert_close(logits(loaded, inputs), nothing, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"num_beams": 2}, {"use_cache": False}, {"cache_implementation": "static"}])
@pytest.mark.parametrize("name", ["T5", "BART", "Marian", "GPT-2"])
def test_models_with_an_empty_layer_generate(name, options):
    model, inputs = make_stock(name), {"input_ids": ARCHITECTURES[name].inputs(2)["input_ids"]}
    removed = [head for head in headcount.list_heads(model) if head.layer == 0]
    options = {"max_new_tokens": 6, "do_sample": False, **options}
    with headcount.mask_heads(model, removed):
        masked = model.generate(**inputs, **options)
    headcount.prune_heads(model, removed)
    assert torch.equal(model.generate(**inputs, **options), masked)
    left = headcount.list_heads(model)[:1]
    whole = make_stock(name)
    with headcount.mask_heads(whole, [*removed, *left]), headcount.mask_heads(model, left):
        assert torch.equal(model.generate(**inputs, **options), whole.generate(**inputs, **options))


def test_a_model_with_an_empty_layer_trains():
    model, inputs = make_stock("BERT").train(), ARCHITECTURES["BERT"].inputs(3)
    headcount.prune_heads(model, [f"encoder.0.self.{number}" for number in range(4)])
    optimizer, losses = torch.optim.AdamW(model.parameters(), lr=1e-2), []
    for _ in range(15):
        loss = model(**inputs, labels=inputs["input_ids"]).loss
        losses.append(loss.item())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert losses[-1] < 0.7 * losses[0]
    assert model.bert.encoder.layer[0].attention.output.dense.bias.requires_grad


def test_own_models_are_pruned_saved_and_loaded_by_the_same_names(tmp_path):
    model, inputs = make_model("encoder"), make_inputs("encoder")
    headcount.prune_heads(model, ["encoder.1.self.2"])
    headcount.save_pruned(model, tmp_path / "own")
    loaded = headcount.load_pruned(tmp_path / "own").eval()
    torch.testing.assert_close(logits(loaded, inputs), logits(model, inputs))
    assert "encoder.1.self.2" not in headcount.list_heads(loaded)


def test_what_cannot_be_pruned_is_a_clear_error_and_changes_nothing(tmp_path):
    llama = make_stock("Llama")
    with pytest.raises(ValueError, match="LlamaForCausalLM has layers of the class LlamaAttention, whose heads"):
        headcount.prune_heads(llama, ["decoder.0.self.0"])
    bert = make_stock("BERT")
    before = bert.num_parameters()
    with pytest.raises(ValueError, match=r"'encoder.2.self.0' is not a head of this BertForMaskedLM"):
        headcount.prune_heads(bert, ["encoder.0.self.0", "encoder.2.self.0"])
    assert bert.num_parameters() == before
    headcount.prune_heads(bert, ["encoder.0.self.0"])
    with pytest.raises(ValueError, match="is not a head"):
        headcount.mask_heads(bert, ["encoder.0.self.0"]).__enter__()
    headcount.save_pruned(bert, tmp_path / "small")
    with pytest.raises(ValueError, match="is there already"):
        headcount.save_pruned(bert, tmp_path / "small")
    headcount.save_pruned(bert, tmp_path / "small", overwrite=True)
    with pytest.raises(ValueError, match=r"holds no config\.json"):
        headcount.load_pruned(tmp_path)
    with pytest.raises(RuntimeError, match=r"mismatch|size"):
        AutoModelForMaskedLM.from_pretrained(tmp_path / "small")
