"""Runs Python code in a process that has torch and transformers, but in which headcount cannot be imported."""

import os
import subprocess
import sys
from pathlib import Path


BLOCK = """
import sys

class WithoutHeadcount:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "headcount":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, WithoutHeadcount())
import torch
torch.set_num_threads(1)
"""


def run_without_headcount(code: str, home: Path, **environment: str) -> str:
    """What the code prints; `home` is where it may keep its caches."""
    settings = {**os.environ, "HF_HOME": str(home), "OMP_NUM_THREADS": "1", "TRANSFORMERS_VERBOSITY": "error"}
    answer = subprocess.run(
        [sys.executable, "-c", BLOCK + code],
        env={**settings, **environment},
        cwd=home,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout
