"""A small file system that fills up while a verb writes: a sentence, nothing torn; with room again, it goes on.

Needs root, for a tmpfs of its own; otherwise it is skipped, and says so.
"""

import os
import random
import subprocess
from pathlib import Path

from .judge import Tried, judge, torn_files
from .kills import fingerprint, going_on
from .launch import run
from .material import VERBS, Material


NAMES = ("train", "heads", "prune", "data", "data --overwrite", "report", "push --local, data", "push --local")
ROOMY = "256m"


def case(rng: random.Random, number: int, place: Path, material: Material) -> Tried:
    usable = [verb for verb in VERBS if verb.name in NAMES and verb.name in material.usual]
    verb = usable[number % len(usable)]
    disk = place / "disk"
    disk.mkdir()
    if os.geteuid() != 0 or mount(disk, ROOMY) != 0:
        return Tried(n=0, skipped="no rights to mount a small file system")
    tried = Tried()
    try:
        for name in verb.needs:
            material.copy(name, disk)
        if verb.before:
            run(verb.before, disk, place / "log", verb.limit)
        size = bytes_in(material.undisturbed(verb)) - bytes_in(disk)
        room = bytes_in(disk) + int(rng.uniform(0, 1.1) * max(size, 1 << 16))
        mount(disk, f"{max(room, 4096)}", "remount")
        arguments = going_on(verb, disk)
        answer = run(arguments, disk, place / "log", verb.limit)
        judge(tried, answer, arguments, (0, 2))
        for name, why in torn_files(disk / verb.out).items():
            tried.fail("torn", arguments, f"with {room:,} bytes in all: {name}: {why}")
        mount(disk, ROOMY, "remount")
        arguments = going_on(verb, disk)
        again = run(arguments, disk, place / "log", verb.limit)
        is_whole = fingerprint(disk / verb.out) == fingerprint(material.undisturbed(verb) / verb.out)
        if judge(tried, again, arguments, (0, 2)) and not is_whole:
            what = "refused" if again.code else "wrong"
            tried.fail(what, arguments, f"with room again after {room:,} bytes: {again.stderr.strip()[-300:]}")
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=False)
    return tried


def mount(folder: Path, size: str, *options: str) -> int:
    words = ",".join([*options, f"size={size}"])
    return subprocess.run(["mount", "-t", "tmpfs", "-o", words, "tmpfs", str(folder)], check=False).returncode


def bytes_in(folder: Path) -> int:
    """As a file system of pages counts them."""
    return sum(-(-path.stat().st_size // 4096) * 4096 for path in folder.rglob("*") if path.is_file())
