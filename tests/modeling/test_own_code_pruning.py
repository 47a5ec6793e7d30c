"""Heads removed from layers with attention code of their own: the output is the masked model's, by every way."""

import copy

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from stock_models import ARCHITECTURES, OWN_CODE, make_stock
from torch import nn
from transformers import CodeGenConfig, CodeGenForCausalLM, TrOCRConfig, TrOCRForCausalLM

import headcount
from headcount.modeling.stock.finding import AttentionLayer, attention_layers
from headcount.modeling.stock.pruned_model import cut_layer
from headcount.modeling.stock.pruning_notes import saved_without
from headcount.modeling.stock.torch_pruning import torch_plan


DECODERS = [name for name, stock in OWN_CODE.items() if stock.stacks == "decoder"]
# One of each group: where two heads read one key and value, they go in such a way that groups stay equally large.
FIRST = {"Falcon, groups": (0, 2), "Falcon": (0, 3)}


def removed_from(model, name):
    numbers = FIRST.get(name)
    heads = headcount.list_heads(model)
    return [head for head in heads if (head.number in numbers if numbers else (head.layer + head.number) % 3 == 0)]


def logits(model, inputs):
    with torch.no_grad():
        return model(**inputs).logits


def masked_logits(model, inputs, heads):
    with headcount.mask_heads(model, heads):
        return logits(model, inputs)


def same(found, wanted):
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", OWN_CODE)
def test_pruned_is_masked_twice_and_after_loading(name, tmp_path):
    model, inputs = make_stock(name), OWN_CODE[name].inputs(3)
    whole, heads, removed = copy.deepcopy(model), headcount.list_heads(model), removed_from(model, name)
    masked, before = masked_logits(model, inputs, removed), model.num_parameters()
    assert (logits(model, inputs) - masked).abs().max() > 1e-4
    first = [head for head in removed if head.layer == 0]
    headcount.prune_heads(model, first)
    headcount.prune_heads(model, [head for head in removed if head not in first])
    assert before - model.num_parameters() >= len(removed) * 2 * 32 * 8
    assert headcount.list_heads(model) == [head for head in heads if head not in removed]
    same(logits(model, inputs), masked)
    headcount.save_pruned(model, tmp_path / "small")
    assert sorted(saved_without(tmp_path / "small")) == sorted(removed)
    loaded = headcount.load_pruned(tmp_path / "small").eval()
    same(logits(loaded, inputs), masked)
    same(logits(copy.deepcopy(loaded), inputs), masked)
    left = headcount.list_heads(loaded)[:1]
    same(masked_logits(loaded, inputs, left), masked_logits(whole, inputs, [*removed, *left]))


@pytest.mark.parametrize("name", [name for name in OWN_CODE if name != "Falcon, groups"])
def test_heads_of_one_layer_go_one_after_the_other_until_none_is_left(name):
    model, inputs = make_stock(name), OWN_CODE[name].inputs(3)
    whole = copy.deepcopy(model)
    names = [head for head in headcount.list_heads(model) if head.layer == headcount.list_heads(model)[-1].layer]
    for count, number in enumerate((2, 0, 3, 1), 1):
        headcount.prune_heads(model, [names[number]])
        gone = [names[each] for each in (2, 0, 3, 1)[:count]]
        same(logits(model, inputs), masked_logits(whole, inputs, gone))


@pytest.mark.parametrize("options", [{}, {"num_beams": 2}, {"use_cache": False}])
@pytest.mark.parametrize("name", DECODERS)
def test_pruned_models_generate_as_masked_ones(name, options):
    model, inputs = make_stock(name), {"input_ids": OWN_CODE[name].inputs(2)["input_ids"]}
    removed = removed_from(model, name)
    options = {"max_new_tokens": 6, "do_sample": False, **options}
    with headcount.mask_heads(model, removed):
        masked = model.generate(**inputs, **options)
    headcount.prune_heads(model, removed)
    assert torch.equal(model.generate(**inputs, **options), masked)


@pytest.mark.parametrize("name", ["BLOOM", "Falcon, ALiBi", "MPT"])
def test_slopes_of_the_heads_that_are_left_are_theirs(name):
    """Slopes fall from head to head, so that another head's would show."""
    model, inputs = make_stock(name), OWN_CODE[name].inputs(4)  # as many examples as heads
    masked = masked_logits(model, inputs, [(0, 0), (1, 0), (1, 1)])
    headcount.prune_heads(model, [(0, 0), (1, 0), (1, 1)])
    same(logits(model, inputs), masked)
    same(logits(model, {key: value[:1] for key, value in inputs.items()}), masked[:1])


def test_groups_stay_equally_large_or_nothing_is_removed():
    model, inputs = make_stock("Falcon, groups"), OWN_CODE["Falcon, groups"].inputs(3)
    wanted = logits(model, inputs)
    with pytest.raises(ValueError, match="its heads read keys and values in groups, which have to stay equally large"):
        headcount.prune_heads(model, [(0, 0), (1, 0), (1, 2)])
    assert torch.equal(logits(model, inputs), wanted) and len(headcount.list_heads(model)) == 8
    masked = masked_logits(model, inputs, [(1, 0), (1, 1)])  # a whole group, with its key and value
    headcount.prune_heads(model, [(1, 0), (1, 1)])
    same(logits(model, inputs), masked)


