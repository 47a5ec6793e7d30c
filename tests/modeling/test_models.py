"""Every encoding x attention function x model class, and what transformers users expect of a model."""

import copy
import json
import math

import pytest
import torch
from small_models import MODEL_CLASSES, make_inputs, make_model, serves, tiny_config
from transformers import AutoModel, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoModelForSequenceClassification

from headcount import HeadcountConfig, HeadcountModel
from headcount.modeling.attention import ATTENTION_FUNCTIONS
from headcount.modeling.modeling_headcount import shift_right
from headcount.modeling.position_encodings import POSITION_ENCODINGS


AUTO_CLASSES = {
    "encoder-decoder": AutoModelForSeq2SeqLM,
    "decoder": AutoModelForCausalLM,
    "encoder": AutoModelForSequenceClassification,
}
EVERYTHING = [
    (encoding, architecture)
    for encoding in POSITION_ENCODINGS
    for architecture in MODEL_CLASSES
    if serves(encoding, architecture)
]


@pytest.mark.parametrize("attention", ATTENTION_FUNCTIONS)
@pytest.mark.parametrize("encoding, architecture", EVERYTHING)
def test_reloaded_models_are_bit_identical_and_every_parameter_learns(encoding, architecture, attention, tmp_path):
    inputs = make_inputs(architecture, padding="right")
    model = make_model(architecture, attention=attention, position_embedding_type=encoding)
    expected = model(**inputs).logits
    model.save_pretrained(tmp_path)
    assert {path.name for path in tmp_path.glob("*.safetensors")} == {"model.safetensors"}
    loaded = AUTO_CLASSES[architecture].from_pretrained(tmp_path, attn_implementation=attention)
    assert type(loaded) is MODEL_CLASSES[architecture] and not loaded.training
    assert torch.equal(loaded(**inputs).logits, expected)

    loaded.train()
    loaded(**inputs).loss.backward()
    silent = [
        name for name, parameter in loaded.named_parameters() if parameter.grad is None or not parameter.grad.any()
    ]
    assert silent == []


@pytest.mark.parametrize("architecture", MODEL_CLASSES)
def test_tied_embeddings_are_one_tensor_before_and_after_loading(architecture, tmp_path):
    if architecture == "encoder":
        pytest.skip("a classifier has nothing to tie")
    inputs = make_inputs(architecture)
    model = make_model(architecture, attention="sdpa", tie_word_embeddings=True)
    model.save_pretrained(tmp_path)
    loaded = AUTO_CLASSES[architecture].from_pretrained(tmp_path)
    for tied in (model, loaded):
        tables = {id(stack.embed_tokens.weight) for stack in tied.model.children()}
        assert tables == {id(tied.lm_head.weight)}
    assert torch.equal(loaded(**inputs).logits, model(**inputs).logits)
    untied = make_model(architecture)
    assert untied.num_parameters() - model.num_parameters() == 20 * 32 * (
        2 if architecture == "encoder-decoder" else 1
    )


@pytest.mark.parametrize("architecture", MODEL_CLASSES)
def test_auto_model_gives_the_bare_stacks(architecture, tmp_path):
    model = make_model(architecture, attention="sdpa")
    model.save_pretrained(tmp_path)
    bare = AutoModel.from_pretrained(tmp_path)
    assert type(bare) is HeadcountModel
    inputs = {"input_ids": make_inputs(architecture)["input_ids"]}
    if architecture == "encoder-decoder":
        inputs["decoder_input_ids"] = torch.tensor([[1, 5]] * 3)
    expected = model.model(**inputs).last_hidden_state
    assert torch.equal(bare(**inputs).last_hidden_state, expected)
    assert isinstance(bare(**inputs, return_dict=False), tuple)


@pytest.mark.parametrize("architecture", MODEL_CLASSES)
def test_a_model_refuses_a_config_of_another_architecture(architecture):
    other = "encoder" if architecture != "encoder" else "decoder"
    with pytest.raises(ValueError, match=f"cannot serve architecture='{other}'; expected '{architecture}'"):
        MODEL_CLASSES[architecture](tiny_config(other))


