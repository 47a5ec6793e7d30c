"""Pairs of problems for causal studies of the carry, by kind: what moves, and what must not.

    minimal   221 + 436 = 0657 and 271 + 486 = 0757: column 1 differs, and just the carry out of it shows
    ripple    as minimal, but the column above sums to nine and passes the carry on
    control   221 + 436 = 0657 and 231 + 446 = 0677: the digits of column 1 differ, the carry out of it does not
    random    any two problems whose carries out of a column differ; everything else differs, too

`answers` are those of the base with the source's carry out of the column, ripples included, and nothing else moved.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..key_sets import KeySet
from ..tasks import Pairs
from .carry_pairs import describe_pairs
from .columns import AdditionProblems, problem_keys, solve


if TYPE_CHECKING:
    from .corpus import AdditionCorpus


PAIR_KINDS = {
    "minimal": "one column differs, in the carry out of it and not in its own answer digit",
    "control": "the digits of one column differ, and its answer digit, but not the carry out of it",
    "random": "two problems of the test split whose carries out of a column differ, like everything else",
    "ripple": "as minimal, and the column above passes the carry on",
}
SPLITS = {"minimal": "test", "ripple": "ripple"}  # drawn with the corpus, and published with it


def carry_pairs(corpus: "AdditionCorpus", kind: str) -> Pairs[AdditionProblems]:
    """The pairs of a kind; none where the data have none, such as ripples with one digit."""
    if kind not in PAIR_KINDS:
        raise ValueError(f"there are no pairs {kind!r}; expected one of: {', '.join(PAIR_KINDS)}.")
    draw = DRAWN.get(kind, lambda own: drawn_with_corpus(own, kind))
    base, source, column = draw(corpus)
    carries = solve(source.a, source.b).carry_into[np.arange(len(source)), column + 1]
    return Pairs(base, source, column, with_carry(base, column, carries))


Drawn = tuple[AdditionProblems, AdditionProblems, NDArray[np.int64]]  # base, source, column


def drawn_with_corpus(corpus: "AdditionCorpus", kind: str) -> Drawn:
    if "pairs" not in corpus.sizes():
        raise ValueError("the data have no pairs; expected data with data.pairs > 0.")
    there = SPLITS[kind] in corpus.sizes()["pairs"]
    base, source = corpus.pairs(SPLITS[kind] if there else SPLITS["minimal"])
    rows = slice(None) if there else slice(0)
    return base[rows], source[rows], describe_pairs(base, source)["column"][rows]


def with_carry(problems: AdditionProblems, column: NDArray[np.int64], carry: NDArray) -> NDArray[np.uint8]:
    """The digits of the sums, units first, with this carry out of a column; columns above go on from there."""
    found = solve(problems.a, problems.b)
    digits, incoming = found.sum.copy(), carry.astype(np.uint8)
    for above in range(problems.columns + 1):
        own = column < above
        if above == problems.columns:
            digits[own, above] = incoming[own]
            break
        total = problems.a[:, above] + problems.b[:, above] + incoming
        digits[own, above] = total[own] % 10
        incoming = np.where(own, total >= 10, carry).astype(np.uint8)
    return digits


def random_pairs(corpus: "AdditionCorpus") -> Drawn:
    """Problems of the test split side by side, and a column whose carry out differs."""
    problems, rng = corpus.problems("test"), corpus.rng("pairs/random")
    first, second = (rng.permutation(len(problems)) for _ in range(2))
    base, source = problems[first], problems[second]
    differs = solve(base.a, base.b).carry_into[:, 1:] != solve(source.a, source.b).carry_into[:, 1:]
    differs &= (np.arange(problems.columns) < np.minimum(base.width, source.width)[:, None]) & (first != second)[
        :, None
    ]
    column = np.where(differs, rng.random(differs.shape), -1.0).argmax(-1)
    rows = np.flatnonzero(differs.any(-1))[: corpus.options.pairs]
    return base[rows], source[rows], column[rows]


def control_pairs(corpus: "AdditionCorpus") -> Drawn:
    """The bases of the minimal pairs; in the same column other digits, with the same carry out of it."""
    base, minimal_source = corpus.pairs(SPLITS["minimal"])
    column, rng = describe_pairs(base, minimal_source)["column"], corpus.rng("pairs/control")
    rows = np.arange(len(base))
    before = solve(base.a, base.b)
    incoming, outgoing = before.carry_into[rows, column], before.carry_into[rows, column + 1]
    a, b = base.a.copy(), base.b.copy()
    missing = rows
    trained = _training_keys(corpus)
    for _ in range(1000):
        if not len(missing):
            break
        own, at = missing, column[missing]
        drawn = rng.integers(0, 10, (2, len(own)), dtype=np.uint8)
        total = drawn.sum(0) + incoming[own]
        fits = (total >= 10) == outgoing[own]
        fits &= total % 10 != before.sum[own, at]
        if not corpus.options.zero_pad:  # so that both problems are written with the same digits
            leading = (at == base.width[own] - 1) & (base.width[own] > 1)
            fits &= ~leading | (drawn > 0).all(0)
        a[own, at], b[own, at] = drawn
        keys = problem_keys(AdditionProblems(a[own], b[own], base.width[own]), corpus.options.ordered)
        missing = own[~(fits & ~trained.contains(keys))]
    good = np.ones(len(base), bool)
    good[missing] = False
    found = AdditionProblems(a, b, base.width)
    return base[good], found[good], column[good]


DRAWN = {"random": random_pairs, "control": control_pairs}  # the kinds that are drawn when they are asked for

MOST_TRAINED = 1_000_000  # training splits of more rows are not gone through


def _training_keys(corpus: "AdditionCorpus") -> KeySet:
    """Of the problems in the training split, so that pairs can leave them out."""
    found = KeySet()
    if 0 < corpus.options.train <= MOST_TRAINED:
        for chunk in corpus.chunks("default", "train"):
            found.add(np.unique(problem_keys(chunk, corpus.options.ordered)))
    return found
