"""What sets of sites do, seed by seed, as Markdown: reads the folders that `headcount heads` has written.

python examples/tables_of_seeds.py runs/addition-0 runs/addition-1 runs/addition-2
"""

import sys
from pathlib import Path

from headcount.records.rows import only, read_rows, select, values_of


def percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


def table(title: str, columns: list[str], lines: dict[str, list[str]]) -> str:
    head = [f"**{title}**", "", f"| | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
    return "\n".join([*head, *(f"| {name} | {' | '.join(cells)} |" for name, cells in lines.items()), ""])


def main(folders: list[Path]) -> None:
    names = ("interchange", "sets", "signature", "selection", "atlas")
    runs = {f.name: {name: read_rows(f / "results" / f"{name}.json") for name in names} for f in folders}
    seeds = list(runs)

    def swapped(metric: str, pairs: str) -> dict[str, list[str]]:
        found = [select(own["interchange"], scope={}, metric=metric, pairs=pairs) for own in runs.values()]
        sets = [site for site in values_of(found[0], "site") if "*" in site or "@" in site or site.endswith("mlp")]
        best = [
            max((row["value"] for row in rows if row["size"] == 1 and "@" not in row["site"]), default=None)
            for rows in found
        ]
        lines = {"best single site": [percent(value) for value in best]}
        for site in ["none", *sets]:
            cells = [only(rows, site=site) for rows in found]
            lines[f"`{site}`"] = [percent(row and row["value"]) for row in cells]
        return lines

    print(table("minimal pairs: the carry moves and the own digit stays, %", seeds, swapped("carry_flip", "minimal")))
    print(table("minimal pairs: the left digit moves, %", seeds, swapped("carry_moved", "minimal")))
    print(table("minimal pairs: logits recovered, %", seeds, swapped("carry_recovered", "minimal")))
    print(table("ripple pairs: the carry moves and the own digit stays, %", seeds, swapped("carry_flip", "ripple")))
    print(table("random pairs: the whole expected answer, %", seeds, swapped("whole_answer_flip", "random")))
    print(
        table(
            "control pairs: the left digit changes though no carry does, %",
            seeds,
            swapped("carry_false_flip", "control"),
        )
    )
    print(table("control pairs: the own digit becomes the source's, %", seeds, swapped("own_place_moved", "control")))

    lines = {}
    for site in values_of(next(iter(runs.values()))["sets"], "site"):
        cells = []
        for own in runs.values():
            rows = [only(own["sets"], site=site, mode=mode) for mode in ("zero", "mean", "resample")]
            cells.append(" / ".join(percent(row and row["ablated"]["value"]) for row in rows))
        lines[f"`{site}`"] = cells
    print(table("removed together: share still right, zero / mean / resample, %", seeds, lines))

    lines = {}
    for seed, own in runs.items():
        rows = [row for row in select(own["signature"], metric="carry_errors", size=1) if row["n"] >= 20]
        rows.sort(key=lambda row: -row["value"])
        lines[seed] = ["; ".join(f"{row['site']} {percent(row['value'])} ({row['n']})" for row in rows)]
    print(table("errors off by one, % (wrong digits), sites with 20 or more", ["sites"], lines))

    lines = {}
    for searched in values_of(next(iter(runs.values()))["selection"], "searched"):
        for method in values_of(select(next(iter(runs.values()))["selection"], searched=searched), "method"):
            for level in (0.95, 0.99):
                cells = []
                for own in runs.values():
                    rows = select(own["selection"], searched=searched, method=method)
                    enough = [row for row in rows if row["on_chosen_half"]["value"] >= level]
                    least = min(enough, key=lambda row: row["size"], default=None)
                    chance = None if least is None else percent(least["random_mean"]["value"])
                    cells.append("-" if least is None else f"{least['size']} ({percent(least['value'])}; {chance})")
                lines[f"{searched}, {method}, {100 * level:.0f} %"] = cells
    print(table("smallest set: sites (held out; random sets of that size)", seeds, lines))

    roles = {}
    for seed, own in runs.items():
        found: dict[str, list[str]] = {}
        for row in own["atlas"]:
            found.setdefault(row["role"], []).append(f"{row['site']} ({row['agreeing']}/{row['settings']})")
        roles[seed] = ["; ".join(f"{role}: {', '.join(sites)}" for role, sites in found.items())]
    print(table("roles (thresholds that agree)", ["sites"], roles))


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])
