"""Tables of the board: tasks by encodings, every task at a glance, every variant of a task."""

from ...data_builders.expectations import Expectation, Paper
from ...data_builders.registry import find_task
from ...records.rows import Row, Rows, values_of
from ..board_rows import OWN_RECIPE, column_of, holds_throughout, ratio
from ..findings.board import judge
from ..length_rows import cell
from ..wording import percent
from .table import NOTHING, Table, by_hand, make_table


NOT_FITTED, NOT_MEASURED, NONE_KNOWN = "not fitted", "", "none known to us"
VERDICTS = {True: "yes", False: "no", None: "not stated"}


def tasks_by_encodings(rows: Rows) -> Table:
    """The farthest length as a multiple of the training length; where nothing was measured, nothing stands."""
    columns = columns_of(rows)
    lines = []
    for task, own in by_task(rows).items():
        best = {column: farthest_of([row for row in own if column_of(row) == column]) for column in columns}
        texts = {column: NOT_MEASURED if row is None else times(row) for column, row in best.items()}
        lines.append({"task": task, "trained to": trained_to(own), **texts})
    note = (
        "The farthest length at which every class of problems is right in 99 % or more on every seed, as a multiple "
        "of the longest training length; ≥: at every length that was tested. 1 x: nothing beyond training. "
        f"`{NOT_FITTED}`: below 99 % at the training lengths on some seed. An empty cell was not measured, which says "
        f"nothing. `{OWN_RECIPE}`: the task's own recipe for long problems, with what it has built in by hand."
    )
    return make_table("Tasks by encodings", lines, note)


def columns_of(rows: Rows) -> list[str]:
    """Encodings that most tasks have first; recipes of one's own are last."""
    names = values_of([{"column": column_of(row)} for row in rows], "column")
    tasks = {name: len({row["task"] for row in rows if column_of(row) == name}) for name in names}
    return sorted(names, key=lambda name: (name == OWN_RECIPE, -tasks[name], name))


def by_task(rows: Rows) -> dict[str, Rows]:
    found: dict[str, Rows] = {}
    for row in rows:
        found.setdefault(row["task"], []).append(row)
    return found


def farthest_of(rows: Rows) -> Row | None:
    """The row that goes farthest: a variant may have several poolings."""
    return max(rows, key=lambda row: -1 if row["value"] is None else row["value"], default=None)


def times(row: Row) -> str:
    """`≥ 16 x`, `1 x`, `not fitted`."""
    found = ratio(row)
    if not found:
        return NOT_FITTED if found == 0 else NOT_MEASURED
    return f"{'≥ ' if is_open(row) else ''}{found:.3g} x"


def is_open(row: Row) -> bool:
    """Whether it may go farther than anybody has looked."""
    return holds_throughout(row) and row["value"] > row["trained"][1]


def trained_to(rows: Rows) -> str:
    task = find_task(rows[0]["task"])
    longest = ", ".join(f"{length:,}" for length in sorted({row["trained"][1] for row in rows}))
    return f"length {longest}" if task.texts.length == "length" else f"{longest} {task.texts.length}"


def at_a_glance(rows: Rows) -> Table:
    """A line for every task: the best with and without aids, theory, the best that was published, the verdict."""
    lines = []
    for name, own in by_task(rows).items():
        task = find_task(name)
        expectation = task.expectation or Expectation(())
        plain = [row for row in own if not row["built_in"]]
        aided = [row for row in own if row["built_in"]]
        lines.append(
            {
                "task": name,
                "trained to": trained_to(own),
                "best, nothing built in": best(plain),
                "best, with aids": best(aided),
                **{
                    prediction.formalism.name: VERDICTS[prediction.expressible]
                    for prediction in expectation.predictions
                },
                "strongest published": published(expectation, task.texts.length),
                "prediction": judge(task, own).word,
            }
        )
    note = (
        "RASP-L and C-RASP: whether one program solves the task at all lengths, as the papers have it; the reasons "
        "are with each task below. Published figures are of other models, data and budgets."
    )
    return make_table("At a glance", lines, note)


def best(rows: Rows) -> str:
    row = farthest_of([row for row in rows if row["value"] is not None])
    if row is None:
        return NOTHING
    return NOT_FITTED if not row["value"] else f"{length_text(row)} ({cell(row)})"


def length_text(row: Row) -> str:
    return f"{'≥ ' if is_open(row) else ''}{row['value']:,}"


def published(expectation: Expectation, unit: str) -> str:
    found = expectation.published
    if found is None:
        return NONE_KNOWN
    return f"{found.trained:,} to {found.reached:,} {unit}, {found.accuracy}: {found.how} ({link(found.paper)})"


def link(paper: Paper) -> str:
    return f"[{paper.name}]({paper.address})"


def variants_of_task(rows: Rows) -> Table:
    """Every variant of one task: what it was given, how far it goes, how it fails, what it costs."""
    task = find_task(rows[0]["task"])
    lines = [
        {
            "variant": cell(row),
            **by_hand(row["built_in"]),
            "seeds": str(row["n"]),
            "training lengths, worst seed": share(row),
            f"holds to, {task.texts.length}": holds_to(row),
            "times": times(row) or NOTHING,
            "by seed": ", ".join(seed_text(length) for length in row["holds_to"].values()),
            "then": failure(row),
            "seconds of one core, by seed": ", ".join(f"{seconds:,.0f}" for seconds in row["seconds"].values()),
        }
        for row in rows
    ]
    kinds = list(dict.fromkeys(kind for row in rows for kind in row["kinds"]))
    fewest = min(row["examples"] for row in rows)
    doubt = f", of which all may be right at an error rate of {percent(3 / fewest, 1)}" if fewest else ""
    note = (
        f"Classes: {', '.join(kinds)}; all of them count. n for every class, length and seed beyond training: at "
        f"least {fewest:,}{doubt}. Then: the next length that was tested, and the lowest share right of any class "
        "there, on the seed that fails first."
    )
    return make_table(name_of(task.name), lines, note)


def name_of(task: str) -> str:
    return find_task(task).texts.short_title


def share(row: Row) -> str:
    values = row["in_distribution_by_seed"].values()
    return NOTHING if None in values else percent(min(values), 1)


def holds_to(row: Row) -> str:
    if row["value"] is None:
        return "not measured"
    return length_text(row) if row["value"] else NOT_FITTED


def seed_text(length: int | None) -> str:
    return NOTHING if length is None else f"{length:,}"


def failure(row: Row) -> str:
    """`at 32: 4.5 %`; what fits no training lengths says nothing about longer ones."""
    failed = [(length, row["fails_with"][seed]) for seed, length in row["fails_at"].items() if length is not None]
    if not row["value"] or not failed:
        return NOTHING
    length, value = min(failed)
    return f"at {length:,}: {percent(value, 1)}"
