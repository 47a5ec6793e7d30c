"""The pipeline `integer-addition`: `pipe("374+814")` gives `"1188"`.

It writes the problem as the model was taught to read it (leading zeros, `=` before the answer of a decoder), lets the
model write its answer greedily, and turns that into a number. The sum is never computed here: a wrong answer of the
model is a wrong answer of the pipeline.
"""

import re
from typing import Any

import torch
from transformers import Pipeline

from .position_schemes import no_room, positions_needed


TASK = "integer-addition"
PROBLEM = re.compile(r"\s*([0-9]+)\s*\+\s*([0-9]+)\s*=?\s*")


def shown(problem: Any) -> str:
    """A problem as an error quotes it, long ones with their middle left out."""
    text = repr(problem)
    return text if len(text) <= 60 else f"{text[:28]}...{text[-28:]}"


class AdditionPipeline(Pipeline):
    """Adds as the model does, with a trained model of addition:

        pipe = pipeline("integer-addition", model="runs/addition/model")
        pipe("374+814")  # '1188'
        pipe(["1+1", "702 + 297"], batch_size=2)  # ['2', '999']

    A model that was trained on mixed lengths takes numbers of any length, in memory that grows with the length alone;
    whether its answer is right at that length is another matter: see its card.

    What the model writes is given back without leading zeros, most significant digit first, whatever the order in
    which the model writes. If it is not a number at all, it is given back as it is.
    """

    _load_tokenizer = True
    _load_processor = False
    _load_image_processor = False
    _load_video_processor = False
    _load_feature_extractor = False

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        if self.tokenizer is None:
            raise ValueError("the pipeline integer-addition needs the model's tokenizer; expected tokenizer=...")
        config = self.model.config
        if not self.model.can_generate() or len(getattr(config, "digit_token_ids", None) or ()) != 10:
            raise ValueError(
                f"the pipeline integer-addition cannot use this {type(self.model).__name__}; expected a headcount "
                "model that was trained on addition."
            )

    def _sanitize_parameters(self, **kwargs: Any) -> tuple[dict, dict, dict]:
        if kwargs:
            raise TypeError(f"the pipeline integer-addition takes no {next(iter(kwargs))!r}.")
        return {}, {}, {}

    def preprocess(self, problem: str) -> dict:
        first, second = self._operands(problem)
        config = self.model.config
        if config.operand_digits is not None:
            width = config.operand_digits
        else:
            width = max(len(first), len(second)) if config.align_operands else 0
        prompt = f"{first.zfill(width)}+{second.zfill(width)}" + ("" if config.is_encoder_decoder else "=")
        # Addition gives at most one digit more than the longer operand; then the end token.
        answer_tokens = max(width, len(first), len(second)) + 2
        encoded = self.tokenizer(prompt, return_tensors="pt", return_token_type_ids=False)
        self._check_length(problem, encoded["input_ids"].shape[1], answer_tokens)
        return {**encoded, "answer_tokens": torch.tensor([[answer_tokens]])}

    def _operands(self, problem: str) -> tuple[str, str]:
        found = PROBLEM.fullmatch(problem) if isinstance(problem, str) else None
        if found is None:
            raise ValueError(f"{shown(problem)} is not an addition; expected two whole numbers, such as '374+814'.")
        first, second = (number.lstrip("0") or "0" for number in found.groups())
        most = self.model.config.operand_digits
        if most is not None and max(len(first), len(second)) > most:
            raise ValueError(
                f"{shown(problem)} is too long for this model; expected numbers of at most {most} digits."
            )
        return first, second

    def _check_length(self, problem: str, prompt_tokens: int, answer_tokens: int) -> None:
        config = self.model.config
        # What is written last is not read again.
        answer_read = answer_tokens if config.is_encoder_decoder else prompt_tokens + answer_tokens - 1
        tokens, longest_number = max(prompt_tokens, answer_read), answer_tokens - 1
        if no_room(config, tokens, longest_number):
            raise ValueError(
                f"{shown(problem)} is too long for this model: it needs "
                f"{positions_needed(config, tokens, longest_number)} positions; expected at most "
                f"{config.max_position_embeddings}."
            )

    def _forward(self, inputs: dict) -> dict:
        answer_tokens = inputs.pop("answer_tokens")  # (batch, 1)
        prompt_tokens = 1 if self.model.config.is_encoder_decoder else inputs["input_ids"].shape[1]
        longest = int(answer_tokens.max())
        tokens = self.model.generate(**inputs, max_new_tokens=longest, do_sample=False, num_beams=1)
        return {"answer": tokens[:, prompt_tokens:], "answer_tokens": answer_tokens}

    def postprocess(self, outputs: dict) -> str:
        # In a batch with longer problems, a model that finds no end would write on.
        answer = outputs["answer"][0, : int(outputs["answer_tokens"])]
        text = self.tokenizer.decode(answer, skip_special_tokens=True)
        if self.model.config.answer_order == "reversed":
            text = text[::-1]
        return (text.lstrip("0") or "0") if re.fullmatch("[0-9]+", text) else text
