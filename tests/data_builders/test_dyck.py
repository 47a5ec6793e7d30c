"""Brackets: the oracle against a stack, classes that are what they say, strings drawn uniformly."""

from collections import Counter

import numpy as np
import pytest

from headcount.data_builders.dyck import BRACKETS, CLASSES, Strings, draw_balanced, mistakes, partners
from headcount.data_builders.registry import TASKS


TASK = TASKS["dyck"]
CLOSED_BY = {")": "(", "]": "["}


def is_balanced(text: str) -> bool:
    """As everybody writes it, with a stack."""
    stack = []
    for bracket in text:
        if bracket not in CLOSED_BY:
            stack.append(bracket)
        elif not stack or stack.pop() != CLOSED_BY[bracket]:
            return False
    return not stack


def strings(*texts: str) -> Strings:
    width = max(map(len, texts))
    numbers = [[BRACKETS.index(bracket) for bracket in text.ljust(width, "(")] for text in texts]
    length = np.array([len(text) // 2 for text in texts])
    return Strings(np.array(numbers), length, np.zeros_like(length))


def texts(problems: Strings) -> list[str]:
    rows = zip(problems.brackets, problems.length, strict=True)
    return ["".join(BRACKETS[number] for number in row[: 2 * pairs]) for row, pairs in rows]


@pytest.mark.parametrize("kind", [None, *CLASSES])
@pytest.mark.parametrize("length", [None, 2, 3, 40])
def test_labels_are_those_of_a_stack(kind, length):
    problems = TASK.problems(TASK.options(), np.random.default_rng(0), 300, length, kind)
    labels = TASK.solve(problems)
    assert labels.tolist() == [is_balanced(text) for text in texts(problems)]
    assert abs(labels.mean() - 0.5) < 0.02, "half of them are balanced"
    assert ((problems.kind == 0) == labels).all(), "a mistake is one"


def test_partners_are_those_of_a_stack_whatever_their_kind():
    assert partners(strings("([)](]").brackets).tolist() == [[3, 2, 1, 0, 5, 4]]
    assert partners(strings("))(()[").brackets).tolist() == [[-1, -1, -1, 4, 3, -1]]
    assert mistakes(strings("([)]()", "()")).tolist() == [[1, 1, 1, 1, 0, 0], [0, 0, -1, -1, -1, -1]]


def test_classes_are_what_they_say():
    options, rng = TASK.options(), np.random.default_rng(1)
    found = {kind: TASK.problems(options, rng, 200, 20, kind) for kind in CLASSES}
    wrong = {kind: texts(found[kind][found[kind].kind > 0]) for kind in CLASSES}
    for text in wrong["crossing"]:
        assert all(is_balanced("".join(b for b in text if b in kind)) for kind in ("()", "[]"))
    for text in wrong["swapped"]:
        assert is_balanced(text.replace("[", "(").replace("]", ")")) and text.count("(") != text.count(")")
    for text in wrong["flipped"]:
        assert abs(sum(1 if bracket in "([" else -1 for bracket in text)) == 2


def test_balanced_strings_of_three_pairs_are_equally_likely():
    drawn = draw_balanced(np.random.default_rng(0), 20_000, 3)
    shapes = Counter("".join("()"[int(number >= 2)] for number in row) for row in drawn)
    assert len(shapes) == 5 and all(abs(count - 4_000) < 250 for count in shapes.values())


def test_the_answer_follows_from_one_mistake_made_or_mended():
    whole, crossed = strings("([])"), strings("([)]")
    assert TASK.variables["mistake"].answers(whole, np.array([1]), np.array([1])).tolist() == [0]
    assert TASK.variables["mistake"].answers(crossed, np.array([1]), np.array([0])).tolist() == [0]


def test_lengths_within_training_are_refused():
    with pytest.raises(ValueError, match="test_lengths has 8, which is within training"):
        TASK.options(test_lengths=(8, 16))
