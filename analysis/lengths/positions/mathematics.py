"""What is said about position encodings, checked on the very code that the models run, with the residual printed.

Every check computes a number that is zero if the statement holds exactly. Rows say what was computed, the residual,
the tolerance of float32, whether it holds, and whether it should: some statements are known to be false for an
encoding, and are checked to be so. Models are untrained and tiny, with all parameters random.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from ....configuration.configuration_headcount import HeadcountConfig
from ....modeling.modeling_headcount import HeadcountForSequenceClassification
from ....modeling.position_encodings import POSITION_ENCODINGS, PositionEncoding, sinusoid
from ....records.rows import Row, Rows, row


SIZE, FURTHEST = 64, 4096
SHIFTS = (1, 7, 64, 1000)
TRAINED = 16  # places of the clamped learned table
PERMUTATION_BLIND = ("mean", "max", "min", "attention")


def check_mathematics() -> Rows:
    """All rows, in a second or two."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        return [found for check in CHECKS.values() for found in check()]


def residual_row(statement: str, subject: str, residual: float, tolerance: float, expected: bool = True) -> Row:
    holds = residual <= tolerance
    return row(
        "mathematics",
        "residual",
        {"value": residual},
        statement=statement,
        subject=subject,
        tolerance=tolerance,
        holds=holds,
        expected=expected,
        as_expected=holds == expected,
    )


def rotation(shift: int, size: int = SIZE, base: float = 10000.0) -> Tensor:
    """(size, size): the block-diagonal matrix that turns every (sin, cos) pair by its own angle, `shift` steps on."""
    frequencies = base ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
    cos, sin = (shift * frequencies).cos(), (shift * frequencies).sin()
    # sin(a + b) = cos b sin a + sin b cos a;  cos(a + b) = -sin b sin a + cos b cos a
    blocks = torch.stack((torch.stack((cos, sin), -1), torch.stack((-sin, cos), -1)), -2)  # (size/2, 2, 2)
    return torch.block_diag(*blocks)


def sinusoidal_is_linear() -> Iterator[Row]:
    """PE(t + k) = R(k) PE(t) with one matrix for all t."""
    places = torch.arange(FURTHEST)
    for shift in SHIFTS:
        table, moved = sinusoid(places[None], SIZE)[0].double(), sinusoid(places[None] + shift, SIZE)[0].double()
        residual = (moved - table @ rotation(shift).t()).abs().max()
        yield residual_row("PE(t+k) = R(k) PE(t) for all t", f"sinusoidal, k = {shift}", float(residual), 1e-3)


def sinusoidal_product_is_relative() -> Iterator[Row]:
    """PE(t) . PE(s) = sum of cos(frequency (t - s)), whatever t."""
    places = torch.arange(FURTHEST)
    frequencies = 10000.0 ** (-torch.arange(0, SIZE, 2, dtype=torch.float64) / SIZE)
    for shift in SHIFTS:
        table, moved = sinusoid(places[None], SIZE)[0].double(), sinusoid(places[None] + shift, SIZE)[0].double()
        residual = ((table * moved).sum(-1) - (shift * frequencies).cos().sum()).abs().max()
        yield residual_row("PE(t).PE(s) depends on t-s only", f"sinusoidal, t-s = {shift}", float(residual), 1e-2)
    # What attention sees is not PE.PE but PE W PE with trained W, and that depends on t itself.
    weight = torch.randn(SIZE, SIZE, dtype=torch.float64) / SIZE**0.5
    products = ((table @ weight) * moved).sum(-1)
    spread = float(products.max() - products.min())
    yield residual_row("PE(t) W PE(s) depends on t-s only", "sinusoidal, random W", spread, 1e-2, expected=False)


def scores_are_relative() -> Iterator[Row]:
    """Scores of encodings that act in attention do not change when all ids move on by the same amount."""
    places = torch.arange(24)[None]
    for name, encoding_class in POSITION_ENCODINGS.items():
        config = tiny_config(position_embedding_type=name)
        encoding = encoding_class(config)
        for parameter in encoding.parameters():
            parameter.normal_()
        if not encoding.uses_bias() and name != "rotary":
            continue
        query, key = torch.randn(2, 1, config.num_attention_heads, 24, config.head_dim)
        residual = max(
            distance_between(scores(encoding, query, key, places), scores(encoding, query, key, places + shift))
            for shift in SHIFTS
        )
        # FIRE divides by the position of the query, on purpose.
        yield residual_row("scores depend on differences of ids only", name, residual, 5e-3, expected=name != "fire")


