"""Attention maps by layer and by head, on the tokens that the model really writes; outputs of heads."""

import numpy as np
import pytest
import torch
from small_models import make_inputs, make_model
from stock_models import ARCHITECTURES, ids, make_stock, output_projection
from task_examples import addition, random_addition, sortedness

import headcount
from headcount.analysis.heads.maps import average_rows, map_rows, text_map_rows
from headcount.data_builders.registry import TASKS
from headcount.modeling.stock.finding import attention_layers
from headcount.records.rows import check_row, select


@pytest.mark.parametrize("name", ["BERT", "T5", "Llama", "CLIP"])
def test_maps_are_those_of_eager_attention(name):
    model, inputs = make_stock(name), ARCHITECTURES[name].inputs(2)
    maps = headcount.attention_maps(model, inputs)
    assert list(maps) == list(attention_layers(model)) and model.config._attn_implementation == "sdpa"
    eager = make_stock(name, "eager")
    with torch.no_grad():
        outputs = eager(**inputs, output_attentions=True)
    if name == "T5":
        pairs = zip(outputs.decoder_attentions, outputs.cross_attentions, strict=True)
        wanted = [*outputs.encoder_attentions, *(each for pair in pairs for each in pair)]
    elif name == "CLIP":
        wanted = [*outputs.text_model_output.attentions, *outputs.vision_model_output.attentions]
    else:
        wanted = outputs.attentions
    for found, own in zip(maps.values(), wanted, strict=True):
        torch.testing.assert_close(found, own)


@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder", "encoder"])
def test_maps_of_own_models_are_those_that_the_model_gives_out(architecture):
    model, inputs = make_model(architecture), make_inputs(architecture)
    maps = headcount.attention_maps(model, inputs)
    assert list(maps) == list(model.attention_modules())
    with torch.no_grad():
        outputs = model(**inputs, output_attentions=True)
    last = outputs.cross_attentions if architecture == "encoder-decoder" else outputs.attentions
    torch.testing.assert_close(list(maps.values())[-1], last[-1])


def test_a_map_is_found_by_the_name_of_its_head_too():
    model = make_stock("GPT-2")
    maps = headcount.attention_maps(model, ids(2, 5))
    assert maps["decoder.0.self"].shape == (2, 4, 5, 5)
    assert torch.equal(maps["decoder.0.self.1"], maps["decoder.0.self"][:, 1]) and "decoder.0.self.1" in maps
    headcount.prune_heads(model, ["decoder.0.self.0"])
    assert torch.equal(headcount.attention_maps(model, ids(2, 5))["decoder.0.self.1"], maps["decoder.0.self.1"]), (
        "names keep their numbers"
    )
    with pytest.raises(KeyError, match=r"there is no map of 'decoder.0.self.9'; expected an attention layer"):
        maps["decoder.0.self.9"]


@pytest.mark.parametrize("name", ["BERT", "T5", "GPT-2"])
def test_outputs_of_heads_are_what_enters_the_output_projection(name):
    model, inputs = make_stock(name), ARCHITECTURES[name].inputs(2)
    found = headcount.head_outputs(model, inputs)
    assert list(found) == headcount.list_heads(model)
    layer = list(attention_layers(model).values())[-1]
    seen = []
    hook = output_projection(model, layer.path).register_forward_pre_hook(lambda module, args: seen.append(args[0]))
    with torch.no_grad():
        model(**inputs)
    hook.remove()
    wanted = seen[0].unflatten(-1, (4, -1))
    for number in range(4):
        torch.testing.assert_close(found[f"{layer.name}.{number}"], wanted[:, :, number])


def test_outputs_of_heads_of_own_models():
    model, inputs = make_model(), make_inputs("encoder-decoder")
    found = headcount.head_outputs(model, inputs)
    assert list(found) == model.list_heads() and found["decoder.1.cross.2"].shape == (3, 6, 8)
    assert found["encoder.0.self.0"].shape == (3, 9, 8)


def test_maps_show_the_tokens_that_the_model_really_writes():
    model, examples = make_model("encoder-decoder"), addition([374, 5], [814, 12])
    names = TASKS["addition"].vocabulary.names
    rows = map_rows(model, examples)
    cross = next(row for row in rows if row["layer"] == "decoder.1.cross" and row["example"] == 1)
    assert cross["keys"] == ["0", "0", "5", "+", "0", "1", "2", "<eos>"]
    written = model.generate(examples.rows["input_ids"][1:], max_new_tokens=5, do_sample=False)[0, 1:].tolist()
    assert cross["queries"] == [f"→{token}" for token in names(written)]
    weights = np.array(cross["weights"])
    assert weights.shape == (4, len(cross["queries"]), 8)
    assert weights.sum(-1) == pytest.approx(np.ones((4, len(cross["queries"]))), abs=1e-3)
    own = next(row for row in rows if row["layer"] == "decoder.0.self" and row["example"] == 1)
    assert own["keys"] == ["start", *names(written)[:-1]]
    for row in rows:
        check_row(row, "maps")


def test_average_maps_are_means_and_name_places():
    model, examples = make_model("encoder-decoder"), random_addition(7)
    rows = average_rows(model, examples, batch_size=3)
    single = [average_rows(model, examples[np.array([i])]) for i in range(7)]
    for number, row in enumerate(rows):
        mean = np.mean([np.array(one[number]["weights"]) for one in single], axis=0)
        assert np.array(row["weights"]) == pytest.approx(mean, abs=2e-4)
    assert rows[0]["keys"] == ["a2", "a1", "a0", "+", "b2", "b1", "b0", "<eos>"] and rows[0]["n"] == 7
    assert select(rows, layer="decoder.0.cross")[0]["queries"] == ["→y0", "→y1", "→y2", "→y3", "→y4"]
    short = addition([1], [2], "decoder")
    assert average_rows(make_model("decoder"), short)[0]["keys"][-5:-1] == ["y0", "y1", "y2", "y3"]
    classifier = make_model("encoder", vocab_size=103)
    assert average_rows(classifier, sortedness([[1, 2, 3], [2, 1, 3]]))[0]["keys"] == ["x0", "x1", "x2"]
    with pytest.raises(ValueError, match="differ in length; expected examples of one length"):
        average_rows(classifier, sortedness([[1, 2, 3], [2, 1]]))


def test_maps_of_any_model_have_the_same_rows():
    model, batch = make_stock("T5"), {"input_ids": ids(2, 4), "labels": ids(2, 3, seed=1)}
    tokens = {"input_ids": [list("abcd"), list("efg")], "labels": [list("xyz"), list("xy")]}
    rows = text_map_rows(model, batch, tokens, ["first", "second"])
    cross = next(row for row in rows if row["layer"] == "decoder.1.cross" and row["example"] == 1)
    assert cross["queries"] == ["→x", "→y"] and cross["keys"] == ["e", "f", "g"] and cross["input"] == "second"
    own = map_rows(make_model(), addition([1], [2]))[0]
    assert cross.keys() == own.keys() and cross["metric"] == own["metric"]
