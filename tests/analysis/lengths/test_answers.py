"""Answers of any length: one pass that equals generation, and what heads read."""

import numpy as np
import pytest
import torch

from headcount.analysis.lengths.generated import check_generation, generate_exactly, lengths_worth_writing
from headcount.analysis.lengths.measure import encode, measure_lengths
from headcount.analysis.lengths.passes import answer_margin
from headcount.analysis.lengths.reading import (
    bias_rows,
    divide,
    has_reading,
    read_problem,
    reads_of,
    useful_keys,
    what_heads_read,
)
from headcount.data_builders.addition.columns import AdditionProblems
from headcount.data_builders.addition.options import AdditionOptions
from headcount.data_builders.examples import make_examples
from headcount.data_builders.registry import TASKS
from headcount.records.rows import select
from headcount.trainers.evaluation import generate_answers, outcomes
from headcount.trainers.model_building import make_model
from headcount.trainers.recipe import load_recipe
from headcount.trainers.training_data import make_batches, make_corpus


ADDITION = TASKS["addition"]
READS = ("own column", "right column", "last digit", "<bos>", "other")
TINY = [
    *("model.hidden_size=32", "model.intermediate_size=64", "training.steps=250", "training.batch_size=32"),
    *("data.digits=2", "data.test=60", "data.hard=20", "data.validation=20", "data.test_lengths=[3]"),
    *("training.learning_rate=0.005", "model.score_jitter=0.5"),
]


STRINGS = ["training.steps=150", "data.max_length=3", "data.min_length=2", "data.train=64", "data.test=64"]
STRINGS += ["data.validation=10", "data.test_lengths=[]", "training.learning_rate=0.01"]


def train(recipe):
    torch.manual_seed(0)
    model, corpus = make_model(recipe), make_corpus(recipe)
    batches = make_batches(recipe, corpus)
    optimizer = torch.optim.AdamW(model.parameters(), lr=recipe.training.learning_rate)
    for step in range(recipe.training.steps):
        model(**batches(step)).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return model.eval(), corpus


@pytest.fixture(scope="module")
def trained():
    """A model that has seen a little of two-digit addition: some of its answers are right, some are wrong."""
    return train(load_recipe("addition-long", TINY))


@pytest.fixture(scope="module")
def reversing():
    """An encoder-decoder that reverses some strings of two or three letters."""
    return train(load_recipe("reverse", STRINGS))


def test_one_pass_says_what_generate_writes(trained):
    model, corpus = trained
    numbers = np.arange(100)
    every = AdditionProblems.from_integers([int(d) for d in numbers], [int(d) * 7 % 100 for d in numbers], 2)
    right = answer_margin(model, encode(model, corpus, every)) > 0
    assert 0 < right.sum() < 100, "a model that is sometimes right is needed here"
    examples = make_examples(ADDITION, corpus.options, every, "decoder")
    assert np.array_equal(right, generate_exactly(model, examples))
    assert np.array_equal(right, outcomes(model, examples))
    sums = [str(int(d) + int(d) * 7 % 100).zfill(3)[::-1] for d in numbers]
    texts = generate_answers(model, examples)
    assert [text == answer for text, answer in zip(texts, sums, strict=True)] == right.tolist()


def test_one_pass_says_what_an_encoder_decoder_writes(reversing):
    model, corpus = reversing
    problems = corpus.problems("test")
    right = answer_margin(model, encode(model, corpus, problems)) > 0
    assert 0 < right.sum() < len(problems), "a model that is sometimes right is needed here"
    examples = make_examples(corpus.task, corpus.options, problems, "encoder-decoder")
    assert np.array_equal(right, generate_exactly(model, examples))
    assert np.array_equal(right, outcomes(model, examples))


def test_batches_do_not_change_the_outcome(trained, monkeypatch):
    model, corpus = trained
    rows = encode(model, corpus, ADDITION.test_problems(corpus.options, "random", 9, 12))
    margins = answer_margin(model, rows)
    monkeypatch.setattr("headcount.trainers.evaluation.TOKENS_PER_BATCH", 1)
    assert np.allclose(margins, answer_margin(model, rows), atol=1e-4)


def test_rows_name_digits_and_class_and_spare_hopeless_lengths(trained):
    model, corpus = trained
    rows = measure_lengths(model, corpus, [30, 300, 600], rows=3, kinds=["random", "full_chain"])
    assert [row["kind"] for row in rows[:2]] == ["test", "hard"] and rows[0]["length"] == 2
    assert {(row["metric"], row["decoding"]) for row in rows} == {("exact_match", "free-running")}
    beyond = select(rows, kind="random")
    assert [row["length"] for row in beyond] == [30, 300, 600]
    assert beyond[0]["value"] == 0 and beyond[0]["margin"]["value"] < 0
    assert beyond[2]["value"] is None and beyond[2]["not_measured"] == "nothing right at 30 digits"
    with pytest.raises(ValueError, match="a length of 2 is within training"):
        measure_lengths(model, corpus, [2])


