"""The examples of a model card: short programs that are really run, with what they printed.

They run in a process of their own in which headcount cannot be imported, on the very folder that is to be published.
So an example that works also shows that the repository is complete.
"""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .card_tables import whole_head_rows
from .run_record import RunRecord


SECONDS = 300
TOO_LONG = 20_000  # digits that no model of headcount has memory or positions for
# Reads {"programs": [...]} and writes the outputs as the last line of standard output.
RUNNER = """
import contextlib, io, json, sys

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


@dataclass(frozen=True)
class Example:
    text: str  # what to know before
    code: str
    may_fail: bool = False  # an error is what it shows
    output: str = ""


def examples_for(run: RunRecord, repo_id: str) -> dict[str, Example]:
    """`use`, `heads` and `limit`, one after the other in one program."""
    return addition_examples(run, repo_id) if run.task == "addition" else sortedness_examples(run, repo_id)


def addition_examples(run: RunRecord, repo_id: str) -> dict[str, Example]:
    digits = run.config.get("operand_digits")
    first, second, third = ("374", "814"), ("702", "297"), ("999", "1")
    if digits is not None:  # numbers that the model can read, down to one digit
        first, second, third = ((a[:digits], b[:digits]) for a, b in (first, second, third))
    head = example_head(run)
    prompt = "+".join(number.zfill(digits or 0) for number in first) + (
        "=" if run.config["architecture"] == "decoder" else ""
    )
    order = ", units first as it writes them" if run.config["answer_order"] == "reversed" else ""
    examples = {
        "use": Example(
            "The pipeline comes with the repository; headcount need not be installed.",
            "from transformers import pipeline\n\n"
            f'add = pipeline("integer-addition", model="{repo_id}", trust_remote_code=True)\n'
            f'print(add("{"+".join(first)}"))\n'
            f'print(add(["{"+".join(second)}", "{"+".join(third)}"]))' + long_example(run),
        ),
        "heads": Example(
            f"The model honours head masks. What it writes without the head `{head}`{order}:",
            f'inputs = add.tokenizer("{prompt}", return_tensors="pt")\n'
            f'masks = add.model.head_mask_for(["{head}"])\n'
            f"answer = add.model.generate(**inputs, **masks, max_new_tokens={(digits or len(first[0])) + 2})\n"
            "print(add.tokenizer.decode(answer[0], skip_special_tokens=True))",
        ),
    }
    if digits is not None:
        code = f'add("{"1" * (digits + 1)}+1")'
        examples["limit"] = Example("Longer numbers are refused:", code, may_fail=True)
    else:
        code = f'add("1" * {TOO_LONG} + "+1")'
        examples["limit"] = Example("Numbers that it has no room for are refused:", code, may_fail=True)
    return examples


def long_example(run: RunRecord) -> str:
    """Two numbers of as many digits as the model was tested to add without a mistake, at most 500."""
    rows = [row for row in run.rows["evaluation"] if "length" in row]
    sure = [length for length in {row["length"] for row in rows if row["length"] <= 500}
            if all(row["value"] == 1 for row in rows if row["length"] <= length)]  # fmt: skip
    if not sure:
        return ""
    return (
        f'\na, b = "7" * {max(sure)}, "64" * {max(sure) // 2}'
        '\nprint(add(f"{a}+{b}") == str(int(a) + int(b)))  # the pipeline itself never computes the sum'
    )


def sortedness_examples(run: RunRecord, repo_id: str) -> dict[str, Example]:
    head = example_head(run)
    return {
        "use": Example(
            "headcount need not be installed.",
            "from transformers import pipeline\n\n"
            f'is_sorted = pipeline("text-classification", model="{repo_id}", trust_remote_code=True)\n'
            'print(is_sorted("3 8 17 17 42 60 71 99"))\n'
            'print(is_sorted("3 8 17 42 17 60 71 99"))',
        ),
        "heads": Example(
            f"The model honours head masks. The logits of the second sequence with and without the head `{head}`:",
            'inputs = is_sorted.tokenizer("3 8 17 42 17 60 71 99", return_tensors="pt")\n'
            f'masks = is_sorted.model.head_mask_for(["{head}"])\n'
            "print(is_sorted.model(**inputs).logits.tolist())\n"
            "print(is_sorted.model(**inputs, **masks).logits.tolist())",
        ),
        "limit": Example(
            "One value alone is sorted, but was never shown to the model; values outside of 0 to 99 are refused:",
            'print(is_sorted("7"))\nprint(is_sorted("3 8 100"))',
            may_fail=True,
        ),
    }


def example_head(run: RunRecord) -> str:
    """The head that is missed most, if that was measured; otherwise the first one that was not pruned."""
    judged = whole_head_rows(run.rows.get("ablation", []))
    if judged:
        return max(judged, key=lambda row: row["value"])["head"]
    stack = "decoder" if run.config["architecture"] == "decoder" else "encoder"
    for layer in range(run.config["num_hidden_layers"]):
        gone = run.config["pruned_heads"].get(f"{stack}.{layer}.self", [])
        for head in range(run.config["num_attention_heads"]):
            if head not in gone:
                return f"{stack}.{layer}.self.{head}"
    return "decoder.0.cross.0"  # an encoder without any head: the decoder still looks at it


def run_examples(examples: dict[str, Example], repo_id: str, folder: Path) -> dict[str, Example]:
    """The examples with their true output, run on `folder` in place of the repository."""
    programs = [
        {"code": example.code.replace(json.dumps(repo_id), json.dumps(str(folder))), "may_fail": example.may_fail}
        for example in examples.values()
    ]
    with tempfile.TemporaryDirectory() as cache:
        environment = {name: value for name, value in os.environ.items() if "TOKEN" not in name.upper()}
        environment |= {"HF_HUB_OFFLINE": "1", "HF_HOME": cache, "HF_MODULES_CACHE": str(Path(cache) / "modules"),
                        "TRANSFORMERS_VERBOSITY": "error", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}  # fmt: skip
        child = {"cwd": cache, "env": environment, "capture_output": True, "text": True, "timeout": SECONDS}
        try:
            answer = subprocess.run([sys.executable, "-c", RUNNER], input=json.dumps(programs), **child)
        except subprocess.TimeoutExpired as error:
            raise ValueError(f"the example of the card has not ended after {SECONDS} seconds; try again.") from error
    if answer.returncode:
        reason = answer.stderr.strip().splitlines()[-1] if answer.stderr.strip() else "it said nothing"
        raise ValueError(f"the example of the card does not run on {folder}: {reason}")
    outputs = json.loads(answer.stdout.splitlines()[-1])
    return {
        name: Example(example.text, example.code, example.may_fail, output)
        for (name, example), output in zip(examples.items(), outputs, strict=True)
    }
