"""The command line in the process of the tests, which spares a start of Python and torch for every call."""

import contextlib
import io
from typing import NamedTuple

import datasets
from transformers.utils import logging

from headcount.scripts import cli


logging.disable_progress_bar()  # as the command line does in a process of its own, before transformers is loaded
datasets.disable_progress_bars()


class Answer(NamedTuple):
    stdout: str
    stderr: str


def run(*arguments, code: int = 0) -> Answer:
    """What a command prints; wrong input (code 2) is answered by one line and no traceback."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        found = cli.run([str(argument) for argument in arguments])
    assert found == code, err.getvalue()
    if code == 2:
        assert err.getvalue().strip().count("\n") == 0 and "Traceback" not in err.getvalue(), err.getvalue()
    return Answer(out.getvalue(), err.getvalue())
