"""The examples in the docstrings of the source run, and give what they say."""

import doctest
import importlib
from pathlib import Path

import pytest

from headcount.metrics import METRICS


ROOT = Path(__file__).parent.parent

ROOMS = ["headcount", "configuration", "records", "modeling", "data_builders", "metrics"]
LEFT_OUT = {
    "headcount.__main__": "runs the command line",
    "headcount.modeling.stock": "not yet",
    "headcount.data_builders.corpus": "not yet",
    "headcount.data_builders.tasks": "not yet",
    "headcount.data_builders.addition.permutation": "not yet",
} | {
    f"headcount.metrics.{name}": "a card with rounded figures, which tests/metrics/test_metric_loading.py compares"
    for name in METRICS
}
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def is_left_out(module: str) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in LEFT_OUT)


def module_names() -> list[str]:
    names = []
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            parts = parts if room == "headcount" else ("headcount", *parts)
            names.append(".".join(part for part in parts if part != "__init__"))
    return [name for name in names if not is_left_out(name)]


def examples() -> list[doctest.DocTest]:
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = [test for name in module_names() for test in finder.find(importlib.import_module(name), name)]
    return [test for test in found if test.examples]


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name.removeprefix("headcount."))
def test_the_example_of_a_docstring_is_true(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    runner.run(example, out=said.append)
    assert runner.failures == 0, "".join(said)
