"""A Hub that is silent, drips or talks nonsense: one sentence, in time, and nothing half done."""

import os
import subprocess
import sys
import time

import pytest

from headcount.scripts.cli import run as headcount


SECONDS = "2"
NONSENSE = [b"", b"[]", b"[[0]]", b"{}", b"0", b"null", b"<html>", b"\x80", b'{"name": 5, "sha": []}', b"[" * 100_000]


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setenv("HEADCOUNT_HUB_SECONDS", SECONDS)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", "nowhere")


def one_sentence(capsys, token):
    printed = capsys.readouterr()
    (line,) = [line for line in printed.err.splitlines() if line.startswith("headcount: ")]
    assert printed.out == "" and token not in printed.err and "Traceback" not in printed.err
    return line


@pytest.mark.parametrize("how", ["silent", "drip"])
@pytest.mark.parametrize("where", ["whoami", "repos/create", "preupload", "/commit/"])
def test_a_slow_hub_is_left_alone_in_time(how, where, hub, data, short, token, capsys):
    hub.fail = lambda method, path: how if where in path else None
    start = time.monotonic()
    assert headcount(["push", str(data), "--repo-id", "alice/sums"]) == 2
    assert "did not answer in time" in one_sentence(capsys, token) and time.monotonic() - start < 30
    hub.fail = lambda method, path: None
    assert hub.repos == {}
    assert headcount(["push", str(data), "--repo-id", "alice/sums"]) == 0  # the next one has a client again


@pytest.mark.parametrize("how", ["silent", "drip"])
def test_a_slow_upload_ends_with_its_process(how, hub, data):
    """The client uploads in threads, for which Python waits when it ends."""
    hub.fail = lambda method, path: how if method == "PUT" else None
    environment = {**os.environ, **hub.environment, "HEADCOUNT_HUB_SECONDS": SECONDS}
    command = [sys.executable, "-m", "headcount", "push", str(data), "--repo-id", "alice/sums"]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert answer.returncode == 2 and "did not answer in time" in answer.stderr and "Traceback" not in answer.stderr
    assert hub.repos == {}


@pytest.mark.parametrize("how", ["silent", "drip"])
def test_a_model_that_does_not_come_is_said_in_time(how, hub, short, token, capsys):
    hub.fail = lambda method, path: how
    assert headcount(["evaluate", "alice/model"]) == 2
    assert "did not answer in time" in one_sentence(capsys, token)


@pytest.mark.parametrize("content", NONSENSE, ids=range(len(NONSENSE)))
@pytest.mark.parametrize("where", ["", "api/datasets", "preupload", "/commit/"])
def test_nonsense_is_one_sentence(content, where, hub, data, short, token, capsys):
    hub.add_repo("dataset", "alice/sums")
    hub.fail = lambda method, path: content if where in path else None
    assert headcount(["push", str(data), "--repo-id", "alice/sums"]) == 2
    line = one_sentence(capsys, token)
    assert "nothing was pushed to alice/sums: " in line and "object has no attribute" not in line


@pytest.mark.parametrize("content", NONSENSE, ids=range(len(NONSENSE)))
def test_nonsense_instead_of_a_model_is_one_sentence(content, hub, short, token, capsys):
    hub.fail = lambda method, path: content
    assert headcount(["evaluate", "alice/model"]) == 2
    one_sentence(capsys, token)


def test_a_limit_that_is_no_number_is_refused(hub, data, monkeypatch, token, capsys):
    monkeypatch.setenv("HEADCOUNT_HUB_SECONDS", "soon")
    assert headcount(["push", str(data), "--repo-id", "alice/sums"]) == 2
    assert "HEADCOUNT_HUB_SECONDS='soon' is not allowed" in one_sentence(capsys, token)
