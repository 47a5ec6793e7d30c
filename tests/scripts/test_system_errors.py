"""What the system refuses is one sentence and exit code 2, for every verb: a full disk, links in a circle, ..."""

import contextlib
import io
import os
import shutil
import subprocess
import sys

import pytest
from small_runs import small_data, small_run

from headcount.scripts import cli
from headcount.scripts.system_errors import sentence_for


FREE = (0, 24, 64, 200, 700)  # kilobytes that a disk has left
FEW = ["--set", "training.steps=2", "--set", "data.test=40"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return small_run(tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return small_data(tmp_path_factory.mktemp("data") / "corpus")


def commands(trained, corpus, output):
    """Every verb that writes, with this output."""
    cells = ("--encodings", "none", "--poolings", "mean", "--seeds", 0, "--lengths", 16, "--rows", 4, "--workers", 1)
    return {
        "train": ("train", "addition-tiny", *FEW, "--output", output),
        "data": ("data", "addition", "--output", output, "--digits", 3, "--train", 400000),
        "heads": ("heads", trained, "--output", output, "--rows", 20, "--mode", "zero"),
        "prune": ("prune", trained, "--output", output, "--rows", 20, "--keep", 5),
        "extrapolate": ("extrapolate", "--output", output, *cells, *FEW[:2]),
        "study": ("study", "reverse", "--output", output, "--quick"),
        "push": ("push", corpus, "--repo-id", "sums", "--local", output),
    }


VERBS = tuple(commands("", "", ""))


@pytest.mark.parametrize("verb", VERBS)
def test_a_place_that_cannot_be_is_one_sentence(verb, trained, corpus, tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "loop").symlink_to(tmp_path / "pool")
    (tmp_path / "pool").symlink_to(tmp_path / "loop")
    for place in ("file", "file/inside", "loop", "loop/inside", "n" * 300, "n" * 250, "ä" * 140 + "/inside"):
        refused(*commands(trained, corpus, tmp_path / place)[verb])
    assert (tmp_path / "file").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "loop", "pool"]


@pytest.mark.parametrize("arguments", [("ls", "tasks"), ("train", "addition-tiny", "--output", "run")])
def test_a_working_directory_that_is_gone_is_one_sentence(arguments, tmp_path):
    code = "import os, sys; os.rmdir(os.getcwd()); from headcount.__main__ import main; main()"
    place = tmp_path / "gone"
    place.mkdir()
    answer = subprocess.run([sys.executable, "-c", code, *arguments], cwd=place, capture_output=True, text=True)
    assert answer.returncode == 2 and answer.stderr.count("\n") == 1, answer.stderr
    assert "the working directory is gone" in answer.stderr


@pytest.fixture
def mounted(tmp_path):
    """`mounted(options)`: a small file system of its own."""
    places = []

    def mount(options):
        place = tmp_path / f"disk-{len(places)}"
        place.mkdir()
        answer = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], capture_output=True)
        if answer.returncode:
            pytest.skip("mounting is not allowed here")
        places.append(place)
        return place

    if os.getuid() != 0 or shutil.which("mount") is None:
        pytest.skip("mounting is for root")
    yield mount
    for place in places:
        subprocess.run(["umount", "--lazy", place], check=True)


@pytest.mark.parametrize("verb", VERBS)
def test_a_full_disk_and_one_that_is_read_only_are_one_sentence(verb, trained, corpus, mounted):
    read_only = mounted("ro")
    assert "Read-only file system" in refused(*commands(trained, corpus, read_only / "out")[verb])
    if verb == "study":
        return  # its steps are the other verbs
    for kilobytes in FREE if verb != "extrapolate" else (24, 700):  # it starts a process every time
        full = mounted("size=2m")
        fill(full, kilobytes)
        code, said = tried(*commands(trained, corpus, full / "out")[verb])
        assert "Traceback" not in said and (code != 0 or kilobytes > 64), said
        if code != 0:
            assert code == 2 or verb == "extrapolate", said  # a part of its work may fail
            assert ("space" in said or "MB left" in said) and "; expected " in said, said


def test_a_report_for_which_there_is_no_space(trained, mounted):
    full = mounted("size=2m")
    shutil.copytree(trained, full / "run", ignore=shutil.ignore_patterns("checkpoints", "model"))
    fill(full, 8)
    assert "No space left" in refused("report", full / "run")
    assert sorted(path.name for path in (full / "run").glob("*report*")) == []


def fill(disk, kilobytes):
    """Leaves so much space on a disk of 2 MB."""
    free = shutil.disk_usage(disk).free
    with (disk / "ballast").open("wb") as file:
        file.write(bytes(max(0, free - 1024 * kilobytes)))


def tried(*arguments):
    """The exit code and what was said."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.run([str(argument) for argument in arguments])
    return code, err.getvalue()


def refused(*arguments):
    """The sentence, which comes last: what is done until then may have been told before it."""
    code, said = tried(*arguments)
    last = said.strip().splitlines()[-1]
    assert code == 2 and last.startswith("headcount: ") and "; expected " in last and "Traceback" not in said, said
    return last


def test_output_that_nobody_can_take(tmp_path):
    command = [sys.executable, "-m", "headcount", "ls", "encodings"]
    with open("/dev/full", "w") as full:
        answer = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert answer.returncode == 2 and answer.stderr.count("\n") == 1 and "No space left" in answer.stderr
    reader, writer = os.pipe()
    os.close(reader)
    answer = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert answer.returncode == 1 and answer.stderr == ""


def test_errors_that_libraries_tell_in_words():
    assert sentence_for(RuntimeError("I/O error: No space left on device (os error 28)")).startswith("No space left")
    assert sentence_for(OSError(36, "File name too long", "x")) == "x: File name too long; expected a shorter name."
    assert sentence_for(OSError("gpt9 is not a model\nmore")) == "gpt9 is not a model."
