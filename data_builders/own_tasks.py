"""Tasks of your own: a Python file with a `TASK` and, to train it, a `RECIPE`.

A file like that is code, so headcount runs it only for a user who has named it:

- Who names a file (`headcount train my_task.py`, `headcount.train("my_task.py", ...)`, `headcount trust FILE`) has it
  run, and its SHA-256 is remembered in that user's own state folder.
- Every folder that is made with it keeps a copy, `own_task.py`. A later command on such a folder runs the copy, but
  only if its very content was named before by this user on this machine. So a run that was downloaded or handed over
  is data: its file is not run until its reader has said `headcount trust`.
"""

import os
import re
import sys
import types
from collections.abc import Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

from ..records.files import kept_inside, write_text
from .tasks import ARCHITECTURES, Origin, Task, Texts
from .vocabulary import Vocabulary


KEPT_AS = "own_task.py"
MOST_BYTES = 10_000_000
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")  # it names folders, and files of repositories
# What a task cannot do without -> what is expected.
PARTS: dict[str, tuple[type | tuple[type, ...], str]] = {
    "name": (str, "a text"),
    "kind": (str, " or ".join(ARCHITECTURES)),
    "options": (type, "a data class"),
    "vocabulary": (Vocabulary, "a Vocabulary"),
    "texts": (Texts, "Texts"),
}
_named_here: set[str] = set()  # by this process, wherever a state folder cannot be written


def read_task_file(path: Path) -> Origin:
    """The content of a Python file, which is not run."""
    if path.suffix != ".py" or not path.is_file():
        raise ValueError(f"{path} is no Python file; expected one with a TASK (`headcount new task` writes one).")
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"{path} has {path.stat().st_size:,} bytes; expected a Python file with a TASK.")
    return Origin(str(path), KEPT_AS, path.read_bytes())


def kept_task_file(folder: Path) -> Origin | None:
    """The copy that a folder keeps, unless it is one that this user never named: that is an error."""
    path = folder / KEPT_AS
    if not path.is_file():
        return None
    found = read_task_file(kept_inside(folder, path))
    if not is_named(found.sha256):
        raise ValueError(
            f"{folder} is of a task with a Python file of its own, {path}, which you have never named here and which "
            f"is therefore not run; read it, and if you trust it: headcount trust {path}"
        )
    return found


def run_task_file(origin: Origin) -> Task:
    """The `TASK` of a file, which is run: just the bytes that were read."""
    module = types.ModuleType(f"headcount_own_{origin.sha256[:16]}")
    module.__file__ = origin.path
    sys.modules[module.__name__] = module  # data classes look their own module up
    try:
        exec(compile(origin.content, origin.path, "exec"), module.__dict__)
    except Exception as error:
        raise ValueError(f"{origin.path} cannot be run: {what_failed(error, origin.path)}") from error
    task = getattr(module, "TASK", None)
    if not isinstance(task, Task):
        raise ValueError(f"{origin.path} has no TASK; expected an instance of headcount's Task under that name.")
    check_parts(task, origin.path)
    recipe = getattr(module, "RECIPE", None)
    if not isinstance(recipe, Mapping | None):
        raise ValueError(f"RECIPE of {origin.path} is {recipe!r:.60}; expected a dict with model and training.")
    task.origin, task.recipe = origin, recipe
    return task


def what_failed(error: Exception, path: str) -> str:
    """Kind, words and line of an error in a file of the user's."""
    if isinstance(error, SyntaxError) and error.filename == path:
        return f"line {error.lineno}: {error.msg}"
    line, trace = None, error.__traceback__
    while trace is not None:
        line = trace.tb_lineno if trace.tb_frame.f_code.co_filename == path else line
        trace = trace.tb_next
    said = " ".join(str(error).split())
    return f"{'' if line is None else f'line {line}: '}{type(error).__name__}: {said}"


def check_parts(task: Task, path: str) -> None:
    """Raises a sentence for what a task lacks, before something fails for the lack of it."""
    for part, (kind, expected) in PARTS.items():
        if not isinstance(getattr(task, part, None), kind):
            raise ValueError(f"TASK of {path} has no `{part}`; expected {expected}.")
    if task.kind not in ARCHITECTURES:
        raise ValueError(f"TASK of {path} has kind={task.kind!r}; expected {PARTS['kind'][1]}.")
    if not NAME.fullmatch(task.name):
        raise ValueError(f"TASK of {path} has name={task.name!r}; expected letters, digits, _ and -.")
    if not is_dataclass(task.options):
        raise ValueError(f"TASK of {path} has options={task.options!r}; expected a data class.")


# Which files were named


def remember(origin: Origin) -> None:
    """Notes that this user has named a file with just this content."""
    _named_here.add(origin.sha256)
    try:
        place = named_folder() / origin.sha256
        if not place.exists():
            write_text(place, f"{Path(origin.path).absolute()}\n")
    except (OSError, RuntimeError) as error:
        print(f"{origin.path} is not remembered ({error}): name it again in a later command.", file=sys.stderr)


def is_named(sha256: str) -> bool:
    """Whether this user has named a file with this content, on this machine."""
    if sha256 in _named_here:
        return True
    try:
        return (named_folder() / sha256).is_file()
    except (OSError, RuntimeError):  # there is no home
        return False


def named_folder() -> Path:
    """One small file for every content that was named: by its hash, and in it where it was then."""
    state: Any = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "headcount" / "named"
