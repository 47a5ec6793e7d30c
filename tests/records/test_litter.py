"""What killed processes leave does not stand in the way, and is removed; what is anybody else's stays."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from headcount.records.litter import clean, is_empty
from headcount.records.locks import alone_in


@pytest.fixture(scope="module")
def gone() -> int:
    """The number of a process that is no more."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def leave(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("" if name.endswith(".lock") else "half")


def test_litter_is_nothing_and_goes_with_the_next_process(tmp_path, gone):
    folder = tmp_path / "run"
    leave(folder, f".probe-{gone}", f".recipe.partial-{gone}.yaml", f".model.partial-{gone}/config.json", ".a.lock")
    leave(tmp_path, f".run.partial-{gone}/x")
    assert is_empty(folder)
    leave(folder, f"results/.ablation.partial-{gone}.json", f"checkpoints/.step-1.partial-{gone}/x")
    assert not is_empty(folder)
    with alone_in(folder):
        assert [path.name for path in tmp_path.glob(".*")] == [".run.lock"]
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*")) == ["checkpoints", "results"]


def test_a_process_that_lives_and_files_of_others_are_left_alone(tmp_path):
    alive = f".model.partial-{os.getpid()}"
    leave(tmp_path, alive, ".bashrc", ".thesis.partial-1st", "notes.partial-99", ".git/config")
    (tmp_path / ".mine.lock").write_text("not a lock of headcount")
    before = sorted(tmp_path.rglob("*"))
    assert not is_empty(tmp_path)
    clean(tmp_path)
    assert sorted(tmp_path.rglob("*")) == before
    for name in (alive, ".bashrc"):
        only = tmp_path / "only" / name
        leave(tmp_path / "only", name)
        assert not is_empty(tmp_path / "only")
        only.unlink()


def test_a_number_that_was_given_again_is_another_process(tmp_path):
    leave(tmp_path, f".probe-{os.getpid()}")
    assert not is_empty(tmp_path)
    long_ago = psutil.Process().create_time() - 60
    os.utime(tmp_path / f".probe-{os.getpid()}", (long_ago, long_ago))
    assert is_empty(tmp_path)


def test_a_folder_that_was_moved_away_and_never_replaced_comes_back(tmp_path, gone):
    leave(tmp_path, f".data.old-{gone}/manifest.json", f".data.partial-{gone}/half")
    with alone_in(tmp_path / "data"):
        assert (tmp_path / "data" / "manifest.json").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_every_name_under_which_something_is_written_is_known(tmp_path):
    """A process that writes with `write_by` and `new_folder` is killed in the middle of both."""
    code = """
import os, signal, sys
from pathlib import Path
from headcount.records.files import new_folder, write_by
def killed(partial):
    partial.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[1] == "file":
    write_by(Path(sys.argv[2]) / "rows.json", killed)
with new_folder(Path(sys.argv[2]) / "model") as partial:
    killed(partial / "weights")
"""
    for kind in ("file", "folder"):
        subprocess.run([sys.executable, "-c", code, kind, str(tmp_path)])
    assert len(list(tmp_path.iterdir())) == 2 and is_empty(tmp_path)
    clean(tmp_path)
    assert list(tmp_path.iterdir()) == []
