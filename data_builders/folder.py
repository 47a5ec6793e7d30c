"""Corpora on disk: parquet splits, dataset card and manifest, written whole or not at all, and checked when read.

    DIR/
      README.md                        dataset card; its `configs:` block is what load_dataset reads
      figures/*.png                    the card's figure
      CONFIG/SPLIT-00000-of-00001-HASH.parquet
      manifest.json                    options, and size and SHA-256 of the parquet files; written last

The hash of the content is part of a parquet file's name, and the card lists the files by name, because `load_dataset`
takes a folder for the one it has cached unless the card's words differ.
"""

import os
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq

from ..records.claims import hash_content
from ..records.files import hash_file, inside, kept_inside, new_folder, read_json, write_json
from ..records.litter import is_empty
from ..records.locks import alone_in
from .builders import CORPUS_VERSION
from .card import EXAMPLE_ROWS, write_card
from .corpus import Corpus
from .registry import find_task, keep_task
from .tasks import Task, options_of, plain_options


MANIFEST = "manifest.json"
ROWS_PER_FILE = 5_000_000


def write_folder(
    task: Task | str,
    options: Any,
    folder: str | os.PathLike,
    overwrite: bool = False,
    progress: Callable[[str, int], None] = lambda split, rows: None,
) -> dict:
    """Writes the corpus of `options` to `folder` and returns its manifest.

    Everything is written to a hidden folder beside it, which takes the place of `folder` at the very end, so that
    there is never a half-written one. One chunk of rows is in memory at a time.

    >>> import headcount
    >>> options = headcount.TASKS["reverse"].options(train=50, validation=10, test=10)
    >>> headcount.write_folder("reverse", options, "reverse-data")["splits"]
    {'default': {'train': 50, 'validation': 10, 'test': 10}}

    Args:
        task: a task or its name.
        options: what the splits are made from: an instance of the task's `options`.
        folder: a new or empty one.
        overwrite: replace a corpus that is there.
        progress: hears of every chunk: of which split, and how many rows.

    Returns:
        The manifest: task, options, rows of every split, and the SHA-256 of every file.
    """
    folder, task = Path(folder), find_task(task) if isinstance(task, str) else task
    corpus = task.splits(options)
    check_target(folder, overwrite)
    with alone_in(folder), new_folder(folder) as partial:
        check_target(folder, overwrite)  # again: another process may have been at work until now
        splits: dict[str, dict[str, int]] = {}
        tallies, examples = {}, {}
        for config, sizes in corpus.sizes().items():
            for split in sizes:
                found = _write_split(corpus, config, split, partial, progress)
                splits.setdefault(config, {})[split], tallies[config, split], examples[config, split] = found
        write_card(corpus, tallies, examples, partial)
        keep_task(task, partial)
        manifest = {
            "task": task.name,
            "corpus_version": CORPUS_VERSION,
            "options": plain_options(options),
            "splits": splits,
            "files": {
                path.relative_to(partial).as_posix(): {"bytes": path.stat().st_size, "sha256": hash_file(path)}
                for path in sorted(partial.glob("*/*.parquet"))
            },
        }
        write_json(partial / MANIFEST, manifest)
    return manifest


