"""Bars show on a terminal, also one that does not tell its size, and nowhere else."""

import os
import re
import subprocess
import sys

import pytest


pty = pytest.importorskip("pty")
WORK = """
import time
from headcount.records.progress import progress_bar
update = progress_bar("counting")
for done in range(1, 6):
    time.sleep(0.12)
    update(done, 5)
"""


def test_a_terminal_sees_a_bar_with_the_time_left():
    shown = []

    def read(terminal: int) -> bytes:
        shown.append(os.read(terminal, 4096))
        return shown[-1]

    pty.spawn([sys.executable, "-c", WORK], read)
    text = b"".join(shown).decode()
    assert "counting:" in text and re.search(r"3/5 \[\d\d:\d\d<\d\d:\d\d", text)


def test_a_file_sees_nothing():
    answer = subprocess.run([sys.executable, "-c", WORK], capture_output=True, text=True, timeout=60)
    assert (answer.stdout, answer.stderr) == ("", "")
