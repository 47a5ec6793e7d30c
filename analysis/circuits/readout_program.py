"""Tables that say whose token a network writes: fitted on examples, run on others.

Shapes: N problems, T tokens of the answer, R rules.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...data_builders.tasks import NOT_A_PLACE
from .readout_scene import Scene, Tokens


MOST_COLUMNS = 5
LEAST_GAIN = 0.002  # share of the held-out examples that another column must gain


@dataclass(frozen=True)
class Table:
    """For one token of the answer: the columns that decide, and the rule for every combination that was seen."""

    columns: tuple[str, ...]
    entries: dict[tuple[int, ...], str]  # values of the first columns, however many -> rule; () is the usual one

    def rule(self, values: tuple[int, ...]) -> str:
        """That of the longest beginning of the columns that was seen."""
        return next(self.entries[values[:n]] for n in range(len(values), -1, -1) if values[:n] in self.entries)

    def in_words(self) -> str:
        usual = self.entries[()]
        if not self.columns:
            return usual
        return f"mostly {usual}; decided by {', '.join(self.columns)} ({len(self.entries)} entries)"


Program = list[Table]  # one for every token of the answer


def fit_program(scene: Scene, written: Tokens) -> Program:
    """The tables that predict what is written (N, T), token by token."""
    return [
        _fit_table(scene.columns(token, written), scene.rules[token], written[:, token])
        for token in range(written.shape[1])
    ]


def _fit_table(columns: dict[str, NDArray[np.int64]], rules: dict[str, Tokens], written: Tokens) -> Table:
    """Columns are added one by one, the one that helps most first, as long as held-out examples gain from it."""
    names = list(rules)
    hits = np.stack([tokens == written for tokens in rules.values()], 1)  # (N, R)
    held = np.arange(len(written)) % 4 == 0
    chosen: list[str] = []
    group = np.zeros(len(written), np.int64)
    reached = _held_out(group, hits, held, np.full(len(written), int(hits[~held].sum(0).argmax())))
    while len(chosen) < MOST_COLUMNS and reached[0] < 1:
        tried = {
            name: _held_out(_finer(group, own), hits, held, reached[1])
            for name, own in columns.items()
            if name not in chosen
        }
        best = max(tried, key=lambda name: tried[name][0], default=None)
        if best is None or tried[best][0] < reached[0] + LEAST_GAIN:
            break
        chosen.append(best)
        group, reached = _finer(group, columns[best]), tried[best]
    entries: dict[tuple[int, ...], str] = {}
    for length in range(len(chosen) + 1):
        keys = np.stack([columns[name] for name in chosen[:length]], 1) if length else np.zeros((len(written), 0), int)
        seen, number = np.unique(keys, axis=0, return_inverse=True)
        counts = np.zeros((len(seen), len(names)))
        np.add.at(counts, number.ravel(), hits)
        for key, count in zip(seen.tolist(), counts, strict=True):
            entries[tuple(key)] = names[int(count.argmax())]
    return Table(tuple(chosen), entries)


def _finer(group: NDArray[np.int64], column: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.unique(group * (column.max() + 2) + column + 1, return_inverse=True)[1].ravel()


def _held_out(
    group: NDArray[np.int64], hits: NDArray[np.bool_], held: NDArray[np.bool_], before: NDArray[np.int64]
) -> tuple[float, NDArray[np.int64]]:
    """The share of held-out examples for which the best rule of their group is right, and the rule (N,) of each; a
    group that was not seen has the rule that was there before.
    """
    counts = np.zeros((group.max() + 1, hits.shape[1]))
    np.add.at(counts, group[~held], hits[~held])
    rule = np.where(counts.sum(-1)[group] > 0, counts.argmax(-1)[group], before)
    return float(hits[held, rule[held]].mean()), rule


def run_program(program: Program, scene: Scene) -> Tokens:
    """(N, T): what the program writes; each token is read by the next table."""
    written = np.zeros_like(scene.right)
    for token, table in enumerate(program):
        columns, rules = scene.columns(token, written), scene.rules[token]
        absent = np.full(len(scene), NOT_A_PLACE)
        keys = np.stack([columns.get(name, absent) for name in table.columns] or [absent], 1)
        seen, number = np.unique(keys, axis=0, return_inverse=True)
        for which, key in enumerate(seen.tolist()):
            rule = table.rule(tuple(key) if table.columns else ())
            rows = number.ravel() == which
            written[rows, token] = rules.get(rule, scene.right[:, token])[rows]
    return written
