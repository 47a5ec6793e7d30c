"""The findings of a study: plain sentences, each from rows that bear it.

Every function takes the rows of what it talks about and gives a list of findings, empty where the rows say
nothing. So a sentence about carry heads cannot appear without a carry head.
"""

from collections.abc import Callable, Mapping

from ...records.rows import Rows
from ..study import Part, Study, task_of
from ..wording import Finding
from .heads import HEAD_FINDINGS
from .label_lengths import LABEL_LENGTH_FINDINGS
from .pruning import PRUNING_FINDINGS
from .runs import run_findings
from .sequence_lengths import SEQUENCE_LENGTH_FINDINGS


Find = Callable[[Rows, str], list[Finding]]


def collect_findings(study: Study) -> dict[str, list[Finding]]:
    """Part -> findings, in the order of the report; parts without any are left out.

    The parts are `runs`, `heads`, `pruning` and, for every study of lengths, what `length_key` says.
    """
    found = {
        "runs": run_findings(study),
        "heads": part_findings(study.heads, HEAD_FINDINGS),
        "pruning": part_findings(study.pruning, PRUNING_FINDINGS),
    }
    for number, part in enumerate(study.lengths):
        by_file = LABEL_LENGTH_FINDINGS if task_of(part).kind == "label" else SEQUENCE_LENGTH_FINDINGS
        found[length_key(study, number)] = part_findings(part, by_file)
    return {part: findings for part, findings in found.items() if findings}


def part_findings(part: Part, by_file: Mapping[str, tuple[Find, ...]]) -> list[Finding]:
    found = []
    for name, functions in by_file.items():
        rows = part.get(name)
        for find in functions if rows else ():
            found += find(rows, part.source(name))
    return found


def length_key(study: Study, number: int) -> str:
    """`length-addition`; a second study of the same task is `length-addition-2`."""
    task = study.lengths[number].task
    before = sum(part.task == task for part in study.lengths[:number])
    return f"length-{task}" + (f"-{before + 1}" if before else "")
