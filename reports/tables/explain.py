"""A causal account as text for standard output."""

from ...records.rows import Rows, only, select, values_of
from ..wording import percent
from .table import Table, in_points, make_table, with_interval


MODES = ("zero", "mean", "resample")


def explain_tables(rows: Rows) -> list[Table]:
    """The circuit, the variables, the readout, and how good shortcuts are; what was not measured has no table."""
    found = [circuit_table(rows), variable_table(rows), place_table(rows), readout_table(rows), shortcut_table(rows)]
    found.append(group_table(rows))
    return [table for table in found if table.rows]


def by_run(rows: Rows) -> list[tuple[dict[str, str], Rows]]:
    """The rows of each run, with the cell that names it; of one run alone, all rows and no such cell."""
    runs = values_of(rows, "run")
    return [({"run": run}, select(rows, run=run)) for run in runs] or [({}, rows)]


def circuit_table(rows: Rows) -> Table:
    lines = [line for run, own in by_run(select(rows, study="circuit")) for line in _circuit_lines(run, own)]
    return make_table("Circuit", lines, "on examples that it was not searched on")


def _circuit_lines(run: dict[str, str], rows: Rows) -> list[dict[str, str]]:
    lines = []
    for level in ("nodes", "edges"):
        for mode in MODES:
            own = select(rows, level=level, mode=mode)
            reached = next((r for r in select(own, metric="faithfulness") if r["by"] != "loss"), None)
            if reached is None:
                continue
            rest = only(own, metric="complement")
            line = {**run, "circuit": f"{reached['size']} of {reached['of']} {level}", "everything else": mode}
            line["faithfulness"] = _figure(reached)
            if "random_mean" in reached:
                line["random ones"] = percent(reached["random_mean"]["value"], 1)
            if rest is not None:
                line["right without it"] = _figure(rest)
            costs = [r["value"] for r in select(own, metric="removal_cost") if r["value"] is not None]
            if costs:
                line["least that a part costs"] = f"{in_points(min(costs))} points"
            lines.append(line)
    return lines


def _figure(row: dict) -> str:
    return percent(row["value"], 1) if row["interval"] is None else with_interval(row)


def variable_table(rows: Rows) -> Table:
    found = select(rows, study="variables", metric="interchange_accuracy", stage="account", scope={})
    lines = []
    for run, of_run in by_run(select(rows, study="variables")):
        accounts = select(of_run, metric="interchange_accuracy", stage="account")
        for name in values_of(accounts, "variable"):
            own = {row["control"]: row for row in select(accounts, variable=name, scope={})}
            best = own["none"]
            line = {**run, "variable": name, "site": best["site"], "directions": str(best["directions"])}
            line["whole answer as expected"] = with_interval(best)
            possible = only(accounts, variable=name, scope={"counterfactual": "possible"})
            if possible is not None:
                line["of possible ones"] = percent(possible["value"], 1)
            kept = only(of_run, metric="answer_kept", variable=name)
            if kept is not None:
                line["stays where it is equal"] = percent(kept["value"], 1)
            for control in ("wrong place", "random directions", "untrained model", "whole site"):
                if control in own:
                    line[control] = percent(own[control]["value"], 1)
            lines.append(line)
    n = f"random pairs of test problems, n = {found[0]['n']:,}" if found else ""
    return make_table("Variables", lines, n)


def place_table(rows: Rows) -> Table:
    """The account place by place: a model need not hold a variable in the same layer everywhere."""
    lines = []
    for run, of_run in by_run(select(rows, study="variables", metric="interchange_accuracy", stage="account")):
        own = [row for row in select(of_run, control="none") if _place_of(row) is not None]
        for name in values_of(own, "variable"):
            for row in select(own, variable=name):
                place = f"{_place_of(row)} {row['scope'][_place_of(row)]}"
                line = {**run, "variable": name, "place": place, "site": row["site"]}
                lines.append({**line, "whole answer as expected": with_interval(row), "n": f"{row['n']:,}"})
    return make_table("Variables, place by place", lines)


