"""Pairs cut into splits: those of the table, or by a rule that knows nothing but the input's text.

No input is in two splits: what is tested was never trained on, however often a table repeats it.
"""

import hashlib

from .source import Rows


SHARE = 0.1  # of the training rows for a split that the table has not
HELD_OUT = ("test", "validation")


def cut(found: dict[str, Rows], place: str) -> dict[str, Rows]:
    """train, validation and test; a table with a single split, however it is called, is cut into all three."""
    splits = dict(found) if len(found) > 1 else {"train": next(iter(found.values()), [])}
    if "train" not in splits:
        raise ValueError(
            f"{place} has the splits {', '.join(found)}, of which none is called train; expected --split with one of "
            "them, which is then cut into three."
        )
    train = splits["train"]
    for number, name in enumerate(HELD_OUT):
        if name not in splits:
            own = [row for row in train if _is_in_part(row[0], number)]
            splits[name] = own
            train = [row for row in train if not _is_in_part(row[0], number)]
    taken: set[str] = set()
    for name in HELD_OUT:
        splits[name] = _once(splits[name], taken)
        taken |= {text for text, _ in splits[name]}
    splits["train"] = [row for row in train if row[0] not in taken]
    for name in ("train", "validation", "test"):
        if not splits[name]:
            raise ValueError(f"{place} leaves no rows for the split {name}; expected a table with more rows.")
    return {name: splits[name] for name in ("train", "validation", "test")}


def _is_in_part(text: str, number: int) -> bool:
    """Whether a text belongs to a tenth of all texts: the same one on every machine, in whatever order rows come."""
    digest = hashlib.sha256(f"{number}\0{text}".encode()).digest()
    return int.from_bytes(digest[:8], "big") < SHARE * 2**64


def _once(rows: Rows, taken: set[str]) -> Rows:
    """The first row of every input that is not taken."""
    first: dict[str, str] = {}
    for text, answer in rows:
        if text not in taken:
            first.setdefault(text, answer)
    return list(first.items())


def hash_rows(splits: dict[str, Rows]) -> str:
    """SHA-256 of what the splits hold, in their order."""
    digest = hashlib.sha256()
    for name, rows in splits.items():
        digest.update(f"{name} {len(rows)}\n".encode())
        for text, answer in rows:
            for part in (text.encode(), answer.encode()):
                digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()
