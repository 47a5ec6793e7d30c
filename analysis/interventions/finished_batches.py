"""The finished batches of a sweep, kept in a folder, so that one that was stopped goes on."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from ...records.files import read_json, write_by, write_json
from .measures import Values
from .plan import Plan, role_mask


def weights_hash(model: PreTrainedModel) -> str:
    """SHA-256 of all parameters."""
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _data_hash(batches: list[dict[str, Any]]) -> str:
    digest = hashlib.sha256()
    for batch in batches:
        for name, value in sorted(batch.items()):
            digest.update(name.encode())
            digest.update(value.detach().cpu().numpy().tobytes() if isinstance(value, Tensor) else str(value).encode())
    return digest.hexdigest()


class FinishedBatches:
    """The values of every version on every batch that is done; without `plan.resume`, nothing is kept."""

    def __init__(self, plan: Plan):
        self.folder = None if plan.resume is None else Path(plan.resume)
        if self.folder is None:
            return
        roles = sorted({site for each in plan.interventions for site in each.sites if site.role is not None})
        settings = {
            "model": type(plan.model).__name__,
            "weights": weights_hash(plan.model),
            "data": _data_hash([*plan.batches, *(plan.sources or [])]),
            "sites": [list(each.sites) for each in plan.interventions],
            "gate": [[each.gate_of(site) for site in each.sites] for each in plan.interventions],
            "replacement": [each.replacement for each in plan.interventions],
            "roles": [_data_hash([{site: role_mask(plan, site)}]) for site in roles],
            "metric": plan.measure.name,
            "seed": plan.seed,
        }
        path = self.folder / "sweep.json"
        if path.exists():
            before = read_json(path)
            changed = next((key for key in settings if before.get(key) != settings[key]), None)
            if changed is not None:
                raise ValueError(
                    f"{self.folder} holds a sweep with another {changed}; expected the same, or another folder."
                )
        write_json(path, settings)

    def missing(self, count: int) -> bool:
        return self.folder is None or not all(self._path(number).exists() for number in range(count))

    def load(self, number: int) -> tuple[list[Values], str] | None:
        """The values of every version on a batch, and the way they were computed; None if it is not done."""
        if self.folder is None or not self._path(number).exists():
            return None
        with np.load(self._path(number)) as file:
            versions: list[Values] = [{} for _ in range(int(file["count"]))]
            for key in file.files:
                if "/" in key:
                    version, name = key.split("/")
                    versions[int(version)][name] = torch.from_numpy(file[key])
            return versions, str(file["way"])

    def save(self, number: int, versions: list[Values], way: str) -> None:
        if self.folder is None:
            return
        arrays: dict[str, Any] = {
            f"{i}/{name}": value.numpy() for i, values in enumerate(versions) for name, value in values.items()
        }
        write_by(self._path(number), lambda path: np.savez(path, way=way, count=len(versions), **arrays))

    def _path(self, number: int) -> Path:
        assert self.folder is not None  # asked only where batches are kept
        return self.folder / f"batch-{number:05}.npz"