@pytest.mark.parametrize("architecture", MODEL_CLASSES)
def test_unknown_arguments_are_errors_and_not_swallowed(architecture):
    model, inputs = make_model(architecture), make_inputs(architecture)
    with pytest.raises(TypeError, match="head_maks"):
        model(**inputs, head_maks=torch.zeros(4))
    if architecture != "encoder-decoder":
        with pytest.raises(TypeError, match="decoder_head_mask"):
            model(**inputs, decoder_head_mask=torch.zeros(4))
        with pytest.raises(ValueError, match="decoder_head_mask has no effect"):
            model.model(inputs["input_ids"], decoder_head_mask=torch.zeros(4))


def test_decoder_inputs_are_the_labels_shifted_behind_the_start_token():
    labels = torch.tensor([[4, 4, 11, 11, 2], [5, 2, -100, -100, -100]])
    shifted = [[1, 4, 4, 11, 11], [1, 5, 2, 0, 0]]
    assert shift_right(labels, decoder_start_token_id=1, pad_token_id=0).tolist() == shifted
    model = make_model()
    assert model.prepare_decoder_input_ids_from_labels(labels).tolist() == shifted
    inputs = make_inputs("encoder-decoder", batch=2)
    implicit = model(input_ids=inputs["input_ids"], labels=labels)
    explicit = model(input_ids=inputs["input_ids"], decoder_input_ids=torch.tensor(shifted))
    torch.testing.assert_close(implicit.logits, explicit.logits)
    expected = torch.nn.functional.cross_entropy(explicit.logits.flatten(0, 1), labels.flatten(), ignore_index=-100)
    torch.testing.assert_close(implicit.loss, expected)


def test_causal_labels_are_the_inputs_themselves():
    model, inputs = make_model("decoder"), make_inputs("decoder")
    output = model(**inputs)
    expected = torch.nn.functional.cross_entropy(
        output.logits[:, :-1].flatten(0, 1), inputs["labels"][:, 1:].flatten()
    )
    torch.testing.assert_close(output.loss, expected)


@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder"])
def test_a_decoder_does_not_see_the_future(architecture):
    model, inputs = make_model(architecture, position_embedding_type="t5_bias"), make_inputs(architecture)
    name = "input_ids" if architecture == "decoder" else "decoder_input_ids"
    own = inputs["input_ids"] if architecture == "decoder" else inputs.pop("labels")
    inputs.pop("labels", None)
    changed = own.clone()
    changed[:, 4:] = 3
    before, after = (model(**(inputs | {name: tokens})).logits for tokens in (own, changed))
    assert torch.equal(before[:, :4], after[:, :4]) and not torch.equal(before[:, 4:], after[:, 4:])


@pytest.mark.parametrize("architecture", MODEL_CLASSES)
@pytest.mark.parametrize("encoding", ["learned", "t5_bias", "relative_key"])
def test_gradient_checkpointing_gives_the_same_gradients(architecture, encoding):
    model, inputs = make_model(architecture, position_embedding_type=encoding), make_inputs(architecture)
    model.train()
    model(**inputs).loss.backward()
    expected = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    model.zero_grad()
    model.gradient_checkpointing_enable()
    mask = torch.ones(4, requires_grad=True)
    model(**inputs, head_mask=mask).loss.backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, expected[name], atol=1e-6, rtol=1e-5)
    assert mask.grad.abs().min() > 0


@pytest.mark.parametrize("attention", ATTENTION_FUNCTIONS)
@pytest.mark.parametrize("encoding, architecture", EVERYTHING)
def test_bfloat16(encoding, architecture, attention):
    model = make_model(
        architecture, attention=attention, position_embedding_type=encoding, attention_normalizer="log_n"
    )
    inputs = make_inputs(architecture, padding="left")
    expected = model(**inputs).logits
    logits = model.to(torch.bfloat16)(**inputs).logits
    assert logits.dtype == torch.bfloat16
    assert torch.nn.functional.cosine_similarity(logits.float().flatten(), expected.flatten(), dim=0) > 0.99


