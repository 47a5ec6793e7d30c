"""An output folder belongs to one question: the same one goes on with it, another one is refused."""

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .files import read_json, write_json
from .rows import Rows, read_rows, results_path
from .run_folder import list_figures


class Claim:
    """The settings of a piece of work, kept in NAME.json beside its results.

    Settings name data and weights by a hash of their content, never by a path: another file may come to lie there.
    `results` are the names of all result files that such work writes. With `overwrite` they go, with their figures,
    before the new settings are written: whenever the work is stopped, every row that is there belongs to the settings
    beside it. `parts` are folders of finished pieces of the work, which belong to its settings as well.

    >>> claim = Claim(Path("heads"), "heads", {"rows": 200, "weights": "ab12..."}, ["ablation"])
    >>> claim.finished("ablation") is None  # or the rows that are there already
    True
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        settings: dict[str, Any],
        results: Sequence[str],
        overwrite: bool = False,
        parts: Sequence[str] = (),
    ):
        known = {key: _plain(value) for key, value in settings.items()}
        path = folder / f"{name}.json"
        there = [result for result in results if results_path(folder, result).exists()]
        there += [part for part in parts if (folder / part).exists()]
        if there and not overwrite and path.exists():  # a claim without results keeps nobody out
            _check_same(folder, read_json(path), known)
        elif there and not overwrite:
            raise ValueError(
                f"{folder} holds results of {there[0]} without {path.name}, which says what they are for; expected "
                "another --output, or --overwrite."
            )
        self.folder = folder
        try:
            if overwrite:
                remove_results(folder, results)
            write_json(path, known)
        except OSError as error:
            raise ValueError(f"{folder} cannot be written ({error.strerror}); expected a writable folder.") from error

    def finished(self, name: str) -> Rows | None:
        """Rows that are there already, or None."""
        path = results_path(self.folder, name)
        return read_rows(path) if path.exists() else None


def remove_results(folder: Path, names: Sequence[str]) -> None:
    """Removes results/NAME.json and the figures drawn from it: figures/NAME.png, figures/NAME_and_more.png."""
    for stem, paths in list_figures(folder).items():
        if any(stem == name or stem.startswith(f"{name}_") for name in names):
            for path in paths:
                path.unlink()
    for name in names:
        results_path(folder, name).unlink(missing_ok=True)


def hash_content(content: Any) -> str:
    """SHA-256 of anything that JSON can hold, the same for the same content; what it cannot hold counts as text.

    >>> hash_content({"a": 1, "b": [2]}) == hash_content({"b": [2], "a": 1})
    True
    """
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def _check_same(folder: Path, before: dict[str, Any], known: dict[str, Any]) -> None:
    changed = next((key for key in {**before, **known} if before.get(key) != known.get(key)), None)
    if changed is None:
        return
    if _is_hash(known.get(changed)):  # two hashes tell nobody anything
        difference = f"other {changed}"
    else:
        difference = f"{changed}={before.get(changed)!r}, now asked for {known.get(changed)!r}"
    raise ValueError(f"{folder} holds results for {difference}; expected the same, another --output, or --overwrite.")


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return str(value) if isinstance(value, Path) else value
