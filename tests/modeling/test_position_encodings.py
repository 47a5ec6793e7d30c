"""Encodings against their references in transformers, and facts that must hold for each."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import make_inputs, make_model, serves, tiny_config
from transformers import LlamaConfig, T5Config
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb
from transformers.models.t5.modeling_t5 import T5Attention

from headcount.modeling.position_encodings import POSITION_ENCODINGS, sinusoid


def build(encoding: str, causal: bool = False, **options):
    module = POSITION_ENCODINGS[encoding](
        tiny_config("encoder", position_embedding_type=encoding, **options), causal=causal
    )
    torch.manual_seed(0)
    module.init_parameters()
    for parameter in module.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    return module


def test_rotary_is_llamas():
    query, key, ids = (
        torch.randn(2, 4, 6, 8),
        torch.randn(2, 4, 6, 8),
        torch.tensor([[0, 1, 2, 5, 9, 100], [3, 3, 3, 0, 7, 8]]),
    )
    llama = LlamaRotaryEmbedding(LlamaConfig(hidden_size=32, num_attention_heads=4))
    expected = apply_rotary_pos_emb(query, key, *llama(query, ids))
    actual = build("rotary").rotate(query, key, ids, ids)
    for ours, theirs in zip(actual, expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("heads", [2, 4, 6, 8, 12])
def test_alibi_is_blooms_up_to_a_constant_per_query(heads):
    encoding = build("alibi", causal=True, num_attention_heads=heads, hidden_size=heads * 4)
    ids = torch.arange(7)[None]
    ours = encoding.bias(None, ids, ids)[0]
    theirs = build_alibi_tensor(torch.ones(1, 7), heads, torch.float32)  # (heads, 1, keys): slope * key position
    hidden = torch.ones(7, 7, dtype=torch.bool).triu(1)
    weights = [bias.masked_fill(hidden, float("-inf")).softmax(-1) for bias in (ours, theirs.expand(-1, 7, -1))]
    torch.testing.assert_close(*weights, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_t5_bias_is_t5s(causal):
    encoding = build("t5_bias", causal=causal, position_bias_scale=1.0)
    config = T5Config(d_model=32, num_heads=4, d_kv=8, is_decoder=causal)
    theirs = T5Attention(config, has_relative_attention_bias=True)
    theirs.relative_attention_bias.weight.data.copy_(encoding.table)
    ids = torch.arange(300)[None]
    torch.testing.assert_close(encoding.bias(None, ids, ids), theirs.compute_bias(300, 300))


def test_sinusoid_is_the_papers_formula():
    table = sinusoid(torch.tensor([[0, 1, 17]]), 8)
    for row, position in enumerate((0, 1, 17)):
        for i in range(4):
            angle = position / 10000 ** (2 * i / 8)
            assert table[0, row, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-5)
            assert table[0, row, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-5)


def test_kerple_fire_and_relative_bias_are_their_formulas():
    q_ids, k_ids = torch.tensor([[4]]), torch.tensor([[1]])
    kerple = build("kerple")
    weight, rate = (torch.nn.functional.softplus(p) for p in (kerple.raw_weight, kerple.raw_rate))
    torch.testing.assert_close(kerple.bias(None, q_ids, k_ids).flatten(), -weight * torch.log(1 + 3 * rate))

    fire = build("fire", causal=True, fire_threshold=2.0)
    rate, reach = fire.rate.abs(), torch.maximum(fire.threshold.abs(), torch.tensor(4.0))
    x = torch.log(rate * 3 + 1) / torch.log(rate * reach + 1)
    hidden = torch.relu(fire.hidden.weight[:, 0] * x + fire.hidden.bias)
    torch.testing.assert_close(
        fire.bias(None, q_ids, k_ids).flatten(), 10.0 * (fire.output.weight @ hidden + fire.output.bias)
    )

    relative = build("relative_bias", relative_position_range=2, relative_bias_first_token=True)
    assert torch.equal(relative.bias(None, q_ids, k_ids).flatten(), 10.0 * relative.table[0])  # -3 clipped to -2
    assert torch.equal(relative.bias(None, q_ids, torch.tensor([[0]])).flatten(), 10.0 * relative.table[5])


def test_relative_key_scores_a_query_against_the_vector_of_the_difference():
    shaw = build("relative_key", relative_position_range=2)
    query = torch.randn(1, 4, 1, 8)
    bias = shaw.bias(query, torch.tensor([[4]]), torch.tensor([[1, 3, 4, 5, 9]]))
    torch.testing.assert_close(bias[0, :, 0], query[0, :, 0] @ shaw.table[[0, 1, 2, 3, 4]].t())


def test_alibi_directional_lets_even_heads_look_back_and_odd_heads_ahead():
    bias = build("alibi_directional").bias(None, torch.arange(3)[None], torch.arange(3)[None])[0]
    inf = float("inf")
    assert bias[0].tolist() == [[0, -inf, -inf], [-1, 0, -inf], [-2, -1, 0]]
    assert bias[1].tolist() == [[0, -1, -2], [-inf, 0, -1], [-inf, -inf, 0]]
    assert bias[2].tolist() == [[0, -inf, -inf], [-0.25, 0, -inf], [-0.5, -0.25, 0]]


@given(offset=st.integers(-1000, 1000), ids=st.lists(st.integers(-500, 500), min_size=2, max_size=6))
@settings(max_examples=25, deadline=None)
@pytest.mark.parametrize(
    "encoding", ["rotary", "alibi", "alibi_directional", "t5_bias", "relative_bias", "relative_key", "kerple"]
)
def test_scores_depend_on_differences_of_positions_only(encoding, offset, ids):
    module = build(encoding)
    ids = torch.tensor([ids])
    query, key = torch.randn(2, 1, 4, ids.shape[1], 8).unbind(0)

    def scores(shift: int) -> torch.Tensor:
        moved = ids + shift
        q, k = module.rotate(query.double(), key.double(), moved, moved)
        bias = module.bias(query, moved, moved)
        return (q @ k.transpose(-1, -2)) + (0 if bias is None else bias)

    torch.testing.assert_close(scores(0), scores(offset), atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize(
    "encoding",
    ["sinusoidal", "learned", "rotary", "alibi_directional", "t5_bias", "relative_bias", "relative_key", "fire"],
)
def test_these_encodings_tell_a_swap_from_the_original(encoding):
    model = make_model("encoder", position_embedding_type=encoding)
    input_ids = make_inputs("encoder", batch=1)["input_ids"]
    swapped = input_ids[:, [1, 0, *range(2, 9)]]
    assert (model(input_ids).logits - model(swapped).logits).abs().max() > 1e-5


@pytest.mark.parametrize("encoding", ["alibi", "kerple"])
def test_symmetric_encodings_cannot_tell_a_sequence_from_its_mirror_image(encoding):
    model = make_model("encoder", position_embedding_type=encoding)
    input_ids = make_inputs("encoder")["input_ids"]
    torch.testing.assert_close(model(input_ids).logits, model(input_ids.flip(-1)).logits, atol=1e-5, rtol=1e-5)


@given(order=st.permutations(range(9)))
@settings(max_examples=20, deadline=None)
def test_without_encoding_a_bidirectional_model_does_not_see_the_order(order):
    model = make_model("encoder", position_embedding_type="none")
    input_ids = make_inputs("encoder")["input_ids"]
    torch.testing.assert_close(model(input_ids).logits, model(input_ids[:, list(order)]).logits, atol=1e-5, rtol=1e-5)


def test_without_encoding_a_causal_model_does_see_the_order():
    model = make_model("encoder", position_embedding_type="none", attention_direction="causal")
    input_ids = make_inputs("encoder")["input_ids"]
    assert (model(input_ids).logits - model(input_ids.flip(-1)).logits).abs().max() > 1e-3


@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder", "encoder"])
@pytest.mark.parametrize("encoding", POSITION_ENCODINGS)
def test_left_padding_changes_nothing(encoding, architecture):
    if not serves(encoding, architecture):
        pytest.skip("refused at construction; see the config's tests")
    model = make_model(architecture, position_embedding_type=encoding, attention_normalizer="log_n")
    inputs = make_inputs(architecture, batch=2)
    padded = dict(inputs)
    padded["input_ids"] = torch.nn.functional.pad(inputs["input_ids"], (3, 0), value=0)
    padded["attention_mask"] = (padded["input_ids"] != 0).long()
    if architecture == "decoder":
        padded["labels"] = torch.nn.functional.pad(inputs["labels"], (3, 0), value=-100)
    expected, actual = model(**inputs).logits, model(**padded).logits
    if architecture == "decoder":
        actual = actual[:, 3:]
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("encoding", [name for name in POSITION_ENCODINGS if name not in ("none", "learned")])
def test_explicit_ids_may_be_any_integers_and_matter(encoding):
    model = make_model("encoder", position_embedding_type=encoding)
    input_ids = make_inputs("encoder")["input_ids"]
    plain = model(input_ids).logits
    assert torch.allclose(model(input_ids, position_ids=torch.arange(9)[None]).logits, plain, atol=1e-6)
    odd = torch.tensor([[-40, 3, 3, 7, 1000, 2, 0, 12, -1]])
    logits = model(input_ids, position_ids=odd).logits
    assert torch.isfinite(logits).all() and not torch.allclose(logits, plain, atol=1e-4)


def test_learned_positions_outside_of_the_table_raise_or_clamp():
    inputs = make_inputs("encoder")
    model = make_model("encoder", max_position_embeddings=4)
    with pytest.raises(ValueError, match="position_ids run from 0 to 8, but the learned table holds 0 to 3"):
        model(**inputs)
    model = make_model("encoder", max_position_embeddings=4, position_overflow="clamp")
    clamped = torch.arange(9)[None].clamp(max=3)
    assert torch.equal(model(**inputs).logits, model(**inputs, position_ids=clamped).logits)


@pytest.mark.parametrize("encoding", ["rotary", "alibi", "t5_bias", "relative_bias", "relative_key", "fire", "kerple"])
def test_cross_attention_sees_positions_only_when_asked_to(encoding):
    inputs = make_inputs("encoder-decoder")
    shifted = {"decoder_position_ids": torch.arange(6)[None] + 5}
    for wanted in (False, True):
        model = make_model("encoder-decoder", position_embedding_type=encoding, cross_attention_positions=wanted)
        maps = [model(**inputs, **ids, output_attentions=True).cross_attentions[0] for ids in ({}, shifted)]
        first_row = [m[:, :, 0] for m in maps]  # its self-attention sees itself only, so that only cross can change
        assert torch.allclose(*first_row, atol=1e-5) is not wanted
