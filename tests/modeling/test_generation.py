"""`generate()` against step-by-step decoding without a cache, for every encoding and scheme."""

import pytest
import torch
from small_models import make_inputs, make_model, serves
from transformers import DynamicCache, EncoderDecoderCache, GenerationConfig

from headcount.modeling.position_encodings import POSITION_ENCODINGS
from headcount.modeling.position_schemes import POSITION_SCHEMES


GENERATORS = ("encoder-decoder", "decoder")
LENGTH = 8


def prompt(architecture: str, padding: str | None = None) -> dict:
    inputs = make_inputs(architecture, padding=padding)
    return {name: inputs[name] for name in ("input_ids", "attention_mask") if name in inputs}


def greedy_without_cache(model, inputs: dict, **masks) -> torch.Tensor:
    """The plain definition: all tokens go through the model at every step, and the best next one is appended."""
    is_encoder_decoder = model.config.is_encoder_decoder
    tokens = torch.full((3, 1), 1) if is_encoder_decoder else inputs["input_ids"]
    for _ in range(LENGTH):
        if is_encoder_decoder:
            logits = model(**inputs, decoder_input_ids=tokens, use_cache=False, **masks).logits
        else:
            attention_mask = inputs.get("attention_mask")
            if attention_mask is not None:
                attention_mask = torch.nn.functional.pad(attention_mask, (0, tokens.shape[1] - 9), value=1)
            logits = model(tokens, attention_mask=attention_mask, use_cache=False, **masks).logits
        logits[:, -1, 2] = float("-inf")  # min_new_tokens forbids eos
        tokens = torch.cat((tokens, logits[:, -1].argmax(-1, keepdim=True)), dim=-1)
    return tokens


def settings(**options) -> dict:
    return {"max_new_tokens": LENGTH, "min_new_tokens": LENGTH, "do_sample": False, **options}


@pytest.mark.parametrize("shared", [None, 2])
@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("architecture", GENERATORS)
@pytest.mark.parametrize("encoding", [name for name in POSITION_ENCODINGS if serves(name, "decoder")])
def test_cached_generation_is_uncached_token_by_token(encoding, architecture, cache, shared):
    options = {"position_embedding_type": encoding, "num_key_value_heads": shared}
    for padding in (None, "left"):
        model = make_model(architecture, attention="sdpa", **options)
        inputs = prompt(architecture, padding)
        expected = greedy_without_cache(model, inputs)
        generated = model.generate(**inputs, **settings(cache_implementation=cache))
        assert generated.tolist() == expected.tolist()


@pytest.mark.parametrize("scheme", POSITION_SCHEMES)
@pytest.mark.parametrize("architecture", GENERATORS)
@pytest.mark.parametrize("encoding", ["learned", "rotary", "relative_bias", "relative_key"])
def test_ids_are_extended_correctly_step_by_step(encoding, architecture, scheme):
    if scheme == "nested" and encoding in ("learned", "rotary"):
        pytest.skip("its ids are too far apart for this encoding, and the config says so")
    options = {"position_embedding_type": encoding, "position_scheme": scheme}
    if architecture == "encoder-decoder" and encoding != "learned":
        options["cross_attention_positions"] = True
    model = make_model(architecture, **options)
    inputs = prompt(architecture)
    if scheme == "coupled" and architecture == "decoder":
        inputs["input_ids"][:, -1] = 14  # the answer starts here
    expected = greedy_without_cache(model, inputs)
    assert model.generate(**inputs, **settings()).tolist() == expected.tolist()
    beams = model.generate(**inputs, **settings(num_beams=3))
    assert beams.tolist() == model.generate(**inputs, **settings(num_beams=3, use_cache=False)).tolist()


@pytest.mark.parametrize("order", ["plain", "reversed", "aligned", "sorted"])
def test_coupled_ids_are_extended_correctly_in_every_order_of_the_answer(order):
    options = {"position_embedding_type": "relative_bias", "position_scheme": "coupled", "answer_order": order}
    model, inputs = make_model("decoder", **options), prompt("decoder")
    inputs["input_ids"][:, -1] = 14  # the answer starts here
    assert model.generate(**inputs, **settings()).tolist() == greedy_without_cache(model, inputs).tolist()


@pytest.mark.parametrize("architecture", GENERATORS)
def test_explicit_ids_reach_generation(architecture):
    model, inputs = make_model(architecture, position_embedding_type="t5_bias"), prompt(architecture)
    plain = model.generate(**inputs, **settings(output_scores=True, return_dict_in_generate=True))
    ids = {"position_ids": torch.arange(0, 27, 3).expand(3, -1)}
    moved = model.generate(**inputs, **ids, **settings(output_scores=True, return_dict_in_generate=True))
    assert not torch.allclose(plain.scores[0], moved.scores[0], atol=1e-4)
    uncached = model.generate(**inputs, **ids, **settings(use_cache=False))
    assert uncached.tolist() == moved.sequences.tolist()


