"""The rows of a storm, and the table of them in docs/reliability.md."""

import re
from collections import Counter
from pathlib import Path

from headcount import __version__
from headcount.records.files import write_text
from headcount.records.rows import Rows, read_rows, results_path, row, select, values_of

from .cases import Result, Section
from .judge import KINDS


PAGE = Path(__file__).resolve().parents[2] / "docs" / "reliability.md"
MARKS = ("<!-- storm: written by `python tests/storm/run.py --write-docs` -->", "<!-- /storm -->")


def rows_of(results: list[Result], seed: int, seconds: int) -> Rows:
    """Failures of every kind by section, with n trials; then one row for each failure, with what repeats it."""
    rows = []
    for section in dict.fromkeys(result.section for result in results):
        own = [result for result in results if result.section == section]
        n = sum(result.tried.n for result in own)
        counts = Counter(failure.what for result in own for failure in result.tried.failures)
        skipped = next((result.tried.skipped for result in own if result.tried.skipped), None)
        about = {"section": section, "seed": seed, "seconds": seconds, "version": __version__, "skipped": skipped}
        for kind in KINDS:
            rows.append(row("storm", kind, {"value": counts[kind], "n": n}, cases=len(own), **about))
    for result in results:
        for failure in result.tried.failures:
            case = {"section": result.section, "seed": seed, "case": result.number, "kind": failure.what}
            again = f"python tests/storm/run.py --seed {seed} --only {result.section} --case {result.number}"
            case |= {"command": failure.command, "message": failure.message, "again": again}
            rows.append(row("storm", "failure", {"value": 1, "n": 1}, **case))
    return rows


def summary(section: Section, results: list[Result], seconds: float) -> str:
    tried = sum(result.tried.n for result in results)
    failed = sum(not result.tried.is_good for result in results)
    skipped = next((f" ({result.tried.skipped})" for result in results if result.tried.skipped), "")
    return f"{section.name:14} {tried:5} tried, {failed:3} failed, in {seconds:.0f} s: {section.says}{skipped}"


def table(rows: Rows) -> str:
    """Markdown: a line for each section, a column for each kind of failure."""
    lines = ["| | tried | " + " | ".join(KINDS) + " |", "|---|---|" + "---|" * len(KINDS)]
    for section in values_of(rows, "section"):
        own = {kind: select(rows, section=section, metric=kind)[0] for kind in KINDS}
        first = next(iter(own.values()))
        tried = f"skipped: {first['skipped']}" if first["skipped"] else f"{first['n']:,}"
        lines.append(f"| {section} | {tried} | " + " | ".join(str(own[kind]["value"]) for kind in KINDS) + " |")
    about = rows[0]
    lines += [
        "",
        f"Version {about['version']}, seed {about['seed']}, {about['seconds'] / 60:.0f} minutes on two cores.",
    ]
    return "\n".join(lines)


def write_page(output: Path) -> Path:
    text = PAGE.read_text(encoding="utf-8")
    written = table(read_rows(results_path(output, "storm")))
    pattern = re.compile(re.escape(MARKS[0]) + ".*?" + re.escape(MARKS[1]), re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(f"{PAGE} has no place for the table; expected the marks {MARKS[0]} and {MARKS[1]}.")
    return write_text(PAGE, pattern.sub(lambda _: f"{MARKS[0]}\n{written}\n{MARKS[1]}", text))
