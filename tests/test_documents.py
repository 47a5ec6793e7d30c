"""What the README and docs/ show is what happens."""

import doctest
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import headcount


ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
DOCS = sorted((ROOT / "docs").glob("*.md"))
# Their console blocks are run, in this order and in one folder; the other pages name longer work, which is parsed.
RUN = (ROOT / "README.md", ROOT / "docs" / "command-line.md", ROOT / "docs" / "your-own.md")
PROGRAMS = {"headcount": [sys.executable, "-m", "headcount"], "python": [sys.executable]}
# Commands that are the test suite itself, or that set up a machine.
NOT_RUN_HERE = ("make ",)


def commands(pages: tuple[Path, ...] = RUN) -> list[tuple[str, str]]:
    """Every `$ command` of the pages, with the output shown below it."""
    blocks = [block for path in pages for block in re.findall(r"```console\n(.*?)```", path.read_text(), re.DOTALL)]
    pairs = []
    for block in blocks:
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            pairs.append((command, output))
    return pairs


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder in which the commands have run, one after the other, as a reader would run them."""
    folder = tmp_path_factory.mktemp("reader")
    for command, shown in commands():
        if command.startswith(NOT_RUN_HERE):
            continue
        program, *arguments = shlex.split(command)
        assert program in PROGRAMS, command
        answer = subprocess.run(
            [*PROGRAMS[program], *arguments],
            cwd=folder,
            env={**os.environ, "OMP_NUM_THREADS": "1"},  # other tests run beside it
            capture_output=True,
            text=True,
            timeout=900,
        )
        assert answer.returncode == 0, f"{command}: {answer.stdout} {answer.stderr}"
        if shown:
            assert answer.stdout == shown, command
    return folder


def test_commands_run_and_print_what_is_shown(folder):
    assert (folder / "addition-data" / "README.md").exists()
    assert (folder / "short-repository" / "config.json").exists()
    assert not (folder / "whole").exists()  # a dry run writes nothing


def test_python_examples_give_what_is_shown(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for page in ("README.md", "docs/python.md", "docs/constructions.md"):
        torch.manual_seed(0)
        result = doctest.testfile(str(ROOT / page), module_relative=False, optionflags=doctest.ELLIPSIS)
        assert result.attempted > 5 and result.failed == 0, page


def test_every_public_name_is_on_the_page_for_python():
    page = (ROOT / "docs" / "python.md").read_text()
    missing = [name for name in headcount.__all__ if f"`{name}" not in page and name != "__version__"]
    assert missing == []


def test_make_targets_exist():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"`?(?:\$ )?make ([a-z]+)", README))
    assert named <= targets and "test" in named


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_commands_of_the_pages_are_accepted_by_the_command_line(path):
    """Long ones are not run here, but every verb, option and value type in them exists."""
    from typer.main import get_command

    from headcount.scripts.cli import app

    verbs = get_command(app).commands
    for block in re.findall(r"```(?:console|)\n(.*?)```", path.read_text(), re.DOTALL):
        for line in re.findall(r"^(?:\$ )?headcount (.*)$", block.replace("\\\n", " "), re.MULTILINE):
            verb, *arguments = shlex.split(line, comments=True)
            verbs[verb].make_context(verb, [argument for argument in arguments if argument != "..."])


@pytest.mark.parametrize("path", [ROOT / "README.md", *DOCS], ids=lambda path: path.name)
def test_files_that_are_linked_exist(path):
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
        assert target.startswith("https://") or (path.parent / target).exists(), target
