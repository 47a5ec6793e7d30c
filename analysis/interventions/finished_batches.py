"""The finished batches of a sweep, kept in a folder, so that one that was stopped goes on."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from ...records.claims import hash_content
from ...records.files import read_json, write_by, write_json
from .measures import Values
from .plan import Plan, role_mask


OF_THE_FILE = ("_name_or_path", "transformers_version", "architectures")  # say where and how a model was saved


def weights_hash(model: PreTrainedModel) -> str:
    """SHA-256 of all parameters and buffers, and of what the config makes of them."""
    config = {name: value for name, value in model.config.to_diff_dict().items() if name not in OF_THE_FILE}
    digest = hashlib.sha256(hash_content(config).encode())
    for name, weights in (*model.named_parameters(), *model.named_buffers()):
        digest.update(f"{name} {weights.dtype} {tuple(weights.shape)}".encode())
        digest.update(_bytes_of(weights))
    return digest.hexdigest()


def data_hash(batches: list[dict[str, Any]]) -> str:
    digest = hashlib.sha256()
    for batch in batches:
        for name, value in sorted(batch.items()):
            if isinstance(value, np.ndarray) and value.dtype != object:  # as text, a long one is cut
                value = torch.from_numpy(value)
            if isinstance(value, Tensor):
                digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
                digest.update(_bytes_of(value))
            else:
                digest.update(f"{name} {value!r}".encode())
    return digest.hexdigest()


def _bytes_of(values: Tensor) -> bytes:
    return values.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes()


class FinishedBatches:
    """The values of every version on every batch that is done; without `plan.resume`, nothing is kept."""

    def __init__(self, plan: Plan):
        self.folder = None if plan.resume is None else Path(plan.resume)
        if self.folder is None:
            return
        roles = sorted({site for each in plan.interventions for site in each.touched if site.role is not None})
        settings = {
            "model": type(plan.model).__name__,
            "weights": weights_hash(plan.model),
            "data": data_hash([*plan.batches, *(plan.sources or [])]),
            "sites": [list(each.sites) for each in plan.interventions],
            "gate": [[each.gate_of(site) for site in each.sites] for each in plan.interventions],
            "replacement": [each.replacement for each in plan.interventions],
            "frozen": [list(each.frozen) for each in plan.interventions],
            "contrasts": None if plan.contrasts is None else data_hash([{"contrasts": plan.contrasts}]),
            "roles": [data_hash([{site: role_mask(plan, site)}]) for site in roles],
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
        elif any(self.folder.glob("batch-*.npz")):
            raise ValueError(
                f"{self.folder} holds batches without {path.name}, which says what they are of; expected another "
                "folder."
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
