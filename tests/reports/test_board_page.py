"""The board's page: what is shipped is what its rows give, and what it says is in them."""

import re
from pathlib import Path

import pytest
from small_board import write_study

from headcount.data_builders.registry import TASKS
from headcount.reports.board_page import board_page, check_page, write_board
from headcount.reports.board_rows import gather


DOCS = Path(__file__).parent.parent.parent / "docs"


def test_the_shipped_page_is_what_the_shipped_rows_give():
    rows = gather([DOCS / "board"])
    assert (DOCS / "board.md").read_text(encoding="utf-8") == board_page(rows, DOCS / "board.md")


def test_a_page_names_commands_theory_and_where_they_disagree(tmp_path):
    adding = write_study(tmp_path / "a", "addition", {"rotary": {0: 20, 1: 20}})
    reverse = write_study(tmp_path / "b", "reverse", {"rotary": {0: 80}})
    page = board_page(gather([adding, reverse]), tmp_path / "board.md")
    assert "They disagree on 1 of 2 tasks: Addition." in page
    assert "- **Addition** disagrees: Predicted not to generalise. rotary goes 2 times as far" in page
    assert "- RASP-L: no ([Zhou et al. 2023](https://arxiv.org/abs/2310.16028));" in page
    assert "headcount extrapolate --task reverse --output study --seeds 0,1  # 61 s" in page
    assert "3 cells, whose training took 91 seconds of one core in all." in page
    lines = [line for line in page.splitlines() if line.startswith("|")]
    assert all(line.endswith("|") for line in lines)
    assert len({line.count("|") for line in lines if "letters" in line and "x |" in line}) == 1


def test_writing_twice_gives_the_same_bytes_from_studies_and_from_rows(tmp_path):
    study = write_study(tmp_path / "a", "reverse", {"rotary": {0: 80}, "none": {0: 0}})
    written = write_board(gather([study]), tmp_path / "out" / "board.md")
    before = {path: path.read_bytes() for path in written}
    assert {path.name for path in before} == {"board.md", "board.png", "reverse.json"}
    assert write_board(gather([tmp_path / "out" / "board"]), tmp_path / "out" / "board.md") == written
    assert {path: path.read_bytes() for path in written} == before


def test_other_pages_and_rows_of_other_tasks_are_not_lost(tmp_path):
    reverse = gather([write_study(tmp_path / "a", "reverse", {"rotary": {0: 80}})])
    adding = gather([write_study(tmp_path / "b", "addition", {"rotary": {0: 20}})])
    page = tmp_path / "board.md"
    write_board(reverse, page)
    check_page(reverse + adding, page)
    with pytest.raises(
        ValueError, match=r"has rows of reverse, which this board does not; expected that folder among"
    ):
        check_page(adding, page)
    page.write_text("# My notes\n")
    with pytest.raises(ValueError, match="is no board; expected another name, or --overwrite"):
        check_page(reverse, page)


@pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: task.name)
def test_every_task_says_what_is_predicted_of_it_in_one_sentence_with_its_paper(task):
    assert task.expectation is not None
    papers = [each.source for each in task.expectation.predictions]
    papers += [task.expectation.published.paper] if task.expectation.published else []
    assert all(re.fullmatch(r"https://arxiv\.org/abs/\d{4}\.\d{5}", paper.address) for paper in papers)
    assert [each.formalism.name for each in task.expectation.predictions] == ["RASP-L", "C-RASP"]
    assert not any(each.reason.endswith(".") or "\n" in each.reason for each in task.expectation.predictions)
    if task.expectation.published:
        assert task.expectation.published.reached > task.expectation.published.trained
