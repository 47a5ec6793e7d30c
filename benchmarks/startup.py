"""Cold start: new processes up to `headcount --help`, to an import, and to the first answer of a saved model.

The package alone loads neither torch nor transformers; a model class needs both, as BART's does.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from adders import Bart
from timing import compare, take_turns

from headcount.trainers.model_building import make_model
from headcount.trainers.recipe import load_recipe


FIRST_ANSWER = """
import sys, torch
{imports}
model = {model}.from_pretrained(sys.argv[1])
model.generate(torch.tensor([[6, 10, 7, 13, 11, 4, 7]]), max_new_tokens=5, min_new_tokens=5, do_sample=False)
"""
OURS = FIRST_ANSWER.format(imports="import headcount", model="headcount.HeadcountForConditionalGeneration")
BART = FIRST_ANSWER.format(
    imports="from transformers import BartForConditionalGeneration", model="BartForConditionalGeneration"
)


def start(*arguments: str):
    return lambda: subprocess.run([sys.executable, *arguments], check=True, capture_output=True)


def measure(seconds: float) -> list[dict]:
    with tempfile.TemporaryDirectory() as folder:
        torch.manual_seed(0)
        make_model(load_recipe("addition")).save_pretrained(Path(folder, "ours"))
        Bart().model.save_pretrained(Path(folder, "bart"))
        groups = {
            "cold start: command line": {
                "headcount --help": start("-m", "headcount", "--help"),
                "python -c pass": start("-c", "pass"),
                "import transformers": start("-c", "import transformers"),
                "import torch": start("-c", "import torch"),
            },
            "cold start: import": {
                "headcount, model class": start("-c", "import headcount; headcount.HeadcountModel"),
                "headcount, the package alone": start("-c", "import headcount"),
                "transformers, BART class": start("-c", "from transformers import BartModel"),
            },
            "cold start: load and first answer": {
                "headcount": start("-c", OURS, str(Path(folder, "ours"))),
                "BART": start("-c", BART, str(Path(folder, "bart"))),
            },
        }
        found = []
        for work, ways in groups.items():
            found += compare(work, take_turns(ways, seconds / len(groups)), next(iter(ways)))
    return found
