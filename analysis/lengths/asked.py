"""What a cell was asked to be measured for: kept as asked.json beside its results, and written last."""

from dataclasses import asdict, dataclass
from pathlib import Path

from ...records.files import read_json, write_json
from ...records.rows import results_path


NAME = "asked.json"


@dataclass(frozen=True)
class Asked:
    """Lengths, classes of problems, and how many problems of each."""

    lengths: tuple[int, ...]
    kinds: tuple[str, ...]
    rows: int

    def joined(self, before: "Asked | None") -> "Asked":
        """What to measure so that nothing gets lost that was measured before."""
        if before is None:
            return self
        kinds = tuple(dict.fromkeys([*before.kinds, *self.kinds]))
        return Asked(tuple(sorted({*before.lengths, *self.lengths})), kinds, self.rows)


def read_asked(folder: Path) -> Asked | None:
    """What a cell was measured for; None if it has not been, or if some of its results are gone."""
    if not (folder / NAME).exists() or not all(results_path(folder, name).exists() for name in result_names(folder)):
        return None
    found = read_json(folder / NAME)
    return Asked(tuple(found["lengths"]), tuple(found["kinds"]), found["rows"])


def result_names(folder: Path) -> list[str]:
    """The analyses of a measured cell."""
    return read_json(folder / NAME)["results"]


def write_asked(folder: Path, asked: Asked, results: list[str]) -> None:
    write_json(folder / NAME, {**asdict(asked), "results": results})


def is_finished(folder: Path, asked: Asked) -> bool:
    """Whether a cell is trained, and everything that is asked for is measured."""
    before = read_asked(folder)
    return before is not None and asked.joined(before) == before
