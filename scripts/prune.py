"""Really remove heads of a trained model and write the smaller checkpoint.

headcount prune runs/addition --output runs/addition-pruned
headcount prune runs/addition --output runs/addition-small --finetune 100 --max-drop 0.005 --control
headcount prune runs/addition --output runs/addition-8 --keep 8 --finetune 100
"""

import json
import sys
import time
from pathlib import Path
from typing import Annotated

import typer


CURVE_DOWN_TO = 0.5  # the curve without fine-tuning is followed until so much accuracy is lost


def main(
    model: Annotated[Path, typer.Argument(help="Folder of a run, as headcount train leaves it.")],
    output: Annotated[Path, typer.Option(help="Folder for the smaller model, its results and figures.")],
    max_drop: Annotated[float | None, typer.Option(help="Largest joint drop in accuracy; default 0.01.")] = None,
    keep: Annotated[int | None, typer.Option(help="Instead: how many heads to keep, whatever it costs.")] = None,
    finetune: Annotated[int | None, typer.Option(help="Steps of training after every removal.")] = None,
    control: Annotated[
        bool, typer.Option("--control", help="Also train the same small architecture from scratch.")
    ] = False,
    rows: Annotated[int, typer.Option(min=10, help="At most so many validation examples.")] = 1000,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier result in the folder.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Remove as many heads as the accuracy allows, together and for good; tested once, on the test data."""
    from headcount.analysis.pruning import check_budget, choose_prefix, compare, prune
    from headcount.scripts.study_inputs import load_examples
    from headcount.trainers.finetuning import make_finetuner
    from headcount.trainers.pruned_run import save_pruned_run, train_control
    from headcount.trainers.run_folder import write_rows
    from headcount.trainers.trained_run import load_run

    if max_drop is not None and keep is not None:
        raise typer.BadParameter("--max-drop and --keep exclude each other; expected one of them.")
    if output.resolve() == model.resolve():
        raise typer.BadParameter(f"--output {output} is the run itself; expected another folder.")
    if output.exists() and any(output.iterdir()) and not overwrite:
        raise typer.BadParameter(f"{output} is not empty; expected another folder, or --overwrite.")
    max_drop = 0.01 if max_drop is None and keep is None else max_drop
    try:
        loaded, recipe, corpus = load_run(model)
        check_budget(loaded, max_drop, keep)
        finetuner = None if finetune is None else make_finetuner(recipe, corpus, finetune)
        validation = load_examples(recipe, corpus, "validation", rows)
        test = load_examples(recipe, corpus, "test", 1_000_000)
        farther = {"keep": keep} if keep is not None else {"max_drop": max(max_drop, CURVE_DOWN_TO)}
        start, cpu_start = time.perf_counter(), time.process_time()
        print("removing heads, without fine-tuning", file=sys.stderr)
        found = prune(loaded, validation, **farther, progress=say_step)
        results = found.rows
        if finetuner is None:
            found = found if keep is not None else choose_prefix(loaded, found, max_drop)
        else:
            print(f"removing heads, {finetune} steps of fine-tuning after each", file=sys.stderr)
            found = prune(loaded, validation, max_drop, keep, finetuner, progress=say_step)
            results = results + [{**row, "finetune_steps": finetune} for row in found.rows]
        smaller = {"pruned": found.model}
        if control:
            print("training the same small architecture from scratch", file=sys.stderr)
            smaller["control"] = train_control(recipe, found.model, output / "control", overwrite)
        save_pruned_run(output, recipe, corpus, found.model, time.perf_counter() - start, cpu_start)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    results = results + compare(loaded, smaller, test, len(found.removed))
    write_rows(output, "pruning", results)
    draw(output, results)
    print(f"done: {output}", file=sys.stderr)
    print(json.dumps(results, indent=1) if as_json else table(results, found.removed))


def say_step(row: dict) -> None:
    text = f"{row['removed']:3} heads removed, last {row['head']}: {100 * row['value']:.2f} % on validation data"
    print(text, file=sys.stderr, flush=True)


def draw(output: Path, results: list[dict]) -> None:
    from headcount.reports.drawing import save_figure
    from headcount.reports.head_figures import draw_pruning

    save_figure(draw_pruning(results), output / "figures", "pruning")


def table(results: list[dict], removed: list[str]) -> str:
    harmless = next(row for row in results if row["metric"] == "harmless_one_at_a_time")
    lines = [f"removed {len(removed)} of {harmless['n']} heads: {', '.join(removed) or 'none'}"]
    lines.append(f"{harmless['value']} of {harmless['n']} heads cost less than a point one at a time")
    lines.append(
        f"{'model':28} {'test':>9}  {'95 % interval':19} {'n':>6} {'parameters':>11} {'bytes':>10} {'speed':>7}"
    )
    for row in results:
        if row["metric"] in ("exact_match", "accuracy") and row["split"] == "test":
            low, high = row["interval"]
            lines.append(
                f"{row['model']:28} {100 * row['value']:8.2f}%  {100 * low:6.2f} - {100 * high:6.2f} %  {row['n']:6,} "
                f"{row['parameters']:11,} {row['bytes']:10,} {row['relative_speed']:6.2f}x"
            )
    return "\n".join(lines)
