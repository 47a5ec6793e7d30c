"""Checkpoints of a run: safetensors and JSON only, written whole or not at all, checked before they are trusted.

A checkpoint is a folder `step-00000100` with the model, the state of each optimizer, and `state.json`, which holds the
step and the SHA-256 of every other file. It is written under a temporary name and renamed; what is torn anyway (a
disk that filled up, a copy that stopped) does not match its hashes and is passed over.
"""

import json
import os
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from ..records.files import hash_file, inside, new_folder, read_json


STATE = "state.json"


def save_checkpoint(
    folder: Path, step: int, model: nn.Module, optimizers: list[torch.optim.Optimizer], keep: int
) -> Path:
    """Writes `folder/step-...` and removes all but the newest `keep` checkpoints."""
    final = folder / f"step-{step:08d}"
    with new_folder(final) as partial:
        weights = {name: tensor.contiguous() for name, tensor in distinct(model.state_dict())}
        save_file(weights, partial / "model.safetensors")
        groups = []
        for number, optimizer in enumerate(optimizers):
            tensors, described = pack_optimizer(optimizer)
            save_file(tensors, partial / f"optimizer-{number}.safetensors")
            groups.append(described)
        hashes = {path.name: hash_file(path) for path in sorted(partial.iterdir())}
        (partial / STATE).write_text(json.dumps({"step": step, "optimizers": groups, "files": hashes}))
        for path in partial.iterdir():
            with path.open("rb") as file:
                os.fsync(file.fileno())
    for old in list_checkpoints(folder)[keep:]:
        shutil.rmtree(old)
    return final


def list_checkpoints(folder: Path) -> list[Path]:
    """Newest first."""
    return sorted(folder.glob("step-*"), reverse=True) if folder.exists() else []


def newest_whole_checkpoint(folder: Path) -> tuple[Path, dict] | None:
    """The newest checkpoint whose files are what its state says; torn ones are named in a warning."""
    for path in list_checkpoints(folder):
        try:
            state = read_json(path / STATE)
            check_state(state, path / STATE)
            torn = [name for name, digest in state["files"].items() if hash_file(inside(path, name)) != digest]
        except (OSError, ValueError) as error:
            torn = [f"{STATE}: {error}"]
        if not torn:
            return path, state
        warnings.warn(f"checkpoint {path} is torn ({torn[0]}); the one before it is used instead.", stacklevel=2)
    return None


def check_state(state: dict, where: Path) -> None:
    """Raises unless this is what `save_checkpoint` writes."""
    for name, kind in {"step": int, "optimizers": list, "files": dict}.items():
        if not isinstance(state.get(name), kind):
            raise ValueError(f"{where} has {name}={state.get(name)!r}; expected the file as headcount wrote it.")


def load_checkpoint(path: Path, state: dict, model: nn.Module, optimizers: list[torch.optim.Optimizer]) -> None:
    tensors = load_file(path / "model.safetensors")
    missing, unexpected = model.load_state_dict(tensors, strict=False)
    tied = {name for name in missing if name in getattr(model, "all_tied_weights_keys", {})}
    if set(missing) - tied or unexpected:
        raise ValueError(
            f"checkpoint {path} is of another model: {[*sorted(set(missing) - tied), *unexpected][0]} does not fit; "
            "expected the recipe that the run was started with."
        )
    for number, (optimizer, described) in enumerate(zip(optimizers, state["optimizers"], strict=True)):
        unpack_optimizer(optimizer, load_file(path / f"optimizer-{number}.safetensors"), described)


def distinct(state: dict[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """Tied tensors once: safetensors refuses to write shared memory twice."""
    seen = set()
    for name, tensor in state.items():
        if tensor.numel() == 0 or tensor.data_ptr() not in seen:
            seen.add(tensor.data_ptr())
            yield name, tensor


def pack_optimizer(optimizer: torch.optim.Optimizer) -> tuple[dict[str, Tensor], dict]:
    """State as flat tensors `3.exp_avg`, and the groups' plain options."""
    state = optimizer.state_dict()
    tensors = {
        f"{index}.{name}": (value if isinstance(value, Tensor) else torch.tensor(value)).contiguous()
        for index, values in state["state"].items()
        for name, value in values.items()
    }
    return tensors, {"param_groups": state["param_groups"]}


def unpack_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor], described: dict) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        index, name = key.split(".", 1)
        state.setdefault(int(index), {})[name] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": described["param_groups"]})
