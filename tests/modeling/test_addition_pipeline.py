"""The pipeline integer-addition: it asks as the model was trained, and gives back what the model writes."""

import numpy as np
import pytest
import torch
from small_models import make_model
from transformers import pipeline

import headcount
from headcount.data_builders.addition.columns import AdditionProblems
from headcount.data_builders.tokenization import make_tokenizer


ADDITION, SORTEDNESS = headcount.TASKS["addition"], headcount.TASKS["sortedness"]
FORMATS = {
    "fixed": {"operand_digits": 4},
    "aligned": {"align_operands": True},
    "natural": {},
}
VOCABULARY = {"vocab_size": 15, "digit_token_ids": list(range(3, 13)), "answer_start_token_id": 14}


def make_pipe(architecture="encoder-decoder", seed=0, **options):
    model = make_model(architecture, seed=seed, **VOCABULARY, **options)
    return pipeline("integer-addition", model=model, tokenizer=make_tokenizer(ADDITION, architecture))


def problem(a: str, b: str, width: int) -> AdditionProblems:
    digits = [np.array([[int(digit) for digit in number.zfill(width)[::-1]]], np.int8) for number in (a, b)]
    return AdditionProblems(*digits, np.array([width]))


@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder"])
@pytest.mark.parametrize("written", FORMATS)
def test_problems_are_written_as_in_training(architecture, written):
    pipe = make_pipe(architecture, **FORMATS[written])
    width = {"fixed": 4, "aligned": 3, "natural": 3}[written]
    numbers = problem("7", "132", width)
    zero_pad = written != "natural"
    if architecture == "decoder":
        expected = ADDITION.prompts(numbers, ADDITION.options(zero_pad=zero_pad))["input_ids"]
    else:
        expected = ADDITION.encode(numbers, options=ADDITION.options(zero_pad=zero_pad))["input_ids"]
    assert pipe.preprocess(" 7 + 132")["input_ids"].tolist() == expected.tolist()


@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder"])
@pytest.mark.parametrize("order", ["plain", "reversed"])
def test_answers_are_what_the_model_generates(architecture, order):
    """Untrained models write all sorts of things; several of them, so that numbers and other texts are met."""
    seen = set()
    for seed in range(6):
        pipe = make_pipe(architecture, seed=seed, answer_order=order, operand_digits=2)
        tokenizer, prompt = pipe.tokenizer, "07+85" + ("=" if architecture == "decoder" else "")
        inputs = tokenizer(prompt, return_tensors="pt")
        tokens = pipe.model.generate(**inputs, max_new_tokens=4, do_sample=False)[0]
        text = tokenizer.decode(
            tokens[1 if architecture == "encoder-decoder" else inputs["input_ids"].shape[1] :],
            skip_special_tokens=True,
        )
        text = text[::-1] if order == "reversed" else text
        expected = str(int(text)) if text.isdigit() else text
        assert pipe("7+85") == expected
        seen.add(text.isdigit())
    assert True in seen


@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder"])
def test_batches_of_mixed_lengths_give_the_same_as_one_by_one(architecture):
    pipe = make_pipe(architecture, position_embedding_type="rotary")
    problems = ["1+1", "374+814", "12+9999", "5+77"]
    assert pipe(problems, batch_size=4) == [pipe(each) for each in problems]


@pytest.mark.parametrize("wrong", ["374-814", "1+2+3", "a+b", "", "1.5+2", "-1+2", "١+٢", 5, None])
def test_what_is_no_addition_is_refused(wrong):
    with pytest.raises(ValueError, match="is not an addition; expected two whole numbers, such as '374"):
        make_pipe()(wrong)


def test_numbers_that_are_too_long_are_refused():
    with pytest.raises(ValueError, match="is too long for this model; expected numbers of at most 3 digits"):
        make_pipe(operand_digits=3)("1234+1")
    assert isinstance(make_pipe(operand_digits=3)("0001+0002"), str)  # leading zeros do not make a number longer
    small = make_pipe("decoder", max_position_embeddings=15)
    assert isinstance(small("123+456"), str)
    with pytest.raises(ValueError, match="it needs 16 positions; expected at most 15"):
        small("1234+4567")
    assert isinstance(make_pipe("decoder", position_embedding_type="rotary")("1" * 30 + "+2"), str)


