"""What the README shows is what happens."""

import doctest
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch


ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```console\n(.*?)```", README, re.DOTALL)
# Commands that are the test suite itself, or that set up a machine.
NOT_RUN_HERE = ("make ",)


def commands() -> list[tuple[str, str]]:
    """Every `$ command` of the README with the output shown below it."""
    pairs = []
    for block in BLOCKS:
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            pairs.append((command, output))
    return pairs


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder in which the commands of the README have run, one after the other, as a reader would run them."""
    folder = tmp_path_factory.mktemp("readme")
    for command, shown in commands():
        if command.startswith(NOT_RUN_HERE):
            continue
        program, *arguments = shlex.split(command)
        assert program == "headcount", command
        answer = subprocess.run(
            [sys.executable, "-m", "headcount", *arguments],
            cwd=folder,
            env={**os.environ, "OMP_NUM_THREADS": "1"},  # other tests run beside it
            capture_output=True,
            text=True,
            timeout=900,
        )
        assert answer.returncode == 0, f"{command}: {answer.stderr}"
        if shown:
            assert answer.stdout == shown, command
    return folder


def test_commands_run_and_print_what_is_shown(folder):
    assert (folder / "addition-data" / "README.md").exists()


def test_python_examples_give_what_is_shown(folder, monkeypatch):
    monkeypatch.chdir(folder)
    torch.manual_seed(0)
    result = doctest.testfile(str(ROOT / "README.md"), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert result.attempted > 5 and result.failed == 0


def test_make_targets_exist():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"`?(?:\$ )?make ([a-z]+)", README))
    assert named <= targets and "test" in named


def test_files_that_are_linked_exist():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert target.startswith("https://") or (ROOT / target).exists(), target
