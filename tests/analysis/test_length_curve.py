"""Measuring by length, on models whose answers are known."""

import numpy as np
import pytest
import torch
from small_models import make_model, tiny_config

from headcount.analysis.attention_spread import attention_maps, entropy_share, head_entropy, measure_heads
from headcount.analysis.dilution import dilution, exchanged_rows
from headcount.analysis.length_curve import by_place, class_rates, measure_lengths, sorted_margin, test_rows
from headcount.analysis.neighbour_head import neighbour_head, weight_by_distance
from headcount.analysis.position_shift import shifted_positions
from headcount.data_builders.sortedness import is_sorted
from headcount.data_builders.sortedness_corpus import SortednessCorpus, SortednessOptions
from headcount.data_builders.tokenization import FIRST_TOKEN, SORTEDNESS_VOCABULARY


test_rows.__test__ = False  # pytest would take it for a test


class Oracle(torch.nn.Module):
    """Answers right up to a length, and "sorted" beyond it."""

    device = torch.device("cpu")
    config = tiny_config("encoder", position_embedding_type="none")

    def __init__(self, right_up_to: int):
        super().__init__()
        self.right_up_to = right_up_to

    def forward(self, input_ids, position_ids=None, output_attentions=False):
        values, length = input_ids - FIRST_TOKEN, input_ids.shape[1]
        rises = (values[:, 1:] >= values[:, :-1]).all(-1)
        answer = rises if length <= self.right_up_to else torch.ones_like(rises)
        logits = torch.nn.functional.one_hot(answer.long(), 2).float()
        uniform = torch.full((len(values), 1, length, length), 1 / length)
        return type("Output", (), {"logits": logits, "attentions": (uniform,)})


@pytest.fixture(scope="module")
def corpus():
    return SortednessCorpus(SortednessOptions(train=0, validation=0, test=40, test_lengths=(8, 16)))


def sortedness_model(**options):
    return make_model("encoder", vocab_size=SORTEDNESS_VOCABULARY, **options)


def test_accuracy_falls_where_the_model_fails_and_longer_lengths_are_spared(corpus):
    rows = measure_lengths(Oracle(right_up_to=64), corpus, [8, 12, 16, 64, 256, 512, 1024], rows=40)
    swap = {row["length"]: row for row in rows if row["kind"] == "swap"}
    assert list(swap) == [8, 16, 64, 256, 512, 1024]  # training may have seen sequences of length 12
    assert [swap[length]["value"] for length in (8, 16, 64, 256)] == [1.0, 1.0, 1.0, 0.5]
    assert swap[256]["true_positive_rate"] == 1 and swap[256]["true_negative_rate"] == 0
    assert swap[256]["one_class_only"] and not swap[64]["one_class_only"]
    assert swap[64]["interval"][0] < 1 and swap[64]["n"] == 40
    for length in (512, 1024):
        assert swap[length]["value"] is None and swap[length]["not_measured"] == "at chance at length 256"
    assert swap[64]["entropy_share"] == pytest.approx(1.0)


def test_beyond_1024_only_the_hardest_kind_is_measured_with_fewer_rows(corpus):
    rows = measure_lengths(Oracle(right_up_to=10_000), corpus, [1024, 2048], rows=100)
    assert [row["n"] for row in rows if row["kind"] == "swap"] == [100, 24]
    assert [row["n"] for row in rows if row["kind"] == "move"] == [100, 0]
    assert all(row["value"] in (1, None) for row in rows)


def test_a_model_whose_positions_end_is_not_asked_beyond(corpus):
    model = sortedness_model(position_embedding_type="learned", max_position_embeddings=20)
    beyond = [row for row in measure_lengths(model, corpus, [16, 32], rows=4) if row["length"] == 32]
    assert len(beyond) == 3 and all(row["not_measured"] == "the model has 20 positions" for row in beyond)
    assert {row["length"] for row in dilution(model, corpus, [16, 32], sequences=2) if "length" in row} == {16}


def test_rows_are_balanced_and_the_same_each_time(corpus):
    first, again = (test_rows(corpus, "move", 50, 30) for _ in range(2))
    assert first["values"].shape == (30, 50) and first["label"].sum() == 15
    assert (first["values"] == again["values"]).all()
    assert (is_sorted(first["values"]) == (first["label"] == 1)).all()


def test_at_training_lengths_the_rows_are_those_that_training_left_out(corpus):
    held_out = next(iter(corpus.batches("swap", "test_16")))["values"]
    assert (test_rows(corpus, "swap", 16, 1000)["values"] == held_out).all()


def test_violations_within_and_beyond_the_training_range_are_told_apart():
    split = {"label": np.array([0, 0, 0, 1]), "position": np.array([3, 14, 15, -1])}
    found = by_place(np.array([0, 0, 1, 1]), split, trained=16)
    assert found["violations_within_training_range"]["n"] == 2
    assert found["violations_within_training_range"]["value"] == 1
    assert found["violations_beyond"]["n"] == 1 and found["violations_beyond"]["value"] == 0


