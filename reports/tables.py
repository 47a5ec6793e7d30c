"""The tables of a report, as texts: the HTML page and the Markdown page show the same ones."""

from dataclasses import dataclass

from .addition_findings import KIND_TITLES, as_in_summary, training_lengths
from .head_findings import whole_drops
from .length_findings import HARDEST
from .run_findings import whole
from .study_folder import Run, Study
from .wording import counted, interval, percent


NOTHING = "–"


@dataclass(frozen=True)
class Table:
    """`columns` that start with a letter of text are aligned left, those in `numeric` right."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    note: str = ""
    numeric: frozenset[int] = frozenset()


def make_table(title: str, rows: list[dict[str, str]], note: str = "") -> Table:
    """From rows as dicts; a column is numeric if every cell of it starts like a number."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[str(row.get(name, NOTHING)) for name in columns] for row in rows]
    numeric = frozenset(
        place
        for place in range(len(columns))
        if all(row[place] == NOTHING or row[place].lstrip("−<>≥ ")[:1].isdigit() for row in cells)
    )
    return Table(title, columns, cells, note, numeric)


def addition_runs(runs: list[Run]) -> list[Table]:
    rows = []
    for run in runs:
        free, forced, hard = whole(run, "exact_match"), whole(run, "token_accuracy"), whole(run, "exact_match", "hard")
        if free is None:
            continue
        row = {"run": run.name, "seed": str(run.seed), "free-running": percent(free["value"])}
        row |= {"95 % interval": interval(free), "n": f"{free['n']:,}"}
        row["teacher-forced tokens"] = percent(forced["value"]) if forced else NOTHING
        row["hard problems"] = f"{percent(hard['value'])} (n = {hard['n']:,})" if hard else NOTHING
        row |= {"hard, 95 % interval": interval(hard) if hard else NOTHING}
        rows.append({**row, **_training(run), "built in by hand": ", ".join(run.built_in) or "nothing"})
    note = (
        "Free-running: greedy exact match of what the model generates. Teacher-forced: single tokens, with the right "
        "ones before them. The hard split has carry chains of every length in about equal numbers."
    )
    return [make_table("Addition, every seed", rows, note)] if rows else []


def long_addition_runs(runs: list[Run]) -> list[Table]:
    rows = []
    for run in runs:
        tested = [row for row in run.evaluation if "length" in row and row.get("metric") == "exact_match"]
        for kind in dict.fromkeys(row["kind"] for row in tested):
            own = {row["length"]: row for row in tested if row["kind"] == kind}
            row = {"run": run.name, "seed": str(run.seed), "problems": kind}
            row |= {f"{length:,} digits": with_interval(own[length]) for length in sorted(own)}
            row["n each"] = "/".join(f"{n:,}" for n in sorted({part["n"] for part in own.values()}))
            rows.append({**row, "built in by hand": ", ".join(run.built_in) or "nothing"})
    note = "Free-running exact match with its 95 % interval, on numbers longer than any in training."
    return [make_table("Addition beyond the training length, every seed", rows, note)] if rows else []


def wrong_answers(runs: list[Run]) -> list[Table]:
    rows = [
        {"run": run.name, "split": row["split"], "asked": row["input"], "right": row["target"],
         "written": row["generated"]}
        for run in runs
        for row in run.evaluation
        if row.get("metric") == "wrong_answer"
    ]  # fmt: skip
    note = "As noted at evaluation, a few per split; runs with answers written units first show them so."
    return [make_table("Wrong answers", rows, note)] if rows else []


def sortedness_runs(runs: list[Run]) -> list[Table]:
    rows = []
    for run in runs:
        tested = [row for row in run.evaluation if row.get("metric") == "accuracy" and row.get("value") is not None]
        for kind in dict.fromkeys(row["kind"] for row in tested):
            row = {"run": run.name, "seed": str(run.seed), "negatives": kind}
            own = {part["length"]: part for part in tested if part["kind"] == kind}
            for length in sorted({part["length"] for r in runs for part in r.evaluation if "length" in part}):
                cell = with_interval(own[length]) if length in own else NOTHING
                row[f"{length:,}"] = f"{cell} (one class)" if own.get(length, {}).get("one_class_only") else cell
            row["n each"] = "/".join(f"{n:,}" for n in sorted({r["n"] for r in tested if r["kind"] == kind}))
            rows.append({**row, "built in by hand": ", ".join(run.built_in) or "nothing"})
    note = "Accuracy by length with its 95 % interval; the classes are balanced, so 50 % is chance."
    return [make_table("Sortedness, every seed", rows, note)] if rows else []


def _training(run: Run) -> dict[str, str]:
    if not run.training:
        return {}
    last = run.training[-1]
    return {"steps": f"{last['steps']:,}", "seconds": f"{last['seconds']:,.0f}"}


