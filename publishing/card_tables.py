"""Rows of results as tables of a model card: every rate with n and its 95 % interval, chance beside it."""

from . import wording


SPLITS = {
    "test": "split `test` (all numbers equally likely)",
    "hard": "split `hard` (equal shares of the groups, as far as problems exist)",
    "exhaustive": "split `exhaustive` (every problem there is, training problems included)",
}


def table(head: list[str], rows: list[list]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def percent(value: float | None, digits: int = 2) -> str:
    """As in the report: a rate just below one is never rounded up to 100 %."""
    if value is None:
        return "-"
    return f"{100 * value:.{digits}f} %" if value in (0, 1) else wording.percent(value, digits)


def interval(row: dict) -> str:
    low, high = row["interval"]
    return f"{100 * low:.2f} - {100 * high:.2f} %"


def of(rows: list[dict], **wanted) -> list[dict]:
    """The rows that have all of these values."""
    return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]


def overall(rows: list[dict], metric: str, split: str) -> dict | None:
    """The row about the whole split, not about a group within it."""
    parts = ("group", "longest_chain", "place", "length", "kind")
    found = [row for row in of(rows, metric=metric, split=split) if not any(part in row for part in parts)]
    return found[0] if found else None


def group_name(group: str) -> str:
    if group == "nines":
        return "all nines, no carry"
    columns = int(group.removeprefix("chain_"))
    return "no carry" if columns == 0 else f"longest carry chain {columns} column{'s' if columns > 1 else ''}"


def addition_tables(rows: list[dict]) -> list[tuple[str, str]]:
    """(caption, table): the whole splits with both ways of counting, then exact match by carry group."""
    splits = list(dict.fromkeys(row["split"] for row in rows))
    lines = []
    for split in splits:
        whole, forced = overall(rows, "exact_match", split), overall(rows, "token_accuracy", split)
        lines.append([f"`{split}`", f"{whole['n']:,}", percent(whole["value"]), interval(whole),
                      percent(forced["value"]), interval(forced), f"{forced['n']:,}"])  # fmt: skip
    head = ["split", "problems", "exact match, free-running", "95 % interval"]
    tables = [("", table([*head, "tokens right, teacher-forced", "95 % interval", "tokens"], lines))]
    for split in splits:
        groups = [row for row in of(rows, metric="exact_match", split=split) if "group" in row]
        lines = [
            [group_name(row["group"]), f"{row['n']:,}", percent(row["value"]), interval(row)]
            for row in sorted(groups, key=lambda row: (row["group"] == "nines", len(row["group"]), row["group"]))
        ]
        caption = f"By carry chain, {SPLITS.get(split, f'`{split}`')}:"
        tables.append((caption, table(["problems", "n", "exact match, free-running", "95 % interval"], lines)))
    return tables


def within_training(rows: list[dict]) -> list[dict]:
    """Without the rows about longer problems, which name their length."""
    return [row for row in rows if "length" not in row]


def long_addition_table(rows: list[dict]) -> str:
    """Exact match at each number of digits beyond training, a column per class of problems."""
    rows = [row for row in rows if "length" in row]
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    lines = []
    for length in sorted({row["length"] for row in rows}):
        own = {row["kind"]: row for row in of(rows, length=length)}
        cells = [f"{percent(own[kind]['value'])} ({interval(own[kind])})" if kind in own else "-" for kind in kinds]
        lines.append([f"{length:,}", f"{max(row['n'] for row in own.values()):,}", *cells])
    return table(["digits", "n each", *(f"`{kind}`" for kind in kinds)], lines)


def digit_table(rows: list[dict], split: str) -> str:
    places = sorted(of(rows, metric="digit_accuracy", split=split), key=lambda row: row["place"])
    names = ("units", "tens", "hundreds", "thousands")
    return table(
        ["digit of the answer", "n", "right, free-running", "95 % interval"],
        [
            [names[row["place"]] if row["place"] < len(names) else f"10^{row['place']}", f"{row['n']:,}",
             percent(row["value"]), interval(row)]
            for row in places
        ],
    )  # fmt: skip


