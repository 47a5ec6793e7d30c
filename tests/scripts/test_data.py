"""`headcount data`: what it writes, prints and refuses."""

import json

import pytest

from headcount.data_builders.folder import check_folder
from headcount.data_builders.registry import TASKS
from headcount.scripts.cli import run


SMALL = ["--train", "300", "--validation", "20", "--test", "20"]


def test_addition_is_written_and_reported(tmp_path, capsys):
    target = tmp_path / "addition"
    arguments = [
        "--hard",
        "20",
        "--pairs",
        "10",
        "--sampling",
        "carry_balanced",
        "--no-zero-pad",
        "--answer-order",
        "reversed",
    ]
    assert run(["data", "addition", "--output", str(target), "--seed", "4", *SMALL, *arguments]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == f"addition, seed 4: written to {target}"
    assert "default     train                300 rows" in out
    assert "pairs       ripple                10 rows" in out
    assert err == "", "progress is for terminals"
    options = check_folder(target)["options"]
    assert (options["seed"], options["sampling"], options["zero_pad"]) == (4, "carry_balanced", False)


def test_sortedness_in_json(tmp_path, capsys):
    target = tmp_path / "sortedness"
    arguments = ["--test-lengths", "8,64", "--kinds", "swap=0.5,move=0.5", "--narrow-share", "0.25", "--json"]
    assert run(["data", "sortedness", "--output", str(target), *SMALL, *arguments]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["written"] is True
    assert report["options"]["kinds"] == {"swap": 0.5, "move": 0.5}
    assert report["splits"] == check_folder(target)["splits"]
    assert report["splits"]["move"] == {"test_8": 20, "test_64": 20}


def test_a_dry_run_prints_the_same_and_writes_nothing(tmp_path, capsys):
    arguments = ["data", "addition", "--output", str(tmp_path / "x"), *SMALL, "--hard", "20", "--pairs", "0"]
    assert run([*arguments, "--dry-run"]) == 0
    planned = capsys.readouterr().out.splitlines()
    assert "would be written" in planned[0]
    assert list(tmp_path.iterdir()) == []
    assert run(arguments) == 0
    assert capsys.readouterr().out.splitlines()[1:] == planned[1:]


def test_overwriting_has_to_be_asked_for(tmp_path, capsys):
    arguments = ["data", "sortedness", "--output", str(tmp_path / "x"), *SMALL, "--test-lengths", "8"]
    assert run(arguments) == 0
    first = check_folder(tmp_path / "x")
    assert run([*arguments, "--seed", "1"]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert check_folder(tmp_path / "x") == first
    assert run([*arguments, "--seed", "1", "--overwrite"]) == 0
    assert check_folder(tmp_path / "x")["files"] != first["files"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["additon"],
            f"there is no task 'additon'; expected one of {', '.join(TASKS)}, or a Python file with a TASK. "
            "Did you mean 'addition'?",
        ),
        (["addition", "--digits", "2"], "but there are only 5,050 of up to 2 digits"),
        (["addition", "--digits", "x"], "--digits has 'x' where a number is wanted"),
        (["addition", "--sampling", "uniforn"], "Did you mean 'uniform'?"),
        (["addition", "--kinds", "swap=1"], "--kinds is not an option of addition; expected --seed, --digits"),
        (["sortedness", "--no-zero-pad"], "--no-zero-pad is not an option of sortedness; expected --seed"),
        (["sortedness", "--test-lengths", "8,many"], "--test-lengths has 'many' where a number is wanted"),
        (["sortedness", "--kinds", "swap"], "--kinds has '' where a number is wanted"),
        (["sortedness", "--test-lengths", "1"], "one value cannot be out of order"),
        (["sortedness", "--train", "3"], "expected an even number"),
    ],
)
def test_mistakes_are_one_sentence_and_exit_code_2(arguments, sentence, tmp_path, capsys):
    assert run(["data", *arguments, "--output", str(tmp_path / "x")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert sentence in err
    assert len(err.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert (
        run(["data", "addition", "--output", str(tmp_path / "file" / "x"), *SMALL, "--hard", "9", "--pairs", "0"]) == 2
    )
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_tasks_are_listed(capsys):
    assert run(["ls", "tasks"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(TASKS)


def test_the_data_of_a_recipe_are_written_with_its_options(tmp_path, capsys):
    arguments = ["data", "addition", "--recipe", "addition-tiny", "--output", str(tmp_path / "x"), "--test", "30"]
    assert run(arguments) == 0
    options = check_folder(tmp_path / "x")["options"]
    assert (options["digits"], options["sampling"], options["test"]) == (2, "carry_balanced", 30)
    assert run(["data", "sortedness", "--recipe", "addition-tiny", "--output", str(tmp_path / "y")]) == 2
    assert "the recipe 'addition-tiny' is of addition; expected one of sortedness" in capsys.readouterr().err


def test_options_are_listed_with_their_defaults(capsys):
    assert run(["ls", "options"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert (
        "addition --digits default 3" in lines and "sortedness --kinds default shuffle=0.3,swap=0.4,move=0.3" in lines
    )
