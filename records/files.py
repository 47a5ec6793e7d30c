"""Files and folders, written whole or not at all, and read with a sentence where they are broken."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml


BYTES_PER_READ = 1 << 20


def write_text(path: Path, text: str) -> Path:
    """Writes under a hidden name and renames; makes the folder if need be."""
    return write_by(path, lambda partial: partial.write_text(text, encoding="utf-8"))


def write_json(path: Path, content: Any) -> Path:
    return write_text(path, json.dumps(content, indent=1))


def write_by(path: Path, write: Callable[[Path], Any]) -> Path:
    """`write` gets a hidden name with the same ending, which is renamed when it is done and removed if it fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.stem}.partial-{os.getpid()}{path.suffix}")
    try:
        write(partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return path


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A hidden folder that takes the place of `folder` if nothing goes wrong, and vanishes otherwise.

    What was there before is put back if the last step fails.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = folder.with_name(f".{folder.name}.partial-{os.getpid()}")
    old = folder.with_name(f".{folder.name}.old-{os.getpid()}")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        yield partial
        if folder.exists():
            folder.rename(old)
        partial.rename(folder)
    finally:
        if old.exists() and not folder.exists():
            old.rename(folder)
        shutil.rmtree(partial, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def read_json(path: Path, kind: type = dict) -> Any:
    """A dict, or a list of dicts (`kind=list`); anything else raises with a sentence that names the file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is not JSON ({error}); expected the file as headcount wrote it.") from error
    rows = found if isinstance(found, list) else []
    if not isinstance(found, kind) or not all(isinstance(part, dict) for part in rows):
        raise ValueError(f"{path} holds something else; expected {'a list of rows' if kind is list else 'an object'}.")
    return found


def read_json_lines(path: Path) -> list[dict]:
    """Objects, one per line. A last line without its end is one that is still being written, and is left out."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines() if text.endswith("\n") else text.splitlines()[:-1]
    try:
        return [json.loads(line) for line in lines if line.strip()]
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} has a line that is not JSON ({error}); expected one object per line.") from error


def read_yaml(path: Path) -> dict:
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{path} is not valid YAML ({reason}); expected names with values.") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path} holds something else; expected names with values.")
    return found


def hash_file(path: Path) -> str:
    """SHA-256, read piece by piece."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
