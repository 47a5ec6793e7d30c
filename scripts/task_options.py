"""The options of a task as words of the command line: `--test-lengths 16,64`, `--no-zero-pad`, `--kinds swap=1`."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, get_args, get_type_hints

from ..configuration.rules import nearest
from ..data_builders.tasks import Task


def parse_options(task: Task, words: Sequence[str]) -> dict[str, Any]:
    """Values by name; the task itself checks them. A word that is no option of the task is an error."""
    hints = get_type_hints(task.options)
    values: dict[str, Any] = {}
    words = list(words)
    while words:
        word = words.pop(0)
        name, attached, text = word.removeprefix("--").partition("=")
        name = name.replace("-", "_")
        switch = True
        if name not in hints and name.startswith("no_"):
            name, switch = name.removeprefix("no_"), False
        if not word.startswith("--") or name not in hints or (not switch and hints[name] is not bool):
            known = [flag_of(option) for option in hints]
            raise ValueError(
                f"{word} is not an option of {task.name}; expected {', '.join(known)}.{nearest(word, known)}"
            )
        if hints[name] is bool:
            values[name] = switch
            continue
        if not attached:
            if not words:
                raise ValueError(f"{word} has no value; expected one after it.")
            text = words.pop(0)
        values[name] = parse_value(word, text, hints[name])
    return values


def flag_of(option: str) -> str:
    return f"--{option.replace('_', '-')}"


def parse_value(flag: str, text: str, hint: Any) -> Any:
    """A value of the kind that the data class names: a number, a name, a list or shares by name."""
    kinds = [kind for kind in (get_args(hint) or (hint,)) if kind is not type(None)]
    if "tuple" in str(hint):
        return tuple(_number(flag, word, int, "a list such as 16,64,256") for word in text.split(","))
    if "dict" in str(hint):
        words = [word.partition("=") for word in text.split(",")]
        return {
            name.strip(): _number(flag, share, float, "shares such as swap=0.5,move=0.5") for name, _, share in words
        }
    if int in kinds:
        return _number(flag, text, int, "a whole number")
    return _number(flag, text, float, "a number") if float in kinds else text


def _number(flag: str, word: str, kind: type, expected: str) -> Any:
    try:
        return kind(word)
    except ValueError:
        shown = word.strip() if len(word) < 50 else f"{word.strip()[:40]}..."
        raise ValueError(f"{flag} has {shown!r} where a number is wanted; expected {expected}.") from None


def describe_options(task: Task) -> dict[str, str]:
    """Flag -> its default."""
    defaults = task.options()
    return {flag_of(each.name): f"default {_shown(getattr(defaults, each.name))}" for each in fields(task.options)}


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ",".join(f"{name}={share:g}" for name, share in value.items())
    return ",".join(map(str, value)) or "none" if isinstance(value, tuple) else str(value)
