"""Vocabularies, and token sequences put together from arrays.

Ids 0, 1, 2 are <pad>, <bos>, <eos>, as the models expect; the symbols of a task follow.

Shapes: N rows, W tokens of the longest.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


PAD, BOS, EOS = SPECIAL_IDS = (0, 1, 2)
SPECIAL_TOKENS = ("<pad>", "<bos>", "<eos>")
IGNORED = -100  # the label of a place where nothing is to be learned

Written = tuple[NDArray[np.int64], NDArray[np.int64]]  # ids (N, W), of which every row keeps its first lengths (N,)


@dataclass(frozen=True)
class Vocabulary:
    """`joiner`: what stands between two symbols in a text; `answer_mark`: ends the question of a decoder."""

    symbols: tuple[str, ...]
    joiner: str = ""
    answer_mark: str | None = None

    @property
    def first(self) -> int:
        """The id of the first symbol."""
        return len(SPECIAL_TOKENS)

    @property
    def size(self) -> int:
        return self.first + len(self.symbols)

    def id_of(self, symbol: str) -> int:
        return self.first + self.symbols.index(symbol)

    @property
    def answer_mark_id(self) -> int | None:
        return None if self.answer_mark is None else self.id_of(self.answer_mark)

    def prompt(self, question: str) -> str:
        """A question, and the mark after which a decoder writes its answer."""
        return f"{question}{self.joiner}{self.answer_mark or ''}"

    def question(self, text: str) -> str:
        """What stands before the mark, if there is one."""
        return text if self.answer_mark is None else text.split(self.answer_mark)[0].strip()

    def names(self, ids: list[int]) -> list[str]:
        """How tokens are written on the axis of a figure."""
        names = [*SPECIAL_TOKENS, *self.symbols]
        return [names[token] if 0 <= token < len(names) else "?" for token in ids]

    def text(self, ids: list[int]) -> str:
        """What was written, up to <eos>; special tokens and places without a label are left out."""
        shown = []
        for token in ids:
            if token == EOS:
                break
            if token >= self.first:
                shown.append(self.symbols[token - self.first] if token < self.size else "?")
            elif token == BOS:
                shown.append("?")
        return self.joiner.join(shown)


def side_by_side(parts: list[Written], fill: int) -> Written:
    """Token rows joined row by row; shorter rows end with `fill`."""
    lengths = np.sum([own for _, own in parts], axis=0)
    ids = np.concatenate([ids for ids, _ in parts], axis=1)
    keep = np.concatenate([np.arange(ids.shape[1]) < own[:, None] for ids, own in parts], axis=1)
    joined = np.full((len(ids), int(lengths.max(initial=0))), fill, np.int64)
    joined[np.arange(joined.shape[1]) < lengths[:, None]] = ids[keep]
    return joined, lengths


def assemble(questions: Written, answers: Written | NDArray, style: str, vocabulary: Vocabulary) -> dict[str, NDArray]:
    """Whole examples for an architecture; see `Task.encode`."""
    count = len(questions[1])
    if style == "encoder":
        input_ids, lengths = side_by_side([questions], PAD)
        labels = np.asarray(answers, np.int64)
    elif not isinstance(answers, tuple):
        raise ValueError(f"labels cannot be written in the style {style!r}; expected answers as ids and lengths.")
    elif style == "encoder-decoder":
        input_ids, lengths = side_by_side([questions, _column(EOS, count)], PAD)
        labels, _ = side_by_side([answers, _column(EOS, count)], IGNORED)
    else:
        parts = [_column(BOS, count), questions, _mark(vocabulary, count), answers, _column(EOS, count)]
        input_ids, lengths = side_by_side(parts, PAD)
        slots = np.arange(input_ids.shape[1])
        is_answer = (slots >= (questions[1] + 2)[:, None]) & (slots < lengths[:, None])
        labels = np.where(is_answer, input_ids, IGNORED)
    encoded = {"input_ids": input_ids, "labels": labels}
    if (lengths < input_ids.shape[1]).any():
        encoded["attention_mask"] = (np.arange(input_ids.shape[1]) < lengths[:, None]).astype(np.int64)
    return encoded


def assemble_prompts(questions: Written, vocabulary: Vocabulary) -> dict[str, NDArray]:
    """Questions for a decoder to go on from, padded on the left; `attention_mask` only if any row is padded."""
    count = len(questions[1])
    ids, lengths = side_by_side([_column(BOS, count), questions, _mark(vocabulary, count)], PAD)
    width = ids.shape[1]
    if (lengths == width).all():
        return {"input_ids": ids}
    source = np.arange(width) - (width - lengths)[:, None]
    shifted = np.where(source >= 0, np.take_along_axis(ids, np.maximum(source, 0), axis=1), PAD)
    return {"input_ids": shifted, "attention_mask": (source >= 0).astype(np.int64)}


def _column(token: int, count: int) -> Written:
    return np.full((count, 1), token), np.ones(count, np.int64)


def _mark(vocabulary: Vocabulary, count: int) -> Written:
    if vocabulary.answer_mark_id is None:
        raise ValueError("the vocabulary has no answer_mark; expected one, to end the question of a decoder.")
    return _column(vocabulary.answer_mark_id, count)
