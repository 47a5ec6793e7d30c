"""The worker of `headcount extrapolate`: trains and measures one cell of the study after the other.

Reads an order per line (JSON: the cell, its folder, what is asked for), and answers each with a line:
{"error": null}, or a sentence about what went wrong. What it has to say beside that goes to standard error.
"""

import json
import os
import shutil
import signal
import sys
import traceback
from pathlib import Path


def work(order: dict) -> None:
    """Leaves a run folder with the rows of every length analysis; what is there already is not computed again."""
    import torch

    from headcount.analysis.extrapolation import join_asked, was_asked
    from headcount.analysis.length_families import LENGTH_FAMILIES
    from headcount.trainers.loop import RunOptions, train
    from headcount.trainers.recipe import load_recipe
    from headcount.trainers.run_folder import write_rows
    from headcount.trainers.trained_run import load_run

    if "OMP_NUM_THREADS" not in os.environ:  # torch heeds it; told in this way to take several, it is slow
        torch.set_num_threads(1)
    folder, overwrite = Path(order["folder"]), order["overwrite"]
    recipe = load_recipe(order["recipe"], [*order["settings"], f"training.seed={order['seed']}"])
    resume = not overwrite and (folder / "recipe.yaml").exists()
    train(recipe, RunOptions(folder, resume=resume, overwrite=overwrite, evaluate=False))
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)  # a finished cell has no use for them

    model, _, corpus = load_run(folder)
    family, describe, measure = LENGTH_FAMILIES[order["task"]], *FAMILY_WORK[order["task"]]
    facts = {"variant": order["variant"], "seed": order["seed"], **describe(model.config, corpus.options)}
    before = was_asked(folder)
    asked = join_asked(before, order["asked"])
    for name in family.results:
        changed = asked != before and name in family.by_length
        if changed or not (folder / "results" / f"{name}.json").exists():
            write_rows(folder, name, [{**facts, **row} for row in measure(name, model, corpus, folder, asked)])
    write_rows(folder, "asked", [asked])


def say(row: dict) -> None:
    print(f"measured length {row['length']}", file=sys.stderr, flush=True)


def lengths_reached(folder: Path, at_least: int) -> set[int]:
    """The lengths from `at_least` on at which there was an accuracy to measure."""
    rows = json.loads((folder / "results" / "lengths.json").read_text())
    return {row["length"] for row in rows if row["value"] is not None and row["length"] >= at_least}


def measure_sortedness(name: str, model, corpus, folder: Path, asked: dict) -> list[dict]:
    from headcount.analysis.dilution import dilution
    from headcount.analysis.length_curve import measure_lengths
    from headcount.analysis.neighbour_head import neighbour_head
    from headcount.analysis.position_shift import shifted_positions

    analyses = {
        "lengths": lambda: measure_lengths(model, corpus, **asked, progress=say),
        "dilution": lambda: dilution(model, corpus, lengths_reached(folder, corpus.options.max_length)),
        "shifts": lambda: shifted_positions(model, corpus),
        "neighbour": lambda: neighbour_head(model, corpus),
    }
    return analyses[name]()


def describe_sortedness(config, data) -> dict:
    """What every row of a cell begins with: read off the model itself, with what was built in by hand."""
    built_in = {
        "directional heads": config.position_embedding_type == "alibi_directional",
        "ordinal embedding": config.embedding_type == "ordinal",
        "violation pooling": config.pooling_type == "violation",
        "window": config.attention_window is not None,
        "causal mask": config.attention_direction == "causal",
    }
    return {
        "encoding": config.position_embedding_type,
        "pooling": config.pooling_type,
        "scheme": config.position_scheme,
        "normalizer": config.attention_normalizer,
        "direction": config.attention_direction,
        "window": config.attention_window,
        "trained": [data.min_length, data.max_length],
        "built_in": [name for name, used in built_in.items() if used],
    }


def measure_addition(name: str, model, corpus, folder: Path, asked: dict) -> list[dict]:
    from headcount.analysis import addition_curve
    from headcount.analysis.addition_columns import column_reading

    analyses = {
        "lengths": lambda: addition_curve.measure_addition(model, corpus, **asked, progress=say),
        "generated": lambda: addition_curve.check_generation(
            model, corpus, **{**asked, "lengths": lengths_worth_writing(folder)}, progress=say
        ),
        "columns": lambda: column_reading(model, corpus, lengths_reached(folder, corpus.options.digits)),
    }
    return analyses[name]()


def lengths_worth_writing(folder: Path) -> set[int]:
    """The lengths beyond training at which something was right: a model that fails needs no second witness."""
    rows = json.loads((folder / "results" / "lengths.json").read_text())
    return {row["length"] for row in rows if row["value"] and row["kind"] not in ("test", "hard")}


def describe_addition(config, data) -> dict:
    from headcount.reports.built_in import built_in

    return {
        "encoding": config.position_embedding_type,
        "scheme": config.position_scheme,
        "normalizer": config.attention_normalizer,
        "jitter": config.score_jitter,
        "layers": config.num_hidden_layers,
        "answer_order": data.answer_order,
        "zero_pad": data.zero_pad,
        "trained": [data.min_digits or data.digits, data.digits],
        "built_in": [name for name, _ in built_in(config.to_dict())],
    }


# Task -> what the rows of its cells begin with, and what is measured on them.
FAMILY_WORK = {
    "sortedness": (describe_sortedness, measure_sortedness),
    "addition": (describe_addition, measure_addition),
}


def main() -> None:
    from headcount.scripts.memory import keep_freed_memory
    from headcount.trainers.loop import Interrupted, TrainingStopped

    keep_freed_memory()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a study in the background is started without it
    answers, sys.stdout = sys.stdout, sys.stderr  # whatever a library prints is no answer
    for line in sys.stdin:
        order, error = json.loads(line), None
        print(f"== {order['folder']}", file=sys.stderr, flush=True)
        try:
            work(order)
        except Interrupted:
            return
        except (ValueError, OSError, RuntimeError, TrainingStopped) as problem:
            traceback.print_exc()
            error = f"{problem}" or type(problem).__name__
        print(json.dumps({"error": error}), file=answers, flush=True)


if __name__ == "__main__":
    main()