def head_ranking(study: Study) -> list[Table]:
    drops = sorted(whole_drops(study.rows("heads", "ablation")), key=lambda row: -row["value"])
    mean = {row["head"]: row for row in whole_drops(study.rows("heads", "ablation"), "mean")}
    gradient = {row["head"]: row for row in study.rows("heads", "gradient") if "head" in row}
    atlas = {row["head"]: row for row in study.rows("heads", "carry_atlas")}
    rows = []
    for drop in drops:
        low, high = drop["interval"]
        row = {"head": drop["head"], "drop, points": _points(drop["value"])}
        row |= {"95 % interval": f"{_points(low)} to {_points(high)}"}
        row["class"] = drop["class"] if drop["class_is_certain"] else f"{drop['class']}?"
        row["p (Holm)"] = f"{drop['p_holm']:.2g}"
        if mean:
            row["drop, mean"] = _points(mean[drop["head"]]["value"]) if drop["head"] in mean else NOTHING
        if gradient:
            row["gradient"] = f"{gradient[drop['head']]['value']:.3g}" if drop["head"] in gradient else NOTHING
        if drop["head"] in atlas:
            flip = atlas[drop["head"]]["carry_flip"]
            row |= {
                "carry moved": f"{percent(flip['value'], 1)} ({interval(flip)})",
                "role": atlas[drop["head"]]["role"],
            }
        rows.append(row)
    if not rows:
        return []
    note = (
        f"One trained model, zero ablation, free-running, n = {drops[0]['n']:,}; intact "
        f"{percent(drops[0]['intact']['value'])}. A question mark: the interval reaches into another class."
    )
    if mean or gradient:
        note += " The intervals of the mean ablation and of the gradient are in the grid and the rows."
    if atlas:
        note += f" Carry moved: n = {next(iter(atlas.values()))['carry_flip']['n']:,} pairs."
    return [make_table("Heads by what they cost", rows, note)]


def pruned_models(study: Study) -> list[Table]:
    rows = []
    for row in study.rows("pruning", "pruning"):
        if row.get("split") == "test":
            low, high = row["drop"]["interval"]
            rows.append({
                "model": row["model"], "heads removed": str(row["removed"]), "accuracy": percent(row["value"]),
                "95 % interval": interval(row), "n": f"{row['n']:,}", "drop, points": _points(row["drop"]["value"]),
                "drop, 95 % interval": f"{_points(low)} to {_points(high)}", "parameters": f"{row['parameters']:,}",
                "bytes": f"{row['bytes']:,}", "speed": f"{row['relative_speed']:.2f} ×",
            })  # fmt: skip
    note = (
        "Test data, free-running. Speed: forward passes per second over those of the intact model, medians in one run."
    )
    return [make_table("Smaller models", rows, note)] if rows else []


def length_summary(study: Study) -> list[Table]:
    """One table per kind of negatives, the hardest first."""
    summary = study.rows("length", "summary")
    kinds = {row["kind"] for row in summary}
    lengths = sorted({length for row in summary for length in row["accuracy"]}, key=int)
    tables = []
    for kind in [*(k for k in HARDEST if k in kinds), *sorted(kinds - set(HARDEST))]:
        rows = []
        for part in (row for row in summary if row["kind"] == kind):
            row = {"encoding": part["variant"], "pooling": part["pooling"]}
            row["learned"] = f"{part['learned']} of {len(part['seeds'])}"
            trained = part["in_distribution"]
            row["training lengths"] = with_interval(trained) if trained else NOTHING
            row |= cells_by_length(part, lengths)
            row["99 % up to, by seed"] = ", ".join(f"{length:,}" for length in part["holds_to"].values())
            one = [length for length in part["one_class_from"].values() if length is not None]
            row["one class from"] = ", ".join(f"{length:,}" for length in one) or "never"
            row["built in by hand"] = ", ".join(part["built_in"]) or "nothing"
            rows.append(row)
        own = [row for row in summary if row["kind"] == kind]
        note = (
            f"Accuracy on {kind} negatives with its 95 % interval, pooled over "
            f"{counted(max(len(row['seeds']) for row in own), 'seed')}; classes are balanced: 50 % is chance. "
            f"n by length: {sizes(own, lengths)}. Learned: seeds with 95 % at the training lengths."
        )
        tables.append(make_table(f"Accuracy by length: {kind}", rows, note))
    return tables


