"""A small study for tests of the report: a tiny model, really trained, studied and pruned; length rows by hand."""

import hashlib
import json
from pathlib import Path

from headcount.analysis.head_study import ANALYSES, NEEDS
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
