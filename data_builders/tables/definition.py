"""What makes a task of a table, in a few words of JSON: where the pairs are, their hash, and what training rows hold.

    own_table.json   place, columns, config, split; tokens, symbols, labels, lengths; sha256 of the rows

Every folder that is made with the task keeps it, so that the model's vocabulary is known also where the table is gone.
"""

import json
import re
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from ...records.files import kept_inside, parse_json, read_text
from ..option_checks import check_name
from ..tasks import Origin
from ..vocabulary import SPECIAL_TOKENS
from .source import Rows, Source, read_source
from .splits import cut, hash_rows


KEPT_AS = "own_table.json"
TOKENS = {"character": "every character is a token", "word": "what stands between blanks is a token"}
MARKS = "=>|:#~^\u2192\u21d2\u2261"  # one of them, which the table does not hold, ends the question of a decoder
MOST_SYMBOLS, MOST_LABELS, MOST_TOKENS = 50_000, 1_000, 2_048


@dataclass(frozen=True)
class Definition:
    name: str
    place: str
    input: str
    answer: str
    is_label: bool
    config: str | None
    split: str | None
    tokens: str
    symbols: tuple[str, ...]  # of the training rows, in order
    labels: tuple[str, ...]  # the same; of a table with labels
    shortest: int  # tokens of an input in training
    longest: int  # the same
    widest: int  # tokens of the longest input or answer of any split
    left_out: dict[str, int]  # split -> rows with a symbol that no training row has
    sha256: str

    @property
    def source(self) -> Source:
        return Source(self.place, self.input, self.answer, self.is_label, self.config, self.split)

    def pieces(self, text: str) -> list[str]:
        return list(text) if self.tokens == "character" else text.split()

    def origin(self) -> Origin:
        return Origin(self.place, KEPT_AS, json.dumps(asdict(self), indent=1, sort_keys=True).encode())


def define(source: Source, tokens: str = "character") -> tuple[Definition, dict[str, Rows]]:
    """Reads a table: what makes a task of it, and its splits."""
    check_name("--tokens", tokens, TOKENS)
    if source.input == source.answer:
        raise ValueError(f"the column {source.input!r} is named twice; expected two different columns.")
    if source.is_here:
        source = replace(source, place=str(Path(source.place).absolute()))
    splits = cut(read_source(source), source.place)
    found = Definition(
        name=_name(source),
        place=source.place,
        input=source.input,
        answer=source.answer,
        is_label=source.is_label,
        config=source.config,
        split=source.split,
        tokens=tokens,
        symbols=(),
        labels=(),
        shortest=0,
        longest=0,
        widest=0,
        left_out={},
        sha256=hash_rows(splits),
    )
    _check_texts(found, splits)
    lengths = [len(found.pieces(text)) for text, _ in splits["train"]]
    symbols = {piece for text in _texts(found, splits["train"]) for piece in found.pieces(text)}
    if len(symbols) > MOST_SYMBOLS:
        raise ValueError(
            f"{source.place} has {len(symbols):,} different {tokens}s; expected at most {MOST_SYMBOLS:,}, by fewer "
            "rows or by --tokens character."
        )
    found = replace(
        found,
        symbols=tuple(sorted(symbols)),
        labels=_labels(found, splits),
        shortest=min(lengths),
        longest=max(lengths),
        widest=max(len(found.pieces(text)) for rows in splits.values() for text in _texts(found, rows)),
    )
    readable = keep_readable(found, splits)
    left_out = {name: len(rows) - len(readable[name]) for name, rows in splits.items()}
    return replace(found, left_out={name: count for name, count in left_out.items() if count}), readable


def read_again(found: Definition) -> dict[str, Rows]:
    """The splits of a table that was read before: an error if it is gone, or is another now."""
    splits = cut(read_source(found.source), found.place)
    if hash_rows(splits) != found.sha256:
        raise ValueError(
            f"{found.place} does not hold the rows any more that this run was trained on (another SHA-256); expected "
            "the table as it was."
        )
    return keep_readable(found, splits)


