"""Write report.html and report.md from the results of a study or a run.

headcount report runs/study
headcount report runs/addition
"""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from .as_written import as_written


def main(
    folder: Annotated[Path, typer.Argument(help="Folder of a study, a run, or one of its parts.")],
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a report.html or report.md of another origin.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON for machines.")] = False,
) -> None:
    """Write one page that opens offline, findings first, and the same as Markdown; computes nothing."""
    from headcount.records.locks import alone_in
    from headcount.reports.findings.collect import collect_findings
    from headcount.reports.page.report import write_report
    from headcount.reports.study import read_study

    try:
        with as_written(folder):
            findings = collect_findings(read_study(folder))
            with alone_in(folder / "report.html"):  # not the folder: a study that holds it asks for its report
                written = write_report(folder, overwrite)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    if as_json:
        rows = [
            {"part": part, "figure": finding.figure, "text": finding.text, "source": finding.source}
            for part, own in findings.items()
            for finding in own
        ]
        print(json.dumps(rows, indent=1))
    else:
        print("\n".join(f"- {finding.text}" for own in findings.values() for finding in own))
    for path in written:
        print(f"wrote {path} ({path.stat().st_size / 1e6:.2f} MB)", file=sys.stderr)