def test_codegen_loses_heads_of_all_its_four_parts_alike():
    torch.manual_seed(0)
    options = {"n_embd": 64, "n_layer": 1, "n_head": 8, "n_positions": 20, "rotary_dim": 4, "vocab_size": 40}
    model = CodeGenForCausalLM(CodeGenConfig(**options)).eval()
    inputs = {"input_ids": torch.arange(3, 12).view(1, -1)}
    with pytest.raises(ValueError, match="without them it does not compute what it does with them masked"):
        headcount.prune_heads(model, [(0, 0)])
    masked = masked_logits(model, inputs, [(0, 0), (0, 3), (0, 4), (0, 7)])
    headcount.prune_heads(model, [(0, 0), (0, 3), (0, 4), (0, 7)])
    same(logits(model, inputs), masked)


def test_a_size_that_is_fixed_in_the_code_is_refused_and_nothing_changes():
    config = TrOCRConfig(vocab_size=40, d_model=32, decoder_layers=1, decoder_attention_heads=4, decoder_ffn_dim=48)
    model = TrOCRForCausalLM(config).eval()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(ValueError, match="of the class TrOCRAttention, whose heads headcount cannot remove"):
        headcount.prune_heads(model, ["decoder.0.self.0"])
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_a_mask_that_is_made_for_every_head_is_cut_to_those_that_are_left():
    model = make_stock("BERT").bert
    mask = torch.randn(2, 4, 6, 6, generator=torch.Generator().manual_seed(0))
    tokens = torch.arange(3, 15).view(2, 6)
    with headcount.mask_heads(model, [(0, 1), (1, 0), (1, 3)]), torch.no_grad():
        masked = model(tokens, attention_mask=mask).last_hidden_state
    headcount.prune_heads(model, [(0, 1), (1, 0)])
    headcount.prune_heads(model, [(1, 3)])
    with torch.no_grad():
        same(model(tokens, attention_mask=mask).last_hidden_state, masked)


@pytest.mark.parametrize(
    "options",
    [{"batch_first": True}, {"batch_first": False}, {"batch_first": True, "kdim": 12, "vdim": 20}, {"bias": False}],
)
def test_torch_attention_with_fewer_heads_is_torch_attention_without_their_columns(options):
    torch.manual_seed(0)
    holder = nn.Module()
    holder.part = module = nn.MultiheadAttention(16, 4, **options).eval()
    sizes = (16, options.get("kdim", 16), options.get("vdim", 16))
    inputs = [torch.randn(2, 3 if size == 16 and i == 0 else 5, size) for i, size in enumerate(sizes)]
    inputs = inputs if module.batch_first else [each.transpose(0, 1) for each in inputs]
    calls = [
        {"key_padding_mask": torch.tensor([[False] * 5, [False] * 3 + [True] * 2])},
        {"attn_mask": torch.randn(8, 3, 5), "average_attn_weights": False},
        {"attn_mask": torch.rand(3, 5) > 0.8, "need_weights": False},
    ]
    closed = copy.deepcopy(module)
    closed.out_proj.weight.data[:, 4:12] = 0.0
    layer = AttentionLayer("encoder.0.self", "part", module, (0, 1, 2, 3))
    cut_layer(holder, "part", torch_plan(layer, {1, 2}))
    assert module.in_proj_weight is None or module.in_proj_weight.shape == (24, 16)
    for call in calls:
        (found, shown), (wanted, weights) = module(*inputs, **call), closed(*inputs, **call)
        torch.testing.assert_close(found, wanted)
        assert (shown is None) == (weights is None)
        if not call.get("average_attn_weights", True):
            torch.testing.assert_close(shown, weights[:, [0, 3]])


TARGETS = {
    "BLOOM": ["query_key_value", "dense"],
    "Falcon": ["query_key_value", "dense"],
    "Llama": ["q_proj", "v_proj"],
    "GPT-2": ["c_attn"],
}


@pytest.mark.parametrize("name", TARGETS)
def test_adapters_learn_on_what_is_left_and_are_merged_into_it(name, tmp_path):
    model, inputs = make_stock(name), (OWN_CODE | ARCHITECTURES)[name].inputs(3)
    removed = removed_from(model, name) if name in OWN_CODE else [(0, 0), (1, 1)]
    headcount.prune_heads(model, removed)
    small, left = copy.deepcopy(model), headcount.list_heads(model)
    adapted = get_peft_model(model, LoraConfig(r=2, target_modules=TARGETS[name], fan_in_fan_out=name == "GPT-2"))
    with pytest.raises(ValueError, match="has an adapter, which has to be merged first"):
        headcount.prune_heads(adapted.get_base_model(), left[:1])
    optimizer, losses = torch.optim.AdamW([p for p in adapted.parameters() if p.requires_grad], lr=3e-2), []
    for _ in range(10):
        loss = adapted(**inputs, labels=inputs["input_ids"]).loss
        losses.append(loss.item())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert losses[-1] < 0.95 * losses[0]
    wanted = logits(adapted.eval(), inputs)
    assert (wanted - logits(small, inputs)).abs().max() > 1e-3
    adapted.save_pretrained(tmp_path / "adapter")
    same(logits(PeftModel.from_pretrained(small, tmp_path / "adapter").eval(), inputs), wanted)
    merged = adapted.merge_and_unload()
    same(logits(merged, inputs), wanted)
    merged.save_pretrained(tmp_path / "merged")
    loaded = headcount.load_pruned(tmp_path / "merged").eval()
    assert headcount.list_heads(loaded) == left and len(attention_layers(loaded)) == 2
    same(logits(loaded, inputs), wanted)
