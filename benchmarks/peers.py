"""Installs the peers of peers.txt into this environment, each by itself, and says which of them there are.

    python benchmarks/peers.py

A peer that needs other versions of what headcount is tested with is not installed: it would not be a comparison any
more. What failed is written to benchmarks/results/peers.json and stands in the table.
"""

import json
import subprocess
import sys
from pathlib import Path

from timing import PEERS, version

from headcount.records.files import write_text


CONSTRAINTS = Path(__file__).parent.parent / "constraints.txt"
MOST_SECONDS = 300
RESULT = Path(__file__).parent / "results" / "peers.json"


def install(package: str) -> str | None:
    """None if it is there, or pip's last line of complaint."""
    if version(package):
        return None
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--constraint", str(CONSTRAINTS), package]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        return f"pip was not done after {MOST_SECONDS} seconds"
    complaints = [line for line in answer.stderr.splitlines() if line.startswith("ERROR")]
    return None if answer.returncode == 0 else (complaints or [f"pip ended with {answer.returncode}"])[-1]


def main() -> None:
    found = {}
    for package in PEERS.read_text().split():
        problem = install(package)
        found[package] = {"version": version(package), "problem": problem}
        print(f"{package}: {problem or version(package)}", flush=True)
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    write_text(RESULT, json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