def check_target(folder: Path, overwrite: bool) -> None:
    """An error if `folder` may not be written: a file, or a non-empty folder that is not to be overwritten."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; expected a folder that is new or empty.")
    if not is_empty(folder):
        if not overwrite:
            raise ValueError(f"{folder} is not empty; expected a new or empty folder, or overwrite (--overwrite).")
        if not (folder / MANIFEST).exists():
            raise ValueError(
                f"{folder} is no corpus folder (it has no {MANIFEST}) and is not overwritten; remove it by hand."
            )


def _write_split(
    corpus: Corpus, config: str, split: str, partial: Path, progress: Callable[[str, int], None]
) -> tuple[int, dict[str, Counter], list]:
    """The number of rows, what the corpus counts in them, and the first few."""
    (partial / config).mkdir(exist_ok=True)
    rows = 0
    examples: list[dict] = []
    tally: dict[str, Counter] = {}
    paths: list[Path] = []
    with ExitStack() as files:
        for table in corpus.tables(config, split):
            if rows >= len(paths) * ROWS_PER_FILE:
                files.close()
                paths.append(partial / config / f"{split}.{len(paths)}")
                writer = files.enter_context(parquet_writer(corpus, config, paths[-1]))
            writer.write_table(table)
            examples = examples or table.slice(0, EXAMPLE_ROWS).to_pylist()
            rows += table.num_rows
            for name, counts in corpus.tally(config, table).items():
                tally.setdefault(name, Counter()).update(counts)
            progress(f"{config}/{split}", table.num_rows)
    for number, path in enumerate(paths):
        place = f"{number:05d}-of-{len(paths):05d}"
        path.rename(path.with_name(f"{split}-{place}-{hash_file(path)[:16]}.parquet"))
    return rows, tally, examples


def parquet_writer(corpus: Corpus, config: str, path: Path) -> pq.ParquetWriter:
    """For the tables of a config; columns with few different values are written as a dictionary."""
    schema = corpus.features(config).arrow_schema
    dictionaries = [
        f"{field.name}.list.element" if pa.types.is_list(field.type) else field.name
        for field in schema
        if field.name in corpus.repetitive
    ]
    return pq.ParquetWriter(path, schema, compression="lz4", use_dictionary=dictionaries)


def read_manifest(path: Path) -> dict:
    """What `write_folder` notes about a corpus; a sentence that names the file if it is anything else."""
    try:
        manifest = read_json(path)
    except ValueError as error:
        raise ValueError(f"{path} cannot be read: the folder is broken; write it again.") from error
    files = manifest.get("files")
    whole = isinstance(manifest.get("task"), str) and isinstance(files, dict)
    whole = whole and all(isinstance(manifest.get(name), dict) for name in ("options", "splits"))
    if not whole or not all(isinstance(each, dict) and {"bytes", "sha256"} <= set(each) for each in files.values()):
        raise ValueError(f"{path} cannot be read: the folder is broken; write it again.")
    return manifest


def check_folder(folder: str | os.PathLike) -> dict:
    """The manifest of a whole corpus folder; an error that names the file if anything is missing or changed."""
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder; expected one that `headcount data` has written.")
    if not (folder / MANIFEST).exists():
        raise ValueError(f"{folder} has no {MANIFEST}: it is half-written or not a corpus; write it again.")
    manifest = read_manifest(kept_inside(folder, folder / MANIFEST))
    if not kept_inside(folder, folder / "README.md").is_file():
        raise ValueError(f"{folder / 'README.md'} is missing: load_dataset needs it; write the folder again.")
    for name, wanted in manifest["files"].items():
        path = inside(folder, name)
        if not path.is_file():
            raise ValueError(f"{path} is missing: the folder is broken; write it again.")
        if path.stat().st_size != wanted["bytes"] or hash_file(path) != wanted["sha256"]:
            raise ValueError(f"{path} is not what was written: the folder is broken; write it again.")
    return manifest


def load_folder(
    folder: str | os.PathLike, config: str = "default", split: str | None = None, streaming: bool = False
) -> Any:
    """`load_dataset(folder, config)` after a check that the folder is whole.

    >>> import headcount
    >>> options = headcount.TASKS["reverse"].options(train=50, validation=10, test=10)
    >>> manifest = headcount.write_folder("reverse", options, "reverse-data")
    >>> headcount.load_folder("reverse-data", split="train").num_rows
    50

    Args:
        folder: what `write_folder` or `headcount data` wrote.
        config: one of its configs.
        split: one of its splits; by default all of them.
        streaming: read rows as they are asked for.

    Returns:
        What `datasets.load_dataset` gives: a dataset, or one for every split.
    """
    manifest = check_folder(folder)
    if config not in manifest["splits"]:
        raise ValueError(f"{folder} has no config {config!r}; expected one of {', '.join(manifest['splits'])}.")
    return datasets.load_dataset(str(folder), config, split=split, streaming=streaming)


def open_folder(folder: str | os.PathLike) -> Corpus:
    """The corpus of a data folder, whose rows are read from its files after a check that they are whole."""
    folder = Path(folder)
    manifest = check_folder(folder)
    task = find_task(manifest["task"], folder)
    corpus = task.splits(options_of(task, manifest["options"]))
    for name in sorted(manifest["files"]):
        config, _, file = name.partition("/")
        corpus.files.setdefault((config, file.split("-")[0]), []).append(folder / name)
    return corpus


def hash_data(corpus: Corpus, folder: Path | None = None) -> str:
    """SHA-256 of what a corpus holds: of what it is drawn from, or of the files of the folder that it is read from."""
    drawn: dict[str, Any] = {
        "task": corpus.task.name,
        "version": CORPUS_VERSION,
        "options": plain_options(corpus.options),
    }
    if corpus.task.origin is not None:
        drawn["origin"] = corpus.task.origin.sha256
    files = {} if folder is None else read_json(folder / MANIFEST)["files"]
    return hash_content({**drawn, "files": {name: about["sha256"] for name, about in files.items()}})
