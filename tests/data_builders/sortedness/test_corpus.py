"""Sortedness: exact labels and balance, the kinds of violations, and no hint in the values."""

import hashlib
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from headcount.data_builders.registry import TASKS
from headcount.data_builders.sortedness.options import SortednessOptions
from headcount.data_builders.sortedness.sequences import (
    KIND_NAMES,
    MIXTURE,
    draw_sorted,
    is_sorted,
    move,
    sample_sortedness,
)


SMALL = SortednessOptions(train=4000, validation=600, test=200, test_lengths=(8, 12, 16, 64))


def rows_of(options: SortednessOptions, config: str, split: str) -> list[dict]:
    return pa.concat_tables(TASKS["sortedness"].splits(options).tables(config, split)).to_pylist()


def test_labels_kinds_and_positions_are_right_in_every_split():
    for config, sizes in TASKS["sortedness"].splits(SMALL).sizes().items():
        for split, size in sizes.items():
            rows = rows_of(SMALL, config, split)
            assert len(rows) == size
            assert sum(row["label"] for row in rows) == size // 2
            for row in rows:
                values = row["values"]
                falls = [place for place in range(len(values) - 1) if values[place] > values[place + 1]]
                kind = KIND_NAMES[row["kind"]]
                assert row["label"] == (values == sorted(values)) == (kind == "sorted")
                assert row["position"] == (falls[0] if falls else -1)
                assert row["violations"] == len(falls)
                assert row["length"] == len(values)
                assert len(set(values)) > 1
                assert 0 <= min(values) <= max(values) <= 99
                if kind in ("swap", "move"):
                    assert len(falls) == 1
                if kind == "swap":
                    place = falls[0]
                    values[place], values[place + 1] = values[place + 1], values[place]
                    assert values == sorted(values)
                if config != "default":
                    assert kind in ("sorted", config)


def test_training_lengths_and_kinds_have_their_shares():
    rows = rows_of(SMALL, "default", "train")
    lengths = Counter(row["length"] for row in rows)
    assert set(lengths) == set(range(8, 17))
    assert max(lengths.values()) - min(lengths.values()) <= 2
    for length in lengths:
        assert 2 * sum(row["label"] for row in rows if row["length"] == length) == lengths[length]
    kinds = Counter(KIND_NAMES[row["kind"]] for row in rows)
    assert kinds == {"sorted": 2000, "shuffle": 600, "swap": 800, "move": 600}


def test_half_of_the_training_rows_come_from_a_sub_range():
    rng = np.random.default_rng(0)
    whole, narrow = (draw_sorted(rng, 20_000, 16, share) for share in (0.0, 1.0))
    assert (np.ptp(whole, axis=1) < 30).mean() < 0.001
    spread = np.ptp(narrow, axis=1) + 1
    assert (spread <= 3).mean() == pytest.approx(np.log(4 / 3) / np.log(101 / 3), abs=0.01), "log-uniform from 3 on"
    assert 0.3 < (spread <= 17).mean() < 0.6
    assert narrow.min() == 0 and narrow.max() == 99
    mixed = draw_sorted(rng, 20_000, 16, 0.5)
    assert (np.ptp(mixed, axis=1) + 1 <= 3).mean() == pytest.approx((spread <= 3).mean() / 2, abs=0.01)


def logistic_regression_accuracy(features: np.ndarray, labels: np.ndarray) -> float:
    """Accuracy on the second half of a ridge-regularised logistic regression on the first, by Newton steps."""
    half = len(labels) // 2
    features = np.concatenate([(features - features.mean(0)) / (features.std(0) + 1e-9), np.ones((len(labels), 1))], 1)
    weights = np.zeros(features.shape[1])
    train, targets = features[:half], labels[:half]
    for _ in range(5):
        chance = 1 / (1 + np.exp(-train @ weights))
        gradient = train.T @ (chance - targets) + weights
        curvature = (train * (chance * (1 - chance))[:, None]).T @ train + np.eye(len(weights))
        weights -= np.linalg.solve(curvature, gradient)
    return float(((features[half:] @ weights > 0) == labels[half:]).mean())


