"""`TASKS`: every task by name: the `TASK` of every file here, and those of your own once their file or table is named.

A folder that was made with a task of your own keeps what makes it: own_task.py (code, which is run for nobody who has
not named it: see own_tasks.py) or own_table.json (data: see tables/).
"""

import importlib
import re
from collections.abc import Callable
from pathlib import Path

from ..configuration.rules import nearest
from ..records.files import write_by
from . import own_tasks
from .own_tasks import kept_task_file, read_task_file, remember, run_task_file
from .tables.definition import KEPT_AS as TABLE
from .tables.definition import kept_table
from .tables.task import kept_table_task
from .tasks import Origin, Task


def tasks_of_headcount() -> dict[str, Task]:
    """Name -> the `TASK` of every file in this folder, and of every task.py in a folder within it, that has one."""
    folder, found = Path(__file__).parent, {}
    for path in sorted((*folder.glob("*.py"), *folder.glob("*/task.py"))):
        if re.search(r"^TASK = ", path.read_text(encoding="utf-8"), re.MULTILINE):
            module = ".".join(path.relative_to(folder).with_suffix("").parts)
            task: Task = importlib.import_module(f".{module}", __package__).TASK
            found[task.name] = task
    return found


TASKS = tasks_of_headcount()
BUILT_IN = frozenset(TASKS)
# Name of what a folder keeps -> (reads it, makes the task of it)
KEPT: dict[str, tuple[Callable[[Path], Origin | None], Callable[[Origin], Task]]] = {
    own_tasks.KEPT_AS: (kept_task_file, run_task_file),
    TABLE: (kept_table, kept_table_task),
}


def find_task(name: str, folder: Path | None = None) -> Task:
    """The task of this name; `folder`: one of a run, of data or of a study, which may keep what makes it.

    An error that lists the tasks if there is none.
    """
    if name not in BUILT_IN and folder is not None:
        kept_task(folder)
    if name not in TASKS:
        raise ValueError(
            f"there is no task {name!r}; expected one of {', '.join(TASKS)}, or a Python file with a TASK."
            f"{nearest(name, TASKS)}"
        )
    return TASKS[name]


def named_task(name_or_file: str | Path) -> Task:
    """The task that a user names: by its name, or by its Python file, which is run and remembered."""
    path = Path(name_or_file)
    return load_task(path) if path.suffix == ".py" else find_task(str(name_or_file))


def load_task(path: Path, named: bool = True) -> Task:
    """The `TASK` of a Python file, which is run; without `named`, only if the user has named it before."""
    origin = read_task_file(path)
    if not named and not own_tasks.is_named(origin.sha256):
        raise ValueError(
            f"you have never named {path} here, so it is not run; if you trust it: headcount trust {path}"
        )
    known = next((task for task in TASKS.values() if task.origin == origin), None)
    task = known or register_task(run_task_file(origin))
    remember(origin)
    return task


def kept_task(folder: Path) -> Task | None:
    """The task that a folder brings along, or None; another version of the one that is in use is an error."""
    for read, make in KEPT.values():
        origin = read(folder)
        if origin is None:
            continue
        same = [task for task in TASKS.values() if task.origin is not None and task.origin.content == origin.content]
        task = same[0] if same else make(origin)
        if not same and task.name in TASKS:
            used = TASKS[task.name].origin
            raise ValueError(
                f"{folder} is of another version of the task {task.name!r} than "
                f"{'headcount' if used is None else used.path}; expected one version at a time."
            )
        return register_task(task)
    return None


def keep_task(task: Task, folder: Path) -> None:
    """Leaves in a folder what makes its task; nothing for those that come with headcount."""
    for name in KEPT:
        if task.origin is None or task.origin.kept_as != name:
            (folder / name).unlink(missing_ok=True)
    if task.origin is not None:
        content = task.origin.content
        write_by(folder / task.origin.kept_as, lambda partial: partial.write_bytes(content))


def check_kept(task: Task, folder: Path) -> None:
    """Raises if a folder that goes on was begun with another version of the task."""
    for name in KEPT:
        kept = (folder / name).read_bytes() if (folder / name).is_file() else None
        now = task.origin.content if task.origin is not None and task.origin.kept_as == name else None
        if kept != now:
            raise ValueError(
                f"{folder} was begun with another version of {task.reference} (it is kept there as {name}); expected "
                "the same, --overwrite to start anew, or another folder."
            )


def origin_note(task: Task) -> dict[str, dict[str, str]]:
    """For provenance.json: the file that made the task, and its hash; nothing for those that come with headcount."""
    found = task.origin
    return {} if found is None else {"task_origin": {"path": found.path, "sha256": found.sha256}}


def register_task(task: Task) -> Task:
    """Makes a task known under its name; the name of one that comes with headcount is an error."""
    if task.name in BUILT_IN:
        raise ValueError(f"there is a task {task.name!r} already; expected another name.")
    TASKS[task.name] = task
    return task
