"""The board as a page of Markdown, made from its rows alone: tables, one figure, where prediction and rows disagree.

The same rows give the same page. Beside PAGE.md are figures/PAGE.png and the rows, PAGE/TASK.json.
"""

from pathlib import Path

from ..data_builders.registry import find_task
from ..data_builders.tasks import Task
from ..records.files import write_json, write_text
from ..records.rows import Rows
from .figures.board import draw_board
from .figures.drawing import save_figure
from .findings.board import DISAGREES, FAR, judge
from .markdown import block
from .tables.board import (
    VERDICTS,
    at_a_glance,
    by_task,
    link,
    name_of,
    published,
    tasks_by_encodings,
    variants_of_task,
)
from .tables.table import Table
from .wording import counted, listed


TITLE = "# The board: who generalises how far"
INTRODUCTION = """{title}

Every task that was trained short and tested long, over one set of position encodings, beside what theory predicts and
the strongest figure that we know from papers. The page is made from rows ([those shown]({name}/)) by

```
headcount board {sources} --output {page}
```

A figure counts if **every** class of problems is right in 99 % or more on **every** seed, free-running, at that length
and at all tested lengths below. What was built into a model by hand is named beside it. Not measured is not "not
learned": where there are no rows, nothing stands."""


def check_page(rows: Rows, page: Path) -> None:
    """Raises where another page stands, or rows of tasks that this board does not have."""
    if page.exists() and not page.read_text(encoding="utf-8").startswith(TITLE):
        raise ValueError(f"{page} is no board; expected another name, or --overwrite to replace it.")
    strange = sorted({path.stem for path in rows_folder(page).glob("*.json")} - by_task(rows).keys())
    if strange:
        raise ValueError(
            f"{rows_folder(page)} has rows of {listed(strange)}, which this board does not; expected that folder "
            "among those given, or --overwrite to remove them."
        )


def rows_folder(page: Path) -> Path:
    return page.with_suffix("")


def write_board(rows: Rows, page: Path) -> list[Path]:
    """Writes the page, its figure and its rows, of which no others stay; gives back the files."""
    for path in rows_folder(page).glob("*.json"):
        if path.stem not in by_task(rows):
            path.unlink()
    kept = [write_json(rows_folder(page) / f"{task}.json", own) for task, own in by_task(rows).items()]
    figures = save_figure(draw_board(rows), page.parent / "figures", page.stem, kinds=("png",))
    return [write_text(page, board_page(rows, page)), *figures, *kept]


def board_page(rows: Rows, page: Path) -> str:
    """The whole text, which ends with a line's end."""
    parts = [
        introduction(page),
        f"![Tasks by encodings: how many times its training length each goes](figures/{page.stem}.png)",
        as_markdown(tasks_by_encodings(rows)),
        as_markdown(at_a_glance(rows)),
        against_theory(rows),
        "## Every variant",
        *(task_part(find_task(task), own) for task, own in by_task(rows).items()),
        how_it_was_made(rows),
    ]
    return "\n\n".join(parts) + "\n"


def introduction(page: Path) -> str:
    folder = page.absolute().parent.name
    return INTRODUCTION.format(
        title=TITLE, name=page.stem, sources=f"{folder}/{page.stem}", page=f"{folder}/{page.name}"
    )


def as_markdown(table: Table, level: int = 2) -> str:
    """A heading, the table, and its note."""
    lines = [f"{'#' * level} {table.title}", ""]
    lines.append(f"| {' | '.join(table.columns)} |")
    lines.append(f"|{'|'.join('---:' if place in table.numeric else '---' for place in range(len(table.columns)))}|")
    lines += [f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |" for row in table.rows]
    return "\n".join([*lines, "", table.note] if table.note else lines)


def against_theory(rows: Rows) -> str:
    """Where they disagree, first; what agrees, or cannot be compared, after it."""
    verdicts = {task: judge(find_task(task), own) for task, own in by_task(rows).items()}
    order = sorted(verdicts.items(), key=lambda item: item[1].word != DISAGREES)
    lines = [f"- **{name_of(task)}** {verdict.word}: {verdict.text}" for task, verdict in order]
    disagree = [name_of(task) for task, verdict in order if verdict.word == DISAGREES]
    start = (
        f"They disagree on {len(disagree)} of {len(verdicts)} tasks{': ' if disagree else ''}{', '.join(disagree)}."
    )
    rule = (
        f"The rule, computed from rows: a variant generalises if it holds at {FAR} times its longest training length. "
        "Theory speaks of models without aids, so only variants with nothing built in by hand can contradict it (a "
        "causal mask is part of both formalisms): by going that far where no program exists, or, where one does, by "
        "fitting the training lengths and none of them going that far."
    )
    return "\n".join(["## Where prediction and measurement disagree", "", start, "", rule, "", *lines])


def task_part(task: Task, rows: Rows) -> str:
    """What is predicted of a task, what was published, and all of its variants."""
    lines = [as_markdown(variants_of_task(rows), level=3), ""]
    if task.expectation is not None:
        lines += [
            f"- {each.formalism.name}: {VERDICTS[each.expressible]} ({link(each.source)}); {each.reason}."
            for each in task.expectation.predictions
        ]
        lines.append(f"- Strongest published figure: {published(task.expectation, task.texts.length)}.")
    return "\n".join(lines).rstrip()


def how_it_was_made(rows: Rows) -> str:
    """What training cost, and the commands as far as their studies have noted them."""
    commands = list(dict.fromkeys(command for row in rows for command in row["commands"]))
    costs = [seconds for row in rows for seconds in row["seconds"].values()]
    text = [
        "## How the rows were made",
        "",
        f"{counted(len(costs), 'cell')}, whose training took {sum(costs):,.0f} seconds of one core in all.",
    ]
    if commands:
        text += [
            "The commands, with the seconds that each took by the clock, tests included:",
            "",
            block("\n".join(commands)),
        ]
    return "\n".join(text)
