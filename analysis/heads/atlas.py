"""What every head is for one variable of the task, put together from the rows of the other analyses.

VARIABLE mover    swapping it alone moves the variable, AND answers without it are wrong as if the variable were
VARIABLE and more swapping it alone moves the variable, but answers without it are wrong in other ways, too; or too few
                  of them are wrong to tell
reader            needed, and looks at the tokens with its own index
output order      needed, decoder self-attention, which reads the answer so far, and does not move the variable
not needed alone  costs less than a point under every ablation, as far as the intervals go, and moves nothing by itself
other             needed, but none of these; or the evidence disagrees

Feed-forward sublayers read nothing. Each role is decided for several thresholds: `settings`
says how many were tried and `agreeing` for how many of them the role is the same, so that nothing hangs on one number.
"""

from dataclasses import dataclass
from itertools import product
from typing import Any

from ...data_builders.tasks import Task
from ...records.rows import Row, Rows, row, select
from ..interventions.sites import Site


NOT_NEEDED = "not needed alone"
FEWEST_ERRORS = 20  # of which a signature can be read


@dataclass(frozen=True)
class Thresholds:
    """`moved`: share of pairs, `typical`: of wrong labels, `harm`: drop; each at the near end of its interval."""

    moved: float = 0.05
    typical: float = 0.9
    harm: float = 0.01
    aligned: float = 0.4  # weight on something to look at it, and twice what a uniform head gives it


CHOSEN = Thresholds()
TRIED = {
    "moved": (0.02, 0.05, 0.1),
    "typical": (0.8, 0.9, 0.95),
    "harm": (0.005, 0.01, 0.02),
    "aligned": (0.3, 0.4, 0.5),
}
VARIED = tuple(Thresholds(**dict(zip(TRIED, values, strict=True))) for values in product(*TRIED.values()))


@dataclass(frozen=True)
class Evidence:
    """What is known of one site; None where it was not measured."""

    site: Site
    moved: Row
    errors: Row | None
    drops: Rows  # one for each mode
    looks: dict[str, Row]  # relation -> weight on its keys
    aligning: str | None  # the relation of keys with the query's own index

    def role(self, variable: str, at: Thresholds) -> str:
        moves = self.moved["interval"][0] > at.moved
        errors = self.errors
        typical = errors is not None and errors["n"] >= FEWEST_ERRORS and errors["interval"][0] > at.typical
        needed = any(drop["interval"][0] > at.harm for drop in self.drops)
        looks = self.looks.get(self.aligning or "")
        aligned = looks is not None and looks["value"] > max(at.aligned, 2 * looks["uniform"])
        if moves:
            return f"{variable} mover" if typical else f"{variable} and more"
        if needed and aligned:
            return "reader"
        if needed and (self.site.stack, self.site.kind) == ("decoder", "self"):
            return "output order"
        if self.drops and all(drop["interval"][1] < at.harm for drop in self.drops):
            return NOT_NEEDED
        return "other"


def atlas_rows(
    task: Task, variable: str, ablation: Rows, interchange: Rows, signature: Rows, specialization: Rows
) -> Rows:
    """One row per head and feed-forward sublayer, with the evidence."""
    relations = {name: relation for name, relation in task.relations.items() if relation.offset is not None}
    aligning = next((name for name, relation in relations.items() if relation.offset == 0), None)
    moved = select(interchange, scope={}, metric=f"{variable}_moved", pairs="minimal", size=1)
    drops = select(ablation, scope={}, metric=f"{task.measure['metric']}_drop")
    rows = []
    for each in moved:
        site = Site(each["site"])
        if site.kind == "residual":
            continue
        found = Evidence(
            site=site,
            moved=each,
            errors=next(iter(select(signature, scope={}, metric=f"{variable}_errors", site=site)), None),
            drops=[drop for drop in drops if site in (drop.get("head"), drop.get("site"))],
            looks={own["metric"]: own for own in select(specialization, head=site) if own["metric"] in relations},
            aligning=aligning,
        )
        rows.append(_row(found, variable, list(relations)))
    return rows


def _row(found: Evidence, variable: str, relations: list[str]) -> Row:
    role = found.role(variable, CHOSEN)
    errors = found.errors if found.errors is not None and found.errors["value"] is not None else None
    return row(
        "atlas",
        "role",
        {"n": found.moved["n"]},
        variable=variable,
        site=found.site,
        role=role,
        settings=len(VARIED),
        agreeing=sum(found.role(variable, at) == role for at in VARIED),
        moved=_figure(found.moved),
        errors=_figure(errors),
        drops={drop["mode"]: _figure(drop) for drop in found.drops},
        weights_on={name: _figure(own) for name in relations if (own := found.looks.get(name)) is not None},
    )


def _figure(found: Row | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {name: found[name] for name in ("value", "n", "interval", "uniform") if name in found}
