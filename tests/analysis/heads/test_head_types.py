"""Scores of heads by where they look: maps made by hand have them exactly, random models are near the baseline."""

import pytest
import torch
from small_models import make_model
from stock_models import make_stock

import headcount
from headcount.analysis.heads import head_types as module
from headcount.analysis.heads.head_types import repeated_tokens, scores_of
from headcount.analysis.heads.layer_maps import AttentionMaps
from headcount.records.rows import check_row, only, select


TYPES = ("previous_token", "first_token", "duplicate_token", "induction")


def looking(size, back):
    """Weights (size, size) of a head that looks `back` places back where it can, else at the first place."""
    weights = torch.zeros(size, size)
    for query in range(size):
        weights[query, query - back if query >= back else 0] = 1.0
    return weights


@pytest.mark.parametrize("start", [0, 1])
def test_a_head_that_looks_at_one_place_has_its_score_and_no_other(start):
    length = 6
    size = 2 * length + start
    first = torch.zeros(size, size)
    first[:, 0] = 1
    found = {
        "previous_token": looking(size, 1),
        "duplicate_token": looking(size, length),
        "induction": looking(size, length - 1),
    }
    for name, weights in found.items():
        scores = {key: float(value) for key, value in scores_of(weights[None], length).items()}
        assert scores[name] == 1.0, name
        assert all(scores[other] <= 1 / (size - 1) for other in found if other != name)
    scores = scores_of(first[None], length)
    assert float(scores["first_token"]) == 1.0
    assert float(scores["previous_token"]) == pytest.approx(1 / (size - 1)), "for the second query they are the same"


def test_rows_are_scores_of_the_maps_with_interval_and_baseline(monkeypatch):
    model, seen = make_stock("GPT-2"), []

    def crafted(model, batch, heads):
        ids = batch["input_ids"]
        seen.append(ids)
        size = ids.shape[1]
        alike = torch.tril(torch.ones(size, size)) / torch.arange(1, size + 1)[:, None]
        maps = torch.stack([looking(size, 1), looking(size, 4), looking(size, 3), alike]).expand(len(ids), -1, -1, -1)
        return AttentionMaps(
            {"decoder.0.self": maps, "decoder.0.cross": maps},
            dict.fromkeys(("decoder.0.self", "decoder.0.cross"), (0, 1, 2, 3)),
        )

    monkeypatch.setattr(module, "attention_maps", crafted)
    rows = headcount.head_types(model, sequences=20, length=4)
    assert len(rows) == 16 and all("self" in row["head"] for row in rows), "cross-attention has no places of its own"
    for row in rows:
        check_row(row, "test")
    for number, name in enumerate(("previous_token", "duplicate_token", "induction")):
        assert only(rows, head=f"decoder.0.self.{number}", metric=name)["value"] == pytest.approx(1)
    by_hand = {
        "previous_token": sum(1 / (q + 1) for q in range(1, 8)) / 7,
        "first_token": sum(1 / (q + 1) for q in range(1, 8)) / 7,
        "duplicate_token": sum(1 / (q + 1) for q in range(4, 8)) / 4,
        "induction": sum(1 / (q + 1) for q in range(4, 8)) / 4,
    }
    for name, value in by_hand.items():
        (found,) = select(rows, head="decoder.0.self.3", metric=name)
        assert found["value"] == pytest.approx(value) and found["baseline"] == pytest.approx(value)
        assert found["n"] == 20 and found["interval"] == pytest.approx([value, value])
    ids = torch.cat(seen)
    assert ids.shape == (20, 8) and ids[:, :4].equal(ids[:, 4:]) and int(ids.min()) >= 3
    assert all(len(set(row.tolist())) == 4 for row in ids), "no token comes twice in one half"


def test_a_head_whose_weights_are_set_by_hand_is_found_out():
    """Keys and queries that read the position alone: the score of place q - 1 is by far the largest."""
    model = make_stock("GPT-2", n_layer=1)
    attention, hidden, size = model.transformer.h[0].attn, 32, 17
    with torch.no_grad():
        for parameter in (attention.c_attn.weight, attention.c_attn.bias, model.transformer.wte.weight):
            parameter.zero_()
        model.transformer.wpe.weight.zero_()
        angles = torch.arange(40) * 2 * torch.pi / 40
        circle = torch.stack([angles.cos(), angles.sin()], -1)
        model.transformer.wpe.weight[:, :2] = circle
        model.transformer.wpe.weight[:, 2:4] = -circle  # so that the norm takes no mean away
        model.transformer.h[0].ln_1.weight.fill_(1.0)
        model.transformer.h[0].ln_1.bias.zero_()
        turn = torch.tensor(2 * torch.pi / 40)
        back = torch.tensor([[turn.cos(), -turn.sin()], [turn.sin(), turn.cos()]])
        attention.c_attn.weight[:2, :2] = 200 * back  # queries of head 0, turned back by one place
        attention.c_attn.weight[:2, hidden : hidden + 2] = torch.eye(2)
    rows = headcount.head_types(model, sequences=4, length=(size - 1) // 2)
    assert only(rows, head="decoder.0.self.0", metric="previous_token")["value"] > 0.9
    other = only(rows, head="decoder.0.self.1", metric="previous_token")
    assert other["value"] == pytest.approx(other["baseline"], abs=1e-6), "its scores are all zero: it looks alike"


@pytest.mark.parametrize("name", ["GPT-2", "Llama", "BERT", "T5", "own"])
def test_heads_of_random_models_are_near_the_baseline(name):
    model = make_model("decoder", vocab_size=40) if name == "own" else make_stock(name)
    with torch.no_grad():
        for part, weights in model.named_parameters():
            if "norm" not in part and "ln_" not in part:
                weights.mul_(0.1)
    rows = headcount.head_types(model, sequences=8, length=8)
    selves = [head for head in headcount.list_heads(model) if head.kind == "self"]
    assert {row["head"] for row in rows} == set(selves) and {row["metric"] for row in rows} == set(TYPES)
    for row in rows:
        assert row["value"] == pytest.approx(row["baseline"], abs=0.05), row
        causal = row["head"].startswith("decoder")
        assert row["baseline"] > 1 / 16 if causal else row["baseline"] == pytest.approx(1 / 16)


def test_chosen_heads_a_start_token_and_wrong_arguments():
    model = make_stock("GPT-2")
    rows = headcount.head_types(model, ["decoder.1.self.2"], sequences=3, length=4, start=1)
    assert {row["head"] for row in rows} == {"decoder.1.self.2"} and len(rows) == 4
    ids = repeated_tokens(model, 3, 4, 1, [7, 8], 0)
    assert ids.shape == (3, 9) and (ids[:, 0] == 1).all() and set(ids[:, 1:].unique().tolist()) <= {7, 8}
    with pytest.raises(ValueError, match="sequences=0 and length=20; expected at least 1 and 2"):
        headcount.head_types(model, sequences=0)
    with pytest.raises(ValueError, match="there are 1 tokens to draw from"):
        headcount.head_types(model, tokens=[3])
    with pytest.raises(ValueError, match="no heads of self-attention"):
        headcount.head_types(make_stock("T5"), ["decoder.*.cross.*"], length=4)