def _place_of(row: dict) -> str | None:
    """The name of the place that a row of the account is about: the role that its site is at, or one nearby."""
    names = [name for name, value in row["scope"].items() if isinstance(value, int) and "'s " not in name]
    return names[0] if names else None


def readout_table(rows: Rows) -> Table:
    lines = []
    for run, own in by_run(select(rows, study="readout")):
        for row in select(own, metric="answers_predicted"):
            about = {"level": row["level"], "site": row.get("site")}
            other = {each["metric"]: each for each in own if {n: each.get(n) for n in about} == about}
            line = {**run, "taken from the source": row.get("site", f"all {row['level']}")}
            line["answers predicted"] = with_interval(row)
            line["stay right"] = percent(other["answers_by_default"]["value"], 1)
            if "errors_predicted" in other:
                line["wrong answers predicted"] = with_interval(other["errors_predicted"])
                line["wrong ones"] = f"{other['errors_predicted']['n']:,}"
            if "program" in other:
                line["entries"] = f"{other['program']['value']:.0f}"
            lines.append(line)
    return make_table(
        "Readout: a program predicts the answers", lines, "whole answers to problems it was not fitted on"
    )


def shortcut_table(rows: Rows) -> Table:
    lines = [line for run, own in by_run(select(rows, study="shortcuts")) for line in _shortcut_lines(run, own)]
    return make_table("Shortcuts: estimates against exact changes", lines)


def _shortcut_lines(run: dict[str, str], found: Rows) -> list[dict[str, str]]:
    lines = []
    for level in values_of(found, "level"):
        for method in values_of(found, "method"):
            own = {row["metric"]: row for row in select(found, level=level, method=method)}
            if not own:
                continue
            line = {**run, "estimate": method, "of": level}
            for metric, title in (
                ("correlation", "correlation"),
                ("rank_correlation", "of ranks"),
                ("sign_agreement", "same sign"),
                ("top_found", "top quarter found"),
            ):
                if metric in own and own[metric]["value"] is not None:
                    line[title] = f"{own[metric]['value']:.2f}".replace("-", "−")
            lines.append(line)
    return lines


def group_table(rows: Rows) -> Table:
    found = select(rows, study="seed_groups", metric="group")
    lines = [{"run": row["run"], "group": str(int(row["value"]))} for row in found]
    return make_table("Runs that hold their variables in the same places", lines)


def method_table(rows: Rows) -> Table:
    """Methods of discovery on models whose circuits are known: means over constructions."""
    found = select(rows, study="constructions")
    lines = []
    for mode, method in dict.fromkeys((row["mode"], row["method"]) for row in found):
        own = select(found, mode=mode, method=method)
        line = {"everything else": mode, "method": method}
        for metric in ("node_precision", "node_recall", "node_f1", "edge_precision", "edge_recall", "edge_f1"):
            values = [r["value"] for r in select(own, metric=metric) if r["value"] is not None]
            if values:
                line[metric.replace("_", " ")] = f"{sum(values) / len(values):.3f}"
        whole = [r["value"] == 1 for r in select(own, metric="node_f1")]
        line["nodes exactly right"] = f"{sum(whole)} of {len(whole)}"
        lines.append(line)
    count = len(values_of(found, "construction"))
    return make_table("Methods on models whose circuits are known", lines, f"means over {count} constructions")


def as_text(table: Table) -> str:
    """Columns side by side, for a terminal."""
    widths = [max(len(line[place]) for line in (table.columns, *table.rows)) for place in range(len(table.columns))]

    def written(line: list[str]) -> str:
        cells = (
            f"{cell:>{width}}" if place in table.numeric else f"{cell:{width}}"
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        return "  ".join(cells).rstrip()

    note = [f"({table.note})"] if table.note else []
    return "\n".join([table.title, *(written(line) for line in (table.columns, *table.rows)), *note])
