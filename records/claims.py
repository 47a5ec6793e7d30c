"""An output folder belongs to one question: the same one goes on with it, another one is refused."""

from pathlib import Path
from typing import Any

from .files import read_json, write_json
from .rows import Rows, read_rows, results_path


class Claim:
    """The settings of a piece of work, kept in NAME.json beside its results.

    >>> claim = Claim(Path("heads"), "heads", {"rows": 200, "weights": "ab12..."})
    >>> claim.finished("ablation") is None  # or the rows that are there already
    True
    """

    def __init__(self, folder: Path, name: str, settings: dict[str, Any], overwrite: bool = False):
        known = {key: _plain(value) for key, value in settings.items()}
        path = folder / f"{name}.json"
        if path.exists() and not overwrite:
            before = read_json(path)
            changed = next((key for key in {**before, **known} if before.get(key) != known.get(key)), None)
            if changed is not None:
                raise ValueError(
                    f"{folder} holds results for {changed}={before.get(changed)!r}, now asked for "
                    f"{known.get(changed)!r}; expected the same, another --output, or --overwrite."
                )
        self.folder, self.overwrite = folder, overwrite
        try:
            write_json(path, known)
        except OSError as error:
            raise ValueError(f"{folder} cannot be written ({error.strerror}); expected a writable folder.") from error

    def finished(self, name: str) -> Rows | None:
        """Rows that are there already, or None."""
        path = results_path(self.folder, name)
        return None if self.overwrite or not path.exists() else read_rows(path)


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return str(value) if isinstance(value, Path) else value
