"""The tasks over strings against plain Python: exact answers, hard classes, roles, scratchpad, held-out rule."""

import numpy as np
import pytest
from datasets import load_dataset

from headcount.data_builders.counterfactuals import draw_counterfactuals
from headcount.data_builders.folder import open_folder, write_folder
from headcount.data_builders.registry import TASKS
from headcount.data_builders.strings import StringTask
from headcount.data_builders.vocabulary import IGNORED


def parities(bits: list[str]) -> list[str]:
    return [str(sum(map(int, bits[: place + 1])) % 2) for place in range(len(bits))]


ORACLES = {
    "reverse": lambda symbols: symbols[::-1],
    "copy": lambda symbols: symbols,
    "parity": parities,
    "sorting": lambda symbols: sorted(symbols, key=int),
}
STRING_TASKS = pytest.mark.parametrize("task", [TASKS[name] for name in ORACLES], ids=ORACLES)
SIZES = {"train": 200, "validation": 30, "test": 50}


def as_lists(task: StringTask, written) -> list[list[str]]:
    ids, lengths = written
    return [task.vocabulary.names(row[:length].tolist()) for row, length in zip(ids, lengths, strict=True)]


def strings(task: StringTask, kind: str, length: int, n: int = 50):
    return task.test_problems(task.options(), kind, length, n)


@STRING_TASKS
def test_answers_are_those_of_plain_python_for_strings_of_every_length_and_class(task):
    mixed = task.problems(task.options(), np.random.default_rng(0), 200)
    for problems in (mixed, *(strings(task, kind, 40) for kind in task.classes)):
        question, answer = task.write(problems, task.options())
        expected = [ORACLES[task.name](symbols) for symbols in as_lists(task, question)]
        assert as_lists(task, answer) == expected


@STRING_TASKS
def test_rows_that_were_written_are_read_back(task, tmp_path):
    options = task.options(**SIZES, test_lengths=(12,), long_test=5)
    write_folder(task, options, tmp_path / "data")
    found, drawn = open_folder(tmp_path / "data"), task.splits(options)
    for split, config in (("train", "default"), ("test_12", next(iter(task.classes)))):
        ours, theirs = found.problems(split, config), drawn.problems(split, config)
        assert np.array_equal(found.keys(ours), drawn.keys(theirs))
        assert np.array_equal(task.encode(ours)["labels"], task.encode(theirs)["labels"])
    row = load_dataset(str(tmp_path / "data"), "default", split="test")[0]
    joiner = task.vocabulary.joiner
    symbols = row["input"].split(joiner) if joiner else list(row["input"])
    assert row["target"] == joiner.join(ORACLES[task.name](symbols)) and row["length"] == len(symbols)


@STRING_TASKS
@pytest.mark.parametrize("style", ["decoder", "encoder-decoder"])
def test_the_place_of_an_answer_is_the_place_of_its_source(task, style):
    """Parity belongs to the bit at its place; everything else is the very symbol that is written there."""
    problems = task.problems(task.options(), np.random.default_rng(1), 20)
    encoded = task.encode(problems, style)
    question, answer = task.roles(encoded["input_ids"]), task.roles(encoded["labels"], "answer")
    for row in range(20):
        for place in range(problems.length[row]):
            source = encoded["input_ids"][row][question.where(task.symbol, place)[row]]
            written = encoded["labels"][row][answer.where("answer", place)[row]]
            assert len(source) == len(written) == 1
            assert source == written or task.name == "parity"


def test_letters_come_again_as_the_classes_say():
    for name in ("copy", "reverse"):
        repeated, periodic = (strings(TASKS[name], kind, 40).symbols for kind in ("repeated", "periodic"))
        assert max(len(set(row)) for row in repeated.tolist()) == 3
        assert (periodic[:, 3:] == periodic[:, :-3]).all() and all(len(set(row)) == 3 for row in periodic.tolist())


def test_bits_are_as_frequent_as_the_classes_say():
    shares = {kind: strings(TASKS["parity"], kind, 64, 200).symbols.mean() for kind in TASKS["parity"].classes}
    assert shares == pytest.approx({"random": 0.5, "sparse": 0.125, "dense": 0.875}, abs=0.02)


def test_values_are_as_the_classes_say():
    found = {kind: strings(TASKS["sorting"], kind, 64).symbols for kind in TASKS["sorting"].classes}
    assert max(len(set(row)) for row in found["repeated"].tolist()) == 3
    assert (np.ptp(found["narrow"], axis=1) == 9).any() and np.ptp(found["narrow"], axis=1).max() == 9
    assert (np.diff(found["falling"], axis=1) <= 0).all() and np.ptp(found["random"], axis=1).min() > 40


