"""Where a result comes from: command, commit, versions, hardware."""

import platform
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any

from .files import hash_file, inside, kept_inside


PACKAGES = ("torch", "transformers", "datasets", "accelerate", "safetensors", "tokenizers", "numpy")
MODEL_FILES = ("*.json", "*.safetensors")  # of a model folder: config, weights, tokenizer


def provenance(recipe: str, seed: int, seconds: float, cpu_start: float, processes: int) -> dict:
    """`cpu_start`: `time.process_time()` when the run began, for a process may do several one after the other."""
    import torch

    return {
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "recipe": recipe,
        "seed": seed,
        "commit": commit(),
        "versions": {"headcount": metadata.version("headcount"), "python": platform.python_version()}
        | {name: metadata.version(name) for name in PACKAGES},
        "hardware": {
            "machine": platform.machine(),
            "processor": cpu_name(),
            "accelerator": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
            "threads": torch.get_num_threads(),
            "processes": processes,
        },
        "seconds": round(seconds, 2),
        "cpu_seconds": round(time.process_time() - cpu_start, 2),
        "finished_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def model_hashes(folder: Path) -> dict[str, str]:
    """File -> SHA-256 of the files that a model is loaded from; kept as `model` in provenance.json."""
    paths = sorted(path for pattern in MODEL_FILES for path in folder.glob(pattern) if path.name != "provenance.json")
    return {path.name: hash_file(path) for path in paths}


def check_model(folder: Path, noted: Any) -> None:
    """Raises unless the files of a model folder are those that were noted; older runs have noted none."""
    for path in folder.iterdir():
        kept_inside(folder, path)
    if noted is None:
        return
    if not isinstance(noted, dict):
        raise ValueError(f"the provenance of {folder} has model={noted!r}; expected the hashes of its files.")
    for name, digest in noted.items():
        path = inside(folder, name)
        if not path.is_file():
            raise ValueError(f"{path} is missing: the model is broken; expected the files that were written.")
        if hash_file(path) != digest:
            raise ValueError(f"{path} is not what was written: the model is broken; expected it unchanged.")


def commit() -> str | None:
    """The commit that headcount runs from, if it runs from a checkout; `-dirty` marks changes."""
    answer = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=40"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
    )
    return answer.stdout.strip() if answer.returncode == 0 else None


def cpu_name() -> str:
    path = Path("/proc/cpuinfo")
    if path.exists():
        for line in path.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"
