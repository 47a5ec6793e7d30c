"""What a cell was asked to be measured for: kept as asked.json beside its results.

It is written before the first row, without names of results, and again with them when all rows are there.
"""

from dataclasses import asdict, dataclass
from pathlib import Path

from ...records.claims import remove_results
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
    """What a cell was measured for; None if it has not been, is not yet, or if some of its results are gone."""
    names = result_names(folder)
    if not names or not all(results_path(folder, name).exists() for name in names):
        return None
    return last_question(folder)


def last_question(folder: Path) -> Asked | None:
    """What the rows of a cell are for, whether or not all of them are there already; None if nothing was asked."""
    if not (folder / NAME).exists():
        return None
    found = read_json(folder / NAME)
    return Asked(tuple(found["lengths"]), tuple(found["kinds"]), found["rows"])


def result_names(folder: Path) -> list[str]:
    """The analyses of a measured cell; none of one that is still being measured."""
    return read_json(folder / NAME)["results"] if (folder / NAME).exists() else []


def begin(folder: Path, asked: Asked, by_length: list[str]) -> None:
    """Notes a question before it is answered; rows that answer another one (of the analyses `by_length`) go first.

    So whenever the work is stopped, the rows that are there belong to the question beside them.
    """
    if last_question(folder) != asked:
        remove_results(folder, by_length)
    write_asked(folder, asked, [])


def write_asked(folder: Path, asked: Asked, results: list[str]) -> None:
    write_json(folder / NAME, {**asdict(asked), "results": results})


def forget(folder: Path) -> None:
    """The cell is about to be trained anew."""
    (folder / NAME).unlink(missing_ok=True)


def is_finished(folder: Path, asked: Asked) -> bool:
    """Whether a cell is trained, and everything that is asked for is measured."""
    before = read_asked(folder)
    return before is not None and asked.joined(before) == before
