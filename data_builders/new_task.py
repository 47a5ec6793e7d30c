"""A task of your own to start from: the template under another name, with its test beside it."""

import re
from pathlib import Path

from ..records.files import write_text
from .registry import BUILT_IN


TEMPLATE = Path(__file__).parent / "template"
TEMPLATE_NAME = "running_total"  # what the template calls itself


def write_new_task(name: str, path: Path) -> list[Path]:
    """The two files that were written: a Python file with a task of this name, and test_NAME.py beside it."""
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,40}", name):
        raise ValueError(f"{name!r} is not allowed as a name; expected small letters, digits and _, such as my_task.")
    if name in BUILT_IN:
        raise ValueError(f"there is a task {name!r} already; expected another name.")
    if path.suffix != ".py":
        raise ValueError(f"--output {path} is not allowed; expected the name of a Python file, such as {name}.py.")
    test = path.with_name(f"test_{name}.py")
    if test == path:
        raise ValueError(f"--output {path} is the name of its test; expected another, such as {name}.py.")
    for each in (path, test):
        if each.exists():
            raise ValueError(f"{each} is there already; expected a new file.")
    for target, source in ((path, "task.py"), (test, "checks.py")):
        text = (TEMPLATE / source).read_text(encoding="utf-8").replace(f"{TEMPLATE_NAME}.py", path.name)
        try:
            write_text(target, text.replace(TEMPLATE_NAME, name))
        except OSError as error:
            raise ValueError(f"{target} cannot be written ({error.strerror}); expected a writable folder.") from error
    return [path, test]
