"""Generated command lines: real ones with nonsense in them. None may end in a traceback, hang, or fail without a word.

They can write in the folder of the storm alone; train, extrapolate and study with --dry-run.
"""

import functools
import random
import re
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from .judge import Tried, judge
from .launch import run
from .material import COPYING, SETTINGS, Material


SECONDS = 60.0
NONSENSE = (
    *("", " ", "-1", "0", "1", "7", "1.5", "1e999", "nan", "-inf", "1_000", "0x10", "१२", "9" * 5000, str(2**31)),
    *(
        str(2**63),
        str(10**12),
        "-" + "9" * 400,
        "true",
        "null",
        "None",
        "[]",
        "{}",
        "{1: 2}",
        "[[[[",
        "a: b: c",
        "!!python/x",
    ),
    *("a,b", "a,,b", ",", "1,2,3", "0,0", "1;2", "swap=1", "swap=nan", "=", "a=b=c", "--", "-", "-x", "--output"),
    *("😀", "ß", "\u202eabc", "\udcff\udcfe", "\x1b[31mred", "two\nlines", "tab\there", "'", '"', "`id`", "$(id)"),
    *("%s%n%d", "{0.__class__}", "{", "x" * 300, "x/" * 600, ".", "..", "../..", "~", "nowhere", "nowhere/below"),
    *("run", "data", "study", "heads", "texts.csv", "run/recipe.yaml", "run/model", "loop", "dangling", "a-file"),
    *("alice/sums", "a/b/c", "addition", "sortedness", "reverse", "copying", "addition-tiny", "rotary", "mean"),
)
PLACES = ("/", "/dev/null", "/dev/zero", "/proc/self/mem", "/proc/1/x", "/nonexistent/x", "/dev/full")
# Heavy verbs show what they would do; the flag comes first, where no nonsense can swallow it.
DRY = {"train", "extrapolate", "study"}
LARGEST = 2000  # a number above it is work that really takes long, where there is no dry run


def bases(rng: random.Random) -> dict[str, list[str]]:
    """A command for every verb that is right."""
    setting = [word for value in SETTINGS for word in ("--set", value)]
    return {
        "data": [
            "addition",
            "--output",
            "out",
            "--train",
            "50",
            "--validation",
            "10",
            "--test",
            "10",
            "--digits",
            "2",
        ],
        "train": [rng.choice(["addition-tiny", "run/recipe.yaml", COPYING]), "--output", "out", *setting],
        "extrapolate": ["--output", "out", "--task", COPYING, "--encodings", "learned", "--seeds", "0,1"],
        "study": [COPYING, "--output", "out", "--quick"],
        "ls": [rng.choice(["tasks", "recipes", "encodings", "options"])],
        "env": [],
        "report": [rng.choice(["run", "study", "heads"])],
        "evaluate": ["run"],
        "heads": ["run", "--output", "out", "--rows", "10", "--mode", "zero"],
        "prune": ["run", "--output", "out", "--rows", "10", "--keep", "4"],
        "push": ["run" if rng.random() < 0.05 else "data", "--repo-id", "alice/sums", "--dry-run"],
    }


WEIGHTS = {"data": 5, "train": 6, "extrapolate": 5, "study": 3, "ls": 2, "env": 1, "report": 4}
WEIGHTS |= {"evaluate": 3, "heads": 4, "prune": 3, "push": 4}


def case(rng: random.Random, number: int, place: Path, material: Material) -> Tried:
    for name in ("run", "data", "study", "heads", "texts.csv"):
        (place / name).symlink_to(material.folder / name)
    for name, target in {"loop": "loop", "dangling": "not-there"}.items():
        (place / name).symlink_to(target)
    (place / "a-file").write_text("a file\n")
    arguments = command_line(rng)
    if arguments[0] == "report":  # it writes beside what it reads
        for name in ("run", "study", "heads"):
            (place / name).unlink()
            material.copy(name, place)
    tried = Tried()
    judge(tried, run(arguments, place, place.parent / f"log-{place.name}", SECONDS), arguments)
    return tried