def scores(encoding: PositionEncoding, query: Tensor, key: Tensor, ids: Tensor) -> Tensor:
    turned_query, turned_key = encoding.rotate(query, key, ids, ids)
    products = turned_query @ turned_key.transpose(-2, -1)
    bias = encoding.bias(query, ids, ids)
    return products if bias is None else products + bias


def distance_between(first: Tensor, second: Tensor) -> float:
    """Largest difference; cells that both hide (-inf) agree, cells that one of them hides do not."""
    hidden = first == float("-inf")
    if not bool((hidden == (second == float("-inf"))).all()):
        return float("inf")
    return float((first - second)[~hidden].abs().max())


def clamped_ids_collapse() -> Iterator[Row]:
    """Beyond its last place a clamped table gives every token the same vector, so that their order is invisible."""
    model = tiny_model(position_embedding_type="learned", max_position_embeddings=TRAINED, position_overflow="clamp")
    beyond = torch.arange(TRAINED - 1, 4 * TRAINED)[None]
    vectors = model.model.encoder.position_encoding.embed(torch.zeros(1, beyond.shape[1], SIZE), beyond)[0]
    residual = float((vectors - vectors[:1]).abs().max())
    yield residual_row("all ids from the last one on have one vector", "learned, clamped", residual, 0.0)
    tokens = torch.arange(40)[None]
    for place, expected in ((30, True), (4, False)):
        residual = logit_change(model, tokens, exchange(tokens, place))
        subject = f"learned, clamped at {TRAINED}, places {place} and {place + 1} exchanged"
        yield residual_row("a swap leaves the logits as they are", subject, residual, 1e-4, expected)


def no_encoding_is_permutation_blind() -> Iterator[Row]:
    """Bidirectional attention without positions gives every order of the same tokens the same logits.

    The pooling must not look at order either; `first`, `last` and `violation` do, and a causal mask does.
    """
    tokens = torch.arange(40)[None]
    orders = {"a swap": exchange(tokens, 11), "a shuffle": tokens[:, torch.randperm(40)]}
    for pooling in ("mean", "max", "min", "attention", "violation"):
        model = tiny_model(position_embedding_type="none", pooling_type=pooling)
        for name, other in orders.items():
            residual = logit_change(model, tokens, other)
            expected = pooling in PERMUTATION_BLIND
            yield residual_row(
                f"{name} leaves the logits as they are", f"none, {pooling} pooling", residual, 1e-4, expected
            )
    model = tiny_model(position_embedding_type="none", pooling_type="max", attention_direction="causal")
    residual = logit_change(model, tokens, orders["a swap"])
    yield residual_row(
        "a swap leaves the logits as they are", "none, causal, max pooling", residual, 1e-4, expected=False
    )


def exchange(tokens: Tensor, place: int) -> Tensor:
    """The same tokens with those at `place` and `place + 1` exchanged."""
    order = torch.arange(tokens.shape[1])
    order[[place, place + 1]] = order[[place + 1, place]]
    return tokens[:, order]


def logit_change(model: HeadcountForSequenceClassification, tokens: Tensor, other: Tensor) -> float:
    return float((model(tokens).logits - model(other).logits).abs().max())


def tiny_config(**options: Any) -> HeadcountConfig:
    if options.get("position_embedding_type") == "learned":
        options.setdefault("max_position_embeddings", FURTHEST)
    return HeadcountConfig(
        architecture="encoder", vocab_size=48, hidden_size=SIZE, num_hidden_layers=2, intermediate_size=64, **options
    )


def tiny_model(**options: Any) -> HeadcountForSequenceClassification:
    model = HeadcountForSequenceClassification(tiny_config(**options)).eval()
    for parameter in model.parameters():
        parameter.add_(0.1 * torch.randn_like(parameter))
    return model


CHECKS: dict[str, Callable[[], Iterator[Row]]] = {
    "linear": sinusoidal_is_linear,
    "inner_product": sinusoidal_product_is_relative,
    "relative": scores_are_relative,
    "clamped": clamped_ids_collapse,
    "permutation": no_encoding_is_permutation_blind,
}
