"""Broken files, read by the verb that reads them: a sentence or a right answer, never a traceback."""

import random
import shutil
from dataclasses import dataclass
from pathlib import Path

from .judge import Tried, judge
from .launch import run
from .material import COPYING, Material
from .mutations import mutate


SECONDS = 60.0
STOCK = ("heads", "stock", "--task", "feature-extraction", "--rows", "10", "--mode", "zero", "--output", "out")


@dataclass(frozen=True)
class Reading:
    """A file of the material (a pattern) and the commands that read it; `guarded`: a changed one must be refused."""

    file: str
    commands: tuple[tuple[str, ...], ...]
    guarded: bool = False
    weight: int = 2


EVALUATE, REPORT = ("evaluate", "run"), ("report", "run")
# With examples that are really run, in a Python of their own: it takes seconds.
PUSH = ("push", "run", "--repo-id", "alice/sums", "--dry-run")
PUSH_DATA = ("push", "data", "--repo-id", "alice/sums", "--dry-run")
HEADS = ("heads", "run", "--output", "heads", "--rows", "20")
READINGS = (
    Reading(
        "run/recipe.yaml", (EVALUATE, REPORT, ("train", "run/recipe.yaml", "--dry-run", "--output", "out")), weight=8
    ),
    Reading("run/recipe.yaml", (("data", "addition", "--recipe", "run/recipe.yaml", "--dry-run", "--output", "out"),)),
    Reading("run/model/config.json", (EVALUATE, EVALUATE, EVALUATE, EVALUATE, PUSH), guarded=True, weight=4),
    Reading("run/model/model.safetensors", (EVALUATE, EVALUATE, EVALUATE, EVALUATE, PUSH), guarded=True, weight=5),
    Reading("run/model/generation_config.json", (EVALUATE,)),
    Reading("run/model/tokenizer*.json", (EVALUATE, EVALUATE, EVALUATE, PUSH)),
    Reading("run/provenance.json", (REPORT, REPORT, EVALUATE, EVALUATE, PUSH), weight=3),
    Reading("run/metrics.jsonl", (REPORT,)),
    Reading("run/results/*.json", (REPORT, REPORT, REPORT, REPORT, PUSH), weight=4),
    Reading("heads/heads.json", (HEADS,)),
    Reading("heads/results/*.json", (HEADS, ("report", "heads")), weight=3),
    Reading(
        "study/study.json", (("report", "study"), ("study", COPYING, "--quick", "--dry-run", "--output", "study"))
    ),
    Reading("study/*/results/*.json", (("report", "study"),), weight=5),
    Reading("pruned/results/*.json", (("report", "pruned"),)),
    Reading("pruned/model/*", (("evaluate", "pruned"),)),
    Reading("data/manifest.json", (("evaluate", "run", "--data", "data"), PUSH_DATA), weight=4),
    Reading("data/*/*.parquet", (("evaluate", "run", "--data", "data"), PUSH_DATA), guarded=True, weight=3),
    Reading("texts.csv", ((*STOCK, "--data", "texts.csv"),), weight=2),
    Reading("texts.txt", ((*STOCK, "--data", "texts.txt"),), weight=1),
    Reading("texts.jsonl", ((*STOCK, "--data", "texts.jsonl"),), weight=2),
    Reading("texts.parquet", ((*STOCK, "--data", "texts.parquet"),), weight=2),
    Reading("stock/*", ((*STOCK, "--data", "texts.txt"),), weight=3),
)
WEIGHTED = [reading for reading in READINGS for _ in range(reading.weight)]


def case(rng: random.Random, number: int, place: Path, material: Material) -> Tried:
    reading = WEIGHTED[number % len(WEIGHTED)]
    arguments = rng.choice(reading.commands)
    source = rng.choice(sorted(material.folder.glob(reading.file)))
    broken = source.relative_to(material.folder)
    for name in {broken.parts[0], *(word for word in arguments if (material.folder / word).exists())}:
        material.copy(Path(name).parts[0], place) if not (place / Path(name).parts[0]).exists() else None
    how = break_file(rng, place / broken)
    tried = Tried()
    answer = run(arguments, place, place.parent / f"log-{place.name}", SECONDS)
    command = f"{how} {broken}; headcount {' '.join(arguments)}"
    if judge(tried, answer, arguments) and reading.guarded and answer.code == 0:
        tried.fail("wrong", command, "the changed file was taken for good")
    tried.failures = [type(failure)(failure.what, command, failure.message) for failure in tried.failures]
    return tried


def break_file(rng: random.Random, path: Path) -> str:
    """Says what it did."""
    way = rng.random()
    if way < 0.9:
        path.write_bytes(mutate(rng, path, path.read_bytes()))
        return "change"
    path.unlink()
    if way < 0.94:
        return "remove"
    if way < 0.96:
        path.mkdir()
        return "make a folder of"
    if way < 0.98:
        path.symlink_to(path.name)
        return "make a loop of"
    shutil.copyfile("/dev/null", path)
    return "empty"
