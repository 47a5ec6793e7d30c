"""Tokenizers: round trips, clear errors, AutoTokenizer, and the same ids straight from arrays."""

import subprocess
import sys

import numpy as np
import pytest
from transformers import AutoTokenizer

from headcount.data_builders.addition.options import AdditionOptions
from headcount.data_builders.addition.task import DIGIT_IDS, EQUALS_ID, PLUS_ID
from headcount.data_builders.registry import TASKS
from headcount.data_builders.sortedness.sequences import sample_sortedness
from headcount.data_builders.tokenization import make_tokenizer


def addition_tokenizer(style: str = "encoder-decoder"):
    return make_tokenizer(TASKS["addition"], style)


def sortedness_tokenizer():
    return make_tokenizer(TASKS["sortedness"])


TOKENIZERS = {
    "encoder-decoder": addition_tokenizer,
    "decoder": lambda: addition_tokenizer("decoder"),
    "sortedness": sortedness_tokenizer,
}
TEXTS = {"encoder-decoder": "374+814", "decoder": "374+814=", "sortedness": "3 17 17 99 0"}


def test_ids_are_what_the_models_expect():
    tokenizer = addition_tokenizer()
    assert (tokenizer.pad_token_id, tokenizer.bos_token_id, tokenizer.eos_token_id) == (0, 1, 2)
    assert len(tokenizer) == TASKS["addition"].vocabulary.size == 15
    assert tokenizer.convert_tokens_to_ids(list("0123456789")) == DIGIT_IDS
    assert tokenizer.convert_tokens_to_ids(["+", "="]) == [PLUS_ID, EQUALS_ID]
    assert tokenizer("374+814")["input_ids"] == [6, 10, 7, 13, 11, 4, 7, 2]
    assert addition_tokenizer("decoder")("37+8=")["input_ids"] == [1, 6, 10, 13, 11, 14]
    assert addition_tokenizer("decoder")("37+8=", "54")["input_ids"] == [1, 6, 10, 13, 11, 14, 8, 7, 2]
    tokenizer = sortedness_tokenizer()
    assert len(tokenizer) == TASKS["sortedness"].vocabulary.size == 103
    assert tokenizer(" ".join(map(str, range(100))))["input_ids"] == list(range(3, 103))


@pytest.mark.parametrize("name", TOKENIZERS)
def test_text_survives_the_round_trip(name, tmp_path):
    tokenizer = TOKENIZERS[name]()
    tokenizer.save_pretrained(tmp_path)
    for reader in (tokenizer, AutoTokenizer.from_pretrained(tmp_path)):
        ids = reader(TEXTS[name])["input_ids"]
        assert ids == tokenizer(TEXTS[name])["input_ids"]
        assert reader.decode(ids, skip_special_tokens=True) == TEXTS[name]
        assert reader.padding_side == tokenizer.padding_side
        assert reader.model_input_names == ["input_ids", "attention_mask"]
        assert reader.unk_token is None


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize("text", ["3a", "374 - 1", "x", "\n\n1.5", "١"])
def test_text_outside_of_the_vocabulary_is_a_clear_error(name, text, tmp_path):
    tokenizer = TOKENIZERS[name]()
    with pytest.raises(ValueError, match=r"cannot be encoded: .* is not in the vocabulary; expected only 0"):
        tokenizer(text)
    with pytest.raises(ValueError, match="is not in the vocabulary"):
        tokenizer([TEXTS[name], text], padding=True)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(Exception, match="vocabulary"):
        AutoTokenizer.from_pretrained(tmp_path)(text)


def test_numbers_beyond_99_and_leading_zeros_are_not_in_the_vocabulary():
    for text in ("100", "07", "-1"):
        with pytest.raises(ValueError, match=rf"'{text}' is not in the vocabulary; expected only 0 to 99"):
            sortedness_tokenizer()(f"1 2 {text}")


def test_a_saved_tokenizer_loads_without_headcount(tmp_path):
    addition_tokenizer().save_pretrained(tmp_path)
    code = (
        "import sys; sys.modules['headcount'] = None\n"
        "from transformers import AutoTokenizer\n"
        f"tokenizer = AutoTokenizer.from_pretrained({str(tmp_path)!r})\n"
        "print(tokenizer('374+814')['input_ids'])\n"
        "try:\n    tokenizer('3x')\nexcept Exception as error:\n    print('refused')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[6, 10, 7, 13, 11, 4, 7, 2]", "refused"]


@pytest.mark.parametrize("answer_order", ["plain", "reversed"])
@pytest.mark.parametrize(("zero_pad", "min_digits"), [(True, None), (False, None), (False, 1), (True, 1)])
def test_arrays_are_encoded_as_their_texts_are(answer_order, zero_pad, min_digits):
    options = AdditionOptions(digits=4, min_digits=min_digits, zero_pad=zero_pad, answer_order=answer_order, train=300)
    corpus = TASKS["addition"].splits(options)
    problems = corpus.problems("train")
    rows = next(corpus.tables("default", "train")).to_pylist()
    inputs, targets = ([row[name] for row in rows] for name in ("input", "target"))
    seq2seq, decoder = addition_tokenizer(), addition_tokenizer("decoder")

    ours = corpus.task.encode(problems, "encoder-decoder", options)
    theirs = seq2seq(inputs, padding=True, return_tensors="np")
    assert (ours["input_ids"] == theirs["input_ids"]).all()
    assert ("attention_mask" in ours) == (theirs["attention_mask"] == 0).any()
    assert (ours.get("attention_mask", 1) == theirs["attention_mask"]).all()
    labels = seq2seq(targets, padding=True, return_tensors="np")
    assert (ours["labels"] == np.where(labels["attention_mask"] == 1, labels["input_ids"], -100)).all()

    ours = corpus.task.encode(problems, "decoder", options)
    theirs = decoder([text + "=" for text in inputs], targets, padding=True, padding_side="right", return_tensors="np")
    assert (ours["input_ids"] == theirs["input_ids"]).all()
    for row in range(len(rows)):
        learned = ours["labels"][row][ours["labels"][row] != -100]
        assert decoder.decode(learned) == targets[row] + "<eos>"

    ours = corpus.task.prompts(problems, options)
    theirs = decoder([text + "=" for text in inputs], padding=True, return_tensors="np")
    assert (ours["input_ids"] == theirs["input_ids"]).all()
    assert (ours.get("attention_mask", 1) == theirs["attention_mask"]).all()


def test_values_are_encoded_as_their_texts_are():
    problems = sample_sortedness(np.random.default_rng(0), 20, 30)
    texts = [" ".join(map(str, row)) for row in problems.values.tolist()]
    ours = TASKS["sortedness"].encode(problems)
    assert (ours["input_ids"] == sortedness_tokenizer()(texts, return_tensors="np")["input_ids"]).all()
    assert (ours["labels"] == problems.label).all()


def test_an_unknown_style_is_an_error():
    with pytest.raises(ValueError, match="style='encoder' is not allowed; expected one of encoder-decoder, decoder"):
        addition_tokenizer("encoder")
