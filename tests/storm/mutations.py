"""Ways to break a file, each drawn from random numbers."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml


def cut(rng: random.Random, content: bytes) -> bytes:
    return content[: rng.randrange(len(content))] if content else b""


def flip_bits(rng: random.Random, content: bytes) -> bytes:
    changed = bytearray(content or b"\0")
    for _ in range(rng.choice([1, 1, 3, 20])):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def garbage(rng: random.Random, content: bytes) -> bytes:
    return rng.randbytes(rng.choice([1, 8, 100, 5000]))


def garbage_inside(rng: random.Random, content: bytes) -> bytes:
    at = rng.randrange(len(content) + 1)
    return content[:at] + rng.randbytes(rng.randint(1, 30)) + content[at:]


def repeat(rng: random.Random, content: bytes) -> bytes:
    return content * rng.choice([2, 3])


def swap_halves(rng: random.Random, content: bytes) -> bytes:
    at = rng.randrange(len(content) + 1)
    return content[at:] + content[:at]


def byte_order_mark(rng: random.Random, content: bytes) -> bytes:
    return rng.choice([b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"]) + content


def nulls(rng: random.Random, content: bytes) -> bytes:
    at = rng.randrange(len(content) + 1)
    return content[:at] + b"\0" * rng.choice([1, 8, 4096]) + content[at:]


def other_encoding(rng: random.Random, content: bytes) -> bytes:
    return (content.decode("latin-1") + "é").encode(rng.choice(["utf-16", "utf-32", "latin-1", "cp500"]), "replace")


def deep(rng: random.Random, content: bytes) -> bytes:
    depth = rng.choice([200, 100_000])
    return rng.choice([b"[" * depth + b"]" * depth, b'{"a":' * depth + b"1" + b"}" * depth, b"a: " + b"[" * depth])


def other_kind(rng: random.Random, content: bytes) -> bytes:
    return rng.choice([b"", b"\n", b"null", b"1", b'"text"', b"[]", b"{}", b"[{}]", b"[1]", b"[[]]", b"NaN", b"true"])


BYTES: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    *(cut, cut, flip_bits, flip_bits, garbage, garbage_inside, repeat, swap_halves),
    *(byte_order_mark, nulls, other_encoding, deep, other_kind),
)
VALUES = (None, True, -1, 0, 1, 2.5, 10**7, 10**30, float("nan"), float("inf"), "", "text", "../x", "/etc/passwd")
VALUES += ("1", [], {}, [1], [None], {"a": 1}, {"value": []}, [[1, 2], [3]], "x" * 10_000, "\0", "<script>", "{0}")


def change_part(rng: random.Random, content: Any) -> Any:
    """One part of a structure, somewhere inside, gone, doubled or of another kind."""
    if isinstance(content, dict) and content and rng.random() < 0.9:
        key = rng.choice(list(content))
        changed = dict(content)
        way = rng.random()
        if way < 0.6:
            changed[key] = change_part(rng, content[key])
        elif way < 0.8:
            del changed[key]
        else:
            changed[rng.choice(["", "nonsense", "__class__", f"{key}s"])] = changed.pop(key)
        return changed
    if isinstance(content, list) and content and rng.random() < 0.9:
        i = rng.randrange(len(content))
        return [*content[:i], change_part(rng, content[i]), *content[i + 1 :]]
    return rng.choice(VALUES)


def mutate(rng: random.Random, path: Path, content: bytes) -> bytes:
    """The content, broken: by its structure where the file has one, else by its bytes; never as it was."""
    if path.suffix in STRUCTURED and rng.random() < 0.6:
        changed = STRUCTURED[path.suffix](rng, content)
    else:
        changed = rng.choice(BYTES)(rng, content)
    return changed if changed != content else content + b"\0"


def mutate_yaml(rng: random.Random, content: bytes) -> bytes:
    return yaml.safe_dump(change_part(rng, yaml.safe_load(content)), sort_keys=False, allow_unicode=True).encode()


def mutate_json(rng: random.Random, content: bytes) -> bytes:
    return json.dumps(change_part(rng, json.loads(content)), indent=1).encode()


def mutate_lines(rng: random.Random, content: bytes) -> bytes:
    lines = content.decode().splitlines()
    i = rng.randrange(len(lines))
    lines[i] = json.dumps(change_part(rng, json.loads(lines[i])))
    return "\n".join([*lines, ""]).encode()


STRUCTURED = {".yaml": mutate_yaml, ".json": mutate_json, ".jsonl": mutate_lines}
