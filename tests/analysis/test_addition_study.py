"""The addition study: variants that differ, one pass that equals generation, and what heads read."""

import numpy as np
import pytest
import torch

from headcount.analysis.addition_columns import READS, bias_rows, by_column, read_columns
from headcount.analysis.addition_curve import check_generation, generate_exactly, measure_addition, one_pass
from headcount.analysis.addition_grid import ADDITION_LENGTHS, VARIANTS, addition_grid
from headcount.analysis.addition_summary import NEVER_FITTED, summarize_addition
from headcount.analysis.statistics import rate
from headcount.data_builders.columns import Problems
from headcount.data_builders.long_problems import long_problems
from headcount.trainers.evaluation import exactly_right, generate_answers
from headcount.trainers.model_building import make_config, make_model
from headcount.trainers.recipe import load_recipe
from headcount.trainers.training_data import encode_problems, make_batches, make_corpus


TINY = [
    *("model.hidden_size=32", "model.intermediate_size=64", "training.steps=250", "training.batch_size=32"),
    *("data.digits=2", "data.test=60", "data.hard=20", "data.validation=20", "data.test_lengths=[3]"),
    *("training.learning_rate=0.005", "model.score_jitter=0.5"),
]


@pytest.fixture(scope="module")
def trained():
    """A model that has seen a little of two-digit addition: some of its answers are right, some are wrong."""
    recipe = load_recipe("addition-long", TINY)
    torch.manual_seed(0)
    model, corpus = make_model(recipe), make_corpus(recipe)
    batches = make_batches(recipe, corpus)
    optimizer = torch.optim.AdamW(model.parameters(), lr=recipe.training.learning_rate)
    for step in range(recipe.training.steps):
        model(**batches(step)).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return model.eval(), recipe, corpus


def test_every_variant_can_be_trained_and_differs_from_the_recipe():
    cells = addition_grid(seeds=[0])
    assert [cell.variant for cell in cells] == list(VARIANTS)
    seen = {}
    for cell in cells:
        recipe = load_recipe(cell.recipe, list(cell.settings))
        what = (make_config(recipe).to_json_string(), str(recipe.data), recipe.training)
        assert what not in seen.values(), cell.variant
        seen[cell.variant] = what
    assert len({cell.name for cell in addition_grid()}) == 3 * len(VARIANTS)
    with pytest.raises(ValueError, match=r"variant 'hole' is not known; .*Did you mean 'whole'"):
        addition_grid(["hole"])


@pytest.mark.parametrize("variant", ["table", "fire"])
def test_offsets_show_the_ids_of_the_longest_test(variant):
    config = make_config(load_recipe("addition-long", list(VARIANTS[variant].settings)))
    assert config.max_random_offset >= max(ADDITION_LENGTHS)


def test_one_pass_says_what_generate_writes(trained):
    model, recipe, corpus = trained
    digits = np.arange(100)
    every = Problems.from_integers([int(d) for d in digits], [int(d) * 7 % 100 for d in digits], 2)
    right, margins = one_pass(model, every, corpus.options)
    assert 0 < right.sum() < 100, "a model that is sometimes right is needed here"
    assert np.array_equal(right, margins > 0)
    assert np.array_equal(right, generate_exactly(model, every, corpus.options))
    assert np.array_equal(right, exactly_right(model, encode_problems(every, recipe)).numpy())
    sums = [str(int(d) + int(d) * 7 % 100).zfill(3)[::-1] for d in digits]
    texts = generate_answers(model, every, recipe)
    assert [text == answer for text, answer in zip(texts, sums, strict=True)] == right.tolist()


def test_batches_do_not_change_the_outcome(trained, monkeypatch):
    model, _, corpus = trained
    problems = long_problems("random", 9, 12)
    _, margins = one_pass(model, problems, corpus.options)
    monkeypatch.setattr("headcount.analysis.addition_curve.TOKENS_PER_BATCH", 1)
    _, one_by_one = one_pass(model, problems, corpus.options)
    assert np.allclose(margins, one_by_one, atol=1e-4)


