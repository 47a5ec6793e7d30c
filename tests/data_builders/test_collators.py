"""Collators with real models: the batch is what the model takes, padded or not."""

import numpy as np
import pytest
import torch

from headcount import (
    HeadcountConfig,
    HeadcountForCausalLM,
    HeadcountForConditionalGeneration,
    HeadcountForSequenceClassification,
)
from headcount.data_builders.addition.options import AdditionOptions
from headcount.data_builders.addition.task import DIGIT_IDS, EQUALS_ID
from headcount.data_builders.collators import make_collator
from headcount.data_builders.registry import TASKS
from headcount.data_builders.sortedness.options import SortednessOptions
from headcount.data_builders.tokenization import make_tokenizer


ADDITION, SORTEDNESS = TASKS["addition"], TASKS["sortedness"]
TINY = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}


def addition_rows(count: int, **options) -> list[dict]:
    options = {"train": 100, "validation": 10, "test": 10, "hard": 10, "pairs": 10, **options}
    return next(TASKS["addition"].splits(AdditionOptions(**options)).tables("default", "train")).to_pylist()[:count]


@pytest.fixture
def seq2seq():
    torch.manual_seed(0)
    return HeadcountForConditionalGeneration(HeadcountConfig(vocab_size=ADDITION.vocabulary.size, **TINY))


def test_an_encoder_decoder_batch(seq2seq):
    batch = make_collator(ADDITION, model=seq2seq)(addition_rows(8))
    assert set(batch) == {"input_ids", "labels", "decoder_input_ids", "position_ids"}
    assert (batch["decoder_input_ids"][:, 0] == seq2seq.config.decoder_start_token_id).all()
    assert (batch["decoder_input_ids"][:, 1:] == batch["labels"][:, :-1]).all()
    assert all(len(tensor) == 8 for tensor in batch.values())
    loss = seq2seq(**batch).loss
    loss.backward()
    assert torch.isfinite(loss)


def test_padding_changes_no_prediction(seq2seq):
    rows = addition_rows(16, digits=5, min_digits=1, zero_pad=False)
    collate = make_collator(ADDITION, model=seq2seq)
    batch = collate(rows)
    assert (batch["attention_mask"] == 0).any()
    assert ((batch["input_ids"] == 0) == (batch["attention_mask"] == 0)).all()
    together = seq2seq(**batch).logits
    for number, row in enumerate(rows):
        alone = collate([row])
        assert "attention_mask" not in alone
        length = alone["labels"].shape[1]
        assert (batch["labels"][number, length:] == -100).all()
        torch.testing.assert_close(seq2seq(**alone).logits[0], together[number, :length], atol=1e-5, rtol=1e-4)


def test_rows_that_are_tokens_already_give_the_same_batch(seq2seq):
    corpus = TASKS["addition"].splits(AdditionOptions())
    encoded = ADDITION.encode(corpus.problems("test")[:8])
    tokens = [{name: encoded[name][row] for name in ("input_ids", "labels")} for row in range(8)]
    collate = make_collator(ADDITION, model=seq2seq)
    from_text = collate(next(corpus.tables("default", "test")).to_pylist()[:8])
    from_tokens = collate(tokens)
    assert from_text.keys() == from_tokens.keys()
    for name in from_text:
        assert torch.equal(from_text[name], from_tokens[name])


def test_a_decoder_only_batch_with_coupled_positions():
    config = HeadcountConfig(
        architecture="decoder",
        vocab_size=ADDITION.vocabulary.size,
        position_embedding_type="relative_bias",
        position_scheme="coupled",
        digit_token_ids=DIGIT_IDS,
        answer_start_token_id=EQUALS_ID,
        **TINY,
    )
    model = HeadcountForCausalLM(config)
    rows = addition_rows(4, digits=6, min_digits=3, answer_order="reversed")
    batch = make_collator(ADDITION, "decoder", model)(rows)
    for ids, labels, row in zip(batch["input_ids"], batch["labels"], rows, strict=True):
        text = f"<bos>{row['input']}={row['target']}<eos>"
        assert make_tokenizer(ADDITION).decode(ids).replace("<pad>", "") == text
        assert make_tokenizer(ADDITION).decode(labels[labels != -100]) == row["target"] + "<eos>"
    assert torch.equal(batch["position_ids"], model.make_position_ids(batch["input_ids"], batch.get("attention_mask")))
    assert torch.isfinite(model(**batch).loss)


def test_a_sortedness_batch_with_and_without_padding():
    config = HeadcountConfig(
        architecture="encoder",
        vocab_size=SORTEDNESS.vocabulary.size,
        embedding_type="ordinal",
        ordinal_token_range=[3, 103],
        position_embedding_type="alibi_directional",
        pooling_type="max",
        **TINY,
    )
    model = HeadcountForSequenceClassification(config).eval()
    options = SortednessOptions(train=40, validation=2, test=8, test_lengths=(16,))
    corpus = TASKS["sortedness"].splits(options)
    collate = make_collator(SORTEDNESS, model=model)
    mixed = next(corpus.tables("default", "train")).to_pylist()
    batch = collate(mixed)
    assert (batch["attention_mask"].sum(1) == torch.tensor([row["length"] for row in mixed])).all()
    assert batch["labels"].float().mean() == 0.5
    logits = model(**batch).logits
    for number in range(5):
        alone = collate([mixed[number]])
        assert "attention_mask" not in alone
        torch.testing.assert_close(model(**alone).logits[0], logits[number], atol=1e-5, rtol=1e-4)
    same_length = collate(next(corpus.tables("swap", "test_16")).to_pylist())
    assert "attention_mask" not in same_length
    assert same_length["input_ids"].min() >= 3


def test_wrong_rows_are_explained(seq2seq):
    collate = make_collator(ADDITION, model=seq2seq)
    with pytest.raises(ValueError, match="a row has no 'target' but"):
        collate([{"input": "1+1"}])
    with pytest.raises(ValueError, match="expected input and target, or input_ids and labels"):
        collate([{"input_ids": [3, 4]}])
    with pytest.raises(ValueError, match="'100' is not in the vocabulary; expected only 0 to 99"):
        make_collator(SORTEDNESS)([{"values": np.array([3, 100]), "label": 0}])
