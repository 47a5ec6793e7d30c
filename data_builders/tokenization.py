"""Tokenizers of the tasks, and the same encodings straight from arrays.

Ids 0, 1, 2 are <pad>, <bos>, <eos>, as the models expect. Addition: one token per character, digits 3-12, `+` 13,
`=` 14. Sortedness: one token per integer, 0-99 as 3-102. There is no unknown token: text outside of the vocabulary
is an error.
"""

import numpy as np
from numpy.typing import NDArray
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from .addition_text import addition_texts
from .choices import ANSWER_ORDERS, TOKENIZER_STYLES
from .columns import Problems, solve
from .option_checks import check_name
from .sortedness import VALUES


PAD, BOS, EOS = SPECIAL_IDS = (0, 1, 2)
SPECIAL_TOKENS = ("<pad>", "<bos>", "<eos>")
IGNORED = -100  # the label of a place where nothing is to be learned
FIRST_TOKEN = len(SPECIAL_TOKENS)

ADDITION_SYMBOLS = "0123456789+="
DIGIT_IDS = list(range(FIRST_TOKEN, FIRST_TOKEN + 10))
PLUS_ID, EQUALS_ID = (FIRST_TOKEN + ADDITION_SYMBOLS.index(symbol) for symbol in "+=")
ADDITION_VOCABULARY = FIRST_TOKEN + len(ADDITION_SYMBOLS)

VALUE_RANGE = [FIRST_TOKEN, FIRST_TOKEN + VALUES]  # the config's `ordinal_token_range`
SORTEDNESS_VOCABULARY = FIRST_TOKEN + VALUES

_ID_OF_CODE = np.zeros(256, np.int64)
_ID_OF_CODE[[ord(symbol) for symbol in ADDITION_SYMBOLS]] = np.arange(FIRST_TOKEN, ADDITION_VOCABULARY)


class HeadcountTokenizer(PreTrainedTokenizerFast):
    """A fast tokenizer whose error for text outside of its vocabulary names the text and the vocabulary.

    Where headcount is not installed, `AutoTokenizer` reads the saved files as a plain fast tokenizer with the same
    encodings; such text is an error there too, in the words of the `tokenizers` library.
    """

    def _encode_plus(self, text, text_pair=None, **kwargs):
        try:
            return super()._encode_plus(text=text, text_pair=text_pair, **kwargs)
        except Exception as error:
            unknown = self._first_unknown(text) or self._first_unknown(text_pair)
            if unknown is None:
                raise
            whole, piece = unknown
            symbols = [token for token in self.convert_ids_to_tokens(range(len(self))) if token not in SPECIAL_TOKENS]
            shown = " ".join(symbols) if len(symbols) < 20 else f"{symbols[0]} to {symbols[-1]}"
            raise ValueError(
                f"{_shorten(whole)!r} cannot be encoded: {_shorten(piece)!r} is not in the vocabulary; "
                f"expected only {shown}."
            ) from error

    def _first_unknown(self, text) -> tuple[str, str] | None:
        if isinstance(text, (list, tuple)):
            return next(filter(None, map(self._first_unknown, text)), None)
        if not isinstance(text, str):
            return None
        vocabulary = self.get_vocab()
        pieces = self.backend_tokenizer.pre_tokenizer.pre_tokenize_str(text)
        return next(((text, piece) for piece, _ in pieces if piece not in vocabulary), None)