def command_line(rng: random.Random) -> list[str]:
    verb = rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
    words = bases(rng)[verb]
    for _ in range(rng.randint(1, 3)):
        rng.choice(CHANGES)(rng, verb, words)
    is_dry = verb in DRY or (verb == "data" and (rng.random() < 0.7 or has_large_number(words)))
    if verb in ("heads", "prune", "data") and not is_dry:
        words = ["7" if has_large_number([word]) else word for word in words]
    words = [verb, *(["--dry-run"] if is_dry else []), *words]
    if rng.random() < 0.02 and not is_dry:
        words[0] = nonsense(rng)
    return [word.replace("\0", "") for word in words]


def has_large_number(words: Sequence[str]) -> bool:
    return any(
        len(digits) > 4 or int(digits) > LARGEST for word in words for digits in re.findall(r"[0-9]+", word)
    ) or any(re.search(r"[0-9]e[0-9]|inf", word) for word in words)


def nonsense(rng: random.Random) -> str:
    if rng.random() < 0.15:
        return "".join(
            chr(rng.choice([rng.randrange(33, 127), rng.randrange(160, 0x2FFF)])) for _ in range(rng.randint(1, 12))
        )
    return rng.choice(NONSENSE)


def value_for(rng: random.Random, option: str) -> str:
    """Nonsense; places of the machine only where nothing is written."""
    writes = option in ("--output", "--local") or not option
    return rng.choice(PLACES) if not writes and rng.random() < 0.08 else nonsense(rng)


def change_value(rng: random.Random, verb: str, words: list[str]) -> None:
    places = [i for i, word in enumerate(words) if not word.startswith("--")]
    if places:
        i = rng.choice(places)
        words[i] = value_for(rng, words[i - 1] if i and words[i - 1].startswith("--") else "--argument")


def add_option(rng: random.Random, verb: str, words: list[str]) -> None:
    if verb == "data" and rng.random() < 0.6:
        flag = rng.choice(task_flags())
        words += [flag, value_for(rng, flag)]
        return
    option = rng.choice(options_of(verb))
    flag = rng.choice(option.opts)
    words.append(flag)
    if not getattr(option, "is_flag", False) or rng.random() < 0.1:
        words.append(value_for(rng, flag))


def add_setting(rng: random.Random, verb: str, words: list[str]) -> None:
    if verb in ("train", "extrapolate"):
        words += ["--set", f"{rng.choice(setting_names())}={nonsense(rng)}"]
    else:
        add_option(rng, verb, words)


def drop_word(rng: random.Random, verb: str, words: list[str]) -> None:
    if words:
        words.pop(rng.randrange(len(words)))


def repeat_word(rng: random.Random, verb: str, words: list[str]) -> None:
    if words:
        words.insert(rng.randrange(len(words) + 1), rng.choice(words))


def insert_word(rng: random.Random, verb: str, words: list[str]) -> None:
    words.insert(rng.randrange(len(words) + 1), nonsense(rng))


def misspell(rng: random.Random, verb: str, words: list[str]) -> None:
    if words:
        i = rng.randrange(len(words))
        letters = list(words[i])
        rng.shuffle(letters)
        words[i] = "".join(letters)


CHANGES = (change_value, change_value, change_value, add_option, add_option, add_setting, add_setting)
CHANGES += (drop_word, repeat_word, insert_word, misspell)


@functools.cache
def setting_names() -> list[str]:
    """What a recipe can set, and a few things that it cannot."""
    from headcount.configuration.configuration_headcount import HeadcountConfig
    from headcount.data_builders.registry import TASKS
    from headcount.trainers.recipe import TrainingOptions

    names = [f"training.{each.name}" for each in fields(TrainingOptions)]
    names += [f"data.{each.name}" for task in TASKS.values() for each in fields(task.options)]
    names += [f"model.{name}" for name in HeadcountConfig().to_dict()]
    return [*names, "task", "data", "model", "training", "extends", "name", "nonsense", "training.", ".", "a.b.c.d"]


@functools.cache
def task_flags() -> list[str]:
    from headcount.data_builders.registry import TASKS

    return [f"--{each.name.replace('_', '-')}" for task in TASKS.values() for each in fields(task.options)]


@functools.cache
def options_of(verb: str) -> list[Any]:
    from typer.main import get_command

    from headcount.scripts.cli import app

    found = get_command(app).commands[verb].params  # type: ignore[attr-defined]
    return [option for option in found if option.param_type_name == "option" and option.opts]
