"""`headcount board` as a user runs it."""

import json

import pytest
from small_board import write_study

from headcount.scripts.cli import run


@pytest.fixture
def board(capsys):
    def call(*arguments, code: int = 0):
        assert run(["board", *map(str, arguments)]) == code
        answer = capsys.readouterr()
        if code == 2:
            assert answer.err.strip().count("\n") == 0 and "Traceback" not in answer.err, answer.err
        return answer

    return call


def test_a_folder_or_a_page_is_written_and_the_table_printed(board, tmp_path):
    study = write_study(tmp_path / "a", "reverse", {"rotary": {0: 80}, "none": {0: 0}})
    answer = board(study, "--output", tmp_path / "out")
    assert answer.out.splitlines() == [
        "task     trained to  none        rotary",
        "reverse  10 letters  not fitted  ≥ 8 x",
    ]
    assert f"wrote {tmp_path / 'out' / 'board.md'}" in answer.err
    assert (tmp_path / "out" / "figures" / "board.png").exists()
    board(study, "--output", tmp_path / "docs" / "far.md")
    assert (tmp_path / "docs" / "far.md").exists() and (tmp_path / "docs" / "far" / "reverse.json").exists()


def test_rows_for_machines(board, tmp_path):
    study = write_study(tmp_path / "a", "reverse", {"rotary": {0: 80}})
    rows = json.loads(board(study, "--output", tmp_path / "out", "--json").out)
    assert rows == json.loads((tmp_path / "out" / "board" / "reverse.json").read_text())
    assert [(row["study"], row["variant"], row["value"]) for row in rows] == [("board", "rotary", 80)]


def test_mistakes_are_one_sentence(board, tmp_path):
    study = write_study(tmp_path / "a", "reverse", {"rotary": {0: 80}})
    assert "is no length study" in board(tmp_path / "nothing", "--output", tmp_path / "out", code=2).err
    assert not (tmp_path / "out").exists()
    other = write_study(tmp_path / "b", "reverse", {"rotary": {1: 80}}, data={"seed": 1})
    assert "seed is 0 and 1; expected studies of the same data" in board(study, other, "--output", "x", code=2).err
    page = tmp_path / "notes.md"
    page.write_text("# My notes\n")
    assert "is no board" in board(study, "--output", page, code=2).err
    assert page.read_text() == "# My notes\n"
    board(study, "--output", page, "--overwrite")
    assert page.read_text().startswith("# The board")


def test_rows_that_do_not_fit_together_are_a_sentence(board, tmp_path):
    study = write_study(tmp_path / "a", "reverse", {"rotary": {0: 80}})
    path = study / "results" / "summary.json"
    rows = json.loads(path.read_text())
    del rows[0]["holds_to"]
    path.write_text(json.dumps(rows))
    assert "has a row without 'holds_to'" in board(study, "--output", tmp_path / "out", code=2).err
