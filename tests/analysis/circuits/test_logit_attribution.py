"""What heads and sublayers add to a logit: parts sum to it, and each is what a hand-written projection gives."""

import pytest
import torch
from hook_loop import outputs_of
from stock_models import ARCHITECTURES, ids, make_stock

import headcount


@pytest.mark.parametrize("at", [-1, 2])
@pytest.mark.parametrize("name", ["GPT-2", "Llama", "Mistral", "Qwen2", "Qwen3", "Gemma", "GPT-NeoX", "Phi"])
def test_parts_sum_to_the_logit_of_every_row(name, at):
    model, inputs = make_stock(name), ARCHITECTURES[name].inputs(3)
    place = {-1: [8, 8, 4], 2: [2, 2, 2]}[at]
    with torch.no_grad():
        logits = model(**inputs).logits
    for example in range(3):
        one = {key: value[example : example + 1] for key, value in inputs.items()}
        with torch.no_grad():
            logits = model(**one).logits[0, place[example]]
        rows = headcount.logit_attribution(model, one, 7, against=[11], at=at)
        assert rows[-1]["value"] == pytest.approx(float(logits[7] - logits[11]), abs=1e-4)
        assert sum(row["value"] for row in rows[:-1]) == pytest.approx(rows[-1]["value"], abs=1e-4)
        alone = headcount.logit_attribution(model, one, 7, at=at)
        assert sum(row["value"] for row in alone[:-1]) == pytest.approx(float(logits[7]), abs=1e-4)
        assert {row["metric"] for row in alone} == {"logit"} and {row["metric"] for row in rows} == {
            "logit_difference"
        }
    names = [row["site"] for row in rows]
    assert [head for head in headcount.list_heads(model) if head not in names] == []
    assert names[0] == "embeddings" and names[-1] == "total" and "decoder.1.mlp" in names


@pytest.mark.parametrize("name", ["GPT-2", "Llama"])
def test_every_part_is_what_norm_and_output_layer_give_of_it_by_hand(name):
    model, tokens = make_stock(name), ids(4, 6)
    every = headcount.sites(model)
    recorded = outputs_of(model, {"input_ids": tokens}, every)
    final = recorded["decoder.1.residual"][:, -1]
    is_gpt2 = name == "GPT-2"
    norm = model.transformer.ln_f if is_gpt2 else model.model.norm
    own = final - final.mean(-1, keepdim=True) if is_gpt2 else final
    scale = (own.square().mean(-1, keepdim=True) + (norm.eps if is_gpt2 else norm.variance_epsilon)).sqrt()
    wanted = torch.tensor([5, 9, 13, 30])
    rows = {row["site"]: row for row in headcount.logit_attribution(model, tokens, wanted)}
    for site in every:
        if site.kind == "residual":
            continue
        states = recorded[site][:, -1]
        if site.head is not None:
            if is_gpt2:
                whole = model.transformer.h[site.layer].attn.c_proj.weight.T
            else:
                whole = model.model.layers[site.layer].self_attn.o_proj.weight
            states = states @ whole[:, 8 * site.head.number : 8 * site.head.number + 8].T
        if is_gpt2:
            states = states - states.mean(-1, keepdim=True)
        added = (states / scale * norm.weight * model.lm_head.weight[wanted]).sum(-1)
        assert rows[site]["value"] == pytest.approx(added.mean().item(), abs=1e-5), site
        assert rows[site]["n"] == 4 and rows[site]["interval"][0] < rows[site]["value"]


def test_an_architecture_that_does_not_add_up_is_refused():
    for name, said in (
        ("BERT", "BertForMaskedLM cannot be taken apart; expected encoder.0 to add its attention and feed-forward"),
        ("T5", "T5ForConditionalGeneration cannot be taken apart; expected one stack"),
        ("OPT", "decoder.0.mlp puts out a tensor of shape"),
        ("ALBERT", "AlbertForMaskedLM has residual streams in 0 stacks"),
    ):
        with pytest.raises(ValueError, match=said):
            headcount.logit_attribution(make_stock(name), ARCHITECTURES[name].inputs(2), 5)
    model = make_stock("GPT-2")
    with pytest.raises(ValueError, match=r"tokens are torch.int64 of shape \(3,\); expected token ids from 0 to 39"):
        headcount.logit_attribution(model, ids(2, 4), [1, 2, 3])
    with pytest.raises(ValueError, match="against are torch"):
        headcount.logit_attribution(model, ids(2, 4), 1, against=40)
    with pytest.raises(ValueError, match=r"expected weights of at least 32 bits, not torch.bfloat16"):
        headcount.logit_attribution(make_stock("GPT-2").bfloat16(), ids(2, 4), 1)
    scaled = make_stock("GPT-2")
    scaled.lm_head.register_forward_pre_hook(lambda module, inputs: (2 * inputs[0],))
    with pytest.raises(ValueError, match="expected one norm between the last layer and the output layer, and nothing"):
        headcount.logit_attribution(scaled, ids(2, 4), 1)
    capped = make_stock("GPT-2")
    capped.lm_head.register_forward_hook(lambda module, inputs, output: 3 * torch.tanh(output / 3))
    with pytest.raises(ValueError, match="expected parts that sum to the logit"):
        headcount.logit_attribution(capped, ids(2, 4), 1)
    assert not any(part._forward_hooks for part in model.modules())
