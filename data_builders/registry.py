"""`TASKS`: every task by name, and those of your own.

A Python file with a `TASK`, named in the environment variable HEADCOUNT_TASKS, joins the others. Nothing else brings
in code: a recipe only says the name.
"""

import importlib.util
import os
from pathlib import Path

from ..configuration.rules import nearest
from .addition.task import Addition
from .dyck import Dyck
from .modular_addition import ModularAddition
from .multiplication import Multiplication
from .reverse import Reverse
from .sortedness.task import Sortedness
from .tasks import Task


TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Addition(),
        Sortedness(),
        Reverse(),
        ModularAddition(),
        Dyck(),
        Multiplication(),
    )
}
VARIABLE = "HEADCOUNT_TASKS"  # paths of Python files, separated as in PATH


def find_task(name: str) -> Task:
    """The task of this name; an error that lists them if there is none."""
    if name not in TASKS:
        load_own_tasks()
    if name not in TASKS:
        raise ValueError(f"there is no task {name!r}; expected one of {', '.join(TASKS)}.{nearest(name, TASKS)}")
    return TASKS[name]


def load_own_tasks() -> None:
    for path in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        register_task(load_task(Path(path)))


def load_task(path: Path) -> Task:
    """The `TASK` of a Python file, which is run."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise ValueError(f"{path} is no Python file; expected one with a TASK.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    task = getattr(module, "TASK", None)
    if not isinstance(task, Task):
        raise ValueError(f"{path} has no TASK; expected an instance of headcount's Task under that name.")
    return task


def register_task(task: Task) -> Task:
    """Makes a task known under its name; another one of that name is an error."""
    if type(TASKS.get(task.name, task)).__qualname__ != type(task).__qualname__:
        raise ValueError(f"there is a task {task.name!r} already; expected another name.")
    TASKS[task.name] = task
    return task