def test_explicit_ids_and_a_scheme_that_reads_tokens_are_an_error():
    model = make_model("decoder", position_scheme="abacus", position_embedding_type="rotary")
    with pytest.raises(ValueError, match="position_ids cannot be given to generate"):
        model.generate(**prompt("decoder"), position_ids=torch.arange(9)[None])


@pytest.mark.parametrize("shared", [None, 2])
@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("architecture", GENERATORS)
@pytest.mark.parametrize("how", [{}, {"num_beams": 3}, {"do_sample": True}, {"cache_implementation": "static"}])
def test_head_masks_work_in_generate(architecture, attention, how, shared):
    """Masking by examples equals masking each example alone: no row is mixed up, whatever the search does."""
    model = make_model(architecture, attention=attention, num_key_value_heads=shared)
    inputs = prompt(architecture)
    options = settings(**how)
    torch.manual_seed(0)
    masks = {name: (torch.rand(3, layers, 4) > 0.5).float() for name, layers in model._masks().items()}
    if how.get("do_sample"):
        torch.manual_seed(0)
        scores = model.generate(**inputs, **masks, **options, output_scores=True, return_dict_in_generate=True).scores[
            0
        ]
        zero = {name: torch.zeros(4) for name in masks}
        torch.manual_seed(0)
        silent = model.generate(**inputs, **zero, **options, output_scores=True, return_dict_in_generate=True).scores[
            0
        ]
        assert not torch.allclose(scores, silent)
        return
    together = model.generate(**inputs, **masks, **options)
    for row in range(3):
        alone = {name: mask[row] for name, mask in masks.items()}  # (layers, heads)
        single = model.generate(inputs["input_ids"][row : row + 1], **alone, **options)
        assert single[0].tolist() == together[row].tolist()


@pytest.mark.parametrize("architecture", GENERATORS)
@pytest.mark.parametrize("use_cache", [True, False])
@pytest.mark.parametrize("num_beams", [1, 3])
def test_a_mask_of_zeros_changes_the_scores_of_generation(architecture, use_cache, num_beams):
    model, inputs = make_model(architecture, attention="sdpa"), prompt(architecture)
    options = settings(use_cache=use_cache, num_beams=num_beams, output_scores=True, return_dict_in_generate=True)
    plain = model.generate(**inputs, **options)
    for name in model._masks():
        for shape in ((4,), (2, 4), (3, 2, 4)):
            masked = model.generate(**inputs, **{name: torch.zeros(shape)}, **options)
            assert not torch.allclose(masked.scores[0], plain.scores[0], atol=1e-4)
        with pytest.raises(ValueError, match=rf"{name} has shape \(2, 3\), expected \(4,\), \(2, 4\) or \(3, 2, 4\)"):
            model.generate(**inputs, **{name: torch.zeros(2, 3)}, **options)


def test_a_mask_for_an_encoder_that_has_run_already_is_an_error():
    model, inputs = make_model(), prompt("encoder-decoder")
    encoded = model.get_encoder()(**inputs)
    plain = model.generate(encoder_outputs=encoded, **settings())
    assert plain.tolist() == model.generate(**inputs, **settings()).tolist()
    with pytest.raises(ValueError, match="head_mask has no effect on encoder_outputs"):
        model.generate(encoder_outputs=encoded, head_mask=torch.zeros(4), **settings())
    with pytest.raises(ValueError, match="head_mask has no effect on encoder_outputs"):
        model(encoder_outputs=encoded, head_mask=torch.zeros(4), decoder_input_ids=torch.tensor([[1]] * 3))


def test_generation_starts_from_what_training_starts_from():
    """The first generated token is the argmax of the teacher-forced logits at the first label, and so on."""
    model, inputs = make_model(attention="sdpa"), prompt("encoder-decoder")
    generated = model.generate(**inputs, **settings())
    assert (generated[:, 0] == model.config.decoder_start_token_id).all()
    labels = generated[:, 1:]
    teacher_forced = model(**inputs, labels=labels).logits
    teacher_forced[:, :, 2] = float("-inf")  # min_new_tokens forbids eos
    assert torch.equal(teacher_forced.argmax(-1), labels)


