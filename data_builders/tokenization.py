"""Tokenizers of the tasks.

One token per symbol of the vocabulary: `addition` has digits, `+` and `=`, `sortedness` integers with blanks between
them. There is no unknown token: text outside of the vocabulary is an error.
"""

from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import BatchEncoding, PreTrainedTokenizerFast

from .option_checks import check_name
from .tasks import ARCHITECTURES, Task
from .vocabulary import SPECIAL_IDS, SPECIAL_TOKENS


# Style -> how a text, and a question with its answer, are wrapped; and where padding goes.
TEMPLATES = {
    "encoder-decoder": ("$A <eos>", "$A <eos> $B <eos>", "right"),
    "decoder": ("<bos> $A", "<bos> $A $B <eos>", "left"),
    "encoder": ("$A", "$A $B", "right"),
}


class HeadcountTokenizer(PreTrainedTokenizerFast):
    """A fast tokenizer whose error for text outside of its vocabulary names the text and the vocabulary.

    Where headcount is not installed, `AutoTokenizer` reads the saved files as a plain fast tokenizer with the same
    encodings; such text is an error there too, in the words of the `tokenizers` library.
    """

    def _encode_plus(self, text: Any, text_pair: Any = None, **kwargs: Any) -> BatchEncoding:
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

    def _first_unknown(self, text: Any) -> tuple[str, str] | None:
        if isinstance(text, (list, tuple)):
            return next(filter(None, map(self._first_unknown, text)), None)
        if not isinstance(text, str):
            return None
        vocabulary = self.get_vocab()
        pieces = self.backend_tokenizer.pre_tokenizer.pre_tokenize_str(text)
        return next(((text, piece) for piece, _ in pieces if piece not in vocabulary), None)


def _shorten(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def make_tokenizer(task: Task, style: str | None = None) -> HeadcountTokenizer:
    """The tokenizer of a task for an architecture; by default the first that the task allows.

    `encoder-decoder`: every text ends with <eos>, questions and answers alike; padding on the right. `decoder`: a
    prompt `374+814=` starts with <bos> and stays open for generation; padding on the left; a pair
    `tokenizer("374+814=", "8811")` is a whole training sequence with <eos>. `encoder`: no special tokens.
    """
    style = style or ARCHITECTURES[task.kind][0]
    check_name("style", style, ARCHITECTURES[task.kind])
    single, pair, padding_side = TEMPLATES[style]
    names = [*SPECIAL_TOKENS, *task.vocabulary.symbols]
    tokenizer = Tokenizer(models.WordLevel({token: number for number, token in enumerate(names)}))
    if task.vocabulary.joiner:
        tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
        tokenizer.decoder = decoders.Fuse()
    if style != "encoder":
        special = list(zip(SPECIAL_TOKENS, SPECIAL_IDS, strict=True))
        tokenizer.post_processor = processors.TemplateProcessing(single=single, pair=pair, special_tokens=special)
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