def test_rows_name_digits_and_class_and_spare_hopeless_lengths(trained):
    model, _, corpus = trained
    rows = measure_addition(model, corpus, [30, 300, 600], rows=3, kinds=["random", "full_chain"])
    assert [row["kind"] for row in rows[:2]] == ["test", "hard"] and rows[0]["length"] == 2
    beyond = [row for row in rows if row["kind"] == "random"]
    assert [row["length"] for row in beyond] == [30, 300, 600]
    assert beyond[0]["value"] == 0 and beyond[0]["margin"]["value"] < 0
    assert beyond[2]["value"] is None and beyond[2]["not_measured"] == "nothing right at 30 digits"
    with pytest.raises(ValueError, match="a length of 2 is within training"):
        measure_addition(model, corpus, [2])


def test_generation_is_checked_against_one_pass(trained):
    model, _, corpus = trained
    rows = check_generation(model, corpus, [3], rows=20, kinds=["random", "leading_zeros"])
    assert [(row["kind"], row["n"], row["disagree"]) for row in rows] == [("random", 20, 0), ("leading_zeros", 20, 0)]


@pytest.mark.parametrize("is_reversed", [True, False])
def test_columns_are_found_in_the_text(is_reversed):
    """Three digits: <bos> a a a + b b b = s s s s; every weight sits on one known key."""
    digits, equals, tokens = 3, 8, 13
    column_of_operand = {1: 2, 2: 1, 3: 0, 5: 2, 6: 1, 7: 0}
    for name, offset in (("own column", 0), ("right column", -1)):
        maps = torch.zeros(1, tokens, tokens)
        for place in range(digits + 1):
            column = place if is_reversed else digits - place
            keys = [key for key, own in column_of_operand.items() if own == column + offset]
            maps[0, equals + place, keys or [0]] = 1 / max(1, len(keys))
        found = by_column(maps, digits, is_reversed)
        expected = torch.tensor([[1.0, 1.0, 1.0]]) if offset == 0 else torch.tensor([[0.0, 1.0, 1.0]])
        assert torch.allclose(found[name], expected)
        assert torch.allclose(found["<bos>"], 1 - expected)
        assert torch.allclose(sum(found[part] for part in READS), torch.ones(1, digits))


def test_weights_of_a_real_model_sum_to_one_and_biases_are_its_own(trained):
    model, _, corpus = trained
    found = read_columns(model, long_problems("random", 5, 1), corpus.options)
    assert torch.allclose(sum(torch.tensor(found[name]) for name in READS), torch.ones(1, 4), atol=1e-5)
    rows = bias_rows(model)
    table = model.model.decoder.position_encoding.table
    assert len(rows) == table.numel()
    own = [row["value"] for row in rows if row["head"] == "head 2"]
    assert torch.allclose(torch.tensor(own), table[:, 2].detach() * model.config.position_bias_scale)


def length_row(variant, seed, kind, length, right, n=100):
    base = {"variant": variant, "seed": seed, "kind": kind, "length": length, "trained": [1, 20], "built_in": []}
    return {**base, **(rate(right, n) if right is not None else {"value": None, "n": 0, "interval": None})}


def test_summary_tells_a_model_that_never_fitted_from_one_that_does_not_extrapolate():
    rows = [length_row("no-jitter", 0, "test", 20, 100), length_row("no-jitter", 0, "random", 50, 20)]
    rows += [length_row("whole", seed, "test", 20, 100) for seed in (0, 1)]
    rows += [length_row("whole", 0, "random", 50, 100), length_row("whole", 0, "random", 1000, 99)]
    rows += [length_row("whole", 1, "random", 50, 90), length_row("whole", 1, "random", 1000, None)]
    rows += [length_row("alibi", 0, "test", 20, 40), length_row("alibi", 0, "random", 50, 0)]
    whole, no_jitter, alibi = summarize_addition(rows, {("whole", 0): 80.0})
    assert (whole["variant"], no_jitter["variant"], alibi["variant"]) == ("whole", "no-jitter", "alibi")
    assert whole["holds_to"] == {"0": 1000, "1": 20} and whole["fitted"] == 2
    assert whole["accuracy"]["50"]["value"] == 0.95 and whole["accuracy"]["1000"]["by_seed"] == {"0": 0.99, "1": None}
    assert whole["seconds"] == {"0": 80.0, "1": None}
    assert no_jitter["flags"] == [] and no_jitter["holds_to"] == {"0": 20}
    assert alibi["flags"] == [NEVER_FITTED] and alibi["holds_to"] == {"0": 0}
