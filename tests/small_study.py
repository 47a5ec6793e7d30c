"""A small study for tests of the report: a tiny model, really trained, studied and pruned; length rows by hand."""

import hashlib
import json
from pathlib import Path

from headcount.analysis.addition_summary import summarize_addition
from headcount.analysis.head_study import ANALYSES, NEEDS
from headcount.analysis.statistics import rate
from headcount.reports.addition_figures import draw_accuracy
from headcount.reports.drawing import save_figure
from headcount.reports.head_figures import FIGURES
from headcount.scripts.cli import run
from headcount.scripts.study_inputs import load_study_data
from headcount.trainers.run_folder import write_rows
from headcount.trainers.trained_run import load_run


def headcount(*arguments) -> None:
    assert run([str(argument) for argument in arguments]) == 0, arguments


def make_study(folder: Path) -> Path:
    few = (
        "training.steps=100",
        "training.evaluate_every=50",
        "training.batch_size=32",
        "data.test=60",
        "data.pairs=30",
        "model.num_attention_heads=2",
    )
    settings = [word for value in few for word in ("--set", value)]
    trained = folder / "runs" / "addition-tiny-0"
    headcount("train", "addition-tiny", "--output", trained, "--seed", 0, *settings)
    study_heads(trained, folder / "heads")
    headcount("prune", trained, "--output", folder / "pruned", "--max-drop", 0.2, "--rows", 40)
    write(folder / "length" / "results" / "lengths.json", length_rows())
    write(folder / "length" / "results" / "summary.json", summary_rows())
    for name, rows in addition_study().items():
        write(folder / "adding" / "results" / f"{name}.json", rows)
    save_figure(draw_accuracy(addition_lengths()), folder / "adding" / "figures", "accuracy_by_digits")
    write(
        folder / "study.json",
        {
            "quick": True,
            "seconds": 0,
            "finished_at": None,
            "steps": {"train": {"command": "headcount train addition-tiny", "seconds": 90.0}},
        },
    )
    return folder


def study_heads(trained: Path, output: Path) -> None:
    """What `headcount heads` does, with one figure instead of twenty, which take most of its time."""
    model, recipe, corpus = load_run(trained)
    data = load_study_data(model, recipe, corpus, 40)
    rows: dict[str, list[dict]] = {}
    for name, analysis in ANALYSES.items():
        rows[name] = analysis(model, data, **{needed: rows[needed] for needed in NEEDS.get(name, ())})
        write_rows(output, name, rows[name])
    save_figure(FIGURES["carry_atlas"](rows["carry_atlas"]), output / "figures", "carry_atlas")
    weights = hashlib.sha256((trained / "model" / "model.safetensors").read_bytes()).hexdigest()
    write(output / "heads.json", {"weights": weights})


def write(path: Path, content) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def figure(value: float, n: int = 200, half: float = 0.03) -> dict:
    return {"value": value, "n": n, "interval": [max(0.0, value - half), min(1.0, value + half)]}


def length_rows() -> list[dict]:
    """Two encodings, two poolings, two kinds, two seeds; a length that one seed was spared."""
    rows = []
    for variant, reach in (("alibi_directional", 64), ("learned", 16)):
        for pooling in ("max", "mean"):
            for kind in ("shuffle", "swap"):
                for seed in (0, 1):
                    for length in (8, 16, 32, 64):
                        good = length <= reach
                        row = {"variant": variant, "pooling": pooling, "kind": kind, "seed": seed, "length": length}
                        row |= {"metric": "accuracy", "built_in": [], "trained": [8, 16], "one_class_only": not good}
                        row |= figure(1.0 if good else 0.5)
                        row |= {"true_positive_rate": 1.0, "true_negative_rate": 1.0 if good else 0.0}
                        if (variant, seed, length) == ("learned", 1, 64):
                            row["value"] = None
                        rows.append(row)
    return rows


def summary_row(variant: str, kind: str = "swap", **changes) -> dict:
    row = {
        "metric": "summary", "variant": variant, "pooling": "max", "kind": kind, "built_in": [], "seeds": [0, 1],
        "learned": 2, "in_distribution": figure(1.0, 400), "in_distribution_by_seed": {"0": 1.0, "1": 1.0},
        "accuracy": {"32": {**figure(1.0), "by_seed": {}}, "64": {**figure(1.0), "by_seed": {}}},
        "holds_to": {"0": 64, "1": 64}, "one_class_from": {"0": None, "1": None}, "flags": [],
    }  # fmt: skip
    return {**row, **changes}


def summary_rows() -> list[dict]:
    failing = {"holds_to": {"0": 16, "1": 16}, "one_class_from": {"0": 32, "1": None}}
    failing["accuracy"] = {"32": {**figure(0.5), "by_seed": {}}, "64": {**figure(0.5), "by_seed": {}}}
    rows = [summary_row("alibi_directional", kind, built_in=["directional heads"]) for kind in ("shuffle", "swap")]
    return rows + [summary_row("learned", kind, **failing) for kind in ("shuffle", "swap")]


# (variant, seed) -> digits up to which it adds; None: it never fitted. Baselines have no coupled ids.
REACH = {("no-jitter", 0): 50, ("no-jitter", 1): 50, ("whole", 0): 1000, ("whole", 1): 1000,
         ("alibi", 0): None, ("alibi", 1): None, ("baseline-none", 0): 1000, ("baseline-none", 1): None}  # fmt: skip


def addition_lengths(reach: dict[tuple[str, int], int | None] = REACH, rows: int = 100) -> list[dict]:
    """Held-out problems, and two classes at three lengths; a length after nothing was right is spared."""
    found = []
    for (variant, seed), digits in reach.items():
        base = {"variant": variant, "seed": seed, "metric": "exact_match", "trained": [1, 20]}
        base["built_in"] = [] if variant.startswith("baseline") else ["coupled position ids"]
        found.append({**base, "kind": "test", "length": 20, **rate(500 if digits else 150, 500)})
        for kind in ("random", "full_chain"):
            for length in (50, 200, 1000):
                right = rows if length <= (digits or 0) else 0
                place = {**base, "kind": kind, "length": length}
                if right or length == (200 if digits == 50 else 50):
                    found.append({**place, **rate(right, rows)})
                else:
                    found.append({**place, "value": None, "n": 0, "interval": None})
    return found


def addition_study() -> dict[str, list[dict]]:
    lengths = addition_lengths()
    written = [row for row in lengths if row["value"] and row["kind"] != "test"]
    seconds = {name: 80.0 + name[1] for name in REACH}
    return {
        "lengths": lengths,
        "summary": summarize_addition(lengths, seconds),
        "generated": [{**row, "metric": "generated", "disagree": 0} for row in written],
    }
