"""One process at a time in a folder, whatever becomes of the other one."""

import os
import signal
import subprocess
import sys

import pytest

from headcount.records.locks import alone_in


HOLD = """
import sys, time
from pathlib import Path
from headcount.records.locks import alone_in
with alone_in(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def hold(folder) -> subprocess.Popen:
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_process_is_refused_until_the_first_is_gone_even_by_force(tmp_path):
    folder = tmp_path / "run"
    process = hold(folder)
    refused = pytest.raises(ValueError, match="another headcount process is at work in")
    with refused, alone_in(folder):
        pytest.fail("two at a time")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    with alone_in(folder):
        pass
    assert list(tmp_path.iterdir()) == [], "no folder was made and no lock is left"


def test_the_lock_goes_after_an_error_and_leaves_other_folders_alone(tmp_path):
    with pytest.raises(RuntimeError), alone_in(tmp_path / "a"):
        raise RuntimeError
    with alone_in(tmp_path / "a"), alone_in(tmp_path / "b"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    refused = pytest.raises(ValueError, match="; expected a writable place")
    with refused, alone_in(tmp_path / "file" / "run"):
        pytest.fail("there is no such folder")
