"""Reads what a study left on disk: runs, head study, pruning, length studies. Every part may be missing.

A study has them in runs/*, heads/ (or beside the results of a run), pruned/, length/ and adding/. A folder that is
itself one of these (a run, or what `headcount heads`, `prune` or `extrapolate` wrote) is read as a study of that part.
"""

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from .built_in import built_in


Rows = list[dict]

# Part -> its usual folder in a study, and the files of rows that belong to it.
PARTS = {
    "heads": (
        "heads",
        ("ablation", "gradient", "specialization", "maps", "toggles", "interchange", "carry_atlas", "subsets"),
    ),
    "pruning": ("pruned", ("pruning",)),
    "length": ("length", ("lengths", "summary", "dilution", "shifts", "neighbour", "positions", "mathematics")),
    "adding": ("adding", ("lengths", "summary", "generated", "columns")),
}
# Both length studies have lengths and summary; only the rows of a classifier say how it pools.
POOLED = {"length": True, "adding": False}


@dataclass(frozen=True)
class Run:
    """One trained model; what is not there is empty."""

    name: str
    recipe: dict
    provenance: dict
    metrics: Rows
    evaluation: Rows
    training: Rows
    config: dict
    path: str  # relative to the study; "" for the folder itself

    @property
    def task(self) -> str:
        return self.recipe.get("task", "")

    @property
    def recipe_name(self) -> str:
        return self.recipe.get("name", self.name)

    @property
    def seed(self):
        return self.provenance.get("seed", self.recipe.get("training", {}).get("seed"))

    @property
    def built_in(self) -> list[str]:
        return [name for name, _ in built_in(self.config)]


@dataclass(frozen=True)
class Part:
    """The rows of one analysis folder by name, and its figures."""

    path: str
    rows: dict[str, Rows] = field(default_factory=dict)
    figures: dict[str, list[Path]] = field(default_factory=dict)

    def source(self, name: str) -> str:
        return "/".join(part for part in (self.path, "results", f"{name}.json") if part)


@dataclass(frozen=True)
class Study:
    folder: Path
    about: dict
    runs: list[Run]
    parts: dict[str, Part]
    studied: str | None = None  # the run whose heads were studied, known by its weights

    def rows(self, part: str, name: str) -> Rows:
        return self.parts[part].rows.get(name, []) if part in self.parts else []

    def source(self, part: str, name: str) -> str:
        return self.parts[part].source(name)


def read_study(folder: Path) -> Study:
    """Everything below the folder that a report can show; raises where there is nothing or a file is broken."""
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder; expected a study, or a run of headcount train.")
    run_folders = sorted((folder / "runs").iterdir(), key=_by_number) if (folder / "runs").is_dir() else [folder]
    runs = [read_run(path, folder) for path in run_folders if (path / "recipe.yaml").exists()]
    parts = {}
    for part, (usual, names) in PARTS.items():
        for own in (folder / usual, folder, *run_folders):
            found = read_part(own, folder, names)
            if found.rows and is_of(part, found):
                parts[part] = found
                break
    runs = [run for run in runs if run.evaluation or run.metrics]
    if not runs and not any(part.rows for part in parts.values()):
        raise ValueError(
            f"{folder} holds no results; expected a folder with runs/, heads/, pruned/, length/ or adding/, or a "
            "finished run."
        )
    about = read_json(folder / "study.json", dict) if (folder / "study.json").exists() else {}
    return Study(folder, about, runs, parts, studied_run(folder, runs, parts.get("heads")))


def is_of(part: str, found: Part) -> bool:
    """Whether the rows are those of this part, where two parts have files of one name."""
    rows = [row for name in ("lengths", "summary") for row in found.rows.get(name, [])[:1]]
    return part not in POOLED or all(("pooling" in row) is POOLED[part] for row in rows)


def studied_run(folder: Path, runs: list[Run], heads: Part | None) -> str | None:
    """The run in whose folder the head study is, or whose weights have the hash that it noted."""
    note = folder / heads.path / "heads.json" if heads else None
    wanted = read_json(note, dict).get("weights") if note and note.exists() else None
    for run in runs:
        weights = folder / run.path / "model" / "model.safetensors"
        if heads and heads.path == run.path:
            return run.name
        if wanted and weights.exists() and hashlib.sha256(weights.read_bytes()).hexdigest() == wanted:
            return run.name
    return None


def read_run(path: Path, study: Path) -> Run:
    def found(name: str, kind: type):
        return read_json(path / name, kind) if (path / name).exists() else kind()

    lines = path / "metrics.jsonl"
    return Run(
        name=path.name if path != study else path.resolve().name,
        recipe=_read_yaml(path / "recipe.yaml"),
        provenance=found("provenance.json", dict),
        metrics=_read_lines(lines) if lines.exists() else [],
        evaluation=found("results/evaluation.json", list),
        training=found("results/training.json", list),
        config=found("model/config.json", dict),
        path=_relative(path, study),
    )


def read_part(path: Path, study: Path, names: tuple[str, ...]) -> Part:
    files = {name: path / "results" / f"{name}.json" for name in names}
    rows = {name: read_json(file, list) for name, file in files.items() if file.exists()}
    figures: dict[str, list[Path]] = {}
    for file in sorted((path / "figures").glob("*.*")):
        if file.suffix in (".png", ".svg") and not file.name.startswith("."):
            figures.setdefault(file.stem, []).append(file)
    return Part(_relative(path, study), rows, figures)


def read_json(path: Path, kind: type):
    """A list of rows or a dict; anything else raises with a sentence that names the file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is not JSON ({error}); expected the file as headcount wrote it.") from error
    whole = isinstance(found, kind) and (kind is dict or all(isinstance(row, dict) for row in found))
    if not whole:
        raise ValueError(f"{path} holds something else; expected {'a list of rows' if kind is list else 'an object'}.")
    return found


def _read_lines(path: Path) -> Rows:
    """Rows of a log. A last line without its end is one that is still being written, and is left out."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines() if text.endswith("\n") else text.splitlines()[:-1]
    try:
        return [json.loads(line) for line in lines if line.strip()]
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} has a line that is not JSON ({error}); expected one object per line.") from error


def _read_yaml(path: Path) -> dict:
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(f"{path} is not YAML; expected the recipe of a run.") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path} holds something else; expected the recipe of a run.")
    return found


def _by_number(path: Path) -> tuple[str, int]:
    """addition-2 before addition-10."""
    name, _, number = path.name.rpartition("-")
    return (name, int(number)) if number.isdigit() else (path.name, -1)


def _relative(path: Path, study: Path) -> str:
    relative = os.path.relpath(path, study)
    return "" if relative == "." else Path(relative).as_posix()
