"""The analyses of heads: each against a figure worked out by hand or by a slower way."""

import json

import numpy as np
import pytest
import torch
from small_models import make_inputs, make_model

from headcount.analysis.ablation import Outcomes, ablate, one_head_at_a_time
from headcount.analysis.carry import carry_atlas, interchange
from headcount.analysis.examples import (
    Examples,
    addition_examples,
    input_columns,
    label_columns,
    sortedness_examples,
    token_names,
)
from headcount.analysis.head_study import ANALYSES, StudyData, choose_shown
from headcount.analysis.importance import agreement, classify, gradient_importance, importance_rows
from headcount.analysis.maps import average_rows, map_rows
from headcount.analysis.pruning import choose_prefix, compare, outcomes_of, prune
from headcount.analysis.specialization import _scores, relations_of, specialization
from headcount.analysis.subsets import evaluate_subsets, shapley_values, subset_rows
from headcount.data_builders.columns import Problems
from headcount.data_builders.tokenization import encode_addition


def addition(a, b, style="encoder-decoder", order="plain") -> Examples:
    problems = Problems.from_integers(a, b, columns=3)
    rows = {name: torch.from_numpy(values) for name, values in encode_addition(problems, style, order).items()}
    return addition_examples(problems, rows, order)


def random_addition(count=40, seed=0, **options) -> Examples:
    rng = np.random.default_rng(seed)
    return addition(rng.integers(0, 1000, count).tolist(), rng.integers(0, 1000, count).tolist(), **options)


def taught(model, examples: Examples) -> Examples:
    """The examples with the model's own argmax as labels, so that the intact model is right on most of them."""
    rows = dict(examples.rows)
    for _ in range(rows["labels"].shape[1]):
        rows["labels"] = torch.from_numpy(ablate(model, rows, [{}]).tokens[0])
    return Examples(examples.task, rows, examples.facts, examples.problems, examples.answer_order)


def test_columns_of_tokens():
    examples = addition([374], [814])
    assert input_columns(examples.rows["input_ids"]).tolist() == [[2, 1, 0, -1, 2, 1, 0, -1]]
    assert label_columns(examples.rows["labels"], "plain").tolist() == [[3, 2, 1, 0, -1]]
    backwards = addition([374], [814], "decoder", "reversed")
    assert input_columns(backwards.rows["input_ids"]).tolist() == [[-1, 2, 1, 0, -1, 2, 1, 0] + [-1] * 6]
    assert label_columns(backwards.rows["labels"], "reversed").tolist() == [[-1] * 9 + [0, 1, 2, 3, -1]]
    assert examples.facts["longest_chain"].tolist() == [1] and examples.facts["carry"].tolist() == ["with"]


def test_token_names():
    assert token_names([1, 4, 13, 12, 2], 15) == ["<bos>", "1", "+", "9", "<eos>"]
    assert token_names([3, 102], 103) == ["0", "99"]


def outcomes(*right) -> Outcomes:
    right = np.array(right, bool)
    labels = np.full((right.shape[1], 5), [3, 3, 3, 3, 2])
    tokens = np.where(right[..., None], labels, 5)
    gates = [{}, *({f"encoder.0.self.{i}": 0.0} for i in range(len(right) - 1))]
    return Outcomes(gates, tokens, labels, (~right).astype(np.float32))


def test_importance_rows_say_what_is_lost_where():
    examples = addition([1, 2, 9, 95], [1, 2, 1, 5])  # chains 0, 0, 1, 2
    rows = importance_rows(outcomes([1, 1, 1, 1], [1, 1, 0, 0], [1, 1, 1, 1]), examples, "zero")
    whole = {row["head"]: row for row in rows if "class" in row}
    assert whole["encoder.0.self.0"]["value"] == 0.5 and whole["encoder.0.self.0"]["class"] == "critical"
    assert whole["encoder.0.self.0"]["p_value"] == 0.5 and whole["encoder.0.self.0"]["p_holm"] == 1.0
    assert whole["encoder.0.self.1"]["value"] == 0 and whole["encoder.0.self.1"]["class"] == "redundant"
    assert not whole["encoder.0.self.1"]["class_is_certain"], "four examples cannot tell 0 from 1 point"
    by_carry = {r["carry"]: r["value"] for r in rows if r["head"].endswith("0") and "carry" in r}
    assert by_carry == {"with": 1.0, "without": 0.0}
    columns = [r for r in rows if r["metric"] == "digit_accuracy_drop" and r["head"].endswith("0")]
    assert [r["column"] for r in columns] == [0, 1, 2, 3]
    assert all(r["value"] == 0.5 and r["n"] == 4 and r["decoding"] == "teacher-forced" for r in columns)
    (rise,) = [r for r in rows if r["metric"] == "loss_rise" and r["head"].endswith("0")]
    assert rise["value"] == 0.5
    json.dumps(rows)