def test_any_task_that_writes_answers_is_measured_the_same_way(reversing):
    model, corpus = reversing
    rows = measure_lengths(model, corpus, [4, 62, 64], rows=6)
    assert [(row["kind"], row["length"]) for row in rows] == [
        ("test", 3),
        *((kind, length) for length in (4, 62, 64) for kind in TASKS["reverse"].classes),
    ]
    assert rows[0]["n"] == 64 and 0 < rows[0]["value"] < 1
    assert all(row["not_measured"] == "the model has 64 positions" for row in select(rows, length=64))


def test_generation_is_checked_against_one_pass(trained):
    model, corpus = trained
    rows = check_generation(model, corpus, [3], rows=20, kinds=["random", "leading_zeros"])
    assert [(row["kind"], row["n"], row["disagree"]) for row in rows] == [("random", 20, 0), ("leading_zeros", 20, 0)]


def test_a_model_that_fails_needs_no_second_witness():
    rows = [{"kind": "test", "length": 2, "value": 1.0}, {"kind": "random", "length": 30, "value": 0.5}]
    rows += [{"kind": "full_chain", "length": 50, "value": 0.0}, {"kind": "random", "length": 100, "value": None}]
    assert lengths_worth_writing(ADDITION, rows) == [30]


@pytest.mark.parametrize("order", ["reversed", "plain"])
def test_columns_are_found_in_the_text(order):
    """Three digits: <bos> a a a + b b b = s s s s; every weight sits on one known key."""
    digits, equals, tokens = 3, 8, 13
    options = AdditionOptions(digits=3, zero_pad=True, answer_order=order)
    text = ADDITION.encode(AdditionProblems.from_integers([374], [814]), "decoder", options)["input_ids"][:, :tokens]
    query, keys = useful_keys(ADDITION, text, options)
    column_of_operand = {1: 2, 2: 1, 3: 0, 5: 2, 6: 1, 7: 0}
    columns = [place if order == "reversed" else digits - place for place in range(digits + 1)]
    written = [column for column in columns if column < digits]
    assert query.tolist() == [equals + place for place, column in enumerate(columns) if column < digits]
    for name, offset in (("own column", 0), ("right column", -1)):
        maps = torch.zeros(1, tokens, tokens)
        for place, column in enumerate(columns):
            useful = [key for key, own in column_of_operand.items() if own == column + offset]
            maps[0, equals + place, useful or [0]] = 1 / max(1, len(useful))
        found = divide(maps, query, keys, ADDITION.last_written)
        expected = torch.tensor([[float(offset == 0 or column > 0) for column in written]])
        assert torch.allclose(found[name], expected)
        assert torch.allclose(found["<bos>"], 1 - expected)
        assert torch.allclose(sum(found[part] for part in READS), torch.ones(1, digits))


def test_what_heads_read_is_named_by_the_task(trained):
    model, corpus = trained
    assert reads_of(ADDITION) == READS and has_reading(ADDITION, model.config)
    assert not has_reading(TASKS["sortedness"], model.config)
    rows = what_heads_read(model, corpus, [5])
    assert {row["reads"] for row in select(rows, metric="weight")} == set(READS)
    assert {row["length"] for row in select(rows, metric="entropy_share")} == {2, 5}
    assert {row["study"] for row in rows} == {"columns"}


def test_a_decoder_of_another_task_is_read_too():
    task = TASKS["reverse"]
    recipe = load_recipe(
        "reverse",
        ["model.architecture=decoder", "model.position_embedding_type=none", "model.max_position_embeddings=512"],
    )
    torch.manual_seed(0)
    model, corpus = make_model(recipe).eval(), make_corpus(recipe)
    assert has_reading(task, model.config)
    found = read_problem(model, corpus, task.test_problems(corpus.options, "random", 6, 1))
    assert set(found) == {"its source", "last letter", "<bos>", "other", "entropy"}
    weights = sum(torch.tensor(found[name]) for name in reads_of(task))
    assert torch.allclose(weights, torch.ones(2, 4), atol=1e-5)


def test_weights_of_a_real_model_sum_to_one_and_biases_are_its_own(trained):
    model, corpus = trained
    found = read_problem(model, corpus, ADDITION.test_problems(corpus.options, "random", 5, 1))
    assert torch.allclose(sum(torch.tensor(found[name]) for name in READS), torch.ones(1, 4), atol=1e-5)
    rows = bias_rows(model)
    table = model.model.decoder.position_encoding.table
    assert len(rows) == table.numel()
    own = [row["value"] for row in select(rows, head="head 2")]
    assert torch.allclose(torch.tensor(own), table[:, 2].detach() * model.config.position_bias_scale)