def addition_summary(study: Study) -> list[Table]:
    """One table per class of problems, in the order in which they were tested."""
    summary = study.rows("adding", "summary")
    lengths = sorted({length for row in summary for length in row["accuracy"]}, key=int)
    tables = []
    for kind in dict.fromkeys(row["kind"] for row in summary):
        own = [row for row in summary if row["kind"] == kind]
        rows = []
        for part in own:
            row = {"variant": part["variant"], "what it changes": part["changes"]}
            row["built in by hand"] = ", ".join(part["built_in"]) or "nothing"
            row["fitted"] = f"{part['fitted']} of {len(part['seeds'])}" + ("" if part["fitted"] else ", never fitted")
            trained = part["in_distribution"]
            row["held out"] = with_interval(trained) if trained else NOTHING
            row |= cells_by_length(part, lengths)
            row["holds to, by seed"] = ", ".join(f"{n:,}" if n else "never fitted" for n in part["holds_to"].values())
            seconds = [NOTHING if s is None else f"{s:,.0f}" for s in part["seconds"].values()]
            row["training seconds, by seed"] = ", ".join(seconds)
            rows.append(row)
        note = (
            f"Exact match, free-running, with its 95 % interval, by digits, pooled over "
            f"{counted(max(len(row['seeds']) for row in own), 'seed')}. A seed with nothing right at one length is "
            f"not measured at longer ones and does not count there; {NOTHING}: no seed was. n by length: "
            f"{sizes(own, lengths)}. Held out: problems {training_lengths(own)}, kept out of training. Fitted: seeds "
            "with 99 % there; one below never fitted, which says nothing about longer numbers. Holds to: the most "
            "digits up to which every length is at 99 % or more."
        )
        title = f"{kind} ({KIND_TITLES[kind]})" if kind in KIND_TITLES else kind
        tables.append(make_table(f"Exact match by digits: {title}", rows, note))
    return tables


def generated_sums(study: Study) -> list[Table]:
    """On how many problems `generate()` and one pass disagree, by variant and digits."""
    generated = as_in_summary(study.rows("adding", "generated"), study.rows("adding", "summary"))
    rows = []
    for variant in dict.fromkeys(row["variant"] for row in generated):
        own = [row for row in generated if row["variant"] == variant]
        row = {"variant": variant, "seeds": str(len({part["seed"] for part in own}))}
        for length in (*sorted({part["length"] for part in generated}), None):
            parts = [part for part in own if length in (None, part["length"])]
            cell = f"{sum(part['disagree'] for part in parts):,} of {sum(part['n'] for part in parts):,}"
            row["all" if length is None else f"{length:,} digits"] = cell if parts else NOTHING
        rows.append(row)
    note = (
        "Problems on which the two disagree, of n that generate() wrote token by token with its cache; all seeds and "
        "classes. Every test problem of shorter numbers, a sample of longer ones; lengths at which nothing was right "
        "are left out."
    )
    return [make_table("generate() against one pass", rows, note)] if rows else []


def mathematics(study: Study) -> list[Table]:
    rows = [
        {
            "statement": row["statement"], "for": row["subject"], "largest residual": f"{row['value']:.2g}",
            "allowed": f"{row['tolerance']:.2g}", "holds": "yes" if row["holds"] else "no",
            "expected": "yes" if row["expected"] else "no",
        }
        for row in study.rows("length", "mathematics")
    ]  # fmt: skip
    return [make_table("The mathematics, checked", rows)] if rows else []


def steps(study: Study) -> list[Table]:
    """The commands of `headcount study`, in the order in which they finished."""
    rows = [
        {"step": name, "seconds": f"{step['seconds']:,.0f}", "command": step["command"]}
        for name, step in study.about.get("steps", {}).items()
    ]
    return [make_table("Steps", rows, "Seconds of each command; several run side by side.")] if rows else []


def made_by(study: Study) -> list[Table]:
    rows = []
    for run in study.runs:
        if run.provenance:
            found = run.provenance
            row = {"run": run.name, "recipe": run.recipe_name, "seed": str(run.seed)}
            row |= {"command": found.get("command", NOTHING), "commit": (found.get("commit") or NOTHING)[:12]}
            row |= {"seconds": f"{found.get('seconds', 0):,.0f}", "finished": found.get("finished_at", NOTHING)}
            rows.append(row)
    tables = [make_table("Runs", rows)] if rows else []
    machines = {}
    for run in study.runs:
        facts = {**run.provenance.get("versions", {}), **run.provenance.get("hardware", {})}
        if facts:
            machines.setdefault(tuple(sorted((name, str(value)) for name, value in facts.items())), []).append(
                run.name
            )
    for facts, names in machines.items():
        which = "Versions and hardware" if len(machines) == 1 else f"Versions and hardware of {', '.join(names)}"
        tables.append(make_table(which, [{"what": name, "value": value} for name, value in facts]))
    return tables


def with_interval(row: dict) -> str:
    """`98.5 % (95.7–99.5)`"""
    low, high = row["interval"]
    return f"{percent(row['value'], 1)} ({100 * low:.1f}–{100 * high:.1f})"


def cells_by_length(part: dict, lengths: list[str]) -> dict[str, str]:
    """What a summary row measured at every length; a length that it was spared is empty."""
    found = part["accuracy"]
    return {f"{int(length):,}": with_interval(found[length]) if length in found else NOTHING for length in lengths}


def sizes(rows: list[dict], lengths: list[str]) -> str:
    """n at every length: `32: 200; 4,096: 20 to 40`."""
    found = []
    for length in lengths:
        counts = sorted({row["accuracy"][length]["n"] for row in rows if length in row["accuracy"]})
        if counts:
            span = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
            found.append(f"{int(length):,}: {span}")
    return "; ".join(found)


def _points(value: float) -> str:
    return f"{100 * value:.2f}".replace("-", "−")
