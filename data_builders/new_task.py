"""A task to start from: the template under another name, with its test or its recipe."""

import ast
import re
from pathlib import Path

import yaml

from ..records.files import write_text
from .registry import BUILT_IN


TEMPLATE = Path(__file__).parent / "template"
TEMPLATE_NAME = "running_total"  # what the template calls itself
RECIPE = "\n# How to train it"  # where its recipe begins, at the end of the file

# What the template says of a file of one's own -> what it says of a file of headcount.
IN_HEADCOUNT = {
    f"headcount train {TEMPLATE_NAME}.py": f"headcount train {TEMPLATE_NAME}",
    f"pytest test_{TEMPLATE_NAME}.py": f"pytest tests/data_builders/test_tasks.py -k {TEMPLATE_NAME}",
    "__file__, which is the RECIPE below": f"{TEMPLATE_NAME}.yaml",
    "__file__": f'"{TEMPLATE_NAME}"',
}


def write_new_task(name: str, path: Path, recipe: Path | None = None) -> list[Path]:
    """The two files that were written.

    A Python file with a task of this name and its recipe, and test_NAME.py beside it; or, for a task of headcount
    itself, which is tested by headcount's own tests, the Python file and its recipe in YAML.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,40}", name):
        raise ValueError(f"{name!r} is not allowed as a name; expected small letters, digits and _, such as my_task.")
    if name in BUILT_IN:
        raise ValueError(f"there is a task {name!r} already; expected another name.")
    if path.suffix != ".py":
        raise ValueError(f"--output {path} is not allowed; expected the name of a Python file, such as {name}.py.")
    code, beside = ((TEMPLATE / part).read_text(encoding="utf-8") for part in ("own.py", "checks.py"))
    if recipe is None:
        other = path.with_name(f"test_{name}.py")
    else:
        if recipe.name != f"{name}.yaml":
            raise ValueError(f"--recipe {recipe} is not allowed; expected the name of a file {name}.yaml.")
        other = recipe
        code, _, own_recipe = code.partition(RECIPE)
        for said, instead in IN_HEADCOUNT.items():
            code = code.replace(said, instead)
        content = ast.literal_eval(own_recipe.partition("RECIPE = ")[2])
        beside = yaml.safe_dump({"task": name, **content}, sort_keys=False)
    if other == path:
        raise ValueError(f"--output {path} is the name of its test; expected another, such as {name}.py.")
    for each in (path, other):
        if each.exists():
            raise ValueError(f"{each} is there already; expected a new file.")
    for target, text in ((path, code), (other, beside)):
        try:
            write_text(target, _renamed(text, name, path.name))
        except OSError as error:
            raise ValueError(f"{target} cannot be written ({error.strerror}); expected a writable folder.") from error
    return [path, other]


def _renamed(text: str, name: str, file: str) -> str:
    """The template's words with another name of the task, and another of its file; its test is test_NAME.py."""
    text = text.replace(f"test_{TEMPLATE_NAME}.py", f"test_{name}.py").replace(f"{TEMPLATE_NAME}.py", file)
    return text.replace(TEMPLATE_NAME, name)
