"""docs/benchmarks.md and its figure from the result files alone.

python benchmarks/table.py
python benchmarks/table.py --results /tmp/bench --output /tmp/bench
"""

import argparse
import ast
import json
from pathlib import Path

import matplotlib


matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import LogLocator, NullFormatter
from run import BENCHMARKS, RESULTS

from headcount.records.files import write_by, write_text


DOCS = Path(__file__).parent.parent / "docs"
HEAD = """# Speed, side by side

Made by `make bench` from `benchmarks/results/*.json`, which keep the raw numbers; do not edit by hand. All ways to do
a work take turns, and a ratio is taken within a round: *2.00x* says that this way took twice as long as the one it is
compared with, which is headcount's (1.00x); the range is over the rounds. Warm-up is not counted. float32 everywhere,
the same tokens, batches, sizes and threads. **Below 1x the other way is faster.** Where nothing else is said, a table
is of one process.
"""


# What we set out for: (start of the work's name, part of the way's name, least ratio or share). Every row that fits
# counts, and the lowest decides.
GOALS = [
    ("training step, addition, batch 64", "raw loop", 1.5),
    ("training step, addition, batch 512", "raw loop", 1.3),
    ("training step", "Seq2SeqTrainer", 2.0),
    ("FLOP/s, batch 512", "training step", 0.5),
    ("time to 99.9 %", "best of", 2.0),
    ("greedy generation", "BART", 1.0),
    ("is the greedy answer right? batch 1", "BART generate()", 6.0),
    ("is the greedy answer right? batch 64", "BART generate()", 3.0),
    ("is the greedy answer right? batch 2000", "BART generate()", 1.3),
    ("ablation", "teacher-forced", 2.5),
    ("ablation", "generate()", 5.0),
    ("classifier forward", "torch.nn", 1.2),
    ("classifier forward", "BERT", 1.2),
    ("classifier training", "torch.nn", 1.2),
    ("classifier training", "BERT", 1.2),
    ("data", "the same columns", 50.0),
    ("data", "texts and numbers", 50.0),
    ("data", "reasoning-gym", 50.0),
    ("cold start: import", "BART", 0.95),  # both wait for torch and transformers
    ("cold start: load and first answer", "BART", 0.95),
]


PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm")
NO_PEERS = ("cold start: command line",)  # imports, to compare with; they do not do the same work


def load(folder: Path) -> dict[str, dict]:
    """Benchmark -> its result file; those that have not been measured are left out."""
    found = {name: folder / f"{name}.json" for name in BENCHMARKS}
    return {name: json.loads(path.read_text()) for name, path in found.items() if path.exists()}


