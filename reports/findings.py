"""The findings of a study: plain sentences, each from rows that bear it.

Every function takes the rows of what it talks about and gives a list of findings, empty where the rows say
nothing. So a sentence about carry heads cannot appear without a carry head.
"""

from .addition_findings import ADDITION_FINDINGS
from .head_findings import HEAD_FINDINGS
from .length_findings import LENGTH_FINDINGS
from .pruning_findings import PRUNING_FINDINGS
from .run_findings import RUN_FINDINGS, runs_by_recipe
from .study_folder import Study
from .wording import Finding


PART_FINDINGS = {
    "heads": HEAD_FINDINGS,
    "pruning": PRUNING_FINDINGS,
    "length": LENGTH_FINDINGS,
    "adding": ADDITION_FINDINGS,
}


def collect_findings(study: Study) -> dict[str, list[Finding]]:
    """Part -> findings, in the order of the report; parts without any are left out."""
    found: dict[str, list[Finding]] = {"runs": []}
    for runs in runs_by_recipe(study.runs).values():
        for find in RUN_FINDINGS.get(runs[0].task, ()):
            found["runs"] += find(runs)
    for part, by_file in PART_FINDINGS.items():
        found[part] = []
        for name, functions in by_file.items():
            rows = study.rows(part, name)
            for find in functions if rows else ():
                found[part] += find(rows, study.source(part, name))
    return {part: findings for part, findings in found.items() if findings}
