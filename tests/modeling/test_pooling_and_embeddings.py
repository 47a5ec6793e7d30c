import pytest
import torch
from small_models import make_inputs, make_model, tiny_config

from headcount.modeling.embeddings import OrdinalEmbedding
from headcount.modeling.pooling import POOLERS


def build(pooling_type: str):
    torch.manual_seed(0)
    return POOLERS[pooling_type](tiny_config("encoder", pooling_type=pooling_type))


@pytest.mark.parametrize("pooling_type", POOLERS)
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_never_leaks(pooling_type, side):
    pooler, states = build(pooling_type), torch.randn(2, 6, 32)
    padded = torch.full((2, 10, 32), 1e4)
    mask = torch.zeros(2, 10)
    place = slice(4, 10) if side == "left" else slice(0, 6)
    padded[:, place], mask[:, place] = states, 1
    torch.testing.assert_close(pooler(padded, mask), pooler(states), atol=1e-6, rtol=1e-6)


def test_each_pooler_is_what_its_name_says():
    states = torch.randn(2, 6, 32)
    assert torch.equal(build("max")(states), states.max(1).values)
    assert torch.equal(build("min")(states), states.min(1).values)
    assert torch.equal(build("first")(states), states[:, 0])
    assert torch.equal(build("last")(states), states[:, -1])
    torch.testing.assert_close(build("mean")(states), states.mean(1))
    attention = build("attention")
    weights = torch.softmax(states @ attention.score.weight[0], dim=1)
    torch.testing.assert_close(attention(states), (weights[..., None] * states).sum(1))
    violation = build("violation")
    steps = states.diff(dim=1)
    features = torch.cat((states.min(1).values, steps.min(1).values, steps.mean(1), states[:, 0], states[:, -1]), -1)
    torch.testing.assert_close(violation(states), violation.combine(features))


@pytest.mark.parametrize("pooling_type", POOLERS)
def test_shortest_and_empty_sequences_are_finite_and_trainable(pooling_type):
    pooler = build(pooling_type)
    for length, real in ((1, 1), (3, 0)):
        states = torch.randn(2, length, 32, requires_grad=True)
        pooled = pooler(states, torch.full((2, length), real))
        pooled.sum().backward()
        assert pooled.shape == (2, 32)
        assert torch.isfinite(pooled).all() and torch.isfinite(states.grad).all()


@pytest.mark.parametrize("pooling_type", POOLERS)
def test_the_classifier_uses_its_pooler(pooling_type):
    logits = make_model("encoder", pooling_type=pooling_type)(**make_inputs("encoder", padding="right")).logits
    assert logits.shape == (3, 2) and torch.isfinite(logits).all()


def test_ordinal_embedding_is_a_cumulative_sum_over_the_numbers_only():
    embedding = OrdinalEmbedding(tiny_config("encoder", embedding_type="ordinal", ordinal_token_range=[3, 20]))
    torch.nn.init.normal_(embedding.weight)
    vectors = embedding(torch.tensor([0, 3, 5]))
    torch.testing.assert_close(vectors[0], embedding.weight[0])
    torch.testing.assert_close(vectors[1], embedding.weight[3])
    torch.testing.assert_close(vectors[2], embedding.weight[3:6].sum(0))


def test_ordinal_numbers_start_about_as_long_as_other_tokens():
    torch.manual_seed(0)
    model = make_model("encoder", embedding_type="ordinal", ordinal_token_range=[3, 103], vocab_size=103)
    model.init_weights()
    vectors = model.model.encoder.embed_tokens(torch.arange(103))
    assert 0.2 < vectors[3:].std() / vectors[:3].std() < 2
