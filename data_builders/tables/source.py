"""Two columns of a table: of a file, of a folder with files, or of a dataset on the Hub, split by split.

`datasets` reads all of them; loading scripts are gone from it, so that a table is data whoever wrote it.
"""

import itertools
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..hub import fetch, reason


READERS = {".csv": "csv", ".tsv": "csv", ".json": "json", ".jsonl": "json", ".parquet": "parquet"}
ENDINGS = ", ".join(READERS)
MOST_FILES = 10_000
REPOSITORY = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")

Rows = list[tuple[str, str]]  # (input, answer), as texts


@dataclass(frozen=True)
class Source:
    """Where the pairs are. `answer` is the column of the targets or of the labels."""

    place: str  # the path of a file or folder, or the id of a dataset on the Hub
    input: str
    answer: str
    is_label: bool
    config: str | None = None
    split: str | None = None  # take this split alone

    @property
    def is_here(self) -> bool:
        return Path(self.place).exists()


def read_source(source: Source) -> dict[str, Rows]:
    """Split -> its pairs; whatever is wrong with the table is one sentence."""
    found = {name: _pairs(source, name, table) for name, table in _tables(source).items()}
    if source.split is not None:
        if source.split not in found:
            raise ValueError(f"{source.place} has no split {source.split!r}; expected one of {', '.join(found)}.")
        return {source.split: found[source.split]}
    return found


def _tables(source: Source) -> dict[str, Any]:
    """Split -> its columns; what `datasets` keeps on disk of local files is removed at once."""
    import datasets

    place = source.place
    if not source.is_here:
        if not REPOSITORY.fullmatch(place):
            raise ValueError(f"{place} is not there; expected a file, a folder or the id of a dataset on the Hub.")
        with _one_sentence(source):
            found = fetch(lambda: datasets.load_dataset(place, source.config), place, "dataset")
        return _columns(source, found)
    arguments = _arguments(source, Path(place))
    with tempfile.TemporaryDirectory(prefix="headcount-table-") as cache:
        with _one_sentence(source):
            found = datasets.load_dataset(cache_dir=cache, **arguments)
        return _columns(source, found)


@contextmanager
def _one_sentence(source: Source) -> Iterator[None]:
    """Within it, `datasets` says nothing; whatever it raises becomes a sentence about the table."""
    import datasets

    bars, level = datasets.is_progress_bar_enabled(), datasets.logging.get_verbosity()
    datasets.disable_progress_bars()
    datasets.logging.set_verbosity(datasets.logging.CRITICAL)
    try:
        yield
    except Exception as error:
        raise ValueError(_unreadable(source, error)) from error
    finally:
        datasets.logging.set_verbosity(level)
        if bars:
            datasets.enable_progress_bars()


def _unreadable(source: Source, error: Exception) -> str:
    if not source.is_here:
        return (
            f"{source.place} is no file or folder here, and the Hub does not give it as a dataset ({reason(error)}); "
            "expected a table."
        )
    cause = " ".join(str(error.__cause__ or error).split())[:200].rstrip(".")
    return f"{source.place} cannot be read as a table ({cause}); expected rows and columns."


def _arguments(source: Source, path: Path) -> dict[str, Any]:
    """Of `load_dataset`, for what is on this machine."""
    if path.resolve() == path.resolve().parent:  # `datasets` would search the whole disk
        raise ValueError(f"{path} holds no table; expected files ending in one of {ENDINGS}.")
    if path.is_dir() and (path / "README.md").is_file():  # it may name its configs
        return {"path": str(path), "name": source.config}
    if source.config is not None:
        raise ValueError(f"--config has no effect on {path}; expected a dataset that names its configs.")
    files = [path] if path.is_file() else list(itertools.islice(path.rglob("*"), MOST_FILES + 1))
    if len(files) > MOST_FILES:
        raise ValueError(f"{path} holds more than {MOST_FILES:,} files; expected a folder with a table.")
    endings = {READERS[each.suffix]: each.suffix for each in files if each.suffix in READERS}
    if len(endings) != 1:
        held = "no table" if not endings else f"tables of different kinds ({', '.join(endings)})"
        raise ValueError(f"{path} holds {held}; expected files ending in one of {ENDINGS}.")
    options: dict[str, Any] = {}
    reader, ending = endings.popitem()
    if reader == "csv":  # cells as they are written: 007 is a text, and so is NA
        as_text = {source.input: str, source.answer: str}
        options = {"converters": as_text, "na_filter": False, "encoding": "utf-8-sig"}
        options |= {"sep": "\t"} if ending == ".tsv" else {}
    where = {"data_files": str(path)} if path.is_file() else {"data_dir": str(path)}
    return {"path": reader, **where, **options}


def _columns(source: Source, splits: Any) -> dict[str, Any]:
    """Split -> {"input": cells, "answer": cells, "names": of the labels, if the table has any}."""
    found = {}
    for name, table in splits.items():
        for column in (source.input, source.answer):
            if column not in table.column_names:
                raise ValueError(
                    f"{source.place} has no column {column!r}; expected one of {', '.join(table.column_names)}."
                )
        names = getattr(table.features[source.answer], "names", None)
        found[name] = {"input": table[source.input][:], "answer": table[source.answer][:], "names": names}
    return found


def _pairs(source: Source, split: str, table: dict[str, Any]) -> Rows:
    names = table["names"]
    answers = table["answer"]
    if source.is_label:
        answers = [_label(value, names) for value in answers]
    for column, cells in ((source.input, table["input"]), (source.answer, answers)):
        for number, cell in enumerate(cells):
            if isinstance(cell, str) and cell.strip():
                continue
            held = "an empty cell" if cell is None or isinstance(cell, str) else f"{cell!r:.60}, which is no text,"
            raise ValueError(
                f"row {number} of the split {split!r} of {source.place} has {held} in the column {column!r}; expected "
                "a text in every row."
            )
    return list(zip(table["input"], answers, strict=True))


def _label(value: Any, names: list[str] | None) -> Any:
    """The name of a class; numbers and truth values go by how they are written."""
    if names is not None and isinstance(value, int) and 0 <= value < len(names):
        return names[value]
    return str(value) if isinstance(value, (bool, int)) else value
