"""The from-scratch attention against torch's own modules, and the two attention functions against each other."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import make_inputs, make_model, serves, tiny_config
from torch import nn

from headcount.modeling.attention import ATTENTION_FUNCTIONS, HeadcountAttention, eager_attention, sdpa_attention
from headcount.modeling.layers import HeadcountLayer
from headcount.modeling.masking import visible_keys
from headcount.modeling.normalizers import NORMALIZERS
from headcount.modeling.position_encodings import POSITION_ENCODINGS, PositionEncoding


def copy_attention(ours: HeadcountAttention, theirs: nn.MultiheadAttention) -> None:
    weights, biases = theirs.in_proj_weight.chunk(3), theirs.in_proj_bias.chunk(3)
    for projection, weight, bias in zip((ours.q_proj, ours.k_proj, ours.v_proj), weights, biases, strict=True):
        projection.weight.data.copy_(weight)
        projection.bias.data.copy_(bias)
    ours.out_proj.load_state_dict(theirs.out_proj.state_dict())


def randomize(module: nn.Module) -> None:
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)


def plain(config, queries: int, keys: int) -> dict:
    ids = torch.arange(max(queries, keys))[None]
    shared = {"position_encoding": PositionEncoding(config), "normalizer": NORMALIZERS["softmax"](config)}
    return shared | {"q_ids": ids[:, :queries], "k_ids": ids[:, :keys]}


@pytest.mark.parametrize("attention", ATTENTION_FUNCTIONS)
@pytest.mark.parametrize("cross", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_same_as_multihead_attention(attention, cross, masked):
    torch.manual_seed(0)
    config = tiny_config()
    config._attn_implementation = attention
    ours = HeadcountAttention(config, "decoder.0.cross" if cross else "encoder.0.self", 0)
    theirs = nn.MultiheadAttention(32, 4, batch_first=True)
    randomize(theirs)
    copy_attention(ours, theirs)
    states = torch.randn(3, 5, 32)
    memory = torch.randn(3, 7, 32) if cross else states
    padding = torch.arange(memory.shape[1])[None] >= torch.tensor([[7], [4], [2]])
    mask = ~padding[:, None, None] if masked else None
    expected, expected_maps = theirs(
        states, memory, memory, key_padding_mask=padding if masked else None, average_attn_weights=False
    )
    options = plain(config, 5, memory.shape[1]) | {"encoder_hidden_states": memory if cross else None}
    output, maps = ours(states, attention_mask=mask, **options)
    torch.testing.assert_close(output, expected, atol=1e-5, rtol=1e-5)
    assert maps is None
    _, maps = ours(states, attention_mask=mask, output_attentions=True, **options)
    torch.testing.assert_close(maps, expected_maps, atol=1e-5, rtol=1e-5)


def copy_layer(ours: HeadcountLayer, theirs: nn.Module) -> None:
    copy_attention(ours.self_attn, theirs.self_attn)
    ours.feed_forward.up_proj.load_state_dict(theirs.linear1.state_dict())
    ours.feed_forward.down_proj.load_state_dict(theirs.linear2.state_dict())
    norms = [ours.self_attn_norm, ours.feed_forward_norm]
    if ours.cross_attn is not None:
        copy_attention(ours.cross_attn, theirs.multihead_attn)
        norms.insert(1, ours.cross_attn_norm)
    for index, norm in enumerate(norms, start=1):
        norm.load_state_dict(getattr(theirs, f"norm{index}").state_dict())


@pytest.mark.parametrize("norm_position", ["pre", "post"])
@pytest.mark.parametrize("hidden_act", ["relu", "gelu"])
@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_same_as_torch_transformer_layer(norm_position, hidden_act, stack):
    torch.manual_seed(0)
    config = tiny_config(norm_position=norm_position, hidden_act=hidden_act)
    config._attn_implementation = "eager"
    ours = HeadcountLayer(config, stack, 0)
    reference = nn.TransformerEncoderLayer if stack == "encoder" else nn.TransformerDecoderLayer
    theirs = reference(
        32, 4, 48, dropout=0.0, activation=hidden_act, batch_first=True, norm_first=norm_position == "pre"
    )
    randomize(theirs)
    copy_layer(ours, theirs)
    states, memory = torch.randn(2, 5, 32), torch.randn(2, 7, 32)
    causal = nn.Transformer.generate_square_subsequent_mask(5)
    if stack == "encoder":
        expected = theirs(states, src_mask=causal)
        output, *_ = ours(states, None, plain(config, 5, 5) | {"is_causal": True})
    else:
        expected = theirs(states, memory, tgt_mask=causal)
        output, *_ = ours(states, memory, plain(config, 5, 5) | {"is_causal": True}, plain(config, 5, 7))
    torch.testing.assert_close(output, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("normalizer", NORMALIZERS)
@pytest.mark.parametrize("padding", [None, "left", "right"])
@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder", "encoder"])
@pytest.mark.parametrize("encoding", POSITION_ENCODINGS)
def test_eager_and_sdpa_agree(encoding, architecture, padding, normalizer):
    if not serves(encoding, architecture):
        pytest.skip("refused at construction; see the config's tests")
    inputs = make_inputs(architecture, padding=padding)
    model = make_model(architecture, position_embedding_type=encoding, attention_normalizer=normalizer)
    gates = {name: torch.rand(3, layers, 4) for name, layers in model._masks().items()}
    real = inputs.get("attention_mask", torch.ones_like(inputs["input_ids"])).bool()
    results = {}
    for attention in ATTENTION_FUNCTIONS:
        model.set_attn_implementation(attention)
        logits = model(**inputs, **gates).logits
        assert torch.isfinite(logits).all()
        results[attention] = logits[real] if architecture == "decoder" else logits
    torch.testing.assert_close(results["eager"], results["sdpa"], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("normalizer", ["softmax", "sparsemax"])
@pytest.mark.parametrize("attention", [eager_attention, sdpa_attention])
@pytest.mark.parametrize("as_bias", [False, True])
def test_a_query_that_sees_nothing_reads_zero_and_passes_no_nan_back(attention, as_bias, normalizer):
    query, key, value = (torch.randn(2, 4, 5, 8, requires_grad=True) for _ in range(3))
    mask = torch.ones(2, 1, 5, 5, dtype=torch.bool)
    mask[0, :, 2] = False
    if as_bias:
        mask = torch.zeros(2, 1, 5, 5).masked_fill(~mask, float("-inf"))
    output, _ = attention(query, key, value, NORMALIZERS[normalizer](tiny_config()), attention_mask=mask)
    assert (output[0, :, 2] == 0).all() and torch.isfinite(output).all()
    output.sum().backward()
    assert all(torch.isfinite(tensor.grad).all() for tensor in (query, key, value))


@pytest.mark.parametrize("attention", ATTENTION_FUNCTIONS)
@pytest.mark.parametrize("encoding", ["none", "alibi_directional", "relative_key", "fire"])
def test_an_empty_sequence_in_the_batch_gives_no_nan(encoding, attention):
    model = make_model("encoder", attention=attention, position_embedding_type=encoding, attention_normalizer="log_n")
    inputs = make_inputs("encoder")
    inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    inputs["attention_mask"][1] = 0
    output = model(**inputs)
    output.loss.backward()
    assert torch.isfinite(output.logits).all()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder", "encoder"])
def test_output_attentions_returns_maps_under_sdpa(architecture):
    inputs = make_inputs(architecture, padding="right")
    model = make_model(architecture, attention="sdpa")
    output = model(**inputs, output_attentions=True)
    maps = output.encoder_attentions if architecture == "encoder-decoder" else output.attentions
    assert [tuple(m.shape) for m in maps] == [(3, 4, 9, 9)] * 2
    torch.testing.assert_close(maps[0].sum(-1), torch.ones(3, 4, 9))
    if architecture == "encoder-decoder":
        assert [tuple(m.shape) for m in output.cross_attentions] == [(3, 4, 6, 9)] * 2
        assert [tuple(m.shape) for m in output.decoder_attentions] == [(3, 4, 6, 6)] * 2
    model.config.output_attentions = True
    assert torch.equal(model(**inputs)[-1][0], output[-1][0])


def log_maps(normalizer: str, **options) -> torch.Tensor:
    model = make_model("encoder", attention_normalizer=normalizer, **options)
    return model(**make_inputs("encoder"), output_attentions=True).attentions[0].log()


def test_log_n_multiplies_scores_by_the_log_of_the_visible_keys():
    scaled, plain_maps = (
        log_maps(name, position_embedding_type="none", attention_window=2) for name in ("log_n", "softmax")
    )
    for query, visible in ((0, 3), (1, 4), (2, 5)):  # itself and up to two neighbours on each side
        ratio = (scaled[0, 0, query, 0] - scaled[0, 0, query, 1]) / (
            plain_maps[0, 0, query, 0] - plain_maps[0, 0, query, 1]
        )
        assert ratio.item() == pytest.approx(math.log(visible), rel=1e-3)


@pytest.mark.parametrize("encoding", ["none", "relative_bias", "relative_key"])
def test_a_trained_temperature_scales_all_scores_of_its_head_and_gets_a_gradient(encoding):
    model = make_model("encoder", position_embedding_type=encoding, attention_normalizer="temperature")
    factors = torch.tensor([0.5, 1.0, 2.0, 3.0])
    inputs = make_inputs("encoder")

    def gaps() -> torch.Tensor:
        maps = model(**inputs, output_attentions=True).attentions[0].log()
        return maps[0, :, 0, 0] - maps[0, :, 0, 1]

    parameter = model.model.encoder.normalizer.log_factor
    parameter.data.zero_()
    plain = gaps()
    parameter.data.copy_(factors.log())
    torch.testing.assert_close(gaps(), plain * factors, atol=1e-4, rtol=1e-3)
    model(**inputs).loss.backward()
    assert (parameter.grad != 0).all()
    model.prune_heads(["encoder.0.self.1"])
    torch.testing.assert_close(gaps(), (plain * factors)[[0, 2, 3]], atol=1e-4, rtol=1e-3)


@given(scores=st.lists(st.floats(-30, 30, width=32), min_size=1, max_size=12))
@settings(max_examples=60, deadline=None)
def test_sparsemax_is_the_nearest_distribution(scores):
    """By its own conditions: scores above one threshold keep what they are above it, and all others get nothing."""
    row = torch.tensor(scores, dtype=torch.float64)
    weights = NORMALIZERS["sparsemax"](tiny_config()).weigh(row)
    assert weights.sum().item() == pytest.approx(1) and (weights >= 0).all()
    kept = weights > 0
    thresholds = (row - weights)[kept]
    assert (thresholds.max() - thresholds.min()).item() < 1e-9 and (row[~kept] <= thresholds.max() + 1e-9).all()


def test_sparsemax_gives_nothing_to_hidden_keys_and_right_gradients():
    sparsemax = NORMALIZERS["sparsemax"](tiny_config())
    scores = torch.tensor([[0.3, -0.2, float("-inf"), 0.1], [5.0, 1.0, 0.0, -1.0]], dtype=torch.float64)
    weights = sparsemax.weigh(scores)
    torch.testing.assert_close(weights[1], torch.tensor([1.0, 0, 0, 0], dtype=torch.float64))
    assert weights[0, 2] == 0 and (weights[0, [0, 1, 3]] > 0).all()
    seen = scores[:, [0, 1, 3]].clone().requires_grad_()
    assert torch.autograd.gradcheck(sparsemax.weigh, seen)


def test_sparsemax_without_gradients_is_the_same_in_parts(monkeypatch):
    sparsemax, scores = NORMALIZERS["sparsemax"](tiny_config()), torch.randn(2, 3, 5, 7)
    whole = sparsemax.weigh(scores)
    monkeypatch.setattr(type(sparsemax), "MOST_CELLS", 20)
    with torch.no_grad():
        assert torch.equal(sparsemax.weigh(scores), whole)


@pytest.mark.parametrize("encoding", ["none", "relative_bias", "relative_key"])
def test_score_jitter_scales_all_scores_in_training_only(encoding):
    model = make_model("encoder", position_embedding_type=encoding, score_jitter=0.2)
    inputs = make_inputs("encoder")

    def gap() -> float:
        maps = model(**inputs, output_attentions=True).attentions[0].log()
        return (maps[0, 0, 0, 0] - maps[0, 0, 0, 1]).item()

    full = gap()
    assert gap() == full
    model.train()
    factors = [gap() / full for _ in range(30)]
    assert all(0.2 <= factor <= 1.0 for factor in factors)
    assert max(factors) - min(factors) > 0.3


def test_score_jitter_is_drawn_for_all_heads_or_for_each_and_knows_pruned_heads():
    model = make_model("encoder", position_embedding_type="relative_bias", score_jitter=0.2)
    inputs = make_inputs("encoder")

    def gaps() -> torch.Tensor:
        maps = model(**inputs, output_attentions=True).attentions[0].log()
        return maps[0, :, 0, 0] - maps[0, :, 0, 1]

    full = gaps()
    model.train()
    factors = torch.stack([gaps() / full for _ in range(60)])  # (batches, heads)
    alike = (factors - factors[:, :1]).abs().amax(-1) < 1e-4
    assert 15 < alike.sum() < 45
    model.prune_heads(["encoder.0.self.1"])
    assert gaps().shape == (3,) and ((gaps() / full[[0, 2, 3]]) <= 1.0001).all()


def test_window_hides_what_is_farther_away_and_direction_what_is_ahead():
    slots = torch.arange(5)
    window = visible_keys(None, slots, 5, causal=False, window=1)[0, 0]
    assert window.tolist() == [[abs(q - k) <= 1 for k in range(5)] for q in range(5)]
    both = visible_keys(None, slots, 5, causal=True, window=1)[0, 0]
    assert both.tolist() == [[0 <= q - k <= 1 for k in range(5)] for q in range(5)]
    maps = make_model("encoder", attention_direction="causal")(
        **make_inputs("encoder"), output_attentions=True
    ).attentions
    assert (maps[0].triu(1) == 0).all() and (maps[0].tril() > 0).any()


@given(
    batch=st.integers(1, 3),
    queries=st.integers(1, 5),
    keys=st.integers(1, 6),
    heads=st.integers(1, 4),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=40, deadline=None)
def test_both_functions_agree_on_any_shape_and_mask(batch, queries, keys, heads, seed):
    torch.manual_seed(seed)
    query, key, value = torch.randn(batch, heads, queries, 4), *torch.randn(2, batch, heads, keys, 4)
    mask = torch.rand(batch, heads, queries, keys) > 0.4
    bias = torch.randn(batch, heads, queries, keys).masked_fill(~mask, float("-inf"))
    gate, softmax = torch.rand(batch, heads, 1, 1), NORMALIZERS["softmax"](tiny_config())
    for attention_mask, causal in itertools.product((None, mask, bias), (False, True)):
        ours, maps = eager_attention(query, key, value, softmax, attention_mask, gate, 0.5, is_causal=causal)
        fused, _ = sdpa_attention(query, key, value, softmax, attention_mask, gate, 0.5, is_causal=causal)
        torch.testing.assert_close(ours, fused, atol=1e-5, rtol=1e-5)
        sums = maps.sum(-1)
        assert torch.logical_or((sums - 1).abs() < 1e-5, sums == 0).all()
        assert not causal or not maps.triu(1).any()
        assert attention_mask is None or not maps[~mask].any()
