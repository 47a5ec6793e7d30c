"""Evaluate a trained model: what it really generates, with intervals.

headcount evaluate runs/addition
headcount evaluate runs/addition --exhaustive
headcount evaluate runs/sortedness --json
"""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer


def main(
    model: Annotated[Path, typer.Argument(help="Folder of a run, as headcount train leaves it.")],
    exhaustive: Annotated[bool, typer.Option("--exhaustive", help="Addition: test every problem there is.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Test a trained model, free-running and teacher-forced side by side, with intervals."""
    from dataclasses import replace

    from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoModelForSequenceClassification

    import headcount  # noqa: F401  registers the models with the Auto classes
    from headcount.trainers.evaluation import evaluate_model
    from headcount.trainers.recipe import load_recipe
    from headcount.trainers.training_data import make_corpus

    if not (model / "recipe.yaml").exists() or not (model / "model" / "config.json").exists():
        raise typer.BadParameter(f"{model} holds no finished run; expected a folder with recipe.yaml and model/.")
    try:
        recipe = load_recipe(str(model / "recipe.yaml"))
        if exhaustive:
            if recipe.task != "addition":
                raise ValueError("--exhaustive has no effect on sortedness; expected an addition run.")
            recipe = replace(recipe, data={**recipe.data, "exhaustive": True})
        corpus = make_corpus(recipe)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    architecture = json.loads((model / "model" / "config.json").read_text())["architecture"]
    auto = {
        "encoder-decoder": AutoModelForSeq2SeqLM,
        "decoder": AutoModelForCausalLM,
        "encoder": AutoModelForSequenceClassification,
    }[architecture]
    loaded = auto.from_pretrained(model / "model")
    rows = evaluate_model(loaded, recipe, corpus, progress=lambda row: print(f"{row['split']} done", file=sys.stderr))
    print(json.dumps(rows, indent=1) if as_json else table(rows))


def table(rows: list[dict]) -> str:
    lines = [f"{'what':58} {'value':>9}  {'95 % interval':19} {'n':>9}"]
    for row in rows:
        if row["metric"] == "wrong_answer":
            lines.append(f"  wrong: {row['input']} = {row['target']}, generated {row['generated']} ({row['split']})")
            continue
        where = [
            f"{name} {row[name]}" for name in ("group", "longest_chain", "place", "length", "kind") if name in row
        ]
        name = " ".join(
            [row["split"], row["metric"], *([f"({row['decoding']})"] if "decoding" in row else []), *where]
        )
        low, high = row["interval"]
        line = f"{name:58} {100 * row['value']:8.2f}%  {100 * low:6.2f} - {100 * high:6.2f} %  {row['n']:9,}"
        if row["task"] == "sortedness":
            line += f"  sorted {fmt(row['true_positive_rate'])} unsorted {fmt(row['true_negative_rate'])}"
            line += f"  majority {fmt(row['majority_class_rate'])}"
        lines.append(line)
    return "\n".join(lines)


def fmt(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}%"
