"""The finished batches of an ablation, kept in a folder."""

import hashlib
import json
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from .stock_metrics import Measure, Values


def weights_hash(model) -> str:
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


class FinishedBatches:
    """Finished batches in a folder, so that a sweep that was stopped goes on; without a folder, nothing is kept."""

    def __init__(self, folder, model, batches, heads, mode, measure: Measure, seed: int):
        self.folder, self.ways = None if folder is None else Path(folder), []
        if self.folder is None:
            return
        digest = hashlib.sha256()
        for batch in batches:
            for name, value in sorted(batch.items()):
                digest.update(name.encode())
                digest.update(
                    value.detach().cpu().numpy().tobytes() if isinstance(value, Tensor) else str(value).encode()
                )
        settings = {
            "model": type(model).__name__, "weights": weights_hash(model), "data": digest.hexdigest(),
            "heads": list(heads), "mode": mode, "metric": measure.name, "seed": seed,
        }  # fmt: skip
        path = self.folder / "sweep.json"
        self.folder.mkdir(parents=True, exist_ok=True)
        if path.exists():
            before = json.loads(path.read_text())
            changed = next((key for key in settings if before.get(key) != settings[key]), None)
            if changed is not None:
                raise ValueError(
                    f"{self.folder} holds a sweep with another {changed}; expected the same, or another folder."
                )
        _write(path, settings)

    def missing(self, count: int) -> bool:
        return self.folder is None or not all(self._path(number).exists() for number in range(count))

    def load(self, number: int) -> list[Values] | None:
        if self.folder is None or not self._path(number).exists():
            return None
        part = json.loads(self._path(number).read_text())
        self._note(part["way"])
        return [{name: np.array(value["values"], value["dtype"]) for name, value in version.items()}
                for version in part["versions"]]  # fmt: skip

    def save(self, number: int, versions: list[Values], way: str) -> None:
        self._note(way)
        if self.folder is not None:
            rows = [{name: {"dtype": str(value.dtype), "values": value.tolist()} for name, value in version.items()}
                    for version in versions]  # fmt: skip
            _write(self._path(number), {"way": way, "versions": rows})

    def _note(self, way: str) -> None:
        if way not in self.ways:
            self.ways.append(way)

    def _path(self, number: int) -> Path:
        return self.folder / f"batch-{number:05}.json"


def _write(path: Path, value) -> None:
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(json.dumps(value))
    partial.replace(path)
