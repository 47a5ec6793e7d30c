"""Runs in a child process of its own: `python evaluate_in_child.py PROCESS_ID NUM_PROCESS JOBS.json RESULTS.json`.

Loads every metric by path from the folder it was started in, with no network and no transformers.
"""

import json
import socket
import sys
from pathlib import Path


def no_network(*args):
    raise OSError("a metric tried to use the network")


class NotInstalled:
    """Makes importing transformers fail, as where it is not installed."""

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "transformers":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


socket.socket.connect = no_network
sys.meta_path.insert(0, NotInstalled())

import evaluate  # noqa: E402


process_id, num_process = int(sys.argv[1]), int(sys.argv[2])
results = {}
for job in json.loads(Path(sys.argv[3]).read_text()):
    metric = evaluate.load(
        job["path"],
        process_id=process_id,
        num_process=num_process,
        experiment_id=f"{job['name']}-{num_process}",
    )
    metric.add_batch(**job["shards"][process_id])
    results[job["name"]] = metric.compute()
Path(sys.argv[4]).write_text(json.dumps(results))
