"""How far each combination of encoding and pooling goes, for tasks with one label, in sentences.

Each function: rows of one analysis and their file -> findings. They tell of the hardest class, which has no shortcut.
"""

from ...records.rows import Rows, select
from ..length_rows import MOST, cell, hardest_kind, learned_at, longest_tested, task_of_rows
from ..wording import Finding, counted, listed, share
from .mathematics import mathematics_holds


def kind_of(rows: Rows) -> str:
    """`swap negatives`"""
    return f"{rows[0]['kind']} {task_of_rows(rows).texts.kind_noun}"


def learned_in_distribution(rows: Rows, source: str) -> list[Finding]:
    rows = hardest_kind(rows)
    if not rows:
        return []
    measured = [row for row in rows if row["in_distribution"] is not None]
    always = [row for row in measured if row["learned"] == len(row["seeds"])]
    never = [row for row in measured if row["learned"] == 0]
    text = (
        f"Before it can go far, a model must learn at all: on {kind_of(rows)}, {len(always)} of "
        f"{len(rows)} combinations of encoding and pooling reach {learned_at(task_of_rows(rows))} at the "
        "training lengths in every seed"
    )
    if always:
        text += f" ({listed([cell(row) for row in always], MOST)})"
    if never:
        text += f", {len(never)} in none ({listed([cell(row) for row in never], MOST)})"
    if len(measured) < len(rows):
        text += f", {len(rows) - len(measured)} not measured there"
    return [Finding(f"{len(always)} of {len(rows)}", f"{text}.", source)]


def goes_all_the_way(rows: Rows, source: str) -> list[Finding]:
    """Combinations at 99 % or more at every tested length, in every seed."""
    rows = hardest_kind(rows)
    longest = longest_tested(rows)
    whole = [row for row in rows if row["seeds"] and all(row["holds_to"][str(s)] == longest for s in row["seeds"])]
    if not whole or longest == 0:
        return []
    each = []
    for row in whole:
        seeds = f"{len(row['seeds'])} of {counted(len(row['seeds']), 'seed')}"
        by_hand = f", built in by hand: {listed(row['built_in'])}" if row["built_in"] else ""
        each.append(f"{cell(row)}, {seeds}, with {share(row['accuracy'][str(longest)])} at {longest:,}{by_hand}")
    text = (
        f"On {kind_of(rows)} {len(whole)} of {counted(len(rows), 'combination')} "
        f"{'stays' if len(whole) == 1 else 'stay'} at 99 % or more at every tested length up to {longest:,}: "
        f"{'; '.join(each)}. The larger class is half of the data."
    )
    return [Finding(f"{longest:,}", text, source)]


def goes_farthest(rows: Rows, source: str) -> list[Finding]:
    """Where none goes all the way: the one that holds longest, by its worst seed."""
    rows = hardest_kind(rows)
    longest = longest_tested(rows)
    known = [row for row in rows if row["holds_to"] and None not in row["holds_to"].values()]
    reach = {cell(row): min(row["holds_to"].values()) for row in known}
    if not reach or max(reach.values()) == longest:
        return []
    farthest = max(reach.values())
    names = [name for name, length in reach.items() if length == farthest]
    if farthest == 0:
        best = max(
            (row for row in known if str(longest) in row["accuracy"]),
            key=lambda row: row["accuracy"][str(longest)]["value"],
            default=None,
        )
        text = f"On {kind_of(rows)} no combination is at 99 % even at the training lengths in every seed"
        if best is not None:
            text += f"; the best at length {longest:,} is {cell(best)} with {share(best['accuracy'][str(longest)])}"
        return [Finding("none", f"{text}.", source)]
    text = (
        f"On {kind_of(rows)} no combination stays at 99 % up to length {longest:,}; in its worst seed "
        f"{listed(names)} holds up to {farthest:,}."
    )
    return [Finding(f"{farthest:,}", text, source)]


def one_class_failures(rows: Rows, source: str) -> list[Finding]:
    failing = [
        row for row in hardest_kind(rows) if any(length is not None for length in row["one_class_from"].values())
    ]
    if not failing:
        return []
    each = []
    for row in failing:
        lengths = [length for length in row["one_class_from"].values() if length is not None]
        each.append(f"{cell(row)} from length {min(lengths)} ({len(lengths)} of {counted(len(row['seeds']), 'seed')})")
    text = (
        f"An accuracy of 50 % is not “half right”: {counted(len(failing), 'combination')} end up calling all "
        f"{task_of_rows(rows).texts.problems} the same: {listed(each, MOST)}."
    )
    return [Finding(f"{len(failing)} of {len(hardest_kind(rows))}", text, source)]


def easy_class_is_a_shortcut(rows: Rows, source: str) -> list[Finding]:
    """Combinations that learn the easiest class but, trained on the same data, not the hardest one."""
    order = task_of_rows(rows).hardest
    if len(order) < 2:
        return []
    hardest, easiest = order[0], order[-1]
    names = list(dict.fromkeys(cell(row) for row in rows))
    hard = {cell(row): row for row in select(rows, kind=hardest)}
    fooled = []
    for row in select(rows, kind=easiest):
        other = hard.get(cell(row))
        if other is None or row["in_distribution"] is None or other["in_distribution"] is None:
            continue
        if row["learned"] == len(row["seeds"]) and other["learned"] == 0:
            figures = f"{share(row['in_distribution'])} on {easiest}, {share(other['in_distribution'])} on {hardest}"
            fooled.append(f"{cell(row)} ({figures})")
    if not fooled:
        return []
    text = (
        f"{easiest.capitalize()} is a shortcut: at the training lengths, {counted(len(fooled), 'combination')} "
        f"learned it but not {hardest}: {listed(fooled, MOST)}."
    )
    return [Finding(f"{len(fooled)} of {len(names)}", text, source)]


LABEL_LENGTH_FINDINGS = {
    "summary": (
        learned_in_distribution,
        goes_all_the_way,
        goes_farthest,
        one_class_failures,
        easy_class_is_a_shortcut,
    ),
    "mathematics": (mathematics_holds,),
}
