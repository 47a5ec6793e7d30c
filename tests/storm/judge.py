"""What counts as a failure."""

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet
import yaml
from safetensors import safe_open

from headcount.records.rows import read_rows

from .launch import TRACEBACK, Answer


# What can go wrong, by name; `make storm` shows a column for each.
KINDS = {
    "traceback": "an exception reached the user",
    "stuck": "did not end in time",
    "torn": "a file that is not whole",
    "wrong": "another result than undisturbed, or a changed file taken for good",
    "orphan": "a process was left running",
    "refused": "the command could not be given again",
    "unclear": "an exit code without its sentence, or the sentence of a library",
    "litter": "hidden files left after the work was done",
}
CODES = (0, 1, 2, 130, 143)
# Sentences of Python and libraries, which say nothing to a user.
JARGON = (
    "object has no attribute|NoneType|not subscriptable|unhashable|codec can't|invalid literal|Exceeds the limit|"
    "object is not iterable|not supported between|unexpected keyword|positional argument|StopIteration|KeyError|"
    "list index|<class '|object at 0x|not a valid .* range|Errno"
)
LITTER = re.compile(r"^\..*(\.partial-|\.old-|\.lock$)|^\.(partial|probe|old)-")


@dataclass(frozen=True)
class Failure:
    what: str
    command: str
    message: str


@dataclass
class Tried:
    """One case: how many trials it was, and what went wrong."""

    n: int = 1
    failures: list[Failure] = field(default_factory=list)
    skipped: str | None = None

    def fail(self, what: str, command: Sequence[str] | str, message: str) -> None:
        assert what in KINDS, what
        words = command if isinstance(command, str) else "headcount " + shlex.join(map(printable, command))
        self.failures.append(Failure(what, shorten(words, 2000), shorten(printable(message))))

    @property
    def is_good(self) -> bool:
        return not self.failures


def shorten(text: str, most: int = 600) -> str:
    return text if len(text) <= most else f"{text[: most // 2]} ... {text[-most // 2 :]}"


def printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def judge(tried: Tried, answer: Answer, arguments: Sequence[str], codes: Sequence[int] = CODES) -> bool:
    """Notes a failure unless the command ended in time, without a traceback, and 2 came with one clear sentence."""
    lines = [line for line in answer.stderr.splitlines() if line.strip()]
    last = lines[-1] if lines else ""
    if answer.code is None:
        tried.fail("stuck", arguments, f"still running after {answer.seconds:.0f} s; last said: {last}")
    elif answer.code == TRACEBACK or "Traceback (most recent call last)" in answer.stderr + answer.stdout:
        tried.fail("traceback", arguments, f"{where(answer.stderr)}{last}")
    elif answer.code not in codes:
        tried.fail("unclear", arguments, f"exit code {answer.code}; last said: {last}")
    elif answer.code == 2:
        sentences = [line for line in lines if line.startswith("headcount: ")]
        if len(sentences) != 1 or sentences[0] != last:
            tried.fail("unclear", arguments, f"{len(sentences)} sentences in {len(lines)} lines: {last}")
        elif re.search(JARGON, last):
            tried.fail("unclear", arguments, last)
        else:
            return True
    else:
        return True
    return False


def where(stderr: str) -> str:
    """The last place of headcount in a traceback."""
    found = re.findall(r'File "([^"]+)", line (\d+), in (\S+)', stderr)
    own = [place for place in found if not re.search("site-packages|/lib/python|/tests/storm/|<frozen", place[0])]
    return "{}:{} {}: ".format(*own[-1]) if own else ""


def torn_files(folder: Path) -> dict[str, str]:
    """Visible files that are not whole: name -> why. A line of metrics.jsonl or of a log may be in the making."""
    found = {}
    for path in sorted(folder.rglob("*")) if folder.is_dir() else []:
        name = path.relative_to(folder)
        if path.is_symlink() or not path.is_file() or any(part.startswith(".") for part in name.parts):
            continue
        try:
            check_whole(path)
        except Exception as error:  # whatever a reader says, it could not read it
            found[str(name)] = f"{type(error).__name__}: {error}"
    return found


def check_whole(path: Path) -> None:
    """Raises unless the whole file is there, by its own format."""
    if path.suffix == ".json" and path.parent.name == "results":
        read_rows(path)
    elif path.suffix == ".json":
        json.loads(path.read_text(encoding="utf-8"))
    elif path.suffix == ".yaml":
        yaml.safe_load(path.read_text(encoding="utf-8"))
    elif path.suffix == ".safetensors":
        with safe_open(path, "np") as file:
            list(file.keys())
    elif path.suffix == ".parquet":
        pyarrow.parquet.read_table(path)
    elif path.suffix == ".png" and not path.read_bytes().endswith(b"IEND\xaeB`\x82"):
        raise ValueError("the end of the picture is missing")
    elif path.suffix == ".svg" and not path.read_text(encoding="utf-8").rstrip().endswith("</svg>"):
        raise ValueError("the end of the drawing is missing")


def litter(folder: Path) -> list[str]:
    """Hidden files and folders that a process left, below a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob(".*") if LITTER.match(path.name))


def without(content: Any, names: re.Pattern) -> Any:
    """The content without what differs from time to time: keys, and rows of metrics, of these names."""
    if isinstance(content, dict):
        return {key: without(value, names) for key, value in content.items() if not names.search(key)}
    if isinstance(content, list):
        kept = (part for part in content if not (isinstance(part, dict) and names.search(str(part.get("metric")))))
        return [without(part, names) for part in kept]
    return content