@pytest.mark.parametrize(
    "value, interval, name, certain",
    [
        (0.2, [0.12, 0.3], "critical", True),
        (0.2, [0.05, 0.4], "critical", False),
        (0.05, [0.02, 0.09], "important", True),
        (0.001, [-0.002, 0.004], "redundant", True),
        (0.001, [-0.02, 0.03], "redundant", False),
    ],
)
def test_classes_are_certain_only_if_the_whole_interval_says_so(value, interval, name, certain):
    assert classify({"value": value, "interval": interval}) == {"class": name, "class_is_certain": certain}


@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder", "encoder"])
def test_gradient_importance_is_the_slope_of_the_loss(architecture):
    """Against differences: the loss of each example alone, with the gate moved a little."""
    model, rows = make_model(architecture).double(), make_inputs(architecture, batch=4)
    rows_found = gradient_importance(model, Examples("sortedness", rows), batch_size=3)
    step = 1e-5
    for row in rows_found[:: max(1, len(rows_found) // 5)]:
        slopes = []
        for index in range(4):
            alone = {name: values[index : index + 1] for name, values in rows.items()}
            losses = []
            for value in (1 + step, 1 - step):
                masks = {name: mask.double() for name, mask in model.head_mask_for([]).items()}
                argument, layer, number = model.mask_entry(row["head"])
                masks[argument][layer, number] = value
                with torch.no_grad():
                    losses.append(model(**alone, **masks, num_items_in_batch=1).loss.item())
            slopes.append(abs(losses[0] - losses[1]) / (2 * step))
        assert row["value"] == pytest.approx(np.mean(slopes), rel=1e-4), row["head"]
    assert [row["head"] for row in rows_found] == model.list_heads()


def test_agreement_is_over_heads():
    ablation = [{"head": h, "metric": "loss_rise", "value": v} for h, v in (("a", 1), ("b", 2), ("c", 3))]
    gradient = [{"head": h, "value": v} for h, v in (("a", 5), ("b", 4), ("c", 3))]
    (row,) = agreement(ablation, gradient)
    assert row["value"] == pytest.approx(-1) and row["n"] == 3 and row["with"] == "loss_rise"


def test_relations_of_encoder_and_cross_attention():
    examples = addition([374], [814])
    model = make_model("encoder-decoder")
    real, visible, found = relations_of(model, "encoder.0.self", examples, (1, 4, 8, 8))
    assert real.all() and visible.all()
    assert found["same_column"][0, 0].nonzero()[:, 0].tolist() == [0, 4]  # hundreds: 3 and 8
    assert found["carry_source"][0, 0].nonzero()[:, 0].tolist() == [1, 5]  # their carry comes from the tens
    assert found["carry_source"][0, 2].nonzero()[:, 0].tolist() == []  # nothing is to the right of the units
    assert found["operator"][0].all(0).nonzero()[:, 0].tolist() == [3]

    _, visible, found = relations_of(model, "decoder.1.cross", examples, (1, 4, 5, 8))
    assert found["carry_source"][0, 0].nonzero()[:, 0].tolist() == [0, 4]  # thousands: the carry out of the hundreds
    assert found["same_column"][0, 0].nonzero()[:, 0].tolist() == []
    assert found["same_column"][0, 3].nonzero()[:, 0].tolist() == [2, 6]
    assert not found["same_column"][0, 4].any()  # <eos>

    _, visible, found = relations_of(model, "decoder.0.self", examples, (1, 4, 5, 5))
    assert visible[0].tolist() == torch.ones(5, 5).tril().bool().tolist()
    assert torch.equal(found["previous_output"], found["diagonal"])


def test_scores_of_known_maps():
    examples = addition([374, 125], [814, 460])
    real, visible, relations = relations_of(make_model("encoder-decoder"), "encoder.0.self", examples, (2, 2, 8, 8))
    uniform = torch.full((2, 8, 8), 1 / 8)
    sharp = torch.eye(8)[None].expand(2, 8, 8)
    scores = _scores(torch.stack([uniform, sharp], 1), real, visible, relations)
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
    model = make_model(architecture)
    if architecture == "encoder":
        rng = np.random.default_rng(0)
        groups = [
            {"values": rng.integers(0, 10, (5, n)), "label": np.zeros(5, int), "kind": np.ones(5, int)} for n in (5, 8)
        ]
        examples = sortedness_examples(groups)
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


def test_maps_show_the_tokens_that_the_model_really_writes():
    model, examples = make_model("encoder-decoder"), addition([374, 5], [814, 12])
    rows = map_rows(model, examples)
    cross = next(row for row in rows if row["layer"] == "decoder.1.cross" and row["example"] == 1)
    assert cross["keys"] == ["0", "0", "5", "+", "0", "1", "2", "<eos>"]
    written = model.generate(examples.rows["input_ids"][1:], max_new_tokens=5, do_sample=False)[0, 1:].tolist()
    assert cross["queries"] == [f"→{token}" for token in token_names(written, 15)]
    weights = np.array(cross["weights"])
    assert weights.shape == (4, len(cross["queries"]), 8)
    assert weights.sum(-1) == pytest.approx(np.ones((4, len(cross["queries"]))), abs=1e-3)
    own = next(row for row in rows if row["layer"] == "decoder.0.self" and row["example"] == 1)
    assert own["keys"] == ["start", *token_names(written, 15)[:-1]]


def test_average_maps_are_means_and_name_places():
    model, examples = make_model("encoder-decoder"), random_addition(7)
    rows = average_rows(model, examples, batch_size=3)
    single = [average_rows(model, examples[np.array([i])]) for i in range(7)]
    for number, row in enumerate(rows):
        mean = np.mean([np.array(one[number]["weights"]) for one in single], axis=0)
        assert np.array(row["weights"]) == pytest.approx(mean, abs=2e-4)
    assert rows[0]["keys"] == ["a2", "a1", "a0", "+", "b2", "b1", "b0", "<eos>"] and rows[0]["n"] == 7
    short = addition([1], [2], "decoder")
    assert average_rows(make_model("decoder"), short)[0]["keys"][-5:-1] == ["y0", "y1", "y2", "y3"]


def pairs(order="plain", style="encoder-decoder"):
    """221 + 436 = 0657 and 271 + 486 = 0757 and a pair that changes the hundreds: 2+4 and 7+9."""
    base = addition([221, 231], [436, 415], style, order)
    source = addition([271, 731], [486, 915], style, order)
    return base, source


@pytest.mark.parametrize("style, order", [("encoder-decoder", "plain"), ("decoder", "reversed")])
def test_interchange_counts_flips_as_worked_out_by_hand(style, order, monkeypatch):
    base, source = pairs(order, style)
    model = make_model(style)
    labels = source.rows["labels"][:, 1:] if style == "decoder" else source.rows["labels"]
    columns = label_columns(labels, order).numpy()
    heads = model.list_heads()
    tokens = np.repeat(labels.numpy()[None], 1 + len(heads), 0).copy()  # every head flips the carry ...
    old_left = [base.rows["labels"][i][base.rows["labels"][i] > 2] for i in range(2)]
    digits = [row.tolist() if order == "reversed" else row.tolist()[::-1] for row in old_left]
    tokens[0, 0, columns[0] == 2], tokens[0, 1, columns[1] == 3] = digits[0][2], digits[1][3]  # ... none: as before
    tokens[1, 0, columns[0] == 1] = 12  # the first head breaks the changed column's own digit of the first pair
    tokens[2, 0, columns[0] == 0] = 12  # the second one another digit
    seen = {}

    def engine(model, rows, gates, mode, donors, progress):
        seen.update(rows=rows, donors=donors, mode=mode)
        return Outcomes(list(gates), tokens, labels.numpy(), np.zeros(tokens.shape[:2], np.float32))

    monkeypatch.setattr("headcount.analysis.carry.ablate", engine)
    rows = interchange(model, base, source)
    value = {(r["head"], r["metric"], r.get("column")): r["value"] for r in rows}
    assert value["none", "carry_flip", None] == 0 and value["none", "whole_answer_flip", None] == 0
    assert value[heads[0], "carry_flip", None] == 0.5
    assert value[heads[0], "carry_flip", 1] == 0 and value[heads[0], "carry_flip", 2] == 1
    assert value[heads[1], "carry_flip", None] == 1 and value[heads[1], "whole_answer_flip", None] == 0.5
    assert value[heads[3], "whole_answer_flip", None] == 1
    # both runs read the source's answer; only the problem differs
    assert seen["mode"] == "resample" and torch.equal(seen["rows"]["labels"], source.rows["labels"])
    same = seen["rows"]["input_ids"] == seen["donors"]["input_ids"]
    assert (~same).sum().item() == 4  # one digit of each operand, in two pairs


def test_interchange_of_a_real_model_is_what_patched_generation_gives():
    """With hooks that put the source's head output into a generation from the base, token by token."""
    model = make_model("encoder-decoder", seed=3)
    model.generation_config.eos_token_id = None
    base, source = pairs()
    inputs = base.rows["input_ids"]
    target = model.generate(source.rows["input_ids"], max_new_tokens=5, do_sample=False)[:, 1:]
    rows, donors = {"input_ids": inputs, "labels": target}, {"input_ids": source.rows["input_ids"], "labels": target}
    gates = [{}, {h: 0.0 for h in model.list_heads() if ".cross." in h}, {"decoder.1.cross.2": 0.0}]
    found = ablate(model, rows, gates, "resample", donors=donors)
    assert found.right[1].all(), "the source's cross-attention makes the base write the source's answer"


def test_atlas_needs_both_kinds_of_evidence():
    def ablation(head, value, with_carry, without):
        base = {"head": head, "metric": "exact_match_drop", "mode": "zero", "n": 1000}
        near = {"interval": [value - 0.005, value + 0.005]}
        whole = {**base, "value": value, **near, "class": "x"}
        return [whole] + [
            {**base, "value": v, "interval": [v - 0.01, v + 0.01], "carry": name}
            for name, v in (("with", with_carry), ("without", without))
        ]

    def flip(head, value):
        return {
            "head": head,
            "metric": "carry_flip",
            "value": value,
            "n": 500,
            "interval": [value - 0.01, value + 0.01],
        }

    def looks(head, value):
        return {"head": head, "metric": "same_column", "value": value, "uniform": 0.25, "n": 9, "interval": None}

    cases = {
        "decoder.1.cross.0": (0.05, 0.08, 0.0, 0.5, 0.1, "carry head"),
        "decoder.1.cross.1": (0.05, 0.05, 0.05, 0.5, 0.1, "other"),  # moves the carry, but is not needed for it
        "decoder.1.cross.2": (0.05, 0.08, 0.0, 0.0, 0.1, "other"),  # needed for carries, but does not move them
        "decoder.1.cross.3": (0.30, 0.3, 0.3, 0.0, 0.9, "aligner"),
        "decoder.0.self.0": (0.30, 0.3, 0.3, 0.0, None, "output order"),
        "encoder.0.self.0": (0.0, 0.0, 0.0, 0.0, 0.9, "redundant"),
    }
    drops, flips, scores = [], [], []
    for head, (drop, with_carry, without, moved, column, _) in cases.items():
        drops += ablation(head, drop, with_carry, without)
        flips.append(flip(head, moved))
        scores += [looks(head, column)] if column is not None else []
    atlas = carry_atlas(drops, flips, scores)
    assert {row["head"]: row["role"] for row in atlas} == {head: case[-1] for head, case in cases.items()}


def test_pruning_is_joint_and_leaves_the_given_model_alone():
    model = make_model("encoder-decoder")
    examples = taught(model, random_addition(60))
    heads = model.list_heads()
    found = prune(model, examples, max_drop=0.6)
    assert model.list_heads() == heads and not model.config.pruned_heads
    assert found.removed and set(found.model.list_heads()) == set(heads) - set(found.removed)
    last = [row for row in found.rows if row.get("kept")][-1]
    assert last["drop"]["value"] <= 0.6 and last["heads"] == found.removed
    assert last["value"] == outcomes_of(found.model, examples).mean(), "masked and really pruned agree"
    refused = found.rows[-1]
    assert refused["kept"] is False and refused["drop"]["value"] > 0.6
    # every other head would have cost at least as much
    sweep = ablate(found.model, examples.rows, one_head_at_a_time(found.model))
    assert sweep.right[1:].sum(-1).max() == round(refused["value"] * 60)

    shorter = choose_prefix(model, found, 0.4)
    assert 0 < len(shorter.removed) < len(found.removed)
    assert shorter.removed == found.removed[: len(shorter.removed)]
    assert 1 - outcomes_of(shorter.model, examples).mean() <= 0.4 + 1e-9


def test_pruning_to_a_number_of_heads_and_fine_tuning_are_honoured():
    model, examples = make_model("encoder-decoder"), taught(make_model("encoder-decoder"), random_addition(20))
    seen = []
    found = prune(model, examples, max_drop=None, keep=21, finetune=lambda small: seen.append(len(small.list_heads())))
    assert len(found.model.list_heads()) == 21 and seen == [23, 22, 21]
    assert all(row["fine_tuned"] for row in found.rows if "fine_tuned" in row)
    ruined = prune(model, examples, max_drop=0.01, finetune=lambda small: small.lm_head.weight.data.zero_())
    assert ruined.removed == [] and ruined.rows[-1]["kept"] is False
    with pytest.raises(ValueError, match="exactly one of max_drop and keep"):
        prune(model, examples, max_drop=0.1, keep=3)
    with pytest.raises(ValueError, match="keep=24 is not allowed; expected 0 to 23"):
        prune(model, examples, max_drop=None, keep=24)


def test_compare_tells_size_and_accuracy():
    model, examples = make_model("encoder-decoder"), taught(make_model("encoder-decoder"), random_addition(20))
    small = make_model("encoder-decoder")
    small.prune_heads(["encoder.0.self.0", "decoder.1.cross.3"])
    rows = {row["model"]: row for row in compare(model, {"pruned": small}, examples, 2)}
    assert rows["intact"]["drop"]["value"] == 0 and rows["intact"]["relative_speed"] == 1
    assert rows["pruned"]["parameters"] == small.num_parameters() < rows["intact"]["parameters"]
    assert rows["pruned"]["bytes"] < rows["intact"]["bytes"] and rows["pruned"]["removed"] == 2
    assert rows["pruned"]["value"] == outcomes_of(small, examples).mean()


def test_shapley_values_of_a_game_worked_out_by_hand():
    """Either of a and b is enough for 6 of 10; c adds 2 more with or without them."""

    def right(removed):
        present = {"a", "b", "c"} - set(removed)
        return 6 * bool(present & {"a", "b"}) + 2 * ("c" in present)

    game = {frozenset(s): right(s) for s in ((), "a", "b", "c", "ab", "ac", "bc", "abc")}
    assert shapley_values(game, ["a", "b", "c"], 10) == pytest.approx({"a": 0.3, "b": 0.3, "c": 0.2})


def test_every_subset_is_evaluated_and_no_ranking_beats_the_best():
    model = make_model("encoder", num_hidden_layers=2, num_attention_heads=2)
    rows = make_inputs("encoder", batch=60)
    rows["labels"] = torch.from_numpy(ablate(model, rows, [{}]).tokens[0, :, 0])
    examples = Examples("sortedness", rows)
    counts = evaluate_subsets(model, examples)
    assert len(counts) == 16 and counts[frozenset()] == 60
    assert len(set(counts.values())) > 2, "the heads of this model make no difference, so the test says nothing"
    found = subset_rows(model, examples, {"backwards": model.list_heads()[::-1]})
    values = [row["value"] for row in found if row["metric"] == "shapley"]
    assert sum(values) == pytest.approx((60 - counts[frozenset(model.list_heads())]) / 60)  # nothing is lost
    assert all(row["regret"] >= 0 for row in found if row["metric"] == "ranking_accuracy")
    assert {r["ranking"] for r in found if r["metric"] == "mean_regret"} == {"backwards", "shapley", "greedy"}
    with pytest.raises(ValueError, match="24 heads, and so 2\\^24 subsets; expected at most 12"):
        evaluate_subsets(make_model("encoder-decoder"), random_addition(2))


def test_shown_examples_have_failures_and_long_chains():
    model = make_model("encoder-decoder")
    examples = taught(model, random_addition(50))
    examples.rows["labels"][3, 0] += 1
    shown = choose_shown(model, examples, 4)
    assert len(shown) == 4
    right = outcomes_of(model, shown)
    assert not right[0] and right.any()


def test_analyses_give_rows_with_names():
    model = make_model("encoder-decoder", num_hidden_layers=1, decoder_layers=1, num_attention_heads=2)
    examples = random_addition(30)
    data = StudyData(examples, examples[np.arange(2)], (pairs()[0], pairs()[1]))
    done = {}
    for name, analysis in ANALYSES.items():
        needs = {key: done[key] for key in ("ablation", "interchange", "specialization", "gradient") if key in done}
        wanted = analysis.__code__.co_varnames[: analysis.__code__.co_argcount]
        done[name] = analysis(model, data, **{key: rows for key, rows in needs.items() if key in wanted})
        assert done[name] and all("analysis" in row for row in done[name]), name
        json.dumps(done[name])
