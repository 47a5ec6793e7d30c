"""What heads look at: relations worked out by hand, scores of maps that are known."""

import numpy as np
import pytest
import torch
from small_models import make_model
from task_examples import addition, random_addition, sortedness

from headcount.analysis.heads.specialization import relations_of, score_maps, specialization


def test_relations_of_encoder_and_cross_attention():
    examples = addition([374], [814])
    model = make_model("encoder-decoder")
    real, visible, found = relations_of(model, "encoder.0.self", examples, (1, 4, 8, 8))
    assert real.all() and visible.all()
    assert found["same_column"][0, 0].nonzero()[:, 0].tolist() == [0, 4]  # hundreds: 3 and 8
    assert found["carry_source"][0, 0].nonzero()[:, 0].tolist() == [1, 5]  # their carry comes from the tens
    assert found["carry_source"][0, 2].nonzero()[:, 0].tolist() == []  # nothing is to the right of the units
    assert found["operator"][0].all(0).nonzero()[:, 0].tolist() == [3]
    assert "previous_output" not in found

    _, visible, found = relations_of(model, "decoder.1.cross", examples, (1, 4, 5, 8))
    assert found["carry_source"][0, 0].nonzero()[:, 0].tolist() == [0, 4]  # thousands: the carry out of the hundreds
    assert found["same_column"][0, 0].nonzero()[:, 0].tolist() == []
    assert found["same_column"][0, 3].nonzero()[:, 0].tolist() == [2, 6]
    assert not found["same_column"][0, 4].any()  # <eos>

    _, visible, found = relations_of(model, "decoder.0.self", examples, (1, 4, 5, 5))
    assert visible[0].tolist() == torch.ones(5, 5).tril().bool().tolist()
    assert torch.equal(found["previous_output"], found["diagonal"]) and "same_column" not in found


def test_a_query_of_a_decoder_stands_for_the_token_that_is_predicted_there():
    examples = addition([374], [814], "decoder", "reversed")  # <bos>374+814=8811<eos>
    _, _, found = relations_of(make_model("decoder"), "decoder.0.self", examples, (1, 4, 14, 14))
    assert found["same_column"][0, 8].nonzero()[:, 0].tolist() == [3, 7]  # at the equals sign, the units
    assert found["carry_source"][0, 9].nonzero()[:, 0].tolist() == [3, 7]  # at the units, the tens and their carry
    assert not found["same_column"][0, :8].any(), "what reads the problem predicts no answer"
    assert found["operator"][0, 5].nonzero()[:, 0].tolist() == [4]


def test_scores_of_known_maps():
    examples = addition([374, 125], [814, 460])
    real, visible, relations = relations_of(make_model("encoder-decoder"), "encoder.0.self", examples, (2, 2, 8, 8))
    uniform = torch.full((2, 8, 8), 1 / 8)
    sharp = torch.eye(8)[None].expand(2, 8, 8)
    scores = score_maps(torch.stack([uniform, sharp], 1), real, visible, relations)
    assert scores["entropy_bits"].tolist() == [[3.0, 0.0]] * 2
    assert scores["normalized_entropy"].tolist() == [[1.0, 0.0]] * 2
    assert scores["hoyer"].numpy() == pytest.approx(np.array([[0.0, 1.0]] * 2), abs=1e-5)
    assert scores["top_2_share"].tolist() == [[0.25, 1.0]] * 2
    assert scores["diagonal"].tolist() == [[0.125, 1.0]] * 2
    assert scores["same_column"].tolist() == [[0.25, 1.0]] * 2  # of the six digits: two keys, or the digit itself
    assert scores["carry_source"].tolist() == [[0.25, 0.0]] * 2
    assert scores["operator"].tolist() == [[0.125, 0.125]] * 2  # all queries ask, one of eight is the sign itself


@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder", "encoder"])
def test_specialization_of_a_model_has_a_baseline_for_every_head(architecture):
    rng = np.random.default_rng(0)
    model, examples = make_model(architecture), None
    if architecture == "encoder":
        model = make_model(architecture, vocab_size=103)
        examples = sortedness([rng.integers(0, 10, length).tolist() for length in [5] * 5 + [8] * 5])
    else:
        examples = random_addition(12, style=architecture)
    rows = specialization(model, examples, batch_size=5)
    assert {row["head"] for row in rows} == set(model.list_heads())
    by_measure = {}
    for row in rows:
        by_measure.setdefault((row["head"].rsplit(".", 1)[0], row["metric"]), set()).add(row["uniform"])
        assert row["interval"] is not None
        if row["metric"] not in ("entropy_bits",):
            assert -1e-6 <= row["value"] <= 1 + 1e-6
    assert all(len(baselines) == 1 for baselines in by_measure.values())
    has_columns = {row["metric"] for row in rows} >= {"same_column", "carry_source", "operator"}
    assert has_columns == (architecture != "encoder")
