"""A run on disk: who writes what, whole or not at all."""

import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

from .recipe import Recipe, load_recipe


PACKAGES = ("torch", "transformers", "datasets", "accelerate", "safetensors", "tokenizers", "numpy")


def write_text(path: Path, text: str) -> None:
    """Writes under a temporary name and renames."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text)
    partial.replace(path)


def write_rows(folder: Path, name: str, rows: list[dict]) -> Path:
    path = folder / "results" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(rows, indent=1))
    return path


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Keeps a second process out of a folder that this one writes to; a killed process leaves nothing behind."""
    try:
        import fcntl
    except ImportError:  # Windows has no such lock
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise ValueError(
            f"another headcount process is at work in {folder}; expected it to end first, or another folder."
        ) from None
    try:
        yield
    finally:
        os.close(handle)


def provenance(recipe: Recipe, seconds: float, cpu_start: float, processes: int) -> dict:
    """`cpu_start`: `time.process_time()` when the run began, for a process may do several one after the other."""
    import torch

    return {
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "recipe": recipe.name,
        "seed": recipe.training.seed,
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


def prepare_folder(folder: Path, recipe: Recipe, resume: bool, overwrite: bool, bytes_needed: int) -> None:
    """Makes the folder, or says in one sentence why the run cannot live there."""
    finished, started = folder / "provenance.json", folder / "recipe.yaml"
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; expected a folder for the run.")
    if started.exists() and overwrite:
        for name in ("checkpoints", "model", "results", "figures"):
            shutil.rmtree(folder / name, ignore_errors=True)
        for name in ("recipe.yaml", "provenance.json", "metrics.jsonl"):
            (folder / name).unlink(missing_ok=True)
    elif started.exists() and resume:
        if load_recipe(str(started)) != recipe:  # as values: an older file may not name every option
            raise ValueError(
                f"{folder} was started with other settings than now asked for; expected the same recipe, seed and "
                f"--set as in {started}."
            )
    elif started.exists():
        state = "holds a finished run" if finished.exists() else "holds an unfinished run"
        raise ValueError(
            f"{folder} {state}; expected --resume to go on, --overwrite to start anew, or another folder."
        )
    elif folder.exists() and any(folder.iterdir()):
        raise ValueError(f"{folder} is not empty and holds no run of headcount; expected a new folder.")
    elif resume:
        raise ValueError(f"{folder} holds no run to resume; expected the folder of an earlier run.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{os.getpid()}"
        probe.write_bytes(b"headcount")
        probe.unlink()
    except OSError as error:
        raise ValueError(
            f"{folder} cannot be written ({error.strerror}); expected a folder with write permission."
        ) from error
    free = shutil.disk_usage(folder).free
    if free < bytes_needed:
        raise ValueError(
            f"{folder} is on a disk with {free / 1e6:.0f} MB left, but this run needs about "
            f"{bytes_needed / 1e6:.0f} MB; expected more space, or a smaller --keep."
        )
    if not started.exists():
        write_text(started, recipe.to_yaml())
