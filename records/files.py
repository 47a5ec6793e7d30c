"""Files and folders, written whole or not at all, and read with a sentence where they are broken."""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml


BYTES_PER_READ = 1 << 20
MOST_BYTES = 1 << 29  # of a text that is read whole: far more than any that headcount writes
STRANGE_IN_NAMES = re.compile(r"[\x00-\x1f\x7f\\:]")  # also what makes a path of another system absolute


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


def inside(folder: Path, name: Any) -> Path:
    """The path of a name that comes from a file, for example from a manifest; a name that leads out is an error.

    >>> inside(Path("data"), "default/train.parquet").as_posix()
    'data/default/train.parquet'
    >>> inside(Path("data"), "../secret.txt")
    Traceback (most recent call last):
    ValueError: '../secret.txt' is not the name of a file in data; expected one like results/evaluation.json.
    """
    parts = name.split("/") if isinstance(name, str) else [""]
    if any(part in ("", ".", "..") for part in parts) or STRANGE_IN_NAMES.search(name):
        raise ValueError(f"{name!r} is not the name of a file in {folder}; expected one like results/evaluation.json.")
    return kept_inside(folder, folder / name)


def kept_inside(folder: Path, path: Path) -> Path:
    """`path`, unless it is a link, or behind one, that leaves the folder: what is there is not ours to send."""
    root = folder
    if folder.parent.name == "snapshots" and (folder.parent.parent / "blobs").is_dir():
        root = folder.parent.parent  # the Hub's cache: a snapshot consists of links to the blobs beside it
    place, allowed = os.path.realpath(path), os.path.realpath(root)
    if place != allowed and not place.startswith(allowed.rstrip(os.sep) + os.sep):
        raise ValueError(f"{path} is a link that leaves {folder}; expected the file itself.")
    return path


def files_inside(folder: Path, pattern: str) -> list[Path]:
    """The files that match, in order; hidden ones are left out, and a link that leaves the folder is an error."""
    found = (path for path in sorted(folder.glob(pattern)) if not path.name.startswith("."))
    return [path for path in found if kept_inside(folder, path).is_file()]


def read_text(path: Path) -> str:
    """UTF-8, with or without a mark in front; a sentence that names the file if it is anything else."""
    try:
        if not path.is_file():
            raise ValueError(f"{path} is not a file; expected one with text.")
        if path.stat().st_size > MOST_BYTES:
            raise ValueError(f"{path} has {path.stat().st_size:,} bytes; expected at most {MOST_BYTES:,}.")
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ValueError(f"{path} cannot be read ({error.strerror}); expected a readable file.") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not text in UTF-8 (byte {error.start}); expected a file in UTF-8.") from error
    if "\0" in text:
        raise ValueError(f"{path} holds a NUL character; expected text.")
    return text


def read_json(path: Path, kind: type = dict) -> Any:
    """A dict, or a list of dicts (`kind=list`); anything else raises with a sentence that names the file."""
    found = parse_json(read_text(path), path)
    rows = found if isinstance(found, list) else []
    if not isinstance(found, kind) or not all(isinstance(part, dict) for part in rows):
        raise ValueError(f"{path} holds something else; expected {'a list of rows' if kind is list else 'an object'}.")
    return found


def parse_json(text: str, where: Any) -> Any:
    """What JSON says; a sentence that names where it is from if it is none, or is nested or long beyond reason."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError(f"{where} is nested too deeply; expected the file as headcount wrote it.") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"{where} is not JSON ({error}); expected the file as headcount wrote it.") from error
    except ValueError as error:  # Python does not read numbers of more than 4300 digits
        raise ValueError(f"{where} has a number that is too long; expected the file as headcount wrote it.") from error


def read_json_lines(path: Path) -> list[dict]:
    """Objects, one per line. A last line without its end is one that is still being written, and is left out."""
    text = read_text(path)
    lines = text.splitlines() if text.endswith("\n") else text.splitlines()[:-1]
    found = [parse_json(line, f"a line of {path}") for line in lines if line.strip()]
    if not all(isinstance(part, dict) for part in found):
        raise ValueError(f"{path} has a line that is no object; expected one object per line.")
    return found


class PlainLoader(yaml.SafeLoader):
    """YAML without aliases, of which a few lines can make a value that fills the memory as soon as it is shown."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.events.AliasEvent):
            raise yaml.YAMLError("it has an alias (*name), which headcount does not read")
        return super().compose_node(parent, index)


def parse_yaml(text: str, where: Any, expected: str = "names with values") -> Any:
    try:
        return yaml.load(text, PlainLoader)
    except RecursionError as error:
        raise ValueError(f"{where} is nested too deeply; expected {expected}.") from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # such as a date that does not exist
        reason = "a number is too long" if "4300" in str(error) else str(error).splitlines()[0]
        raise ValueError(f"{where} is not valid YAML ({reason}); expected {expected}.") from error


def read_yaml(path: Path) -> dict:
    found = parse_yaml(read_text(path), path)
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
        raise ValueError(f"{path} holds something else; expected names with values.")
    return found


def hash_file(path: Path) -> str:
    """SHA-256, read piece by piece."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
