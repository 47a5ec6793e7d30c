"""Kills of every verb at random moments; the same command then goes on, and ends as if nothing had been."""

import hashlib
import json
import random
import re
import signal
import time
from pathlib import Path

from .judge import Tried, judge, litter, torn_files, without
from .launch import Launched, launch
from .material import VERBS, Material, Verb


SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
TO_END = 20.0  # seconds after TERM and INT; a checkpoint may be written first
TO_VANISH = 5.0  # seconds for the children of a killed process
TO_START = 1.0  # seconds in which signals find Python at its start, which answers in its own way
# What differs from one undisturbed run to the next.
VARIES = re.compile("second|speed|_at$|^time|cpu|memory|bytes|cores|threads|peak")
COMPARED = {".safetensors", ".parquet"}
NOT_COMPARED = ("checkpoints", "logs")

TRIES = 4  # a command that has ended before it could be killed is killed earlier

# The longest first, so that it does not end alone; the others mixed.
WEIGHTED = [verb for verb in VERBS for _ in range(verb.weight)]
random.Random(0).shuffle(WEIGHTED)
WEIGHTED.sort(key=lambda verb: -verb.limit)


def case(rng: random.Random, number: int, place: Path, material: Material) -> Tried:
    """Some kills of one command in one folder, then the command to its end."""
    usable = [verb for verb in WEIGHTED if verb.name in material.usual]
    verb = usable[number % len(usable)]
    tried, story = Tried(n=0), list[str]()
    for earlier in range(TRIES):
        folder = place / str(earlier)
        folder.mkdir()
        for name in verb.needs:
            material.copy(name, folder)
        if verb.before:
            judge(tried, launch(verb.before, folder, place / "log").finish(verb.limit), verb.before, (0,))
        for _ in range(rng.randint(*verb.kills)):
            moment = rng.uniform(0, material.usual[verb.name]) / 2**earlier
            if not kill(rng, verb, folder, moment, tried, story):
                break
        if story:
            break
    finish(tried, verb, folder, material, story)
    return tried


def kill(rng: random.Random, verb: Verb, place: Path, moment: float, tried: Tried, story: list[str]) -> bool:
    """Starts the command and kills it after so many seconds; False if it has ended by then."""
    how, group = rng.choice(SIGNALS), rng.random() < 0.5
    arguments = going_on(verb, place)
    process = launch(arguments, place, place.parent / "log", cold=verb.cold)
    if process.wait(moment):
        judge(tried, process.finish(0), arguments, (0, 2))
        return False
    story.append(f"{how.name} after {moment:.2f} s")
    tried.n += 1
    strike(tried, process, how, group and how != signal.SIGKILL, arguments, story)
    for name, why in torn_files(place / verb.out).items():
        tried.fail("torn", arguments, f"{'; '.join(story)}: {name}: {why}")
    return True


def going_on(verb: Verb, place: Path) -> tuple[str, ...]:
    started = (place / verb.out / "recipe.yaml").exists()
    return (*verb.arguments, *(verb.goes_on if started else ()))


def strike(
    tried: Tried, process: Launched, how: signal.Signals, group: bool, arguments: tuple[str, ...], story: list[str]
) -> None:
    """Sends the signal; the process and all that it started must end, with a sentence if it could still speak."""
    told = "; ".join(story)
    is_starting = time.monotonic() - process.started < TO_START
    process.send(how, group)
    if not process.wait(TO_END):
        tried.fail("stuck", arguments, f"{told}: still running {TO_END:.0f} s later")
        process.clear()
        return
    end = time.monotonic() + TO_VANISH
    left = process.left_over()
    while left and time.monotonic() < end:
        time.sleep(0.1)
        left = process.left_over()
    if left:
        lines = [" ".join(child.cmdline()[:6]) for child in left if child.is_running()]
        tried.fail("orphan", arguments, f"{told}: {len(left)} still running {TO_VANISH:.0f} s later: {lines[:3]}")
    answer = process.finish(0)
    if how == signal.SIGKILL or is_starting:
        return
    if "Traceback (most recent call last)" in answer.stderr:
        tried.fail("traceback", arguments, f"{told}: {answer.stderr.strip().splitlines()[-1]}")
    elif answer.code not in (0, 130, 143):
        tried.fail("unclear", arguments, f"{told}: exit code {answer.code}; said {answer.stderr[-200:]!r}")


def finish(tried: Tried, verb: Verb, place: Path, material: Material, story: list[str]) -> None:
    """To the end: exit code 0, the files of the undisturbed run, and nothing beside them."""
    told, wanted = "; ".join(story), fingerprint(material.undisturbed(verb) / verb.out)
    arguments = going_on(verb, place)
    answer = launch(arguments, place, place.parent / "log", cold=verb.cold).finish(verb.limit)
    if answer.code == 2 and verb.goes_on and arguments != verb.arguments:
        arguments = verb.arguments  # a run that stopped before it began
        answer = launch(arguments, place, place.parent / "log", cold=verb.cold).finish(verb.limit)
    if not judge(tried, answer, arguments, (0, 1, 2)):
        return
    found = fingerprint(place / verb.out)
    differs = sorted(name for name in {**wanted, **found} if wanted.get(name) != found.get(name))
    if answer.code != 0 and differs:
        tried.fail("refused", arguments, f"{told}: then exit code {answer.code}: {answer.stderr.strip()[-400:]}")
    elif differs:
        missing = [name for name in differs if name not in found]
        tried.fail("wrong", arguments, f"{told}: then other content in {differs[:5]}, missing {missing[:5]}")
    for name, why in torn_files(place / verb.out).items():
        tried.fail("torn", arguments, f"{told}: {name}: {why}")
    left = litter(place)
    if left:
        tried.fail("litter", arguments, f"{told}: {left[:5]}")


def fingerprint(folder: Path) -> dict[str, str]:
    """Visible files: those that must be equal with their content, the others by their names."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") or part in NOT_COMPARED for part in name.parts):
            found[str(name)] = content_of(path)
    return found


def content_of(path: Path) -> str:
    if path.suffix in COMPARED or path.name == "manifest.json":
        return hashlib.sha256(path.read_bytes()).hexdigest()
    if path.suffix == ".json" and path.parent.name == "results":
        rows = without(json.loads(path.read_text()), VARIES)
        return hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()
    return "there"
