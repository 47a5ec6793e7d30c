"""How far each encoding goes, in sentences. Each function: rows of one analysis and their file -> findings."""

from .wording import Finding, counted, listed, share


MOST = 6  # combinations that one sentence names; the table has them all
HARDEST = ("swap", "move", "shuffle")  # kinds of negatives, the one without shortcuts first


def hardest_kind(rows: list[dict]) -> list[dict]:
    """The summary rows of the hardest kind that was tested."""
    kinds = {row["kind"] for row in rows}
    kind = next((kind for kind in HARDEST if kind in kinds), None)
    return [row for row in rows if row["kind"] == kind]


def cell(row: dict) -> str:
    return f"{row['variant']} / {row['pooling']}"


def longest_tested(rows: list[dict]) -> int:
    return max((int(length) for row in rows for length in row["accuracy"]), default=0)


def learned_in_distribution(rows: list[dict], source: str) -> list[Finding]:
    rows = hardest_kind(rows)
    if not rows:
        return []
    always = [row for row in rows if row["learned"] == len(row["seeds"])]
    never = [row for row in rows if row["learned"] == 0]
    text = (
        f"Before it can go far, a model must learn at all: on {rows[0]['kind']} negatives, {len(always)} of "
        f"{len(rows)} combinations of encoding and pooling reach 95 % at the training lengths in every seed"
    )
    if always:
        text += f" ({listed([cell(row) for row in always], MOST)})"
    if never:
        text += f", {len(never)} in none ({listed([cell(row) for row in never], MOST)})"
    return [Finding(f"{len(always)} of {len(rows)}", f"{text}.", source)]


def goes_all_the_way(rows: list[dict], source: str) -> list[Finding]:
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
        f"On {rows[0]['kind']} negatives {len(whole)} of {counted(len(rows), 'combination')} "
        f"{'stays' if len(whole) == 1 else 'stay'} at 99 % or more at every tested length up to {longest:,}: "
        f"{'; '.join(each)}. The larger class is half of the data."
    )
    return [Finding(f"{longest:,}", text, source)]


def goes_farthest(rows: list[dict], source: str) -> list[Finding]:
    """Where none goes all the way: the one that holds longest, by its worst seed."""
    rows = hardest_kind(rows)
    longest = longest_tested(rows)
    reach = {cell(row): min(row["holds_to"].values()) for row in rows if row["holds_to"]}
    if not reach or max(reach.values()) == longest:
        return []
    farthest = max(reach.values())
    names = [name for name, length in reach.items() if length == farthest]
    kind = rows[0]["kind"]
    if farthest == 0:
        best = max(
            (row for row in rows if str(longest) in row["accuracy"]),
            key=lambda row: row["accuracy"][str(longest)]["value"],
            default=None,
        )
        text = f"On {kind} negatives no combination is at 99 % even at the training lengths in every seed"
        if best is not None:
            text += f"; the best at length {longest:,} is {cell(best)} with {share(best['accuracy'][str(longest)])}"
        return [Finding("none", f"{text}.", source)]
    text = (
        f"On {kind} negatives no combination stays at 99 % up to length {longest:,}; in its worst seed "
        f"{listed(names)} holds up to {farthest:,}."
    )
    return [Finding(f"{farthest:,}", text, source)]


def one_class_failures(rows: list[dict], source: str) -> list[Finding]:
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
        f"An accuracy of 50 % is not “half right”: {counted(len(failing), 'combination')} end up calling every "
        f"sequence the same: {listed(each, MOST)}."
    )
    return [Finding(f"{len(failing)} of {len(hardest_kind(rows))}", text, source)]


def shuffles_are_a_shortcut(rows: list[dict], source: str) -> list[Finding]:
    """Combinations that learn shuffles but, trained on the same data, not one swap."""
    by_kind = {(cell(row), row["kind"]): row for row in rows}
    fooled = []
    for (name, kind), row in by_kind.items():
        swap = by_kind.get((name, "swap"))
        easy, hard = row["in_distribution"], swap and swap["in_distribution"]
        if kind == "shuffle" and easy and hard and row["learned"] == len(row["seeds"]) and swap["learned"] == 0:
            fooled.append(f"{name} ({share(easy)} on shuffles, {share(hard)} on one swap)")
    if not fooled:
        return []
    text = (
        f"Shuffles are a shortcut: at the training lengths, {counted(len(fooled), 'combination')} learned them but "
        f"not one swap: {listed(fooled, MOST)}."
    )
    return [Finding(f"{len(fooled)} of {len({name for name, _ in by_kind})}", text, source)]


def mathematics_holds(rows: list[dict], source: str) -> list[Finding]:
    wrong = [row for row in rows if not row["as_expected"]]
    if wrong:
        each = listed([f"{row['statement']} ({row['subject']}: {row['value']:.3g})" for row in wrong])
        text = f"{len(wrong)} of {len(rows)} checks of the mathematics came out against expectation: {each}."
        return [Finding(f"{len(wrong)} of {len(rows)}", text, source)]
    text = (
        f"All {len(rows)} checks of the mathematics of position encodings came out as expected, "
        f"{sum(not row['expected'] for row in rows)} of them statements that were expected to fail and do."
    )
    return [Finding(f"{len(rows)} of {len(rows)}", text, source)]


LENGTH_FINDINGS = {
    "summary": (
        learned_in_distribution,
        goes_all_the_way,
        goes_farthest,
        one_class_failures,
        shuffles_are_a_shortcut,
    ),
    "mathematics": (mathematics_holds,),
}
