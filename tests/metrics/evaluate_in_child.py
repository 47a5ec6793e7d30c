"""Runs in a child process of its own: `python evaluate_in_child.py PROCESS_ID NUM_PROCESS JOBS.json RESULTS.json`.

Loads every metric by path from the folder it was started in, with no network and without headcount, torch or transformers.
"""

import json
import socket
import sys
from pathlib import Path


def no_network(*args):
    raise OSError("a metric tried to use the network")


socket.socket.connect = no_network
for absent in ("headcount", "torch", "transformers"):
    sys.modules[absent] = None  # importing it is now an error, as where it is not installed

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
