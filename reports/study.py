"""What a study left on disk: runs, the study of heads, pruning, studies of lengths. Every part may be missing.

A study has them in runs/*, heads/ (or beside the results of a run), pruned/, length/ and adding/, or in any other
folder of its own; what is in a folder is known by the `study` and the `task` of its rows. Heads of several runs may be
studied, beside the results of each or in heads/, heads-1/ and so on: the first is shown in full. A folder that is
itself one of these (a run, or what `headcount heads`, `prune` or `extrapolate` wrote) is read as a study of that part.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..data_builders.registry import find_task, kept_task
from ..data_builders.tasks import Task
from ..records.files import hash_file, read_json
from ..records.rows import Rows, values_of
from ..records.run_folder import WEIGHTS, Run, is_run, list_figures, read_results, read_run, read_study_note


USUAL_FOLDERS = ("heads", "pruned", "length", "adding")
HEADS, PRUNING, LENGTH = "heads", "pruning", "length"
# `study` of a row -> the part that it belongs to.
PART_OF = {
    **dict.fromkeys(("ablation", "gradient", "specialization", "maps"), HEADS),
    **dict.fromkeys(("toggles", "interchange", "atlas", "subsets"), HEADS),
    **dict.fromkeys(("sets", "signature", "selection", "fourier"), HEADS),
    **dict.fromkeys(("pruning",), PRUNING),
    **dict.fromkeys(("lengths", "summary", "dilution", "shifts", "neighbour"), LENGTH),
    **dict.fromkeys(("positions", "mathematics", "generated", "columns"), LENGTH),
}


@dataclass(frozen=True)
class Part:
    """The rows of one analysis folder by the name of their file, and its figures; a study of lengths has a task."""

    path: str = ""
    rows: dict[str, Rows] = field(default_factory=dict)
    figures: dict[str, list[Path]] = field(default_factory=dict)
    task: str = ""

    def get(self, name: str) -> Rows:
        return self.rows.get(name, [])

    def source(self, name: str) -> str:
        return join(self.path, "results", f"{name}.json")


@dataclass(frozen=True)
class Study:
    folder: Path
    about: dict
    runs: list[Run]
    heads: Part = field(default_factory=Part)
    pruning: Part = field(default_factory=Part)
    lengths: list[Part] = field(default_factory=list)  # a study of one task each
    studied: Run | None = None  # the run whose heads were studied, known by its weights
    heads_by_run: dict[str, Part] = field(default_factory=dict)  # all of them, by the name of the run or folder
    figures: dict[str, list[Path]] = field(default_factory=dict)  # of the study as a whole

    @property
    def parts(self) -> list[Part]:
        others = (part for part in self.heads_by_run.values() if part is not self.heads)
        return [part for part in (self.heads, *others, self.pruning, *self.lengths) if part.rows]

    def source(self, run: Run, name: str = "evaluation") -> str:
        """The file of a run's rows, relative to the study."""
        return join(relative(run.folder, self.folder), "results", f"{name}.json")


def task_of(found: Run | Part) -> Task:
    return find_task(found.task, found.folder if isinstance(found, Run) else None)


def built_in_names(run: Run) -> list[str]:
    return [each.name for each in task_of(run).built_in(run.config)]


def read_study(folder: Path) -> Study:
    """Everything below the folder that a report can show; raises where there is nothing or a file is broken.

    >>> import headcount
    >>> tiny = ["training.steps=2", "model.num_hidden_layers=1", "model.num_attention_heads=2", "model.hidden_size=16"]
    >>> run = headcount.train("reverse", "runs/tiny", settings=tiny)
    >>> [run.name for run in read_study(run.folder).runs]
    ['tiny']
    """
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder; expected a study, or a run of headcount train.")
    run_folders = sorted((folder / "runs").iterdir(), key=_by_number) if (folder / "runs").is_dir() else [folder]
    runs = [read_run(path) for path in run_folders if is_run(path)]
    runs = [run for run in runs if run.evaluation or run.metrics]
    found: dict[str, list[Part]] = {HEADS: [], PRUNING: [], LENGTH: []}
    for own in part_folders(folder, run_folders):
        kept_task(own)  # rows know a task by its name
        for kind, part in read_parts(own, folder):
            found[kind].append(part)
    if not runs and not any(found.values()):
        raise ValueError(
            f"{folder} holds no results; expected a folder with runs/, heads/, pruned/, length/ or adding/, or a "
            "finished run."
        )
    about = read_study_note(folder / "study.json") if (folder / "study.json").exists() else {}
    heads, pruning = (next(iter(found[kind]), Part()) for kind in (HEADS, PRUNING))
    by_run = heads_by_run(folder, runs, found[HEADS])
    studied = studied_run(folder, runs, heads)
    return Study(folder, about, runs, heads, pruning, found[LENGTH], studied, by_run, list_figures(folder))


def heads_by_run(folder: Path, runs: list[Run], parts: list[Part]) -> dict[str, Part]:
    """Name of the run, or of the folder where that is not known -> study of its heads; of the first recipe only."""
    found: dict[str, Part] = {}
    recipes = []
    for part in parts:
        run = studied_run(folder, runs, part)
        if run is not None:
            recipes.append(run.recipe_name)
        if run is None or run.recipe_name == recipes[0]:
            found.setdefault(part.path if run is None else run.name, part)
    return found


def part_folders(folder: Path, run_folders: list[Path]) -> list[Path]:
    """Where parts may be: usual folders, the folder itself, others within it, and beside the results of runs."""
    usual = [folder / name for name in USUAL_FOLDERS]
    inside = (path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    others = sorted(inside, key=_by_number)
    return list(dict.fromkeys([*usual, folder, *others, *run_folders]))


def read_parts(path: Path, study: Path) -> Iterator[tuple[str, Part]]:
    """(kind, part) of everything in a folder's results; a study of lengths is one part for every task."""
    files: dict[tuple[str, str], dict[str, Rows]] = {}
    for name, rows in read_results(path).items():
        for kind in dict.fromkeys(PART_OF[each] for each in values_of(rows, "study") if each in PART_OF):
            own = [row for row in rows if PART_OF.get(row["study"]) == kind]
            for task in values_of(own, "task") if kind == LENGTH else [""]:
                part = [row for row in own if row["task"] == task] if task else own
                files.setdefault((kind, task), {})[name] = part
    for (kind, task), found in files.items():
        yield kind, Part(relative(path, study), found, list_figures(path), task)


def studied_run(folder: Path, runs: list[Run], heads: Part) -> Run | None:
    """The run in whose folder the head study is, or whose weights have the hash that it noted."""
    if not heads.rows:
        return None
    note = folder / heads.path / "heads.json"
    wanted = read_json(note).get("weights") if note.exists() else None
    for run in runs:
        weights = run.folder / WEIGHTS
        if heads.path == relative(run.folder, folder):
            return run
        if wanted and weights.exists() and hash_file(weights) == wanted:
            return run
    return None


def join(*parts: str) -> str:
    return "/".join(part for part in parts if part)


def relative(path: Path, study: Path) -> str:
    found = os.path.relpath(path, study)
    return "" if found == "." else Path(found).as_posix()


def _by_number(path: Path) -> tuple[str, int]:
    """addition-2 before addition-10."""
    name, _, number = path.name.rpartition("-")
    return (name, int(number)) if number.isdigit() else (path.name, -1)
