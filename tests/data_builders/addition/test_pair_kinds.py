"""Pairs for the carry by kind: what differs, what does not, and which answer is expected; by Python's own integers."""

import numpy as np
import pytest

from headcount.data_builders.addition.columns import AdditionProblems, solve
from headcount.data_builders.addition.pair_kinds import PAIR_KINDS, with_carry
from headcount.data_builders.registry import TASKS


TASK = TASKS["addition"]
ANY = {"train": 500, "validation": 20, "test": 400, "hard": 20, "pairs": 200}


def corpus_of(**options):
    return TASK.splits(TASK.options(**{**ANY, **options}))


def number(digits):
    return int("".join(str(digit) for digit in digits[::-1]))


def with_carry_by_hand(a, b, column, carry):
    """Adds as on paper; out of `column` comes `carry`, whatever its sum says."""
    digits, incoming = [], 0
    for place in range(len(a)):
        total = int(a[place]) + int(b[place]) + incoming
        digits.append(total % 10)
        incoming = int(carry) if place == column else total // 10
    return [*digits, incoming]


@pytest.mark.parametrize("digits", [1, 2, 3, 9])
def test_the_expected_answer_is_that_of_paper_with_one_carry_changed(digits):
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 10, (2, 500, digits), dtype=np.uint8)
    b[::3] = 9 - a[::3]  # long ripples
    column, carry = rng.integers(0, digits, 500), rng.integers(0, 2, 500).astype(np.uint8)
    found = with_carry(AdditionProblems(a, b, np.full(500, digits)), column, carry)
    assert found.tolist() == [with_carry_by_hand(*each) for each in zip(a, b, column, carry, strict=True)]
    own = solve(a, b).carry_into[np.arange(500), column + 1]
    unchanged = with_carry(AdditionProblems(a, b, np.full(500, digits)), column, own)
    assert np.array_equal(unchanged, solve(a, b).sum), "the carry that is there anyway changes nothing"


@pytest.mark.parametrize(
    "options", [{}, {"digits": 5, "zero_pad": False}, {"digits": 2, "test": 100, "pairs": 30}], ids=str
)
def test_kinds_differ_in_what_they_say(options):
    corpus = corpus_of(**options)
    for kind in PAIR_KINDS:
        pairs = TASK.pairs("carry", corpus, kind)
        base, source, column = pairs.base, pairs.source, pairs.index
        assert len(pairs) > 0.8 * min(corpus.options.pairs, 25)
        rows = np.arange(len(pairs))
        carries = [solve(each.a, each.b).carry_into[rows, column + 1] for each in (base, source)]
        digits = [solve(each.a, each.b).sum[rows, column] for each in (base, source)]
        changed = (base.a != source.a) | (base.b != source.b)
        assert ((carries[0] == carries[1]) == (kind == "control")).all()
        if kind == "random":
            continue
        assert (changed.sum(-1) == 1).all() and changed[rows, column].all()
        assert ((digits[0] == digits[1]) == (kind != "control")).all()
        whole = solve(base.a, base.b).sum if kind == "control" else solve(source.a, source.b).sum
        assert np.array_equal(pairs.answers, whole)


def test_nothing_of_a_pair_was_trained_on_and_a_seed_repeats_them():
    corpus = corpus_of()
    trained = {
        (number(a), number(b))
        for chunk in corpus.chunks("default", "train")
        for a, b in zip(chunk.a, chunk.b, strict=True)
    }
    trained |= {(b, a) for a, b in trained}
    for kind in PAIR_KINDS:
        pairs, again = (TASK.pairs("carry", each, kind) for each in (corpus, corpus_of()))
        assert np.array_equal(pairs.source.a, again.source.a) and np.array_equal(pairs.index, again.index)
        for side in (pairs.base, pairs.source):
            assert not any((number(a), number(b)) in trained for a, b in zip(side.a, side.b, strict=True)), kind


def test_what_the_data_do_not_have_is_empty_or_one_sentence():
    assert (
        len(TASK.pairs("carry", corpus_of(digits=1, train=10, test=10, validation=5, hard=0, pairs=5), "ripple")) == 0
    )
    with pytest.raises(
        ValueError, match="there are no pairs 'nice'; expected one of: minimal, control, random, ripple"
    ):
        TASK.pairs("carry", corpus_of(), "nice")
