"""Trains recipes over seeds, one thread each, and prints the table of docs/recipes.md. Finished runs are not repeated.

python benchmarks/recipes.py --output runs/recipes --recipes addition sortedness --seeds 5 --workers 2
python benchmarks/recipes.py --output runs/recipes --table-only
"""

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from headcount.reports.wording import percent
from headcount.trainers.recipe import recipe_names


def run(recipe: str, seed: int, output: Path) -> None:
    folder = output / f"{recipe}-{seed}"
    if (folder / "provenance.json").exists():
        return
    resume = ["--resume"] if (folder / "recipe.yaml").exists() else []
    command = [
        sys.executable,
        "-m",
        "headcount",
        "train",
        recipe,
        "--seed",
        str(seed),
        "--output",
        str(folder),
        *resume,
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    answer = subprocess.run(command, env=environment, capture_output=True, text=True)
    print(f"{folder}: {'done' if answer.returncode == 0 else answer.stderr.strip()}", file=sys.stderr, flush=True)


def summary(folder: Path) -> dict | None:
    """What the table shows of one run: the worst figure over the lengths or groups that count."""
    if not (folder / "provenance.json").exists():
        return None
    rows = [r for r in json.loads((folder / "results" / "evaluation.json").read_text()) if "value" in r]
    training = json.loads((folder / "results" / "training.json").read_text())[0]
    shown = {"seconds": training["seconds"], "examples/s": training["examples_per_second"]}
    if rows[0]["task"] == "addition":
        plain = {
            r["split"]: r["value"]
            for r in rows
            if r["metric"] == "exact_match" and not r.keys() & {"group", "longest_chain"}
        }
        nines = [r["value"] for r in rows if r.get("group") in ("nines", "chain_3") and r["split"] == "hard"]
        return shown | plain | {"hard, all nines": min(nines, default=float("nan"))}
    trained = [r for r in rows if r["length"] <= 16]
    pooled = sum(r["value"] * r["n"] for r in trained) / sum(r["n"] for r in trained)
    by_kind = {
        f"{kind}, worst length > 16": min(r["value"] for r in rows if r["kind"] == kind and r["length"] > 16)
        for kind in ("shuffle", "swap", "move")
    }
    return shown | {"lengths 8-16, pooled": pooled} | by_kind


def share(column: str, value: float) -> str:
    """A million problems have six digits to show."""
    return percent(value, 4 if column == "exhaustive" else 2)


def table(output: Path, recipes: list[str]) -> str:
    lines = []
    for recipe in recipes:
        found = {int(p.name.rsplit("-", 1)[1]): s for p in sorted(output.glob(f"{recipe}-[0-9]")) if (s := summary(p))}
        if not found:
            continue
        columns = list(next(iter(found.values())))
        lines += [f"\n### {recipe}", "| seed | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
        for seed, values in sorted(found.items()):
            cells = [f"{values[c]:.0f}" if c in ("seconds", "examples/s") else share(c, values[c]) for c in columns]
            lines.append(f"| {seed} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--recipes", nargs="+", default=recipe_names(), choices=recipe_names())
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--table-only", action="store_true")
    options = parser.parse_args()
    if not options.table_only:
        with ThreadPoolExecutor(options.workers) as pool:
            for seed in range(options.seeds):
                for recipe in options.recipes:
                    pool.submit(run, recipe, seed, options.output)
    print(table(options.output, options.recipes))


if __name__ == "__main__":
    main()
