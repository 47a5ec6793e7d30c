"""What a run folder says about itself: recipe, provenance, config, rows of results, figures. Nothing is computed."""

import json
from dataclasses import dataclass
from pathlib import Path

import yaml


@dataclass(frozen=True)
class RunRecord:
    folder: Path
    recipe: dict
    provenance: dict
    config: dict
    rows: dict[str, list[dict]]  # name of the analysis -> its rows
    figures: list[Path]  # PNG files

    @property
    def task(self) -> str:
        return self.recipe["task"]

    @property
    def seed(self) -> int:
        return self.provenance["seed"]


def read_run(folder: Path) -> RunRecord:
    """The record of a finished run; a sentence that names the file if anything is missing or broken."""
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder; expected a run of headcount train.")
    for name in ("recipe.yaml", "provenance.json", "model/config.json", "results/evaluation.json"):
        if not (folder / name).is_file():
            raise ValueError(f"{folder} has no {name}; expected the folder of a finished and evaluated run.")
    results = sorted((folder / "results").glob("*.json"))
    return RunRecord(
        folder=folder,
        recipe=read(folder / "recipe.yaml", yaml.safe_load),
        provenance=read(folder / "provenance.json", json.loads),
        config=read(folder / "model" / "config.json", json.loads),
        rows={path.stem: read(path, json.loads) for path in results},
        figures=sorted((folder / "figures").glob("*.png")),
    )


def read(path: Path, parse):
    try:
        return parse(path.read_text(encoding="utf-8"))
    except (ValueError, yaml.YAMLError) as error:
        raise ValueError(f"{path} cannot be read: the run is broken; train or evaluate it again.") from error
