"""Heads removed from transformers' own models: the output is the masked model's, and nothing is half removed."""

import copy

import pytest
import torch
from small_models import make_inputs, make_model
from stock_models import ARCHITECTURES, FURTHER, MASKED, float_outputs, make_stock
from torch import nn
from transformers import StableLmConfig, StableLmForCausalLM
from transformers.pytorch_utils import Conv1D

import headcount
from headcount.modeling.stock.finding import attention_layers
from headcount.modeling.stock.pruning_notes import saved_without


EVERY = ARCHITECTURES | FURTHER
PRUNED = [*MASKED, *FURTHER]
DECODERS = [name for name in PRUNED if EVERY[name].stacks == "decoder"]
GROUPED = ["Llama", "Qwen3", "Phi-3", "gpt-oss", "GLM", "Cohere", "StarCoder2"]  # 4 heads, 2 of keys and values


def outputs(model, inputs):
    with torch.no_grad():
        return float_outputs(model(**inputs))


def same(found, wanted):
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def masked_outputs(model, inputs, heads):
    with headcount.mask_heads(model, heads):
        return outputs(model, inputs)


def state_of(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


@pytest.mark.parametrize("name", PRUNED)
def test_pruned_is_masked_with_fewer_parameters_and_survives_saving(name, tmp_path):
    model, inputs = make_stock(name), EVERY[name].inputs(3)
    heads = headcount.list_heads(model)
    removed = [head for head in heads if (head.layer + head.number) % 3 == 0]
    before, plain = model.num_parameters(), outputs(model, inputs)
    masked = masked_outputs(model, inputs, removed)
    assert any((one - other).abs().max() > 1e-4 for one, other in zip(plain, masked, strict=True))
    headcount.prune_heads(model, removed[:2])
    headcount.prune_heads(model, removed[2:])
    assert before - model.num_parameters() >= len(removed) * 2 * 16 * 4
    assert headcount.list_heads(model) == [head for head in heads if head not in removed]
    same(outputs(model, inputs), masked)

    headcount.save_pruned(model, tmp_path / "small")
    assert sorted(saved_without(tmp_path / "small")) == sorted(removed)
    attention = model.config._attn_implementation
    loaded = headcount.load_pruned(tmp_path / "small", attn_implementation=attention).eval()
    assert type(loaded) is type(model) and headcount.list_heads(loaded) == headcount.list_heads(model)
    same(outputs(loaded, inputs), masked)
    left = headcount.list_heads(loaded)[0]
    whole = make_stock(name)
    same(masked_outputs(loaded, inputs, [left]), masked_outputs(whole, inputs, [*removed, left]))


@pytest.mark.parametrize("name", ["BERT", "T5", "GPT-2", "Llama", "GPT-NeoX", "Phi-3"])
def test_pruned_is_masked_when_attention_goes_step_by_step(name):
    model, inputs = make_stock(name, "eager"), EVERY[name].inputs(3)
    removed = [head for head in headcount.list_heads(model) if (head.layer + head.number) % 3 == 0]
    masked = masked_outputs(model, inputs, removed)
    headcount.prune_heads(model, removed)
    same(outputs(model, inputs), masked)
    model.set_attn_implementation("sdpa")  # the model's own ways to switch go on working
    same(outputs(model, inputs), masked)


@pytest.mark.parametrize("name", ["BERT", "GPT-2", "ViT", "T5"])
def test_a_head_takes_its_share_of_four_matrices_along(name):
    model = make_stock(name)
    before = model.num_parameters()
    headcount.prune_heads(model, headcount.list_heads(model)[1:3])
    size = 32 * 8  # hidden size by head dimension
    assert before - model.num_parameters() == 2 * (4 * size + (0 if name == "T5" else 3 * 8))


@pytest.mark.parametrize("numbers", [[0], [0, 1], [1, 2], [0, 1, 2], [3]])
@pytest.mark.parametrize("name", GROUPED)
def test_heads_of_a_group_go_together_or_one_by_one(name, numbers):
    model, inputs = make_stock(name), EVERY[name].inputs(3)
    removed = [(1, number) for number in numbers]
    masked = masked_outputs(model, inputs, removed)
    parts = 4 if {0, 1} <= {*numbers} else 2  # keys and values go with the last query that reads them
    before = model.num_parameters()
    headcount.prune_heads(model, removed)
    same(outputs(model, inputs), masked)
    gone = before - model.num_parameters()
    assert gone >= 2 * 8 * 32 * len(numbers) + (2 * 8 * 32 if parts == 4 else 0)
    assert gone < 2 * 8 * 32 * (len(numbers) + (1.5 if parts == 4 else 0.5))


@pytest.mark.parametrize("name", ["Llama", "Phi-3"])
def test_uneven_groups_become_even_again(name):
    model, inputs = make_stock(name, num_attention_heads=8, head_dim=4), EVERY[name].inputs(3)
    whole = copy.deepcopy(model)
    gone = []
    for number in (7, 3, 0, 1, 2, 5, 6, 4):
        gone.append((0, number))
        headcount.prune_heads(model, [(0, number)])
        same(outputs(model, inputs), masked_outputs(whole, inputs, gone))


@pytest.mark.parametrize("name", ["T5", "BART", *DECODERS])
def test_pruned_models_generate(name):
    model, inputs = make_stock(name), {"input_ids": EVERY[name].inputs(2)["input_ids"]}
    removed = [head for head in headcount.list_heads(model) if head.number == head.layer]
    options = {"max_new_tokens": 6, "num_beams": 2}
    with headcount.mask_heads(model, removed):
        masked = model.generate(**inputs, **options)
    headcount.prune_heads(model, removed)
    assert torch.equal(model.generate(**inputs, **options), masked)


AS_DECODERS = {"BERT, decoder": ("BERT", {"is_decoder": True, "add_cross_attention": True})}
AS_DECODERS["RoBERTa, decoder"] = ("RoBERTa", AS_DECODERS["BERT, decoder"][1])
AS_DECODERS["GPT-2, cross-attention"] = ("GPT-2", {"add_cross_attention": True})


@pytest.mark.parametrize("which", ["a layer of each kind", "all"])
@pytest.mark.parametrize("name", [*PRUNED, *AS_DECODERS])
def test_a_layer_may_lose_all_its_heads_and_keeps_its_bias(name, which, tmp_path):
    base, options = AS_DECODERS.get(name, (name, {}))
    model, inputs = make_stock(base, **options), EVERY[base].inputs(3)
    attention = model.config._attn_implementation
    if name in AS_DECODERS:
        states = torch.randn(3, 6, 32, generator=torch.Generator().manual_seed(0))
        inputs["encoder_hidden_states"] = states
    whole = copy.deepcopy(model)
    heads = headcount.list_heads(model)
    removed = [head for head in heads if which == "all" or head.layer == 0] + heads[-1:]
    masked = masked_outputs(model, inputs, removed)
    headcount.prune_heads(model, removed)
    headcount.prune_heads(model, removed)  # what is gone already stays gone
    left = [head for head in heads if head not in removed]
    assert headcount.list_heads(model) == left
    same(outputs(model, inputs), masked)
    nothing = masked_outputs(model, inputs, left)
    maps = headcount.attention_maps(model, inputs, every_call=True)
    assert [calls[0].shape[1] for calls in maps.values()].count(0) >= (1 if which != "all" else len(maps))

    headcount.save_pruned(model, tmp_path / "small")
    loaded = headcount.load_pruned(tmp_path / "small", attn_implementation=attention).eval()
    assert headcount.list_heads(loaded) == left and loaded.num_parameters() == model.num_parameters()
    same(outputs(loaded, inputs), masked)
    same(nothing, masked_outputs(whole, inputs, heads))
    same(masked_outputs(loaded, inputs, torch.zeros(len(left))), nothing)


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


@pytest.mark.parametrize("name", ["Llama", "GPT-NeoX", "Phi-3", "GPT-2", "T5"])
def test_what_is_left_trains_and_adapters_find_plain_projections(name):
    model, inputs = make_stock(name).train(), EVERY[name].inputs(3)
    headcount.prune_heads(model, [head for head in headcount.list_heads(model) if head.number in (0, head.layer + 1)])
    for layer in attention_layers(model).values():
        for part in layer.module.modules():
            if isinstance(part, nn.Linear):
                assert part.weight.shape == (part.out_features, part.in_features)
            if isinstance(part, Conv1D):
                assert part.weight.shape == (part.nx, part.nf)
    optimizer, losses = torch.optim.AdamW(model.parameters(), lr=1e-2), []
    for _ in range(10):
        loss = model(**inputs, labels=inputs.get("decoder_input_ids", inputs["input_ids"])).loss
        losses.append(loss.item())
        loss.backward()
        assert all(p.grad is not None for layer in attention_layers(model).values() for p in layer.module.parameters())
        optimizer.step()
        optimizer.zero_grad()
    assert losses[-1] < 0.8 * losses[0]


def test_frozen_weights_half_precision_and_training_mode_stay():
    model = make_stock("Llama").to(torch.bfloat16).train().requires_grad_(False)
    headcount.prune_heads(model, [(0, 1)])
    layer = model.model.layers[0].self_attn
    assert layer.q_proj.weight.dtype == torch.bfloat16 and not layer.q_proj.weight.requires_grad and layer.training


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_pruning_works_where_gradients_are_off_and_heads_are_masked(context):
    model, inputs = make_stock("Llama"), EVERY["Llama"].inputs(3)
    wanted = masked_outputs(model, inputs, [(0, 0), (1, 2)])
    with context(), headcount.mask_heads(model, [(1, 2)]):
        headcount.prune_heads(model, [(0, 0)])
        same(outputs(model, inputs), wanted)
    with context():
        headcount.prune_heads(model, [(1, 2)])
    same(outputs(model, inputs), wanted)


def test_pruning_draws_no_random_numbers_and_calls_no_hooks():
    model, calls = make_stock("BERT"), []
    model.bert.encoder.layer[0].attention.self.register_forward_hook(lambda *_: calls.append(1))
    torch.manual_seed(3)
    wanted = torch.rand(1)
    torch.manual_seed(3)
    headcount.prune_heads(model, ["encoder.0.self.0"])
    assert torch.equal(torch.rand(1), wanted) and not calls


def test_own_models_are_pruned_saved_and_loaded_by_the_same_names(tmp_path):
    model, inputs = make_model("encoder"), make_inputs("encoder")
    headcount.prune_heads(model, ["encoder.1.self.2"])
    headcount.save_pruned(model, tmp_path / "own")
    loaded = headcount.load_pruned(tmp_path / "own").eval()
    same(outputs(loaded, inputs), outputs(model, inputs))
    assert "encoder.1.self.2" not in headcount.list_heads(loaded)


def test_what_cannot_be_pruned_is_a_clear_error_and_changes_nothing(tmp_path):
    bert = make_stock("BERT")
    before = state_of(bert)
    with pytest.raises(ValueError, match=r"'encoder.2.self.0' is not a head of this BertForMaskedLM"):
        headcount.prune_heads(bert, ["encoder.0.self.0", "encoder.2.self.0"])
    assert all(torch.equal(tensor, before[name]) for name, tensor in bert.state_dict().items())
    headcount.prune_heads(bert, ["encoder.0.self.0"])
    with pytest.raises(ValueError, match="is not a head"):
        headcount.mask_heads(bert, ["encoder.0.self.0"]).__enter__()
    headcount.save_pruned(bert, tmp_path / "small")
    with pytest.raises(ValueError, match="is there already"):
        headcount.save_pruned(bert, tmp_path / "small")
    headcount.save_pruned(bert, tmp_path / "small", overwrite=True)
    with pytest.raises(ValueError, match=r"holds no config\.json"):
        headcount.load_pruned(tmp_path)


class Quantized(nn.Linear):
    """Stands for any projection that is not a plain one."""


def norms_in_a_list():
    options = FURTHER["StableLM"].options | {"qk_layernorm": True}
    return StableLmForCausalLM(StableLmConfig(**options)).eval()


def one_layer_quantized():
    model = make_stock("Llama")
    model.model.layers[1].self_attn.v_proj.__class__ = Quantized
    return model


def two_layers_with_one_matrix():
    model = make_stock("Llama")
    model.model.layers[1].self_attn.k_proj.weight = model.model.layers[0].self_attn.k_proj.weight
    return model


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (norms_in_a_list, "without them it does not compute what it does with them masked"),
        (one_layer_quantized, "v_proj is a Quantized, not a plain linear one"),
        (two_layers_with_one_matrix, "k_proj shares its weights with another module"),
    ],
)
def test_a_refusal_leaves_the_model_as_it_was(make, reason):
    model, inputs = make(), EVERY["Llama"].inputs(3)
    before, wanted = state_of(model), outputs(model, inputs)
    attributes = {path: {**vars(module)} for path, module in model.named_modules()}
    with pytest.raises(ValueError, match=rf"whose heads headcount cannot remove: .*{reason}"):
        headcount.prune_heads(model, [(0, 0), (1, 0)])
    after = model.state_dict()
    assert before.keys() == after.keys() and all(torch.equal(after[name], before[name]) for name in before)
    assert attributes == {path: vars(module) for path, module in model.named_modules()}
    assert all(torch.equal(a, b) for a, b in zip(outputs(model, inputs), wanted, strict=True))
