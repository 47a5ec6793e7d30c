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


@pytest.mark.parametrize("name", ["GPT-2", "T5", "BERT", "Llama"])
def test_maps_and_outputs_of_chosen_heads_are_parts_of_all(name):
    model, inputs = make_stock(name), ARCHITECTURES[name].inputs(2)
    maps, outputs = headcount.attention_maps(model, inputs), headcount.head_outputs(model, inputs)
    first, last = headcount.list_heads(model)[1], headcount.list_heads(model)[-1]
    wanted = [last, f"{first.stack}.0.self.1", f"{first.stack}.*.self.3", "*.1.self"]
    few = headcount.attention_maps(model, inputs, wanted)
    assert few[last].equal(maps[last]) and few[first].equal(maps[first])
    assert few[f"{first.stack}.0.self"].equal(maps[f"{first.stack}.0.self"][:, [1, 3]])
    assert few.heads[f"{first.stack}.0.self"] == (1, 3) and few.heads[f"{first.stack}.1.self"] == (0, 1, 2, 3)
    with pytest.raises(KeyError, match="there is no map of"):
        few[f"{first.stack}.0.self.0"]
    chosen = headcount.head_outputs(model, inputs, wanted)
    assert [head for head in outputs if head in chosen] == list(chosen) and last in chosen
    assert all(chosen[head].equal(outputs[head]) for head in chosen) and len(chosen) < len(outputs)
    with pytest.raises(ValueError, match=r"'decoder.9.\*' is not a head of this"):
        headcount.head_outputs(model, inputs, ["decoder.9.*"])
    with pytest.raises(TypeError, match="heads is the string"):
        headcount.attention_maps(model, inputs, "decoder.*")
    with pytest.raises(ValueError, match="there are no heads"):
        headcount.attention_maps(model, inputs, [])


@pytest.mark.parametrize("name", ["GPT-2", "Llama", "T5", "BART"])
def test_maps_of_every_step_of_a_generation_are_those_that_generate_gives_out(name):
    model, eager = make_stock(name), make_stock(name, "eager")
    inputs = {n: v for n, v in ARCHITECTURES[name].inputs(2).items() if "decoder" not in n}
    inputs["attention_mask"] = torch.ones_like(inputs["attention_mask"])
    options = {"max_new_tokens": 3, "min_new_tokens": 3, "do_sample": False}
    found = headcount.attention_maps(model, inputs, generate=options)
    wanted = eager.generate(**inputs, **options, output_attentions=True, return_dict_in_generate=True)
    assert found.sequences.equal(wanted.sequences)
    steps = wanted.decoder_attentions if model.config.is_encoder_decoder else wanted.attentions
    for layer in range(2):
        own = found[f"decoder.{layer}.self"]
        assert len(own) == len(steps) == 3 and len({each.shape for each in own}) > 1, "steps are ragged"
        for each, step in zip(own, steps, strict=True):
            torch.testing.assert_close(each, step[layer])
        torch.testing.assert_close(found[f"decoder.{layer}.self.2"][1], steps[1][layer][:, 2])
        if model.config.is_encoder_decoder:
            torch.testing.assert_close(found[f"decoder.{layer}.cross"][2], wanted.cross_attentions[2][layer])
            assert len(found[f"encoder.{layer}.self"]) == 1
    assert model.config._attn_implementation == "sdpa"
    beams = headcount.attention_maps(model, inputs, ["decoder.0.self.0"], generate={**options, "num_beams": 2})
    assert list(beams) == ["decoder.0.self"] and beams["decoder.0.self.0"][-1].shape[0] == 4


@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder"])
def test_maps_of_a_generation_of_own_models(architecture):
    model, inputs = make_model(architecture), make_inputs(architecture, 3)
    options = {"max_new_tokens": 3, "min_new_tokens": 3, "do_sample": False}
    found = headcount.attention_maps(model, inputs, generate=options)
    assert list(found) == list(model.attention_modules()) and len(found["decoder.1.self"]) == 3
    given = {name: value for name, value in inputs.items() if name != "labels"}
    assert found.sequences.equal(model.generate(**given, **options))
    read = found.sequences[:, :-1]
    batch = {**given, "decoder_input_ids": read} if architecture == "encoder-decoder" else {"input_ids": read}
    with torch.no_grad():
        outputs = model(**batch, output_attentions=True)
    whole = outputs["decoder_attentions" if architecture == "encoder-decoder" else "attentions"][1]
    torch.testing.assert_close(found["decoder.1.self"][-1][:, :, -1], whole[:, :, -1])


def test_a_layer_that_runs_more_than_once_is_told_and_can_be_kept_whole():
    model, inputs = make_stock("ALBERT"), ARCHITECTURES["ALBERT"].inputs(2)
    with pytest.raises(ValueError, match=r"encoder.0.self runs 2 times in a forward.*expected every_call=True"):
        headcount.attention_maps(model, inputs)
    found = headcount.attention_maps(model, inputs, every_call=True)
    with torch.no_grad():
        wanted = make_stock("ALBERT", "eager")(**inputs, output_attentions=True).attentions
    assert len(found["encoder.0.self"]) == len(wanted) == 2 and found.sequences is None
    for own, each in zip(found["encoder.0.self"], wanted, strict=True):
        torch.testing.assert_close(own, each)
    own = headcount.attention_maps(make_model(), make_inputs("encoder-decoder"), every_call=True)
    assert len(own["decoder.0.self.0"]) == 1
    rows = text_map_rows(model, inputs, {"input_ids": [["a"] * 9] * 2}, ["one", "two"])
    assert {row["calls"] for row in rows} == {2}
    assert np.allclose(rows[0]["weights"], wanted[-1][0], atol=1e-4)
