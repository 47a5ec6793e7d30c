"""Tables of how a study was made: its commands, runs, versions and machines."""

from ..study import Study
from .table import NOTHING, Table, make_table


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
    machines: dict[tuple, list[str]] = {}
    for run in study.runs:
        facts = {**run.provenance.get("versions", {}), **run.provenance.get("hardware", {})}
        if facts:
            key = tuple(sorted((name, str(value)) for name, value in facts.items()))
            machines.setdefault(key, []).append(run.name)
    for key, names in machines.items():
        which = "Versions and hardware" if len(machines) == 1 else f"Versions and hardware of {', '.join(names)}"
        tables.append(make_table(which, [{"what": name, "value": value} for name, value in key]))
    return tables