@pytest.mark.parametrize("architecture", MODEL_CLASSES)
@pytest.mark.parametrize("encoding", ["learned", "rotary", "alibi", "relative_key"])
def test_compiles_into_one_graph(architecture, encoding):
    """Tracing is what breaks; `aot_eager` traces forward and backward and leaves out only the slow code generation."""
    torch.compiler.reset()
    options = {"position_embedding_type": encoding, "score_jitter": 0.9}
    if encoding == "rotary":  # a Llama
        options |= {"num_key_value_heads": 2, "feed_forward_type": "gated", "norm_type": "rms"}
    model = make_model(architecture, attention="sdpa", **options)
    inputs = make_inputs(architecture, padding="left")
    masks = {name: torch.rand(layers, 4) for name, layers in model._masks().items()}
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(
        compiled(**inputs, **masks).logits, model(**inputs, **masks).logits, atol=1e-5, rtol=1e-5
    )
    model.train()
    compiled(**inputs, **masks).loss.backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize("dropout, attention_dropout", [(0.5, 0.0), (0.0, 0.5)])
@pytest.mark.parametrize("attention", ATTENTION_FUNCTIONS)
def test_dropout_acts_in_training_only(dropout, attention_dropout, attention):
    model = make_model("encoder", attention=attention, dropout=dropout, attention_dropout=attention_dropout)
    inputs = make_inputs("encoder")
    assert torch.equal(model(**inputs).logits, model(**inputs).logits)
    model.train()
    assert not torch.equal(model(**inputs).logits, model(**inputs).logits)


def test_hidden_states_and_tuple_output():
    model, inputs = make_model(), make_inputs("encoder-decoder")
    output = model(**inputs, output_hidden_states=True)
    assert len(output.encoder_hidden_states) == len(output.decoder_hidden_states) == 3
    assert torch.equal(output.encoder_hidden_states[-1], output.encoder_last_hidden_state)
    assert torch.equal(model(**inputs, return_dict=False)[1], output.logits)


def test_the_course_model_has_the_expected_number_of_parameters():
    """2+2 layers, 4 heads, 128 wide, 512 in between: counted by hand."""
    config = HeadcountConfig(vocab_size=16, max_position_embeddings=16)
    attention, norm = 4 * (128 * 128 + 128), 2 * 128
    feed_forward = 128 * 512 + 512 + 512 * 128 + 128
    encoder = 2 * (attention + feed_forward + 2 * norm) + norm
    decoder = 2 * (2 * attention + feed_forward + 3 * norm) + norm
    tables = 2 * (16 + 16) * 128 + 16 * 128
    assert MODEL_CLASSES["encoder-decoder"](config).num_parameters() == encoder + decoder + tables


def test_loading_needs_nothing_but_safetensors_and_json(tmp_path):
    make_model().save_pretrained(tmp_path)
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".json", ".safetensors"]
    assert json.loads((tmp_path / "config.json").read_text())["model_type"] == "headcount"


def test_a_copy_of_a_model_is_independent():
    model = make_model()
    other = copy.deepcopy(model)
    other.prune_heads(["encoder.0.self.0"])
    assert len(model.list_heads()) == 24 and model.config.pruned_heads == {}


def test_two_models_of_one_config_do_not_touch_each_other(tmp_path):
    config = tiny_config()
    first, second = (MODEL_CLASSES["encoder-decoder"](config) for _ in range(2))
    first.prune_heads(["encoder.0.self.0"])
    assert config.pruned_heads == second.config.pruned_heads == {}
    second.save_pretrained(tmp_path)
    assert len(AutoModelForSeq2SeqLM.from_pretrained(tmp_path).list_heads()) == 24
    assert first.model.config is first.config and first.model.encoder.layers[0].self_attn.config is first.config


