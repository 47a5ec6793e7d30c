"""From nothing to a report: data, training over seeds, evaluation, heads, pruning, length, report and cards.

headcount study --output runs/study
headcount study --output runs/study-quick --quick
headcount study reverse --output runs/reverse-study
headcount study my_task.py --output runs/my-study
"""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .whole_numbers import whole_number


if TYPE_CHECKING:
    from ..data_builders.tasks import Study, Task
    from .steps import Step

GOES_ON = "what is finished stays; the same command goes on from there"
COURSE = ("addition", "sortedness")  # heads of the first, lengths of the second: the two parts of the course work


def main(
    output: Annotated[Path, typer.Option(help="Folder for the study; one that is there already goes on.")],
    task: Annotated[
        str | None,
        typer.Argument(
            help="Name of a task, or a Python file with one; default: heads of addition and lengths of sortedness.",
            metavar="[TASK]",
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Tiny models: the whole way in about three minutes.")] = False,
    workers: Annotated[
        int | None, typer.Option(parser=whole_number(1), metavar="N", help="Steps at a time; default: one per core.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the commands and do nothing.")] = False,
) -> None:
    """Run the whole study and write its report; what is finished is not computed again."""
    from ..data_builders.registry import named_task
    from ..records.locks import alone_in
    from .steps import Runner, State

    workers = workers or os.cpu_count() or 1
    try:
        trained, tested = (named_task(name) for name in (COURSE if task is None else (task, task)))
        steps = plan(trained, tested, output, quick, workers)
        if dry_run:
            print("\n".join(step.command for step in steps))
            return
        with alone_in(output):
            failed = Runner(
                steps, State(output, {"task": None if task is None else trained.name, "quick": quick}), workers
            ).run()
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    for name, reason in failed.items():
        print(f"headcount: {name} failed: {reason}", file=sys.stderr)
    if failed:
        raise typer.Exit(1)
    print(output / "report.html")


def plan(trained: "Task", tested: "Task", output: Path, quick: bool, workers: int) -> "list[Step]":
    """The commands of the study, in an order in which each can run.

    The length study needs nothing from the rest and takes about as long as all of it: with half of the workers, from
    the beginning, both end together.
    """
    from .steps import Step

    own, seeds = study_of(trained), range(2 if quick else 3)
    recipes = (own.quick_recipe,) if quick else own.recipes
    settings = tuple(word for value in own.quick_settings for word in ("--set", value)) if quick else ()
    runs, data, half = output / "runs", output / "data", max(1, workers // 2)
    length: tuple[str, ...] = ("extrapolate", "--task", tested.reference, "--output", str(output / "length"))
    length += ("--quick",) if quick else study_of(tested).length_options
    steps = [Step("extrapolate", (*length, "--workers", str(half)), (90 if quick else 500) / half, cores=half)]
    short = {recipe: Path(recipe).stem for recipe in recipes}  # a recipe may be a file
    for recipe, name in short.items():
        folder = str(data / name)
        steps.append(Step(f"data-{name}", ("data", trained.reference, "--recipe", recipe, "--output", folder), 12))
    for recipe, name in short.items():
        for seed in seeds:
            made = ("--seed", str(seed), "--output", str(runs / f"{name}-{seed}"))
            arguments = ("train", recipe, *made, "--data", str(data / name), *settings)
            steps.append(Step(f"train-{name}-{seed}", arguments, 15 if quick else 30, (f"data-{name}",)))
    recipe = short[recipes[0]]
    first = runs / f"{recipe}-0"
    ready = (f"train-{recipe}-0",)
    # Beside each run's own results, so that the card of the published model has them too. Every seed: what one model
    # does with its heads says little of the next one.
    fewer = ("--rows", "200") if quick else ()
    for seed in seeds:
        own_run = str(runs / f"{recipe}-{seed}")
        studied = ("heads", own_run, "--output", own_run, *fewer)
        steps.append(Step(f"heads-{seed}", studied, 30 if quick else 150, (f"train-{recipe}-{seed}",)))
    keep = str(own.quick_keep if quick else own.keep)
    prune = ("prune", str(first), "--output", str(output / "pruned"), "--keep", keep, "--control")
    tuned = (*prune, "--finetune", "20" if quick else "100")
    steps.append(Step("prune", tuned, 30 if quick else 240, ready))
    others = tuple(word for seed in seeds[1:] for word in ("--beside", str(runs / f"{recipe}-{seed}")))
    card = ("push", str(first), "--repo-id", recipe, *others, "--local", str(output / "published" / recipe))
    seeds_trained = tuple(f"train-{recipe}-{seed}" for seed in seeds)
    steps.append(Step("publish", card, 15, (*seeds_trained, "heads-0")))
    everything = tuple(step.name for step in steps)
    return [*steps, Step("report", ("report", str(output)), 10, everything)]


def study_of(task: "Task") -> "Study":
    if task.study is None:
        raise ValueError(f"the task {task.name} does not say what to train; expected its `study`, or another task.")
    return task.study