def sortedness_table(rows: list[dict], longest_trained: int) -> str:
    lines = [
        [
            f"{row['length']:,}" + ("" if row["length"] <= longest_trained else " (longer than trained)"),
            row["kind"],
            f"{row['n']:,}",
            percent(row["value"], 1),
            interval(row),
            percent(row["true_positive_rate"], 1),
            percent(row["true_negative_rate"], 1),
            percent(row["majority_class_rate"], 1),
        ]
        for row in sorted(rows, key=lambda row: (row["length"], row["kind"]))
    ]
    head = [
        "length",
        "unsorted rows are",
        "n",
        "accuracy",
        "95 % interval",
        "sorted rows right",
        "unsorted rows right",
    ]
    return table([*head, "one answer for all"], lines)


def seed_table(task: str, runs: list[tuple[int, list[dict]]]) -> str:
    """One line per training seed: the headline figures of every run, each with n and interval."""
    lines = []
    for seed, rows in sorted(runs, key=lambda run: run[0]):
        for row in headline_rows(task, rows):
            where = row.get("kind", row["split"])
            lines.append([seed, row.get("label", where), f"{row['n']:,}", percent(row["value"]), interval(row)])
    return table(["seed", "problems" if task == "addition" else "unsorted rows are", "n", headline_name(task),
                  "95 % interval"], lines)  # fmt: skip


def headline_name(task: str) -> str:
    return "exact match, free-running" if task == "addition" else "accuracy at the worst length"


def headline_rows(task: str, rows: list[dict]) -> list[dict]:
    """Addition: one row per split, and one per longer length. Sortedness: for each kind, the length with the lowest
    accuracy, longest first.
    """
    if task == "addition":
        splits = dict.fromkeys(row["split"] for row in within_training(rows))
        return [overall(rows, "exact_match", split) for split in splits] + worst_by_length(rows)
    worst = []
    for kind in dict.fromkeys(row["kind"] for row in rows):
        row = min(of(rows, kind=kind), key=lambda row: (row["value"], -row["length"]))
        worst.append({**row, "label": f"{kind}, length {row['length']:,}"})
    return worst


def worst_by_length(rows: list[dict]) -> list[dict]:
    """For each number of digits beyond training, the class of problems with the lowest exact match."""
    worst = []
    for length in sorted({row["length"] for row in rows if "length" in row}):
        row = min(of(rows, length=length), key=lambda row: row["value"])
        worst.append({**row, "label": f"{length:,} digits, {row['kind']} (the worst class)"})
    return worst


def whole_head_rows(rows: list[dict]) -> list[dict]:
    """The rows that judge a head as a whole (they name its class), by the first way of switching off that was used."""
    judged = [row for row in rows if "class" in row]
    return [row for row in judged if row.get("mode") == judged[0].get("mode")]


def head_table(rows: list[dict]) -> str:
    """The heads of a model, the one that is missed most first."""
    lines = []
    for row in sorted(rows, key=lambda row: -row["value"]):
        low, high = row["interval"]
        span = f"{100 * low:.2f} to {100 * high:.2f}"
        lines.append([f"`{row['head']}`", f"{100 * row['value']:.2f} points", span, f"{row['n']:,}", row["class"]])
    return table(["head switched off", "lost accuracy", "95 % interval", "n", "class"], lines)


def pruning_table(rows: list[dict]) -> str:
    """The pruned model on test data, beside what it came from and what it is compared with."""
    lines = [
        [row["model"], row["removed"], f"{row['n']:,}", percent(row["value"]), interval(row), f"{row['parameters']:,}",
         f"{row['bytes']:,}", f"{row['relative_speed']:.2f}x"]
        for row in of(rows, split="test")
    ]  # fmt: skip
    head = ["model", "heads removed", "n", "right, free-running", "95 % interval", "parameters", "bytes", "speed"]
    return table(head, lines) if lines else ""
