"""Logits after every layer, against the final norm and the output layer applied by hand."""

import pytest
import torch
from small_models import make_inputs, make_model
from stock_models import ARCHITECTURES, ids, make_stock

import headcount
from headcount.records.rows import select


READ_OUT = {
    "GPT-2": lambda model, states: model.lm_head(model.transformer.ln_f(states)),
    "Llama": lambda model, states: model.lm_head(model.model.norm(states)),
    "BERT": lambda model, states: model.cls(states),
    "T5": lambda model, states: model.lm_head(
        model.decoder.final_layer_norm(states) * (32**-0.5 if model.config.scale_decoder_outputs else 1)
    ),
}
LAYERS = {
    "GPT-2": lambda model: model.transformer.h,
    "Llama": lambda model: model.model.layers,
    "BERT": lambda model: model.bert.encoder.layer,
    "T5": lambda model: model.decoder.block,
}


@pytest.mark.parametrize("name", READ_OUT)
def test_logits_are_those_of_the_read_out_and_the_last_are_the_models_own(name):
    model, inputs = make_stock(name), ARCHITECTURES[name].inputs(3)
    states, hooks = [], []
    for layer in LAYERS[name](model):
        hooks.append(
            layer.register_forward_hook(
                lambda module, inputs, output: states.append(output[0] if isinstance(output, tuple) else output)
            )
        )
    with torch.no_grad():
        own = model(**inputs).logits
        for hook in hooks:
            hook.remove()
        wanted = [READ_OUT[name](model, each) for each in states]
    lens = headcount.logit_lens(model, inputs)
    stack = "encoder" if name == "BERT" else "decoder"
    assert list(lens.logits) == [f"{stack}.0.residual", f"{stack}.1.residual"] and lens.rows == []
    assert torch.equal(list(lens.logits.values())[-1], own)
    for found, each in zip(lens.logits.values(), wanted, strict=True):
        torch.testing.assert_close(found, each, rtol=1e-4, atol=1e-4)


def test_rows_tell_probability_and_rank_of_labels_by_layer():
    model = make_stock("GPT-2")
    tokens = ids(4, 6)
    labels = tokens.clone()
    labels[:, :3] = -100
    lens = headcount.logit_lens(model, {"input_ids": tokens, "labels": labels})
    for layer, logits in enumerate(lens.logits.values()):
        chances, ranks = [], []
        for example in range(4):
            at = [(logits[example, place], int(tokens[example, place + 1])) for place in (2, 3, 4)]
            chances.append(sum(float(own.softmax(-1)[token]) for own, token in at) / 3)
            ranks.append(sum(sorted(own.tolist(), reverse=True).index(float(own[token])) + 1 for own, token in at) / 3)
        for metric, values in (("label_probability", chances), ("label_rank", ranks)):
            (found,) = select(lens.rows, metric=metric, layer=layer)
            assert found["value"] == pytest.approx(sum(values) / 4, rel=1e-4) and found["n"] == 4 and found["interval"]


def test_own_models_have_a_lens_and_models_without_logits_have_none():
    model, inputs = make_model("encoder-decoder"), make_inputs("encoder-decoder")
    lens = headcount.logit_lens(model, inputs)
    with torch.no_grad():
        read = model.prepare_decoder_input_ids_from_labels(inputs["labels"])
        own = model(input_ids=inputs["input_ids"], decoder_input_ids=read).logits
    assert torch.equal(lens.logits["decoder.1.residual"], own) and len(lens.rows) == 4
    with pytest.raises(ValueError, match="GPT2Model gives no logits"):
        headcount.logit_lens(make_stock("GPT-2").transformer, ids(2, 4))
    with pytest.raises(ValueError, match="CLIPModel has residual streams in 2 stacks"):
        headcount.logit_lens(make_stock("CLIP"), ARCHITECTURES["CLIP"].inputs(2))
    with pytest.raises(ValueError, match="AlbertForMaskedLM has residual streams in 0 stacks"):
        headcount.logit_lens(make_stock("ALBERT"), ARCHITECTURES["ALBERT"].inputs(2))