def duration(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def line(row: dict) -> str:
    if "absent" in row:
        return f"| {row['work']} | {row['way']} | - | not measured: {row['absent']} | |"
    if "ratio" in row:
        low, high = row["ratio_range"]
        both = [*row.get("reached", []), *row.get("ours_reached", [])]
        reached = "" if all(both) else ", target not always reached"
        ratio = f"{row['ratio']:.2f}x ({low:.2f} to {high:.2f})"
        if row["way"] == row["compared_with"]:
            ratio = "1.00x"
        elif high < 1:
            ratio = f"**{ratio}**"
        time = f"{duration(row['seconds'])} {row.get('unit', '')}".strip()
        return f"| {row['work']} | {row['way']} | {time} | {ratio}{reached} | {row['rounds']} |"
    note = ""
    if "share_of_matrix_product" in row:
        low, high = row["share_range"]
        note = (
            f"{100 * row['share_of_matrix_product']:.0f} % of a matrix product ({100 * low:.0f} to {100 * high:.0f})"
        )
    elif "exact_match" in row:
        state = "reached" if row["reached"] else "not reached"
        note = f"seed {row['seed']}: {state}, {100 * row['exact_match']:.2f} % after {row['steps']} steps"
    return f"| {row['work']} | {row['way']} | {row['value']:.3g} {row['unit']} | {note} | {row.get('rounds', '')} |"


def about(name: str) -> str:
    """What the module of a benchmark says about itself."""
    return ast.get_docstring(ast.parse(Path(__file__).with_name(f"{name}.py").read_text()))


def short(commit: str | None) -> str:
    """Twelve digits, and whether there were changes beside it."""
    number, dirty, _ = (commit or "unknown").partition("-dirty")
    return number[:12] + dirty


def goal_lines(rows: list[dict]) -> list[str]:
    found = []
    for work, way, least in GOALS:
        # "batch 64" is the start of "batch 640" too, so a name has to end there or go on with a comma or a space.
        fits = [row for row in rows if way in row["way"] and f"{row['work']},".startswith((f"{work},", f"{work} "))]
        values = [row.get("ratio", row.get("share_of_matrix_product")) for row in fits if "absent" not in row]
        if not values:
            found.append(f"| {work} | {way} | {least:g} | not measured | |")
        else:
            low, high, share = min(values), max(values), "share_of_matrix_product" in fits[0]
            show = (lambda value: f"{100 * value:.0f} %") if share else (lambda value: f"{value:.2f}x")
            span = show(low) if len(values) == 1 else f"{show(low)} to {show(high)}"
            state = "reached" if low >= least else "partly" if high >= least else "**missed**"
            found.append(f"| {work} | {way} | {show(least)} | {span} | {state} |")
    return found


def floor(results: dict[str, dict]) -> list[str]:
    """Why a training step cannot be much quicker than that of others: what is the same work for everybody."""
    rows = [row for row in results.get("limits", {"rows": []})["rows"] if row["work"].endswith("batch 64, AdamW")]
    share = sum(row["value"] for row in rows if row["way"] in PRODUCTS)
    if not share:
        return []
    return [
        f"Matrix products, for which every library calls the same kernels, are {share:.0f} % of the operators' time "
        f"in our training step at batch 64: if all the rest cost nothing, it would take {share / 100:.2f} as long.\n"
    ]


def text(results: dict[str, dict], peers: dict) -> str:
    parts = [HEAD, "![Ratios of all peers](figures/benchmarks.png)\n"]
    missing = [name for name in BENCHMARKS if name not in results]
    if missing:
        parts.append(f"Not measured in this run: {', '.join(missing)}.\n")
    for peer, state in peers.items():
        if state["problem"]:
            parts.append(f"{peer} is not in the tables: {state['problem']}\n")
    lines = goal_lines([row for result in results.values() for row in result["rows"]])
    if lines:
        parts.append("## What we set out for, and what came out\n")
        parts.append("\n".join(["| work | against | goal | measured | |", "|---|---|---|---|---|", *lines]) + "\n")
    parts += floor(results)
    for name, result in results.items():
        machine = result["machine"]
        versions = ", ".join(f"{package} {number}" for package, number in machine["versions"].items() if number)
        parts.append(f"## {name.replace('_', ' ')}\n")
        parts.append(f"{about(name)}\n")
        parts.append("| work | way | time or value | against headcount | rounds |\n|---|---|---|---|---|")
        parts[-1] += "".join(f"\n{line(row)}" for row in result["rows"]) + "\n"
        parts.append(
            f"{machine['processor']}, {machine['threads']} of {machine['cores']} cores, load "
            f"{machine['load_average']:.1f} at the start, {machine['measured_at']}, "
            f"commit {short(machine['commit'])}; {versions}.\n"
        )
    return "\n".join(parts)


def draw(results: dict[str, dict], path: Path) -> None:
    """One dot per peer and work, with the range over the rounds; right of the line headcount is faster."""
    rows = [row for result in results.values() for row in result["rows"] if "ratio" in row]
    rows = [row for row in rows if not row["way"].startswith("headcount") and row["work"] not in NO_PEERS]
    if not rows:
        raise ValueError("the results hold no ratio to draw; expected at least one benchmark with a peer.")
    figure, axes = plt.subplots(figsize=(9, 1.2 + 0.2 * len(rows)), layout="constrained")
    for place, row in enumerate(reversed(rows)):
        low, high = row["ratio_range"]
        color = "#0072b2" if low > 1 else "#d55e00" if high < 1 else "#666666"
        axes.plot(row["ratio_range"], [place, place], color=color, linewidth=1)
        axes.plot(row["ratio"], place, "o", color=color, markersize=4)
    axes.set_yticks(range(len(rows)), [f"{row['work']}: {row['way']}" for row in reversed(rows)], fontsize=7)
    axes.axvline(1, color="grey", linewidth=0.8)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(lambda value, place: f"{value:g}x")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_ylim(-1, len(rows))
    axes.set_title(
        "Dot: median, line: range over the rounds.\nBlue: headcount is faster in every round, orange: the peer is",
        fontsize=9,
    )
    axes.set_xlabel("time of the peer / time of headcount")
    write_by(path, lambda partial: figure.savefig(partial, dpi=150))
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--output", type=Path, default=DOCS)
    options = parser.parse_args()
    results = load(options.results)
    if not results:
        parser.error(f"{options.results} holds no results; expected files that benchmarks/run.py has written.")
    peers = options.results / "peers.json"
    draw(results, options.output / "figures" / "benchmarks.png")
    write_text(
        options.output / "benchmarks.md", text(results, json.loads(peers.read_text()) if peers.exists() else {})
    )
    print(options.output / "benchmarks.md")


if __name__ == "__main__":
    main()