@pytest.mark.parametrize("tied", [False, True])
def test_resized_vocabularies_reach_both_stacks(tied, tmp_path):
    model = make_model(attention="sdpa", tie_word_embeddings=tied)
    inputs = make_inputs("encoder-decoder")
    before = model(**inputs).logits
    model.resize_token_embeddings(25)
    torch.testing.assert_close(model(**inputs).logits[..., :20], before)
    inputs["labels"][0, 0] = inputs["input_ids"][0, 0] = 24
    expected = model(**inputs).logits
    assert expected.shape[-1] == 25 and model.model.decoder.embed_tokens.num_embeddings == 25
    model.save_pretrained(tmp_path)
    assert torch.equal(AutoModelForSeq2SeqLM.from_pretrained(tmp_path)(**inputs).logits, expected)


@pytest.mark.parametrize("architecture", MODEL_CLASSES)
def test_tuples_by_config(architecture):
    model, inputs = make_model(architecture, return_dict=False), make_inputs(architecture)
    assert isinstance(model(**inputs), tuple)
    if architecture != "encoder":
        assert model.generate(inputs["input_ids"], max_new_tokens=3).shape[0] == 3


@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder"])
def test_the_parts_of_an_accumulated_batch_weigh_their_labels(architecture):
    model, inputs = make_model(architecture), make_inputs(architecture)
    inputs["labels"][0, 2:] = -100
    shift = 0 if architecture == "encoder-decoder" else 1
    total = (inputs["labels"][:, shift:] != -100).sum()
    parts = [model(**{n: v[i : i + 1] for n, v in inputs.items()}, num_items_in_batch=total).loss for i in range(3)]
    torch.testing.assert_close(sum(parts), model(**inputs).loss)


def test_frozen_parameters_stay_frozen_when_pruned():
    model = make_model().requires_grad_(False)
    model.prune_heads(["encoder.0.self.0"])
    assert not any(parameter.requires_grad for parameter in model.parameters())


def test_bad_inputs_get_a_sentence():
    model, classifier = make_model(), make_model("encoder")
    tokens = make_inputs("encoder")["input_ids"]
    for inputs, message in (
        ({"input_ids": tokens[0]}, r"input_ids has shape \(9,\), expected \(batch, length\)"),
        ({"input_ids": tokens[:, :0]}, r"input_ids has shape \(3, 0\)"),
        ({"input_ids": tokens + 9}, "input_ids run from .* expected 0 to 19"),
        (
            {"input_ids": tokens, "attention_mask": torch.ones(9)},
            r"attention_mask has shape \(9,\), expected \(3, 9\)",
        ),
        ({"input_ids": tokens, "position_ids": torch.zeros(2, 9, dtype=torch.long)}, r"expected \(1, length\) or \(3"),
        ({}, "expected exactly one of input_ids and inputs_embeds"),
    ):
        with pytest.raises(ValueError, match=message):
            classifier(**inputs)
    with pytest.raises(ValueError, match="decoder_input_ids and decoder_inputs_embeds, or labels"):
        model(tokens)
    encoded = model.get_encoder()(tokens)
    with pytest.raises(ValueError, match=r"attention_mask has shape \(1, 9\), expected \(3, 9\)"):
        model(encoder_outputs=encoded, attention_mask=torch.ones(1, 9), decoder_input_ids=torch.tensor([[1]] * 3))
    with pytest.raises(ValueError, match="cross_attn_head_mask has no effect on a stack without cross-attention"):
        model.get_encoder()(tokens, cross_attn_head_mask=torch.zeros(4))


def test_encoder_outputs_without_ids_are_refused_where_ids_matter():
    model = make_model(position_embedding_type="rotary", cross_attention_positions=True)
    tokens, start = make_inputs("encoder-decoder")["input_ids"], torch.tensor([[1]] * 3)
    encoded = model.get_encoder()(tokens, position_ids=torch.arange(0, 18, 2)[None])
    direct = model(tokens, position_ids=torch.arange(0, 18, 2)[None], decoder_input_ids=start).logits
    torch.testing.assert_close(model(encoder_outputs=encoded, decoder_input_ids=start).logits, direct)
    with pytest.raises(ValueError, match="encoder_outputs has no position_ids"):
        model(encoder_outputs=(encoded[0],), decoder_input_ids=start)


