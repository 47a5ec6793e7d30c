"""A run on disk, as everybody reads it.

recipe.yaml, provenance.json, metrics.jsonl, model/, checkpoints/, results/NAME.json, figures/, report.html, README.md
"""

from dataclasses import dataclass, field
from pathlib import Path

from .files import files_inside, kept_inside, read_json, read_json_lines
from .recipe_file import read_recipe
from .rows import Rows, read_rows


RECIPE, PROVENANCE, METRICS = "recipe.yaml", "provenance.json", "metrics.jsonl"
CONFIG, WEIGHTS = "model/config.json", "model/model.safetensors"
HARDWARE = ("machine", "processor", "accelerator", "threads", "processes")
FIGURE_KINDS = (".png", ".svg")


@dataclass(frozen=True)
class Run:
    """One trained model and what is known of it; what is not there is empty."""

    folder: Path
    recipe: dict
    provenance: dict = field(default_factory=dict)
    config: dict = field(default_factory=dict)
    metrics: list[dict] = field(default_factory=list)
    rows: dict[str, Rows] = field(default_factory=dict)  # name of the results file -> its rows
    figures: dict[str, list[Path]] = field(default_factory=dict)  # name -> files, one for each format

    @property
    def name(self) -> str:
        return self.folder.name or self.folder.resolve().name

    @property
    def task(self) -> str:
        return self.recipe.get("task", "")

    @property
    def recipe_name(self) -> str:
        return self.recipe.get("name", self.name)

    @property
    def seed(self) -> int | None:
        return self.provenance.get("seed", self.recipe.get("training", {}).get("seed"))

    @property
    def data_options(self) -> dict:
        """The options of the task that the recipe names; the task knows the defaults of the others."""
        return self.recipe.get("data") or {}

    @property
    def evaluation(self) -> Rows:
        return self.rows.get("evaluation", [])

    @property
    def training(self) -> Rows:
        return self.rows.get("training", [])


def is_run(folder: Path) -> bool:
    return (folder / RECIPE).is_file()


def read_run(folder: Path, whole: bool = False) -> Run:
    """The record of a run; `whole`: one that is not finished and evaluated is an error that names what is missing."""
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder; expected a run of headcount train.")
    wanted = (RECIPE, PROVENANCE, CONFIG, "results/evaluation.json") if whole else (RECIPE,)
    for name in wanted:
        if not (folder / name).is_file():
            what = "a finished and evaluated run" if whole else "a run of headcount train"
            raise ValueError(f"{folder} has no {name}; expected the folder of {what}.")

    def found(name: str) -> dict:
        return read_json(kept_inside(folder, folder / name)) if (folder / name).is_file() else {}

    origin = found(PROVENANCE)
    if whole:
        check_provenance(origin, folder / PROVENANCE)
    metrics = folder / METRICS
    return Run(
        folder=folder,
        recipe=read_recipe(kept_inside(folder, folder / RECIPE)),
        provenance=origin,
        config=found(CONFIG),
        metrics=read_metrics(metrics) if metrics.is_file() else [],
        rows=read_results(folder),
        figures=list_figures(folder),
    )


def read_study_note(path: Path) -> dict:
    """study.json: which commands of a study ran, and how many seconds each took."""
    found = read_json(path)
    steps = found.get("steps")
    fits = isinstance(steps, dict) and all(
        isinstance(step, dict)
        and isinstance(step.get("command"), str)
        and isinstance(step.get("seconds"), (int, float))
        for step in steps.values()
    )
    if not fits:
        raise ValueError(f"{path} has steps={steps!r:.100}; expected the file as headcount wrote it.")
    return found


def read_metrics(path: Path) -> list[dict]:
    """The log of a training: a step in every line, and numbers that were measured there."""
    found = read_json_lines(path)
    for line in found:
        wrong = next((name for name, value in line.items() if not isinstance(value, (int, float))), None)
        if wrong is not None or not isinstance(line.get("step"), int):
            name = wrong or "step"
            raise ValueError(
                f"{path} has a line with {name}={line.get(name)!r}; expected the log as headcount wrote it."
            )
    return found


def check_provenance(found: dict, where: Path) -> None:
    """Raises unless this is what `records.provenance` notes about a finished run."""
    hardware = found.get("hardware")
    kinds = {"command": str, "recipe": str, "seed": int, "versions": dict, "hardware": dict, "finished_at": str}
    fields: dict[str, bool] = {name: isinstance(found.get(name), kind) for name, kind in kinds.items()}
    fields["commit"] = "commit" in found and isinstance(found["commit"], (str, type(None)))
    fields["seconds"] = isinstance(found.get("seconds"), (int, float))
    fields["hardware"] = isinstance(hardware, dict) and set(HARDWARE) <= set(hardware)
    wrong = next((name for name, fits in fields.items() if not fits), None)
    if wrong is not None:
        raise ValueError(f"{where} has {wrong}={found.get(wrong)!r}; expected the file as headcount wrote it.")


def read_results(folder: Path, names: tuple[str, ...] | None = None) -> dict[str, Rows]:
    """The rows of results/*.json by name, or of those that are named and there."""
    paths = files_inside(folder, "results/[!.]*.json")  # hidden ones are still being written
    return {path.stem: read_rows(path) for path in paths if names is None or path.stem in names}


def list_figures(folder: Path) -> dict[str, list[Path]]:
    figures: dict[str, list[Path]] = {}
    for path in files_inside(folder, "figures/*.*"):
        if path.suffix in FIGURE_KINDS:
            figures.setdefault(path.stem, []).append(path)
    return figures
