"""The findings of a study: plain sentences, each from rows that bear it.

Every function takes the rows of what it talks about and gives a list of findings, empty where the rows say
nothing. So a sentence about what moves the carry cannot appear without swaps that were made.
"""

from collections.abc import Callable, Mapping

from ...records.rows import Rows
from ..study import Part, Study, task_of
from ..wording import Finding
from .heads import ALONE_FINDINGS, OTHER_FINDINGS
from .label_lengths import LABEL_LENGTH_FINDINGS
from .pruning import PRUNING_FINDINGS
from .runs import run_findings
from .sequence_lengths import SEQUENCE_LENGTH_FINDINGS
from .sets import SELECTION_FINDINGS, TOGETHER, roles_by_seed
from .variables import ATLAS_FINDINGS, SWAP_FINDINGS


Find = Callable[[Rows, str], list[Finding]]


def collect_findings(study: Study) -> dict[str, list[Finding]]:
    """Part -> findings, in the order of the report; parts without any are left out.

    The parts are `runs`, `heads`, `pruning` and, for every study of lengths, what `length_key` says.
    """
    found = {
        "runs": run_findings(study),
        "heads": head_findings(study),
        "pruning": part_findings(study.pruning, PRUNING_FINDINGS),
    }
    for number, part in enumerate(study.lengths):
        by_file = LABEL_LENGTH_FINDINGS if task_of(part).kind == "label" else SEQUENCE_LENGTH_FINDINGS
        found[length_key(study, number)] = part_findings(part, by_file)
    return {part: findings for part, findings in found.items() if findings}


def head_findings(study: Study) -> list[Finding]:
    """Heads alone, sets together, what brings variables, how many are needed, every seed, and the rest."""
    heads = study.heads
    return [
        *part_findings(heads, ALONE_FINDINGS),
        *(finding for find in TOGETHER for finding in find(heads)),
        *part_findings(heads, {**SWAP_FINDINGS, **ATLAS_FINDINGS, **SELECTION_FINDINGS}),
        *roles_by_seed(study.heads_by_run),
        *part_findings(heads, OTHER_FINDINGS),
    ]


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