def test_log_n_counts_what_each_head_can_see():
    log_maps, plain = (
        make_model("encoder", position_embedding_type="alibi_directional", attention_normalizer=name)(
            **make_inputs("encoder", batch=1), output_attentions=True
        )
        .attentions[0]
        .log()
        for name in ("log_n", "softmax")
    )
    for query in (1, 4, 8):  # head 0 looks back: it sees query + 1 keys
        ratio = (log_maps[0, 0, query, 0] - log_maps[0, 0, query, 1]) / (plain[0, 0, query, 0] - plain[0, 0, query, 1])
        assert ratio.item() == pytest.approx(math.log(query + 1), rel=1e-3)


def test_fire_gives_the_same_in_parts(monkeypatch):
    from headcount.modeling.position_encodings import FireEncoding

    model, inputs = make_model("encoder", position_embedding_type="fire"), make_inputs("encoder")
    whole = model(**inputs).logits
    monkeypatch.setattr(FireEncoding, "MOST_CELLS", 20)
    torch.testing.assert_close(model(**inputs).logits, whole)


def test_query_key_init_gain_scales_the_first_queries_and_keys_alone(tmp_path):
    models = {}
    for gain in (1.0, 0.5):
        torch.manual_seed(0)
        models[gain] = MODEL_CLASSES["encoder-decoder"](tiny_config("encoder-decoder", query_key_init_gain=gain))
    for (name, plain), other in zip(models[1.0].named_parameters(), models[0.5].parameters(), strict=True):
        factor = 0.5 if name.endswith(("q_proj.weight", "k_proj.weight")) else 1.0
        assert torch.equal(factor * plain, other), name
    models[0.5].save_pretrained(tmp_path)
    loaded = type(models[0.5]).from_pretrained(tmp_path)
    assert all(torch.equal(a, b) for a, b in zip(models[0.5].parameters(), loaded.parameters(), strict=True))


@pytest.mark.parametrize("as_numbers", [False, True])
@pytest.mark.parametrize("padding", [None, "left", "right"])
@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder", "encoder"])
def test_a_mask_of_four_axes_is_the_mask_of_two_that_says_the_same(architecture, padding, as_numbers):
    model, inputs = (
        make_model(architecture, position_embedding_type="rotary"),
        make_inputs(architecture, padding=padding),
    )
    expected = model(**inputs).logits
    real = inputs.get("attention_mask", torch.ones(3, 9)).bool()
    whole = real[:, None, None].expand(3, 1, 9, 9)
    if architecture == "decoder":
        whole = whole & torch.ones(9, 9, dtype=torch.bool).tril()
    if as_numbers:
        whole = torch.zeros(whole.shape).masked_fill(~whole, torch.finfo(torch.float32).min)
    found = model(**{**inputs, "attention_mask": whole}).logits
    rows = real if architecture == "decoder" else slice(None)
    torch.testing.assert_close(found[rows], expected[rows])


def test_a_mask_of_four_axes_says_itself_who_sees_whom():
    """Two texts in one row that do not see each other, and a mask for every head."""
    model = make_model("decoder", position_embedding_type="alibi")
    first, second = torch.tensor([[5, 6, 7]]), torch.tensor([[8, 9, 4, 3]])
    apart = torch.block_diag(torch.ones(3, 3), torch.ones(4, 4)).tril().bool()[None, None]
    packed = model(torch.cat([first, second], 1), attention_mask=apart).logits
    torch.testing.assert_close(packed[:, :3], model(first).logits)
    torch.testing.assert_close(packed[:, 3:], model(second).logits)
    each = apart.repeat(1, 4, 1, 1)
    torch.testing.assert_close(model(torch.cat([first, second], 1), attention_mask=each).logits, packed)
    each[:, 2, 1] = False
    assert not torch.equal(model(torch.cat([first, second], 1), attention_mask=each).logits, packed)
    for wrong, sentence in (
        (apart[..., :5], r"expected \(1, 1, 7, 7\), with 4 for 1 where heads differ, or \(1, 7\)"),
        (apart.long(), "expected booleans, or numbers to be added"),
        (apart.float(), "expected 0 where a query sees a key, and -inf"),
    ):
        with pytest.raises(ValueError, match=sentence):
            model(torch.cat([first, second], 1), attention_mask=wrong)
