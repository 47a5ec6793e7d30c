"""What every head is for one variable of the task, put together from the rows of the other analyses.

VARIABLE head   interchange moves the variable AND ablation costs more where it is there
aligner         needed, and looks at the tokens with its own index
output order    needed, decoder self-attention, which reads the answer so far, and does not move the variable
redundant       costs less than a point, as far as the interval goes, and does not move the variable
other           needed, but none of these; or the evidence disagrees
"""

from typing import Any

from ...data_builders.tasks import Task
from ...modeling.heads import Head
from ...records.intervals import difference
from ...records.rows import Row, Rows, row, select


FLIPS = 0.05  # a head moves a variable if it flips more than this share of pairs, at the lower end of the interval
HARM = 0.01  # a head is needed if its ablation costs more than this
ALIGNED = 0.4  # a head looks at something if it gives it so much weight, and twice what a uniform head would


def excess(ablation: Rows, fact: str, metric: str) -> dict[str, dict]:
    """Head -> how much more its ablation costs on problems with the fact than on problems without."""
    drops = {
        (each["head"], each["scope"][fact]): each
        for each in select(ablation, metric=metric, mode="zero")
        if fact in each["scope"]
    }
    return {
        head: difference(drops[head, "with"], drops[head, "without"])
        for head, value in drops
        if value == "with" and (head, "without") in drops
    }


def atlas_rows(task: Task, variable: str, ablation: Rows, flips: Rows, specialization: Rows) -> Rows:
    """One row per head, with the evidence; `task.variables[variable]` names the fact that ablation is split by."""
    fact = task.variables[variable].fact
    if fact is None:
        raise ValueError(f"{variable} has no fact with and without it; expected one, to compare what heads cost.")
    metric = f"{task.measure['metric']}_drop"
    drop = {each["head"]: each for each in select(ablation, scope={}, metric=metric, mode="zero")}
    mean_drop = {each["head"]: each for each in select(ablation, scope={}, metric=metric, mode="mean")}
    flip = {each["head"]: each for each in select(flips, scope={}, metric=f"{variable}_flip")}
    more = excess(ablation, fact, metric)
    looks = {(each["head"], each["metric"]): each for each in specialization}
    relations = [name for name, relation in task.relations.items() if relation.offset is not None]
    aligning = next((name for name in relations if task.relations[name].offset == 0), None)
    rows = []
    for head in drop:
        moves, costs_more = flip[head]["interval"][0] > FLIPS, more[head]["interval"][0] > 0
        needed = drop[head]["interval"][0] > HARM
        aligned = looks.get((head, aligning))
        is_aligned = aligned is not None and aligned["value"] > max(ALIGNED, 2 * aligned["uniform"])
        if moves and costs_more:
            role = f"{variable} head"
        elif needed and is_aligned:
            role = "aligner"
        elif needed and (Head(head).stack, Head(head).kind) == ("decoder", "self") and not moves:
            role = "output order"
        elif drop[head]["interval"][1] < HARM and not moves:
            role = "redundant"
        else:
            role = "other"
        evidence: dict[str, Any] = {
            "drop": _figure(drop[head]),
            "mean_drop": _figure(mean_drop.get(head)),
            f"{variable}_flip": _figure(flip[head]),
            f"{variable}_excess": _figure(more[head]),
            **{name: _figure(looks.get((head, name))) for name in relations},
        }
        found = {"n": drop[head]["n"]}
        rows.append(
            row(
                "atlas",
                "role",
                found,
                variable=variable,
                head=head,
                role=role,
                moves=moves,
                costs_more=costs_more,
                **evidence,
            )
        )
    return rows


def _figure(found: Row | None) -> dict | None:
    if found is None:
        return None
    return {name: found[name] for name in ("value", "n", "interval", "uniform") if name in found}