@pytest.mark.parametrize("kind", ["shuffle", "swap", "move"])
def test_a_classifier_on_value_histograms_stays_at_chance(kind):
    batch = sample_sortedness(np.random.default_rng(1), 8_000, 12, {kind: 1.0})
    values, labels = batch.values, batch.label
    histogram = np.stack([(values == value).sum(1) for value in range(100)], 1).astype(float)
    moments = np.stack([values.mean(1), values.std(1), values.min(1), values.max(1), np.ptp(values, axis=1)], 1)
    ties = np.stack([(np.diff(np.sort(values, 1), axis=1) == step).sum(1) for step in range(4)], 1)
    accuracy = logistic_regression_accuracy(np.concatenate([histogram, moments, ties], 1), labels)
    assert abs(accuracy - 0.5) < 0.032, "4 standard errors of 4,000 coin flips are 3.2 points"
    in_order = np.concatenate([histogram, (np.diff(values.astype(int), axis=1) < 0).astype(float)], 1)
    assert logistic_regression_accuracy(in_order, labels) > 0.99, "the classifier does learn when order is shown to it"


def test_no_training_row_shares_its_values_with_a_held_out_row():
    # Short sequences from narrow ranges, where overlaps would be common.
    options = SortednessOptions(min_length=4, max_length=5, test_lengths=(4, 5), test=400, train=6000, validation=400)
    corpus = TASKS["sortedness"].splits(options)

    def multisets(config, split):
        return {tuple(sorted(row["values"])) for row in rows_of(options, config, split)}

    tests = set().union(
        *(multisets(config, split) for config, sizes in corpus.sizes().items() for split in sizes if "test" in split)
    )
    validation, train = multisets("default", "validation"), multisets("default", "train")
    assert not train & tests
    assert not train & validation
    assert not validation & tests


def test_lengths_too_short_to_keep_apart_are_reported():
    options = SortednessOptions(
        min_length=2, max_length=2, kinds={"swap": 1.0}, test_lengths=(2,), test=100_000, narrow_share=0
    )
    with pytest.raises(ValueError, match="length=2 is too short to keep training rows apart"):
        rows_of(options, "default", "train")


@pytest.mark.parametrize("kind", ["shuffle", "swap"])
def test_sequences_of_two_work(kind):
    batch = sample_sortedness(np.random.default_rng(0), 1000, 2, {kind: 1.0})
    assert (is_sorted(batch.values) == batch.label).all()
    assert batch.label.sum() == 500


def test_a_move_goes_two_places_or_more():
    values = np.tile(np.arange(8, dtype=np.uint8) * 3, (2000, 1))
    batch = sample_sortedness(np.random.default_rng(0), 2000, 3, {"move": 1.0})
    assert batch.violations[batch.label == 0].max() == 1
    moved = move(np.random.default_rng(0), values)
    far = [max(abs(place - value // 3) for place, value in enumerate(row)) for row in moved.tolist()]
    assert min(far) >= 2
    assert max(far) == 7


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"min_length": 1}, r"length=1 is not allowed with kind 'shuffle': one value cannot be out of order"),
        ({"min_length": 2}, r"length=2 is not allowed with kind 'move'.*expected >= 3"),
        ({"test_lengths": (1,)}, r"one value cannot be out of order"),
        ({"test_lengths": (8, 8)}, r"has a length twice"),
        ({"test_lengths": ()}, r"test_lengths is empty"),
        ({"train": 11}, r"train=11 is not allowed: the classes could not be balanced; expected an even number"),
        ({"kinds": {"swop": 1.0}}, r"kind 'swop' is not allowed; expected one of shuffle, swap, move"),
        ({"kinds": {"swap": 0.5}}, r"sum to 0.5; expected 1"),
        ({"narrow_share": 1.5}, r"narrow_share=1.5 is not allowed"),
        ({"min_length": 20}, r"min_length=20 is not allowed; expected a whole number from 1 to 16"),
    ],
)
def test_wrong_options_are_explained(wrong, message):
    with pytest.raises(ValueError, match=message):
        SortednessOptions(**wrong)


def test_wrong_batches_are_explained():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="expected an even number"):
        sample_sortedness(rng, 7, 8)
    with pytest.raises(ValueError, match="one value cannot be out of order"):
        sample_sortedness(rng, 8, 1)


def test_the_same_seed_gives_the_same_rows_on_every_machine():
    def digest(options, config, split):
        return hashlib.sha256(str(rows_of(options, config, split)).encode()).hexdigest()[:16]

    found = {
        f"{config}/{split}": digest(SMALL, config, split)
        for config, split in [("default", "train"), ("move", "test_64")]
    }
    assert found == PINNED
    assert sum(MIXTURE.values()) == 1


# Another value here means that CORPUS_VERSION has to go up: the same options would give other rows than before.
PINNED = {"default/train": "5afba68fc59a83f8", "move/test_64": "a43afca351ef7276"}
