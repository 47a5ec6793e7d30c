"""`headcount env`: versions and hardware, for bug reports and provenance.

headcount env
headcount env --json
"""

import json
import os
import platform
from importlib import metadata
from typing import Annotated

import typer

from .. import __version__


PACKAGES = ["torch", "transformers", "datasets", "accelerate", "safetensors", "evaluate", "tokenizers"]
PACKAGES += ["huggingface_hub", "numpy", "scipy", "matplotlib"]


def describe() -> dict[str, str]:
    """What the machine and the installation are, as plain strings."""
    import torch

    rows = {"headcount": __version__}
    for package in PACKAGES:
        try:
            rows[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            rows[package] = "not installed"
    rows["python"] = platform.python_version()
    rows["platform"] = platform.platform()
    rows["cpu cores"] = str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())
    rows["torch threads"] = str(torch.get_num_threads())
    rows["accelerator"] = torch.cuda.get_device_name() if torch.cuda.is_available() else "none"
    return rows


def main(as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False) -> None:
    """Print versions and hardware, for bug reports."""
    rows = describe()
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    for name, value in rows.items():
        print(f"{name:15} {value}")