def _shorten(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def addition_tokenizer(style: str = "encoder-decoder") -> HeadcountTokenizer:
    """One token per character of `374+814` and `1188`.

    `encoder-decoder`: every text ends with <eos>, inputs and targets alike; padding on the right.
    `decoder`: a prompt `374+814=` starts with <bos> and stays open for generation; padding on the left. A pair
    `tokenizer("374+814=", "8811")` is a whole training sequence with <eos>.
    """
    check_name("style", style, TOKENIZER_STYLES)
    tokenizer = _word_level(ADDITION_SYMBOLS)
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    single, pair = (
        ("$A <eos>", "$A <eos> $B <eos>") if style == "encoder-decoder" else ("<bos> $A", "<bos> $A $B <eos>")
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single=single, pair=pair, special_tokens=list(zip(SPECIAL_TOKENS, SPECIAL_IDS, strict=True))
    )
    return _wrap(tokenizer, "right" if style == "encoder-decoder" else "left")


def sortedness_tokenizer() -> HeadcountTokenizer:
    """One token per integer of `3 17 17 42`; no special tokens are added; padding on the right."""
    tokenizer = _word_level(map(str, range(VALUES)))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return _wrap(tokenizer, "right")


def _word_level(symbols) -> Tokenizer:
    return Tokenizer(models.WordLevel({token: number for number, token in enumerate([*SPECIAL_TOKENS, *symbols])}))


def _wrap(tokenizer: Tokenizer, padding_side: str) -> HeadcountTokenizer:
    pad, bos, eos = SPECIAL_TOKENS
    return HeadcountTokenizer(
        tokenizer_object=tokenizer,
        pad_token=pad,
        bos_token=bos,
        eos_token=eos,
        padding_side=padding_side,
        model_input_names=["input_ids", "attention_mask"],
        clean_up_tokenization_spaces=False,
    )


def encode_addition(
    problems: Problems,
    style: str = "encoder-decoder",
    answer_order: str = "plain",
    zero_pad: bool = True,
) -> dict[str, NDArray[np.int64]]:
    """Token ids of whole problems, equal to what the tokenizer makes of their texts.

    `encoder-decoder`: `input_ids` `374+814<eos>` and `labels` `1188<eos>`. `decoder`: `input_ids`
    `<bos>374+814=1188<eos>` and `labels`, the same with -100 up to and including the `=`.
    Padded on the right (labels with -100); `attention_mask` is there only if any input is padded.
    """
    check_name("style", style, TOKENIZER_STYLES)
    inputs, targets = _encode_texts(problems, answer_order, zero_pad)
    count = len(problems)
    column = {token: (np.full((count, 1), token), np.ones(count, np.int64)) for token in (BOS, EOS, EQUALS_ID)}
    if style == "encoder-decoder":
        input_ids, lengths = _side_by_side([inputs, column[EOS]], PAD)
        labels, _ = _side_by_side([targets, column[EOS]], IGNORED)
    else:
        input_ids, lengths = _side_by_side([column[BOS], inputs, column[EQUALS_ID], targets, column[EOS]], PAD)
        slots = np.arange(input_ids.shape[1])
        is_answer = (slots >= (inputs[1] + 2)[:, None]) & (slots < lengths[:, None])
        labels = np.where(is_answer, input_ids, IGNORED)
    encoded = {"input_ids": input_ids, "labels": labels}
    if (lengths < input_ids.shape[1]).any():
        encoded["attention_mask"] = (np.arange(input_ids.shape[1]) < lengths[:, None]).astype(np.int64)
    return encoded


def encode_prompts(problems: Problems, zero_pad: bool = True) -> dict[str, NDArray[np.int64]]:
    """`<bos>374+814=` for decoder-only generation, padded on the left; `attention_mask` only if any row is padded."""
    inputs, _ = _encode_texts(problems, "plain", zero_pad)
    count = len(problems)
    column = {token: (np.full((count, 1), token), np.ones(count, np.int64)) for token in (BOS, EQUALS_ID)}
    ids, lengths = _side_by_side([column[BOS], inputs, column[EQUALS_ID]], PAD)
    width = ids.shape[1]
    if (lengths == width).all():
        return {"input_ids": ids}
    source = np.arange(width) - (width - lengths)[:, None]
    shifted = np.where(source >= 0, np.take_along_axis(ids, np.maximum(source, 0), axis=1), PAD)
    return {"input_ids": shifted, "attention_mask": (source >= 0).astype(np.int64)}


def encode_sortedness(values: NDArray[np.integer]) -> NDArray[np.int64]:
    """Token ids of values 0-99, same shape."""
    return values.astype(np.int64) + FIRST_TOKEN


def _encode_texts(problems: Problems, answer_order: str, zero_pad: bool) -> list[tuple[NDArray, NDArray]]:
    check_name("answer_order", answer_order, ANSWER_ORDERS)
    total = solve(problems.a, problems.b).sum
    texts = addition_texts(problems, total, zero_pad, answer_order)
    return [(_ID_OF_CODE[codes], lengths) for codes, lengths in texts]


def _side_by_side(parts: list[tuple[NDArray, NDArray]], fill: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Token rows (ids, lengths) joined row by row; shorter rows end with `fill`."""
    lengths = np.sum([own for _, own in parts], axis=0)
    ids = np.concatenate([ids for ids, _ in parts], axis=1)
    keep = np.concatenate([np.arange(ids.shape[1]) < own[:, None] for ids, own in parts], axis=1)
    joined = np.full((len(ids), int(lengths.max(initial=0))), fill, np.int64)
    joined[np.arange(joined.shape[1]) < lengths[:, None]] = ids[keep]
    return joined, lengths
