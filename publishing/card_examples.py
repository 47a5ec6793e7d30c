"""The examples of a model card: short programs that are really run, with what they printed.

They run in a process of their own in which headcount cannot be imported, on the very folder that is to be published.
So an example that works also shows that the repository is complete.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..data_builders.card_examples import Example, PublishedModel, literal
from ..records.rows import values_of
from ..records.run_folder import Run
from ..reports.evaluation_rows import at_lengths
from ..reports.study import task_of
from .card_tables import judged_heads


SECONDS = 300
MOST_SHOWN = 500  # tokens of a number in an example
# Reads {"programs": [...]} and writes the outputs as the last line of standard output. Its argument is a pipe that
# nobody writes to: when it ends, whoever asked for the outputs is gone.
RUNNER = """
import contextlib, io, json, os, sys, threading

def end_with_parent(line=int(sys.argv[1])):
    os.read(line, 1)
    os._exit(130)

threading.Thread(target=end_with_parent, daemon=True).start()

class WithoutHeadcount:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "headcount":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, WithoutHeadcount())
names, outputs = {}, []
for program in json.loads(sys.stdin.read()):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        try:
            exec(program["code"], names)
        except Exception as error:
            if not program["may_fail"]:
                raise
            print(f"{type(error).__name__}: {error}")
    outputs.append(text.getvalue().rstrip())
print(json.dumps(outputs))
"""


def published_model(run: Run, repo_id: str, heads: Sequence[str], options: Any) -> PublishedModel:
    """What the programs may know: `heads` and `options` are the model's own, never words of a result file."""
    return PublishedModel(repo_id, run.config, options, example_head(run, heads), sure_length(run))


def example_head(run: Run, heads: Sequence[str]) -> str | None:
    """Of the model's heads the one that is missed most, if that was measured; otherwise the first."""
    cost = {row["head"]: row["value"] for row in judged_heads(run.rows.get("ablation", []))}
    names = [str(head) for head in heads]
    return max(names, key=lambda name: cost.get(name, float("-inf")), default=None)


def sure_length(run: Run) -> int | None:
    """The longest tested length, at most 500, up to which no test of any class found a mistake."""
    rows = at_lengths(run.evaluation, task_of(run))
    lengths = [int(length) for length in values_of(rows, "length") if length <= MOST_SHOWN]
    sure = [n for n in lengths if all(row["value"] == 1 for row in rows if row["length"] <= n)]
    return max(sure, default=None)


def run_examples(examples: dict[str, Example], repo_id: str, folder: Path) -> dict[str, Example]:
    """The examples with their true output, run on `folder` in place of the repository."""
    programs = [
        {"code": example.code.replace(literal(repo_id), literal(str(folder))), "may_fail": example.may_fail}
        for example in examples.values()
    ]
    with tempfile.TemporaryDirectory() as cache:
        environment = {name: value for name, value in os.environ.items() if "TOKEN" not in name.upper()}
        environment |= {"HF_HUB_OFFLINE": "1", "HF_HOME": cache, "HF_MODULES_CACHE": str(Path(cache) / "modules")}
        environment |= {"TRANSFORMERS_VERBOSITY": "error", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
        line, held = os.pipe()
        try:
            answer = subprocess.run(
                [sys.executable, "-c", RUNNER, str(line)],
                pass_fds=(line,),
                input=json.dumps(programs),
                cwd=cache,
                env=environment,
                capture_output=True,
                text=True,
                timeout=SECONDS,
            )
        except subprocess.TimeoutExpired as error:
            raise ValueError(f"the example of the card has not ended after {SECONDS} seconds; try again.") from error
        finally:
            os.close(held)
            os.close(line)
    if answer.returncode:
        reason = answer.stderr.strip().splitlines()[-1] if answer.stderr.strip() else "it said nothing"
        raise ValueError(f"the example of the card does not run on {folder}: {reason}")
    outputs = json.loads(answer.stdout.splitlines()[-1])
    return {
        name: replace(example, output=output)
        for (name, example), output in zip(examples.items(), outputs, strict=True)
    }