def test_class_rates():
    rates = class_rates(np.array([1, 1, 0, 1]), np.array([1, 1, 0, 0]))
    assert (rates["value"], rates["true_positive_rate"], rates["true_negative_rate"]) == (0.75, 1.0, 0.5)
    assert rates["majority_class_rate"] == 0.5


def test_entropy_is_0_for_one_key_and_1_for_all_alike():
    assert float(head_entropy(torch.eye(7)[None, None, None])) == 0
    assert float(head_entropy(torch.full((1, 1, 1, 7, 7), 1 / 7))) == pytest.approx(1.0)


def test_neighbour_weight_reads_the_right_cell(corpus):
    model = sortedness_model(position_embedding_type="rotary")
    values, position = exchanged_rows(corpus, 16, 5)
    (maps,) = attention_maps(model, values)
    measured = measure_heads(model, values, position)
    for row, place in enumerate(position):
        assert values[row, place] > values[row, place + 1]
        assert measured["back"][row, 1, 2] == pytest.approx(float(maps[row, 1, 2, place + 1, place]))
        assert measured["ahead"][row, 0, 3] == pytest.approx(float(maps[row, 0, 3, place, place + 1]))
    assert 0 < entropy_share(model, values) < 1


def test_mean_pooling_dilutes_one_exchange_as_1_over_length(corpus):
    """With a window, only the tokens around the exchange change, so the mean over L tokens changes as 1/L.

    What max pooling does is up to training: without any, no feature has its maximum at the exchange.
    """
    model = sortedness_model(position_embedding_type="rotary", attention_window=2, pooling_type="mean")
    rows = dilution(model, corpus, [16, 64, 256], sequences=20)
    (slope,) = (row for row in rows if row["metric"] == "signal_exponent")
    assert slope["value"] == pytest.approx(-1.0, abs=0.25) and slope["lengths"] == [16, 64, 256]
    margins = [row for row in rows if row["metric"] == "margin"]
    assert {row["class"] for row in margins} == {"sorted", "swap"} and all(row["n"] == 20 for row in margins)


def test_log_n_keeps_the_weight_that_softmax_spreads(corpus):
    """Scores of a model are bounded, so softmax over more keys is flatter; scaled by log n it is less so."""
    flat = {}
    for normalizer in ("softmax", "log_n"):
        model = sortedness_model(position_embedding_type="none", attention_normalizer=normalizer)
        values = {length: exchanged_rows(corpus, length, 4)[0] for length in (16, 256)}
        flat[normalizer] = {length: entropy_share(model, v) for length, v in values.items()}
    assert flat["log_n"][256] < flat["softmax"][256]


def test_shifting_ids_changes_nothing_for_relative_encodings(corpus):
    model = sortedness_model(position_embedding_type="alibi_directional")
    values = test_rows(corpus, "swap", 16, 40)["values"]
    moved = torch.arange(16)[None] + 100
    assert np.allclose(sorted_margin(model, values), sorted_margin(model, values, moved), atol=1e-4)
    rows = shifted_positions(model, corpus, shifts=(0, 1, 500))
    assert [row["shift"] for row in rows] == [0, 1, 500] and len({row["value"] for row in rows}) == 1
    absolute = sortedness_model(position_embedding_type="sinusoidal")
    assert not np.allclose(sorted_margin(absolute, values), sorted_margin(absolute, values, moved), atol=1e-2)


def test_shifting_means_nothing_without_ids_and_stops_at_the_end_of_a_table(corpus):
    assert shifted_positions(sortedness_model(position_embedding_type="none"), corpus) == []
    learned = sortedness_model(position_embedding_type="learned", max_position_embeddings=20)
    assert [row["shift"] for row in shifted_positions(learned, corpus)] == [0, 1, 2, 4]


def test_neighbour_head_is_the_one_with_most_weight(corpus):
    model = sortedness_model(position_embedding_type="alibi_directional")
    rows = neighbour_head(model, corpus, lengths=(16, 64), sequences=6)
    assert [row["length"] for row in rows] == [16, 64]
    values, position = exchanged_rows(corpus, 16, 6)
    measured = measure_heads(model, values, position)
    assert rows[0]["value"] == pytest.approx(max(measured[d].mean(0).max() for d in ("back", "ahead")), abs=1e-6)
    piece = rows[1]
    assert len(piece["map"]) == 16 and 0 <= piece["position"] - piece["map_starts_at"] < 16


def test_weight_by_distance_adds_up_to_one():
    maps = torch.rand(2, 40, 40)
    maps = maps / maps.sum(-1, keepdim=True)
    found = weight_by_distance(torch.eye(40)[None])
    assert found["0"] == 1 and found["further"] == pytest.approx(0, abs=1e-6)
    counts = {str(d): 40 - abs(d) for d in range(-8, 9)}
    found = weight_by_distance(maps)
    near = sum(found[d] * count for d, count in counts.items()) / 40
    assert near + found["further"] == pytest.approx(1, abs=1e-5)
