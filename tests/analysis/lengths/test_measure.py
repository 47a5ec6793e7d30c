"""Measuring labels by length, and why length hurts them, on models whose answers are known."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from small_models import make_model, tiny_config

from headcount.analysis.lengths.dilution import dilution, twins
from headcount.analysis.lengths.measure import by_place, encode, measure_lengths
from headcount.analysis.lengths.neighbour import neighbour_head, weight_by_distance
from headcount.analysis.lengths.passes import label_margin
from headcount.analysis.lengths.shifts import has_ids_to_move, shifted_positions
from headcount.analysis.lengths.spread import entropy_share, head_entropy, maps_in_parts, measure_heads
from headcount.data_builders.registry import TASKS
from headcount.data_builders.sortedness.options import SortednessOptions
from headcount.data_builders.strings import StringOptions
from headcount.data_builders.tasks import Problems, Task
from headcount.data_builders.vocabulary import Vocabulary
from headcount.records.rows import select


SORTEDNESS = TASKS["sortedness"]
FIRST = SORTEDNESS.vocabulary.first


class Oracle(torch.nn.Module):
    """Answers right up to a length, and "sorted" beyond it."""

    device = torch.device("cpu")
    config = tiny_config("encoder", position_embedding_type="none")

    def __init__(self, right_up_to: int):
        super().__init__()
        self.right_up_to = right_up_to

    def forward(self, input_ids, position_ids=None, output_attentions=False):
        values, length = input_ids - FIRST, input_ids.shape[1]
        rises = (values[:, 1:] >= values[:, :-1]).all(-1)
        answer = rises if length <= self.right_up_to else torch.ones_like(rises)
        logits = torch.nn.functional.one_hot(answer.long(), 2).float()
        uniform = torch.full((len(values), 1, length, length), 1 / length)
        return type("Output", (), {"logits": logits, "attentions": (uniform,)})


@pytest.fixture(scope="module")
def corpus():
    return SORTEDNESS.splits(SortednessOptions(train=0, validation=0, test=40, test_lengths=(8, 16)))


def sortedness_model(**options):
    return make_model("encoder", vocab_size=SORTEDNESS.vocabulary.size, **options)


def test_accuracy_falls_where_the_model_fails_and_longer_lengths_are_spared(corpus):
    rows = measure_lengths(Oracle(right_up_to=64), corpus, [8, 12, 16, 64, 256, 512, 1024], rows=40)
    swap = {row["length"]: row for row in select(rows, kind="swap")}
    assert list(swap) == [8, 12, 16, 64, 256, 512, 1024]
    assert [swap[length]["value"] for length in (8, 16, 64, 256)] == [1.0, 1.0, 1.0, 0.5]
    assert swap[12]["not_measured"] == "training may have seen sequences of this length"
    assert swap[256]["true_positive_rate"] == 1 and swap[256]["true_negative_rate"] == 0
    assert swap[256]["one_class_only"] and not swap[64]["one_class_only"]
    assert swap[64]["interval"][0] < 1 and swap[64]["n"] == 40 and swap[64]["not_measured"] is None
    for length in (512, 1024):
        assert swap[length]["value"] is None and swap[length]["not_measured"] == "at chance at length 256"
    assert swap[64]["entropy_share"] == pytest.approx(1.0)
    assert {(row["study"], row["metric"], row["decoding"]) for row in rows} == {("lengths", "accuracy", None)}


def test_training_lengths_are_measured_though_nobody_asked(corpus):
    rows = measure_lengths(Oracle(right_up_to=64), corpus, [32], rows=4, kinds=["move"])
    assert [(row["length"], row["kind"], row["value"]) for row in rows] == [(n, "move", 1.0) for n in (8, 16, 32)]


@dataclass(frozen=True)
class Words(Problems):
    symbols: np.ndarray
    length: np.ndarray


class SameEnds(Task):
    """A label task with the usual splits: does a word end with the letter that it begins with?"""

    name, kind, labels = "same-ends", "label", ("other", "same")
    options, vocabulary, texts = StringOptions, Vocabulary(("a", "b")), TASKS["reverse"].texts
    classes, hardest = {"random": "letters at random"}, ("random",)

    def problems(self, options, rng, n, length=None, kind=None):
        width = options.max_length if length is None else length
        lengths = rng.integers(options.min_length, width + 1, n) if length is None else np.full(n, length)
        return Words(rng.integers(0, 2, (n, width)), lengths)

    def solve(self, problems):
        last = problems.symbols[np.arange(len(problems)), problems.length - 1]
        return (problems.symbols[:, 0] == last).astype(np.int64)

    def write(self, problems, options):
        return (problems.symbols + self.vocabulary.first, problems.length), self.solve(problems)

    def tokens_at(self, length, style):
        return length


def test_a_label_task_with_the_usual_splits_is_measured_by_its_held_out_rows():
    corpus = SameEnds().splits(StringOptions(train=0, validation=0, test=50, min_length=6))
    model = make_model("encoder", position_embedding_type="rotary")
    rows = measure_lengths(model, corpus, [9, 20], rows=10)
    assert [(row["kind"], row["length"], row["n"]) for row in rows] == [
        ("test", 10, 50),
        ("random", 9, 0),
        ("random", 20, 10),
    ]
    assert rows[1]["not_measured"] == "training may have seen strings of this length"
    held_out = corpus.problems("test")
    one_by_one = [
        int(model(torch.from_numpy(word[None, :length]) + 3).logits.argmax(-1)) == label
        for word, length, label in zip(held_out.symbols, held_out.length, corpus.task.solve(held_out), strict=True)
    ]
    assert rows[0]["value"] == np.mean(one_by_one)


def test_beyond_1024_only_the_hardest_kind_is_measured_with_fewer_rows(corpus):
    rows = measure_lengths(Oracle(right_up_to=10_000), corpus, [1024, 2048], rows=100)
    swap, move = ({row["length"]: row["n"] for row in select(rows, kind=kind)} for kind in ("swap", "move"))
    assert (swap[1024], swap[2048]) == (100, 24)
    assert (move[1024], move[2048]) == (100, 0)
    assert all(row["value"] in (1, None) for row in rows)


def test_a_model_whose_positions_end_is_not_asked_beyond(corpus):
    model = sortedness_model(position_embedding_type="learned", max_position_embeddings=20)
    beyond = select(measure_lengths(model, corpus, [16, 20, 21], rows=4), length=21)
    assert len(beyond) == 3 and all(row["not_measured"] == "the model has 20 positions" for row in beyond)
    assert {row["length"] for row in dilution(model, corpus, [16, 32], sequences=2)} == {16}


def test_rows_are_balanced_and_the_same_each_time(corpus):
    first, again = (SORTEDNESS.test_problems(corpus.options, "move", 50, 30) for _ in range(2))
    assert first.values.shape == (30, 50) and first.label.sum() == 15
    assert (first.values == again.values).all()
    assert (SORTEDNESS.solve(first) == first.label).all()


def test_at_training_lengths_the_rows_are_those_that_training_left_out(corpus):
    held_out = corpus.problems("test_16", "swap").values
    assert (SORTEDNESS.test_problems(corpus.options, "swap", 16, 1000).values == held_out).all()


def test_decisions_within_and_beyond_the_training_range_are_told_apart(corpus):
    found = by_place(np.array([True, True, False, True]), np.array([3, 14, 15, -1]), trained=16)
    assert found["decided_within_training_range"]["n"] == 2
    assert found["decided_within_training_range"]["value"] == 1
    assert found["decided_beyond"]["n"] == 1 and found["decided_beyond"]["value"] == 0
    problems = SORTEDNESS.test_problems(corpus.options, "swap", 50, 30)
    assert (SORTEDNESS.decisive_place(problems) == problems.position).all()
    assert (SORTEDNESS.decisive_place(SORTEDNESS.test_problems(corpus.options, "shuffle", 50, 30)) == -1).all()


def test_entropy_is_0_for_one_key_and_1_for_all_alike():
    assert float(head_entropy(torch.eye(7)[None, None, None])) == 0
    assert float(head_entropy(torch.full((1, 1, 1, 7, 7), 1 / 7))) == pytest.approx(1.0)


def test_neighbour_weight_reads_the_right_cell(corpus):
    model = sortedness_model(position_embedding_type="rotary")
    plain, changed, places = twins(model, corpus, 16, 5)
    tokens = changed["input_ids"]
    (maps,) = maps_in_parts(model, tokens)
    measured = measure_heads(model, tokens, places)
    assert (plain["input_ids"] == tokens.sort(-1).values).all()
    for row, place in enumerate(places):
        assert tokens[row, place] > tokens[row, place + 1]
        assert measured["back"][row, 1, 2] == pytest.approx(float(maps[row, 1, 2, place + 1, place]))
        assert measured["ahead"][row, 0, 3] == pytest.approx(float(maps[row, 0, 3, place, place + 1]))
    assert 0 < entropy_share(model, tokens) < 1


def test_mean_pooling_dilutes_one_exchange_as_1_over_length(corpus):
    """With a window, only the tokens around the exchange change, so the mean over L tokens changes as 1/L.

    What max pooling does is up to training: without any, no feature has its maximum at the exchange.
    """
    model = sortedness_model(position_embedding_type="rotary", attention_window=2, pooling_type="mean")
    rows = dilution(model, corpus, [16, 64, 256], sequences=20)
    (slope,) = (row for row in rows if row["metric"] == "signal_exponent")
    assert slope["value"] == pytest.approx(-1.0, abs=0.25) and slope["lengths"] == [16, 64, 256]
    margins = [row for row in rows if row["metric"] == "margin"]
    assert {(row["twin"], row["label"]) for row in margins} == {("plain", "sorted"), ("changed", "unsorted")}
    assert all(row["n"] == 20 for row in margins)


def test_log_n_keeps_the_weight_that_softmax_spreads(corpus):
    """Scores of a model are bounded, so softmax over more keys is flatter; scaled by log n it is less so."""
    flat = {}
    for normalizer in ("softmax", "log_n"):
        model = sortedness_model(position_embedding_type="none", attention_normalizer=normalizer)
        tokens = {length: twins(model, corpus, length, 4)[1]["input_ids"] for length in (16, 256)}
        flat[normalizer] = {length: entropy_share(model, own) for length, own in tokens.items()}
    assert flat["log_n"][256] < flat["softmax"][256]


def test_shifting_ids_changes_nothing_for_relative_encodings(corpus):
    model = sortedness_model(position_embedding_type="alibi_directional")
    rows = encode(model, corpus, corpus.problems("test_16", "swap"))
    moved = torch.arange(16)[None] + 100
    assert np.allclose(label_margin(model, rows), label_margin(model, rows, moved), atol=1e-4)
    found = shifted_positions(model, corpus, shifts=(0, 1, 500))
    assert [row["shift"] for row in found] == [0, 1, 500] and len({row["value"] for row in found}) == 1
    assert {(row["length"], row["kind"], row["n"]) for row in found} == {(16, "swap", 40)}
    absolute = sortedness_model(position_embedding_type="sinusoidal")
    assert not np.allclose(label_margin(absolute, rows), label_margin(absolute, rows, moved), atol=1e-2)


def test_shifting_means_nothing_without_ids_and_stops_at_the_end_of_a_table(corpus):
    assert not has_ids_to_move(SORTEDNESS, sortedness_model(position_embedding_type="none").config)
    assert has_ids_to_move(SORTEDNESS, sortedness_model(position_embedding_type="alibi").config)
    learned = sortedness_model(position_embedding_type="learned", max_position_embeddings=20)
    assert [row["shift"] for row in shifted_positions(learned, corpus)] == [0, 1, 2, 4]


def test_neighbour_head_is_the_one_with_most_weight(corpus):
    model = sortedness_model(position_embedding_type="alibi_directional")
    rows = neighbour_head(model, corpus, lengths=(16, 64), sequences=6)
    assert [row["length"] for row in rows] == [16, 64]
    _, changed, places = twins(model, corpus, 16, 6)
    measured = measure_heads(model, changed["input_ids"], places)
    assert rows[0]["value"] == pytest.approx(max(measured[d].mean(0).max() for d in ("back", "ahead")), abs=1e-6)
    piece = rows[1]
    assert len(piece["map"]) == 16 and 0 <= piece["position"] - piece["map_starts_at"] < 16
    assert [row["length"] for row in neighbour_head(model, corpus, sequences=2)] == [16, 256]


def test_weight_by_distance_adds_up_to_one():
    maps = torch.rand(2, 40, 40)
    maps = maps / maps.sum(-1, keepdim=True)
    found = weight_by_distance(torch.eye(40)[None])
    assert found["0"] == 1 and found["further"] == pytest.approx(0, abs=1e-6)
    counts = {str(d): 40 - abs(d) for d in range(-8, 9)}
    found = weight_by_distance(maps)
    near = sum(found[d] * count for d, count in counts.items()) / 40
    assert near + found["further"] == pytest.approx(1, abs=1e-5)
