"""A task, added by the words of CONTRIBUTING to a fresh clone: two files, and every verb works."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_documents import commands


ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """What git would clone, and beside it a folder from which Python imports it as the package headcount."""
    folder = tmp_path_factory.mktemp("clone")
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    for name in tracked:
        if (ROOT / name).is_file():
            (folder / "clone" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / "clone" / name)
    (folder / "site" / "headcount").mkdir(parents=True)
    for path in (folder / "clone" / "headcount").iterdir():
        (folder / "site" / "headcount" / path.name).symlink_to(path)
    for init in (folder / "clone").glob("*/__init__.py"):
        if init.parent.name != "headcount":
            (folder / "site" / "headcount" / init.parent.name).symlink_to(init.parent)
    return folder / "clone"


@pytest.mark.slow
def test_the_words_of_contributing_add_a_task_by_two_files_and_take_it_through_every_verb(clone):
    site = {"PYTHONPATH": str(clone.parent / "site"), "PYTHONSAFEPATH": "1"}  # not what lies in the working directory
    before = {path.relative_to(clone) for path in clone.rglob("*") if path.is_file()}
    asked = commands((ROOT / "CONTRIBUTING.md",))
    for command, _ in asked:
        program, *arguments = shlex.split(command)
        assert program in ("headcount", "python")
        words = [sys.executable, *(["-m", "headcount"] if program == "headcount" else []), *arguments]
        environment = {**os.environ, **site, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        answer = subprocess.run(words, cwd=clone, env=environment, capture_output=True, text=True, timeout=900)
        assert answer.returncode == 0, f"{command}: {answer.stdout} {answer.stderr}"
        if arguments == ["ls", "tasks"]:
            assert "shift" in answer.stdout
    made = {path.relative_to(clone) for path in clone.rglob("*") if path.is_file()} - before
    outside = {path for path in made if path.parts[0] not in ("build", ".pytest_cache")}
    assert outside == {Path("data_builders/shift.py"), Path("trainers/recipes/shift.yaml")}
    verbs = {shlex.split(command)[1] for command, _ in asked}
    assert verbs >= {
        "new",
        "data",
        "train",
        "evaluate",
        "heads",
        "patch",
        "prune",
        "extrapolate",
        "report",
        "push",
        "study",
    }
