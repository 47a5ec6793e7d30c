"""Settings and fixtures for all tests."""

import os
import sys


os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import pytest
import torch


torch.set_num_threads(1)

LONGEST = ("test_documents.py", "test_own_task.py", "test_extrapolate.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest ones first, so that the processes that share the tests end together."""
    items.sort(key=lambda item: LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST))


@pytest.fixture(scope="session", autouse=True)
def own_state(tmp_path_factory):
    """Which Python files were named is remembered for these tests alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(autouse=True)
def tasks_of_headcount_alone():
    """Tasks of one's own that a test brings in are gone after it."""
    yield
    registry = sys.modules.get("headcount.data_builders.registry")
    if registry is not None:
        for name in registry.TASKS.keys() - registry.BUILT_IN:
            del registry.TASKS[name]


@pytest.fixture
def addition_tokens():
    """bos 3 7 4 + 8 1 4 = 8 8 1 1: digits are 3..12, "+" is 13, "=" is 14."""
    digit = {str(value): 3 + value for value in range(10)}
    vocabulary = digit | {"^": 1, "$": 2, "_": 0, "+": 13, "=": 14}
    return lambda *texts: torch.tensor([[vocabulary[character] for character in text] for text in texts])
