"""Where transformers' own model tests expect something else than these models do: the fact, and why it is so."""

import pytest
import torch
from safetensors.torch import load_file, save_file
from small_models import MODEL_CLASSES, make_inputs, make_model, tiny_config
from transformers import PreTrainedModel

from headcount import HeadcountModel


@pytest.mark.parametrize("tied", [False, True])
def test_each_stack_reads_embeddings_of_its_own_table(tied):
    """transformers' test embeds the decoder's tokens by the encoder's table: right only if the two are tied."""
    model, inputs = make_model(tie_word_embeddings=tied), make_inputs("encoder-decoder")
    tokens, written = inputs["input_ids"], inputs["labels"]
    expected = model(tokens, decoder_input_ids=written).logits
    encoder, decoder = (stack.embed_tokens for stack in (model.model.encoder, model.model.decoder))
    assert model.get_input_embeddings() is encoder
    by_own = model(inputs_embeds=encoder(tokens), decoder_inputs_embeds=decoder(written)).logits
    assert torch.equal(by_own, expected)
    by_one = model(inputs_embeds=encoder(tokens), decoder_inputs_embeds=encoder(written)).logits
    assert torch.equal(by_one, expected) is tied


@pytest.mark.parametrize("architecture", MODEL_CLASSES)
def test_missing_weights_are_an_error_unless_a_report_of_them_is_asked_for(architecture, tmp_path):
    model = make_model(architecture)
    model.save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    weights = load_file(path)
    lost = next(name for name in weights if "up_proj" in name)
    save_file({name: tensor for name, tensor in weights.items() if name != lost}, path, {"format": "pt"})
    with pytest.raises(ValueError, match=f"lacks '{lost}'"):
        type(model).from_pretrained(tmp_path)
    loaded, found = type(model).from_pretrained(tmp_path, output_loading_info=True)
    assert set(found["missing_keys"]) == {lost} and not found["unexpected_keys"]
    kept = loaded.state_dict()
    assert all(torch.equal(kept[name], tensor) for name, tensor in weights.items() if name != lost)


def test_reentrant_checkpointing_is_refused_because_layers_share_a_bias():
    model, inputs = make_model("encoder", position_embedding_type="t5_bias").train(), make_inputs("encoder")
    with pytest.raises(ValueError, match="use_reentrant=True would go backward through position biases"):
        model.gradient_checkpointing_enable({"use_reentrant": True})
    PreTrainedModel.gradient_checkpointing_enable(model, {"use_reentrant": True})
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        model(**inputs).loss.backward()


def test_labels_are_those_of_whole_sequences():
    """`shift_labels` come with a part of a sequence; ids and masks here are made for the whole of it."""
    model, inputs = make_model("decoder"), make_inputs("decoder")
    with pytest.raises(TypeError, match="shift_labels"):
        model(**inputs, shift_labels=inputs["labels"])


@pytest.mark.parametrize("model_class", [HeadcountModel, MODEL_CLASSES["encoder"]])
def test_an_encoder_has_nothing_to_tie(model_class):
    config = tiny_config("encoder")
    config.tie_word_embeddings = True
    with pytest.raises(ValueError, match="tie_word_embeddings=True has no effect with architecture='encoder'"):
        model_class(config)


@pytest.mark.parametrize("problem", ["regression", "multi_label_classification"])
def test_a_classifier_gives_one_label_of_several(problem):
    config = tiny_config("encoder")
    config.problem_type = problem
    with pytest.raises(ValueError, match="expected classification with one of at least two labels"):
        MODEL_CLASSES["encoder"](config)


@pytest.mark.parametrize("architecture", MODEL_CLASSES)
@pytest.mark.parametrize("field, value", [("rms_norm_eps", 1.0), ("gradient_checkpointing", True)])
def test_a_field_of_other_models_set_on_a_config_is_an_error(architecture, field, value):
    """transformers' tests set such fields on every config; one that has them not would ignore them."""
    config = tiny_config(architecture)
    setattr(config, field, value)
    with pytest.raises(ValueError, match=f"'{field}' is not a field of HeadcountConfig"):
        MODEL_CLASSES[architecture](config)


@pytest.mark.parametrize("architecture", MODEL_CLASSES)
@pytest.mark.parametrize("encoding", ["rotary", "t5_bias"])
def test_an_exported_program_follows_tokens_and_mask(architecture, encoding):
    """`torch.export` keeps no value of the inputs it was made with: another mask hides other tokens."""
    llama = {"num_key_value_heads": 2, "feed_forward_type": "gated", "norm_type": "rms"}
    options = {"position_embedding_type": encoding} | (llama if encoding == "rotary" else {})
    model, inputs = make_model(architecture, **options), make_inputs(architecture, padding="left")
    with torch.no_grad():
        program = torch.export.export(model, (), kwargs=dict(inputs)).module()
        for padding in ("left", "right"):
            other = make_inputs(architecture, padding=padding, seed=9)
            torch.testing.assert_close(program(**other).logits, model(**other).logits, atol=1e-5, rtol=1e-5)