def test_manual_decoding_with_a_cache_wants_all_ids_where_they_matter():
    model = make_model("decoder", position_embedding_type="alibi")
    tokens = prompt("decoder")["input_ids"]
    past = model(tokens[:, :5], use_cache=True).past_key_values
    step = model(tokens[:, 5:6], past_key_values=past, position_ids=torch.arange(6)[None])
    torch.testing.assert_close(step.logits[:, -1], model(tokens[:, :6]).logits[:, -1], atol=1e-5, rtol=1e-5)
    with pytest.raises(ValueError, match="position_ids has length 1, expected 7"):
        model(tokens[:, 6:7], past_key_values=past, position_ids=torch.tensor([[6]]))
    with pytest.raises(ValueError, match=r"attention_mask has shape \(3, 1\), expected \(3, 7\)"):
        model(tokens[:, 6:7], past_key_values=past, attention_mask=torch.ones(3, 1))


@pytest.mark.parametrize("encoding", ["learned", "rotary"])
def test_manual_decoding_with_ids_of_the_new_token_only(encoding):
    model = make_model("decoder", position_embedding_type=encoding)
    tokens = prompt("decoder")["input_ids"]
    past = model(tokens[:, :5], use_cache=True).past_key_values
    step = model(tokens[:, 5:6], past_key_values=past, position_ids=torch.tensor([[5]]))
    torch.testing.assert_close(step.logits[:, -1], model(tokens[:, :6]).logits[:, -1], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("encoding", ["learned", "rotary", "relative_bias"])
def test_generation_after_a_right_padded_prompt_is_what_forward_says(encoding):
    model, inputs = make_model("decoder", position_embedding_type=encoding), prompt("decoder", "right")
    output = model.generate(**inputs, **settings(output_logits=True, return_dict_in_generate=True))
    mask = torch.nn.functional.pad(inputs["attention_mask"], (0, LENGTH), value=1)
    logits = model(output.sequences, attention_mask=mask).logits[:, 8:-1]
    torch.testing.assert_close(torch.stack(output.logits, 1)[:, 1:], logits[:, 1:], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("encoding", [name for name in POSITION_ENCODINGS if serves(name, "decoder")])
@pytest.mark.parametrize("architecture", GENERATORS)
def test_eager_and_sdpa_agree_with_a_cache(architecture, encoding):
    model, inputs = make_model(architecture, position_embedding_type=encoding), prompt(architecture, "left")
    masks = {name: torch.rand(3, layers, 4) for name, layers in model._masks().items()}
    scores = {}
    for attention in ("eager", "sdpa"):
        model.set_attn_implementation(attention)
        output = model.generate(**inputs, **masks, **settings(output_logits=True, return_dict_in_generate=True))
        scores[attention] = torch.stack(output.logits)
    torch.testing.assert_close(scores["eager"], scores["sdpa"], atol=1e-5, rtol=1e-5)


def test_ids_for_one_row_serve_the_whole_batch_under_beams():
    model, inputs = make_model("decoder", position_embedding_type="alibi"), prompt("decoder")
    shared = torch.arange(0, 18, 2)[None]
    each = model.generate(**inputs, position_ids=shared.expand(3, -1), **settings(num_beams=2))
    assert model.generate(**inputs, position_ids=shared, **settings(num_beams=2)).tolist() == each.tolist()


def test_generation_from_embeddings_is_generation_from_tokens():
    model, inputs = make_model("decoder", position_embedding_type="rotary"), prompt("decoder")
    embeds = model.get_input_embeddings()(inputs["input_ids"])
    new = model.generate(inputs_embeds=embeds, **settings())
    assert new.tolist() == model.generate(**inputs, **settings())[:, 9:].tolist()


def test_what_generate_cannot_do_is_said():
    model, inputs = make_model("decoder"), prompt("decoder")
    for name, value in (("prefill_chunk_size", 4), ("assistant_early_exit", 1)):
        with pytest.raises(ValueError, match=f"{name} is not supported"):
            model.generate(**inputs, **{name: value})
        with pytest.raises(ValueError, match=f"{name} is not supported"):
            model.generate(inputs["input_ids"], GenerationConfig(**{name: value}))
    with pytest.raises(ValueError, match="assistant_model cannot be combined with head_mask"):
        model.generate(**inputs, assistant_model=model, head_mask=torch.ones(4))
    coupled = make_model("decoder", position_scheme="coupled", position_embedding_type="rotary")
    with pytest.raises(ValueError, match="a prompt has no token 14"):
        coupled.generate(torch.tensor([[3, 4, 13, 5]]))
    with pytest.raises(ValueError, match="inputs_embeds cannot be given"):
        coupled.generate(inputs_embeds=torch.randn(1, 3, 32))


def test_masks_reach_every_sequence_that_is_returned():
    """Three samples per example: with (batch, layers, heads) masks, each has the mask of its own example."""
    model, inputs = make_model(), prompt("encoder-decoder")
    masks = {name: (torch.rand(3, layers, 4) > 0.5).float() for name, layers in model._masks().items()}
    options = {"do_sample": True, "num_return_sequences": 3, "output_logits": True, "return_dict_in_generate": True}
    first = model.generate(**inputs, **masks, **settings(**options)).logits[0].view(3, 3, -1)
    for row in range(3):
        alone = model(
            inputs["input_ids"][row : row + 1],
            decoder_input_ids=torch.tensor([[1]]),
            **{name: mask[row] for name, mask in masks.items()},
        )
        torch.testing.assert_close(first[row], alone.logits[0].expand(3, -1), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("encoding", ["learned", "rotary", "t5_bias"])
def test_a_prompt_padded_at_the_end_gives_the_same_alone_and_with_what_follows(encoding):
    """Assisted decoding reads prompt and candidates in one pass, plain decoding one after the other."""
    model = make_model("decoder", position_embedding_type=encoding)
    tokens = torch.tensor([[5, 6, 7, 8, 0, 0, 9, 4]])
    real = (tokens != 0).long()
    alone = model(input_ids=tokens[:, :6], attention_mask=real[:, :6]).logits
    torch.testing.assert_close(model(input_ids=tokens, attention_mask=real).logits[:, :6], alone)


@pytest.mark.parametrize("padding", [None, "left"])
def test_a_compiled_step_is_compiled_once_for_all_tokens(padding):
    model, inputs = make_model("decoder", position_embedding_type="rotary"), prompt("decoder", padding)
    plain = model.generate(**inputs, **settings(cache_implementation="static"))
    graphs = []

    def count(graph, example_inputs):
        graphs.append(graph)
        return graph.forward

    torch.compiler.reset()
    model.forward = torch.compile(model.forward, fullgraph=True, dynamic=False, backend=count)
    assert torch.equal(model.generate(**inputs, **settings(cache_implementation="static")), plain)
    assert len(graphs) == 2, "one for the prompt, one for every token after it"


@pytest.mark.parametrize("architecture", GENERATORS)
@pytest.mark.parametrize("encoding", ["learned", "rotary", "t5_bias"])
def test_generation_goes_on_from_the_cache_it_left(encoding, architecture):
    model, inputs = make_model(architecture, position_embedding_type=encoding), prompt(architecture, "left")
    name = "decoder_input_ids" if architecture == "encoder-decoder" else "input_ids"
    whole = model.generate(**inputs, **settings())
    half = model.generate(**inputs, **settings(max_new_tokens=4, min_new_tokens=4, return_dict_in_generate=True))
    rest = inputs | {name: half.sequences, "past_key_values": half.past_key_values}
    if architecture == "decoder":
        rest["attention_mask"] = torch.nn.functional.pad(inputs["attention_mask"], (0, 4), value=1)
    assert torch.equal(model.generate(**rest, **settings(max_new_tokens=4, min_new_tokens=4)), whole)


def test_a_filled_cache_wants_the_tokens_it_was_filled_with():
    model, inputs = make_model(), prompt("encoder-decoder")
    empty = EncoderDecoderCache(DynamicCache(), DynamicCache())
    assert torch.equal(
        model.generate(**inputs, past_key_values=empty, **settings()), model.generate(**inputs, **settings())
    )
    for given, said in (({}, "is missing"), ({"decoder_input_ids": torch.tensor([[1]] * 3)}, "has 1")):
        filled = model(**inputs, decoder_input_ids=torch.tensor([[1, 5, 6]] * 3), use_cache=True).past_key_values
        with pytest.raises(ValueError, match=f"past_key_values holds 3 tokens and decoder_input_ids {said}"):
            model.generate(**inputs, **given, past_key_values=filled, **settings())


@pytest.mark.parametrize("architecture", GENERATORS)
@pytest.mark.parametrize("padding", [None, "left", "right"])
@pytest.mark.parametrize("encoding", ["learned", "rotary", "t5_bias", "relative_key"])
def test_decoding_with_guesses_is_greedy_decoding(encoding, padding, architecture):
    """Candidates of a helper, good ones and bad ones, or from the prompt itself are taken only if they are right."""
    model = make_model(architecture, position_embedding_type=encoding)
    inputs = {name: value[1:2] for name, value in prompt(architecture, padding).items()}
    expected = model.generate(**inputs, **settings())
    stranger = make_model(architecture, seed=3, position_embedding_type=encoding)
    for how in ({"assistant_model": model}, {"assistant_model": stranger}, {"prompt_lookup_num_tokens": 3}):
        assert torch.equal(model.generate(**inputs, **settings(**how)), expected)