def kept_table(folder: Path) -> Origin | None:
    """The definition that a folder keeps; it is data, and checked when a task is made of it."""
    path = folder / KEPT_AS
    return Origin(str(path), KEPT_AS, read_text(kept_inside(folder, path)).encode()) if path.is_file() else None


def parse(origin: Origin) -> Definition:
    """The definition in a file, whoever wrote it."""
    found = parse_json(origin.content.decode(), origin.path)
    kinds = {"is_label": bool, "shortest": int, "longest": int, "widest": int, "left_out": dict}
    lists, maybe = ("symbols", "labels"), ("config", "split")
    for each in fields(Definition):
        value = found.get(each.name) if isinstance(found, dict) else None
        if each.name in lists:
            fits = isinstance(value, list) and all(isinstance(part, str) for part in value)
        elif each.name in maybe:
            fits = value is None or isinstance(value, str)
        else:
            fits = isinstance(value, kinds.get(each.name, str))
        if not fits:
            raise ValueError(f"{origin.path} has {each.name}={value!r:.60}; expected the file as headcount wrote it.")
    if set(found) != {each.name for each in fields(Definition)} or not re.fullmatch(r"[a-z0-9-]{1,80}", found["name"]):
        raise ValueError(f"{origin.path} is no table of a run; expected the file as headcount wrote it.")
    check_name("tokens", found["tokens"], TOKENS)
    return Definition(**{**found, **{name: tuple(found[name]) for name in lists}})


def keep_readable(found: Definition, splits: dict[str, Rows]) -> dict[str, Rows]:
    """The rows of which every token is one of the training rows."""
    known = set(found.symbols)
    readable = {
        name: [row for row in rows if known.issuperset(p for text in _texts(found, [row]) for p in found.pieces(text))]
        for name, rows in splits.items()
    }
    empty = next((name for name, rows in readable.items() if not rows), None)
    if empty is not None:
        raise ValueError(
            f"every row of the split {empty!r} of {found.place} holds a {found.tokens} that no training row has; "
            "expected rows of the same kind, or --tokens character."
        )
    return readable


def _name(source: Source) -> str:
    """By the place and its columns; tables of one name in one study would be told apart by nothing."""
    words = [Path(source.place).stem, source.config or "", source.input, "to", source.answer]
    return re.sub(r"[^a-z0-9]+", "-", "-".join(words).lower()).strip("-")[:80].strip("-") or "table"


def _texts(found: Definition, rows: Rows) -> list[str]:
    return [text for row in rows for text in (row[:1] if found.is_label else row)]


def _check_texts(found: Definition, splits: dict[str, Rows]) -> None:
    """Raises for rows that no tokenizer of ours could read."""
    for name, rows in splits.items():
        for text in _texts(found, rows):
            special = next((token for token in SPECIAL_TOKENS if token in text), None)
            if special is not None:
                raise ValueError(
                    f"{found.place} has a row with {special!r} in the split {name!r}, which marks the ends of texts "
                    "here; expected rows without it."
                )
            length = len(found.pieces(text))
            if length > MOST_TOKENS:
                raise ValueError(
                    f"{found.place} has a row with {length:,} {found.tokens}s in the split {name!r}; expected at most "
                    f"{MOST_TOKENS:,}: shorter rows{', or --tokens word' if found.tokens == 'character' else ''}."
                )


def _labels(found: Definition, splits: dict[str, Rows]) -> tuple[str, ...]:
    if not found.is_label:
        return ()
    labels = sorted({answer for _, answer in splits["train"]})
    if len(labels) < 2:
        raise ValueError(
            f"the column {found.answer!r} of {found.place} has one class only, {labels[0]!r}; expected at least two."
        )
    if len(labels) > MOST_LABELS:
        raise ValueError(
            f"the column {found.answer!r} of {found.place} has {len(labels):,} classes; expected at most "
            f"{MOST_LABELS:,} (--target takes texts)."
        )
    for name, rows in splits.items():
        unknown = next((answer for _, answer in rows if answer not in labels), None)
        if unknown is not None:
            raise ValueError(
                f"{found.place} has the label {unknown!r} in the split {name!r}, but in no training row; expected the "
                "same classes everywhere."
            )
    return tuple(labels)
