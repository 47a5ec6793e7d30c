"""What killed processes leave behind: hidden files and folders of theirs, known by name and by their process.

.probe-PID                    whether a folder can be written
.NAME.partial-PID[.SUFFIX]    a file or folder that was being written
.NAME.old-PID                 what was there before, until the new folder is in its place
.NAME.lock                    the file of a lock; empty
"""

import re
import shutil
from pathlib import Path

import psutil
from filelock import FileLock, Timeout


OF_A_PROCESS = re.compile(r"\.(?:probe|(?P<name>.+)\.(?P<kind>partial|old))-(?P<process>\d+)(?:\.\w+)?")
LOCK = re.compile(r"\..+\.lock")
# Where litter lies, beside the top of a folder.
OWN_FOLDERS = ("results", "figures", "checkpoints", "cells", "runs", "logs", "unfinished")
SLACK = 1.0  # seconds by which the clocks of processes and files may differ


def is_empty(folder: Path) -> bool:
    """Whether nothing is in a folder but what killed processes of headcount left; one that is not there is empty."""
    return not folder.exists() or all(is_litter(path) for path in folder.iterdir())


def is_litter(path: Path) -> bool:
    """Left by a process of headcount that is gone."""
    if LOCK.fullmatch(path.name):
        return path.is_file() and path.stat().st_size == 0
    found = OF_A_PROCESS.fullmatch(path.name)
    return found is not None and _is_gone(int(found["process"]), path)


def clean(folder: Path) -> None:
    """Removes the litter in a folder and its own subfolders, and beside it what was to become the folder.

    A folder that was moved away and never replaced is put back.
    """
    if folder.parent.is_dir():
        for path in _litter_in(folder.parent):
            found = OF_A_PROCESS.fullmatch(path.name)
            if found is not None and found["name"] == folder.name and path.is_dir():
                _remove(path)
    for place in (folder, *(folder / name for name in OWN_FOLDERS)):
        if place.is_dir() and not place.is_symlink():
            for path in _litter_in(place):
                _remove(path)


def _litter_in(folder: Path) -> list[Path]:
    return [path for path in folder.glob(".*") if is_litter(path)]


def _remove(path: Path) -> None:
    found = OF_A_PROCESS.fullmatch(path.name)
    if found is None:
        _remove_lock(path)
    elif found["kind"] == "old" and not path.with_name(found["name"]).exists():
        path.rename(path.with_name(found["name"]))
    elif path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _remove_lock(path: Path) -> None:
    """Unless somebody holds it."""
    lock = FileLock(path, timeout=0)
    try:
        with lock:
            path.unlink(missing_ok=True)
    except Timeout:
        return


def _is_gone(process: int, path: Path) -> bool:
    """Whether no process of this number is old enough to have made the file: numbers are given again."""
    try:
        found, file = psutil.Process(process), path.lstat()
        made = file.st_ctime if ".old-" in path.name else file.st_mtime  # moved away, or written by the process
        return found.status() == psutil.STATUS_ZOMBIE or found.create_time() > made + SLACK
    except (psutil.NoSuchProcess, FileNotFoundError):
        return True