def test_a_model_of_mixed_lengths_takes_any_length(caplog):
    options = {"align_operands": True, "position_scheme": "coupled", "position_embedding_type": "relative_bias"}
    pipe = make_pipe("decoder", num_attention_heads=4, **options)
    prompt = pipe.preprocess("5" * 200 + "+" + "7" * 180)
    assert prompt["input_ids"].shape[1] == 2 * 200 + 3 and int(prompt["answer_tokens"]) == 202
    assert isinstance(pipe("5" * 200 + "+" + "7" * 180), str)
    assert "maximum length" not in caplog.text  # there is none
    assert pipe.preprocess("1" * 10_000 + "+1")["input_ids"].shape[1] == 2 * 10_000 + 3
    with pytest.raises(ValueError, match="is not an addition") as raised:
        pipe("1" * 5000 + "-1")
    assert len(str(raised.value)) < 250  # the number itself is not recited


@pytest.mark.parametrize("scheme", ["coupled", "abacus"])
def test_a_table_of_ids_that_count_digits_has_an_exact_length_check_too(scheme):
    positions = {"coupled": 6, "abacus": 5}[scheme]  # three digits, one more in the answer
    options = {"align_operands": True, "position_scheme": scheme, "position_embedding_type": "learned"}
    pipe = make_pipe("decoder", max_position_embeddings=positions, **options)
    pipe.preprocess("123+45")
    inputs = pipe.tokenizer("123+045=", return_tensors="pt")
    pipe.model.generate(**inputs, min_new_tokens=5, max_new_tokens=5)
    with pytest.raises(ValueError, match=f"it needs {positions + 1} positions; expected at most {positions}"):
        pipe("1234+45")


def test_the_length_check_is_exact():
    """Where the pipeline says yes, the longest answer really fits; where it says no, the model itself would fail."""
    for positions in (12, 11):
        pipe = make_pipe("decoder", max_position_embeddings=positions)
        prompt = pipe.tokenizer("123+45=", return_tensors="pt")
        answer = {"min_new_tokens": 5, "max_new_tokens": 5}
        if positions == 12:
            pipe.preprocess("123+45")
            pipe.model.generate(**prompt, **answer)
        else:
            with pytest.raises(ValueError, match="it needs 12 positions; expected at most 11"):
                pipe.preprocess("123+45")
            with pytest.raises(ValueError, match="the learned table holds 0 to 10"):
                pipe.model.generate(**prompt, **answer)


def test_models_and_options_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="cannot use this HeadcountForSequenceClassification; expected a headcount"):
        pipeline("integer-addition", model=make_model("encoder"), tokenizer=make_tokenizer(SORTEDNESS))
    with pytest.raises(TypeError, match="takes no 'top_k'"):
        make_pipe()("1+1", top_k=3)


def test_text_classification_serves_sortedness():
    torch.manual_seed(0)
    config = headcount.HeadcountConfig(
        architecture="encoder",
        vocab_size=103,
        hidden_size=32,
        num_attention_heads=2,
        intermediate_size=32,
        id2label={0: "unsorted", 1: "sorted"},
        label2id={"unsorted": 0, "sorted": 1},
    )
    model = headcount.HeadcountForSequenceClassification(config).eval()
    tokenizer = make_tokenizer(SORTEDNESS)
    answer = pipeline("text-classification", model=model, tokenizer=tokenizer)("3 17 17 42")
    logits = model(**tokenizer("3 17 17 42", return_tensors="pt")).logits[0].softmax(-1).detach()
    assert answer[0]["label"] == config.id2label[int(logits.argmax())]
    assert answer[0]["score"] == pytest.approx(float(logits.max()))
