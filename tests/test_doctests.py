"""The examples in the docstrings of the source run, and give what they say."""

import doctest
import importlib
import inspect
import re
from pathlib import Path

import pytest

import headcount
from headcount.metrics import METRICS


ROOT = Path(__file__).parent.parent

ROOMS = ["headcount", "configuration", "records", "modeling", "data_builders", "metrics"]
ROOMS += ["trainers", "analysis", "reports", "publishing"]
LEFT_OUT = {
    "headcount.__main__": "runs the command line",
    "headcount.data_builders.template": "what `headcount new` writes under other names, with a test of its own",
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


class Finder(doctest.DocTestFinder):
    """Decorated functions too: they belong to the module whose name they carry, not to that of the decorator."""

    def _from_module(self, module, found):
        return super()._from_module(module, inspect.unwrap(found) if callable(found) else found)


def examples() -> list[doctest.DocTest]:
    found = [test for name in module_names() for test in Finder().find(importlib.import_module(name), name)]
    return [test for test in found if test.examples]


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name.removeprefix("headcount."))
def test_the_example_of_a_docstring_is_true(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    runner.run(example, out=said.append)
    assert runner.failures == 0, "".join(said)


PUBLIC_FUNCTIONS = [name for name in headcount.__all__ if inspect.isfunction(getattr(headcount, name))]


@pytest.mark.parametrize("name", PUBLIC_FUNCTIONS)
def test_a_public_function_says_what_it_takes_and_gives_and_shows_a_call_that_runs(name):
    function = inspect.unwrap(getattr(headcount, name))
    text, signature = inspect.getdoc(function), inspect.signature(function)
    said = text.partition("Args:\n")[2].partition("Returns:\n")
    assert said[2].strip(), "its docstring does not say what it returns"
    for parameter in signature.parameters.values():
        assert re.search(rf"^ .*\b{parameter.name}\b.*:", said[0], re.MULTILINE), f"{parameter.name} is not explained"
        assert parameter.annotation is not parameter.empty, f"{parameter.name} has no type"
    assert signature.return_annotation is not signature.empty
    calls = [each for each in examples() if each.name == f"{function.__module__}.{name}"]
    assert calls, "no example of it runs"
    assert not any(doctest.SKIP in line.options for line in calls[0].examples), "its example is skipped"
    assert f"headcount.{name}(" in "".join(line.source for line in calls[0].examples)
