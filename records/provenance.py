"""Where a result comes from: command, commit, versions, hardware."""

import platform
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path


PACKAGES = ("torch", "transformers", "datasets", "accelerate", "safetensors", "tokenizers", "numpy")


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
