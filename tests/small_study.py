"""A small study for tests of the report: a tiny model, really trained, studied and pruned; length rows by hand."""

from pathlib import Path

from headcount.analysis.heads.run_data import load_study_data
from headcount.analysis.heads.study import ANALYSES, NEEDS, analyses_for
from headcount.analysis.lengths.summary import summarize
from headcount.records.files import hash_file, write_json
from headcount.records.intervals import rate
from headcount.records.rows import Row, Rows, row, write_rows
from headcount.reports.figures.drawing import save_figure
from headcount.reports.figures.heads import HEAD_FIGURES
from headcount.reports.figures.sequence_lengths import draw_accuracy
from headcount.scripts.cli import run
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
    write_rows(folder / "length", "lengths", length_rows())
    write_rows(folder / "length", "summary", summary_rows())
    for name, rows in addition_study().items():
        write_rows(folder / "adding", name, rows)
    save_figure(draw_accuracy(addition_lengths()), folder / "adding" / "figures", "accuracy_by_length")
    about = {"quick": True, "seconds": 0, "finished_at": None}
    about["steps"] = {"train": {"command": "headcount train addition-tiny", "seconds": 90.0}}
    write_json(folder / "study.json", about)
    return folder


def study_heads(trained: Path, output: Path) -> None:
    """What `headcount heads` does, with one figure instead of twenty, which take most of its time."""
    found = load_run(trained)
    data = load_study_data(found, 40)
    rows: dict[str, Rows] = {}
    for name in analyses_for(found.model, data):
        rows[name] = ANALYSES[name](found.model, data, **{needed: rows[needed] for needed in NEEDS.get(name, ())})
        write_rows(output, name, rows[name])
    if "atlas" in rows:
        save_figure(HEAD_FIGURES["atlas"](rows["atlas"]), output / "figures", "atlas")
    write_json(output / "heads.json", {"weights": hash_file(trained / "model" / "model.safetensors")})


def figure(value: float, n: int = 200, half: float = 0.03) -> dict:
    return {"value": value, "n": n, "interval": [max(0.0, value - half), min(1.0, value + half)]}


def length_rows() -> Rows:
    """Two encodings, two poolings, two kinds, two seeds; a length that one seed was spared."""
    rows = []
    for variant, reach in (("alibi_directional", 64), ("learned", 16)):
        for pooling in ("max", "mean"):
            for kind in ("shuffle", "swap"):
                for seed in (0, 1):
                    for length in (8, 16, 32, 64):
                        good = length <= reach
                        rates = {"true_positive_rate": 1.0, "true_negative_rate": 1.0 if good else 0.0}
                        spared = (variant, seed, length) == ("learned", 1, 64)
                        estimate = None if spared else {**figure(1.0 if good else 0.5), **rates}
                        place = {"variant": variant, "pooling": pooling, "kind": kind, "seed": seed, "length": length}
                        place |= {"task": "sortedness", "built_in": [], "trained": [8, 16]}
                        rows.append(row("lengths", "accuracy", estimate, **place, one_class_only=not good))
    return rows


def summary_row(variant: str, kind: str = "swap", **changes) -> Row:
    accuracy = {"32": {**figure(1.0), "by_seed": {}}, "64": {**figure(1.0), "by_seed": {}}}
    about = {
        "task": "sortedness",
        "variant": variant,
        "says": variant,
        "pooling": "max",
        "kind": kind,
        "trained": [8, 16],
        "built_in": [],
        "seeds": [0, 1],
        "learned": 2,
        "in_distribution": figure(1.0, 400),
        "in_distribution_by_seed": {"0": 1.0, "1": 1.0},
        "accuracy": accuracy,
        "holds_to": {"0": 64, "1": 64},
        "one_class_from": {"0": None, "1": None},
        "seconds": {"0": None, "1": None},
        "flags": [],
    }
    return row("summary", "accuracy", figure(1.0, 400), **{**about, **changes})


def summary_rows() -> Rows:
    failing = {"holds_to": {"0": 16, "1": 16}, "one_class_from": {"0": 32, "1": None}}
    failing["accuracy"] = {"32": {**figure(0.5), "by_seed": {}}, "64": {**figure(0.5), "by_seed": {}}}
    rows = [summary_row("alibi_directional", kind, built_in=["directional heads"]) for kind in ("shuffle", "swap")]
    return rows + [summary_row("learned", kind, **failing) for kind in ("shuffle", "swap")]


# (variant, seed) -> digits up to which it adds; None: it never fitted. Baselines have no coupled ids.
REACH: dict[tuple[str, int], int | None] = {
    ("whole", 0): 1000,
    ("whole", 1): 1000,
    ("no-jitter", 0): 50,
    ("no-jitter", 1): 50,
    ("alibi", 0): None,
    ("alibi", 1): None,
    ("baseline-none", 0): 1000,
    ("baseline-none", 1): None,
}
SAYS = {
    "whole": "the recipe as it stands",
    "no-jitter": "scores as they are",
    "log_n": "scores times log n, no jitter",
    "alibi": "alibi",
    "baseline-none": "no position encoding",
}
TESTED = {"random": (50, 200, 1000), "full_chain": (50, 200, 1000)}


def addition_lengths(reach: dict[tuple[str, int], int | None] = REACH, rows: int = 100, **more) -> Rows:
    """Held-out problems, and two classes at three lengths; a length after nothing was right is spared."""
    found = []
    for (variant, seed), digits in reach.items():
        about = {"task": "addition", "variant": variant, "says": SAYS[variant], "pooling": None, "seed": seed}
        about |= {"trained": [1, 20], "training_seconds": 80.0 + seed, **more}
        about["built_in"] = [] if variant.startswith("baseline") else ["coupled position ids"]
        margin = {"value": 1.0, "n": rows, "interval": [0.5, 1.5]}

        def add(kind: str, length: int, estimate: dict | None, about: dict = about, margin: dict = margin) -> None:
            place = {**about, "kind": kind, "length": length, "margin": margin if estimate else None}
            found.append(row("lengths", "exact_match", estimate, decoding="free-running", **place))

        add("test", 20, rate(500 if digits else 150, 500))
        for kind, lengths in TESTED.items():
            for length in lengths:
                right = rows if length <= (digits or 0) else 0
                is_measured = right or length == (200 if digits == 50 else 50)
                add(kind, length, rate(right, rows) if is_measured else None)
    return found


def addition_study() -> dict[str, Rows]:
    lengths = addition_lengths()
    written = [each for each in lengths if each["value"] and each["kind"] != "test"]
    generated = [{**each, "study": "generated", "disagree": 0} for each in written]
    # As cells finish, the recipe need not come first; the summary has it there.
    return {"lengths": lengths[14:] + lengths[:14], "summary": summarize(lengths), "generated": generated}