def test_sequences_with_values_that_come_again_are_as_many_as_asked_for():
    task = TASKS["sorting"]
    for share in (0.0, 0.5, 1.0):
        drawn = task.problems(task.options(repeat_share=share), np.random.default_rng(0), 400, 40).symbols
        values = np.array([len(set(row)) for row in drawn.tolist()])
        assert (values <= 16).mean() == pytest.approx(share, abs=0.05)
        few, near = (values <= 4).mean(), (np.ptp(drawn, axis=1) <= 15).mean()
        assert (few > share / 2 - 0.05) and near == pytest.approx(share * 0.65, abs=0.1)
    with pytest.raises(ValueError, match=r"repeat_share=2 is not allowed; expected a number from 0 to 1"):
        task.options(repeat_share=2)


def test_no_training_sequence_is_a_test_sequence_in_another_order():
    task = TASKS["sorting"]
    corpus = task.splits(task.options(**SIZES, min_length=2, max_length=3))
    train, test = (
        {tuple(sorted(row[:n])) for row, n in zip(part.symbols.tolist(), part.length.tolist(), strict=True)}
        for part in (corpus.problems("train"), corpus.problems("test"))
    )
    assert not train & test and len(test) == SIZES["test"]


def test_without_a_scratchpad_only_the_last_parity_is_written():
    task = TASKS["parity"]
    options = task.options(scratchpad=False)
    problems = task.problems(options, np.random.default_rng(0), 100)
    labels = task.encode(problems, "encoder-decoder", options)["labels"]
    whole = task.encode(problems, "encoder-decoder", task.options())["labels"]
    last = (whole != IGNORED).sum(-1) - 2  # before <eos>
    assert labels.shape == (100, 2) and np.array_equal(labels[:, 0], whole[np.arange(100), last])
    assert set(task.facts(problems)["parity"]) == {"odd", "even"}
    with pytest.raises(ValueError, match="scratchpad=3 is not allowed; expected True or False"):
        task.options(scratchpad=3)


def test_a_parity_that_is_moved_turns_all_that_follow_from_it():
    task = TASKS["parity"]
    problems = task.splits(task.options(**SIZES)).problems("test")
    for kind, turned in (("random", True), ("equal", False)):
        pairs = draw_counterfactuals(task, "running_parity", problems, np.random.default_rng(0), kind)
        own = task.solve(pairs.base)
        after = (np.arange(own.shape[1]) >= pairs.index[:, None]) & turned
        assert len(pairs) > 20 and np.array_equal(pairs.answers, own ^ after)
        value = task.variables["running_parity"].values
        assert ((value(pairs.base) != value(pairs.source))[np.arange(len(pairs)), pairs.index] == turned).all()


def test_what_is_built_in_is_named():
    coupled = {"position_scheme": "coupled"}
    reverse, parity = TASKS["reverse"], TASKS["parity"]
    assert "symbol of the string" in reverse.built_in(coupled)[0].sentence
    facts = parity.config(parity.options(), coupled)
    assert [found.name for found in parity.built_in(coupled | facts)] == ["coupled position ids", "scratchpad"]
    assert parity.built_in(parity.config(parity.options(scratchpad=False), {})) == []
    assert [found.name for found in TASKS["sorting"].built_in({"embedding_type": "ordinal"})] == ["ordinal embedding"]


def test_the_question_of_a_decoder_ends_with_its_mark():
    for name, question, prompt in (("sorting", "7 3 12", "7 3 12 ="), ("copy", "abc", "abc=")):
        vocabulary = TASKS[name].vocabulary
        assert vocabulary.prompt(question) == prompt and vocabulary.question(f"{prompt} 9") == question


def test_uneven_strings_are_as_many_as_asked_for_and_none_is_held_out():
    task = TASKS["parity"]
    corpus = task.splits(task.options(**SIZES, min_length=8))
    spreads = []
    for share in (0.0, 1.0):
        drawn = [
            task.fresh_problems(np.random.default_rng(step), 64, corpus, task.stream(uneven_share=share), step, 20)
            for step in range(20)
        ]
        assert not any(corpus.is_held_out(problems).any() for problems in drawn)
        spreads.append(np.std(np.concatenate([problems.symbols.mean(-1) for problems in drawn])))
    assert spreads[0] == pytest.approx(0.17, abs=0.02) and spreads[1] == pytest.approx(0.33, abs=0.03)
    with pytest.raises(ValueError, match=r"training.uneven_share=2 is not allowed; expected a number from 0 to 1"):
        task.stream(uneven_share=2)
