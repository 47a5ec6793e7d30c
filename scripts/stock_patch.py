"""`headcount patch` on a transformers model that is not headcount's own: pairs of texts from a file of JSON lines.

{"base": "Mary gave it to", "source": "John gave it to", "base_answer": " John", "source_answer": " Mary"}
"""

import json
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..records.progress import progress_bar, say
from .stock_heads import check_text, load


if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

FIELDS = ("base", "source", "base_answer", "source_answer")
BATCH = 16
LONGEST_LINE = 1_000_000  # characters


@dataclass(frozen=True)
class TextPair:
    """One line: two texts and what each is answered by."""

    line: int
    base: str
    source: str
    base_answer: str
    source_answer: str


@dataclass(frozen=True)
class TokenPair:
    """A pair as the model reads it: as many tokens on both sides, one token for each answer."""

    base: list[int]
    source: list[int]
    answers: tuple[int, int]
    is_cut: bool  # an answer has more tokens, of which the first counts


def is_pair_file(name: str) -> bool:
    return Path(name).suffix == ".jsonl"


def patch_stock_model(
    model: str, pairs: str, sites: list[str] | None, freeze: list[str], complements: bool, most: int
) -> list[dict]:
    """Rows of `interchange` on the pairs of a file: of the sites that are named, or of every site and kind."""
    import torch

    from ..analysis.circuits.interchange import interchange
    from ..analysis.interventions.sets import standard_sets
    from ..analysis.interventions.sites import sites as all_sites

    path = Path(pairs)
    found = read_pairs(path, most)
    tokenizer, loaded = load(auto_class(model), model)
    encoded = encode_pairs(tokenizer, loaded, path, found)
    groups = by_length(encoded)
    bases, sources = (
        [as_batch(loaded, [getattr(own, side) for own in group]) for group in groups] for side in FIELDS[:2]
    )
    named = sites or [*map(str, all_sites(loaded)), *(each.name for each in standard_sets(loaded))]
    rows = interchange(
        loaded,
        bases,
        sources,
        named,
        answers=torch.tensor([own.answers for group in groups for own in group]),
        complements=complements,
        frozen=freeze,
        progress=progress_bar(f"{len(encoded)} pairs"),
    )
    cut = sum(own.is_cut for own in encoded)
    if cut:
        say(f"in {cut} of {len(encoded)} pairs an answer has several tokens; the first of them counts")
    return rows


def read_pairs(path: Path, most: int) -> list[TextPair]:
    """At most so many lines of a file; the first that is not a pair is told with its number."""
    if not path.is_file():
        raise ValueError(
            f"{path} is not there; expected a file with lines such as {json.dumps(dict.fromkeys(FIELDS, '...'))}."
        )
    check_text(path)
    found = []
    with path.open(encoding="utf-8-sig") as file:
        numbered = enumerate(iter(lambda: file.readline(LONGEST_LINE), ""), start=1)
        for number, line in islice(((n, text) for n, text in numbered if text.strip()), most):
            found.append(_pair(f"{path} line {number}", number, line))
    if not found:
        raise ValueError(f"{path} has no lines; expected at least one pair.")
    return found


def _pair(where: str, number: int, line: str) -> TextPair:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError(f"{where} is not JSON; expected an object with {', '.join(FIELDS)}.") from None
    if not isinstance(record, dict):
        raise ValueError(f"{where} is no object; expected one with {', '.join(FIELDS)}.")
    for name in FIELDS:
        if not isinstance(record.get(name), str) or not record[name]:
            raise ValueError(f"{where} has no text {name!r}; expected texts for {', '.join(FIELDS)}.")
    return TextPair(number, *(record[name] for name in FIELDS))


def auto_class(model: str) -> str:
    """Which Auto class loads a model that answers by tokens."""
    _, found = load("AutoConfig", model)
    config: Any = getattr(found, "config", found)  # of a pruned folder the model itself is loaded
    if getattr(config, "is_encoder_decoder", False):
        return "AutoModelForSeq2SeqLM"
    names = [str(name) for name in getattr(config, "architectures", None) or []]
    if names and not any(name.endswith(("ForCausalLM", "LMHeadModel")) for name in names):
        raise ValueError(
            f"{model} is a {names[0]}, which continues no text; expected a decoder or an encoder-decoder."
        )
    return "AutoModelForCausalLM"


def encode_pairs(tokenizer: Any, model: "PreTrainedModel", path: Path, pairs: list[TextPair]) -> list[TokenPair]:
    """Every pair as token ids; lengths that differ, or answers that begin alike, are told with their line."""
    embeddings: Any = model.get_input_embeddings()
    size = int(embeddings.weight.shape[0])
    longest = getattr(model.config, "max_position_embeddings", None)
    found = []
    for pair in pairs:
        where = f"{path} line {pair.line}"
        base, source = (tokens_of(tokenizer, text, where) for text in (pair.base, pair.source))
        if len(base) != len(source):
            raise ValueError(
                f"{where} has a base of {len(base)} tokens and a source of {len(source)}; expected as many of both."
            )
        if isinstance(longest, int) and len(base) > longest:
            raise ValueError(f"{where} has {len(base)} tokens; expected at most {longest}, which the model can read.")
        answers = [tokens_of(tokenizer, text, where, special=False) for text in (pair.base_answer, pair.source_answer)]
        first, second = (own[0] for own in answers)
        if first == second:
            raise ValueError(
                f"{where} has answers that begin with the same token; expected two that can be told apart."
            )
        strange = next((token for token in (*base, *source, first, second) if token >= size), None)
        if strange is not None:
            raise ValueError(f"{where} has the token {strange}; expected the tokenizer of a model of {size} tokens.")
        found.append(TokenPair(base, source, (first, second), any(len(own) > 1 for own in answers)))
    return found


def tokens_of(tokenizer: Any, text: str, where: str, special: bool = True) -> list[int]:
    try:
        found = list(tokenizer(text, add_special_tokens=special)["input_ids"])
    except (TypeError, OverflowError) as error:  # of numbers in tokenizer_config.json, which nobody has checked
        raise ValueError("the tokenizer cannot read the texts; expected its files as they were saved.") from error
    if not found:
        raise ValueError(f"{where} has the text {text[:40]!r}, which has no tokens; expected some in every text.")
    return found


def by_length(pairs: list[TokenPair]) -> list[list[TokenPair]]:
    """Batches of pairs that need no padding beside each other."""
    lengths: dict[int, list[TokenPair]] = {}
    for pair in pairs:
        lengths.setdefault(len(pair.base), []).append(pair)
    return [own[start : start + BATCH] for own in lengths.values() for start in range(0, len(own), BATCH)]


def as_batch(model: "PreTrainedModel", texts: list[list[int]]) -> "dict[str, Tensor]":
    """What the model is called with; a decoder that reads an encoder begins to answer."""
    import torch

    batch = {"input_ids": torch.tensor(texts)}
    if getattr(model.config, "is_encoder_decoder", False):
        start = getattr(model.config, "decoder_start_token_id", None)
        if start is None:
            start = getattr(getattr(model, "generation_config", None), "decoder_start_token_id", None)
        if start is None:
            raise ValueError(
                "the model does not tell which token its answers begin with; expected decoder_start_token_id."
            )
        batch["decoder_input_ids"] = torch.full((len(texts), 1), start)
    return batch
