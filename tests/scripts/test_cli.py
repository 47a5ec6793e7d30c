"""The command line as a user sees it: real processes, exit codes, standard output and standard error."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import headcount
from headcount.configuration import choices
from headcount.scripts import cli
from headcount.scripts.ls import FAMILIES


def run(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "headcount", *arguments], capture_output=True, text=True, timeout=120)


def test_help_and_version_answer_without_torch():
    code = (
        "import sys; from headcount.scripts.cli import run; code = run({arguments!r}); "
        "print([name for name in ('torch', 'transformers', 'datasets', 'numpy') if name in sys.modules], code)"
    )
    for arguments, expected in (
        (["--help"], "Usage: headcount"),
        ([], "Usage: headcount"),
        (["--version"], "headcount 0"),
    ):
        answer = subprocess.run(
            [sys.executable, "-c", code.format(arguments=arguments)], capture_output=True, text=True, timeout=60
        )
        assert expected in answer.stdout and answer.stdout.endswith("[] 0\n"), answer.stderr


def test_console_script_is_the_module():
    installed = Path(sys.executable).parent / "headcount"
    script = subprocess.run([installed, "--version"], capture_output=True, text=True, timeout=60)
    assert script.stdout == run("--version").stdout == f"headcount {headcount.__version__}\n"


@pytest.mark.parametrize("family", FAMILIES)
def test_ls_lists_every_name_with_a_sentence(family):
    answer = run("ls", family)
    assert answer.returncode == 0 and answer.stderr == ""
    rows = json.loads(run("ls", family, "--json").stdout)
    assert [re.split("  +", line)[0] for line in answer.stdout.splitlines()] == [row["name"] for row in rows]
    assert all(row["description"] for row in rows)


def test_ls_encodings_has_the_eleven():
    names = [line.split()[0] for line in run("ls", "encodings").stdout.splitlines()]
    assert names == list(choices.POSITION_ENCODINGS) and len(names) >= 11


def test_env_tells_versions():
    rows = json.loads(run("env", "--json").stdout)
    assert rows["headcount"] == headcount.__version__ and rows["torch"].startswith("2.")
    assert f"headcount       {headcount.__version__}" in run("env").stdout


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (["ls", "encodngs"], "there is no family 'encodngs'; expected one of encodings,"),
        (["ls"], "Missing argument 'FAMILY'"),
        (["lss"], "No such command 'lss'"),
        (["ls", "encodings", "--jsn"], r"No such option:? '?--jsn"),
    ],
)
def test_mistakes_get_one_sentence_and_exit_code_2(arguments, sentence):
    answer = run(*arguments)
    assert answer.returncode == 2 and answer.stdout == ""
    assert re.search(sentence, answer.stderr) and len(answer.stderr.strip().splitlines()) == 1
    assert "Traceback" not in answer.stderr


@pytest.mark.parametrize("number", ["x", "1.5", "0", "-3", "9" * 5000, "1e9", ""])
@pytest.mark.parametrize(
    "words",
    [
        ("heads", "run", "--output", "o", "--rows"),
        ("train", "addition", "--output", "o", "--keep"),
        ("study", "--output", "o", "--workers"),
        ("extrapolate", "--output", "o", "--workers"),
        ("prune", "run", "--output", "o", "--finetune"),
    ],
)
def test_a_number_that_does_not_fit_says_which_do(words, number, capsys):
    assert cli.run([*words, number]) == 2
    said = capsys.readouterr().err
    assert "is not allowed; expected a whole number from" in said and "int range" not in said and len(said) < 300


@pytest.mark.parametrize("verb", [["prune", "run", "--output"], ["report"], ["train"], ["evaluate"]], ids=str)
def test_a_name_that_is_no_text_is_one_sentence(verb, capsys):
    assert cli.run([*verb, "\udcff\udcfe"]) == 2
    said = capsys.readouterr().err
    assert "is not UTF-8; expected words and names that are" in said and "codec" not in said
