"""`headcount.prune`: from a trained run to a smaller one, with the rows that tell what it cost."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ...records.locks import alone_in
from ...records.rows import Row, Rows, write_rows
from ...trainers.finetuning import make_finetuner
from ...trainers.pruned_run import save_pruned_run, train_control
from ...trainers.trained_run import TrainedRun, load_run
from .pruning import check_budget, choose_prefix, compare, prune_greedily
from .run_data import load_examples


CURVE_DOWN_TO = 0.5  # the curve without fine-tuning is followed until so much accuracy is lost
MOST_TESTED = 1_000_000


@dataclass(frozen=True)
class PrunedRun:
    """The folder of the smaller model, the heads that are gone from it, and the rows."""

    folder: Path
    removed: list[str]
    rows: Rows


def prune(
    run: str | Path | TrainedRun,
    output: str | Path,
    *,
    max_drop: float | None = None,
    keep: int | None = None,
    finetune: int | None = None,
    control: bool = False,
    rows: int = 1000,
    overwrite: bool = False,
    say: Callable[[str], None] = lambda text: None,
) -> PrunedRun:
    """Removes as many heads as the accuracy allows, together and for good; tested once, on the test data.

    Args:
        run: a run folder, a model folder, a Hub id, or what `load_run` gives.
        output: folder for the smaller model and its results.
        max_drop: largest joint drop in accuracy on validation data; default 0.01.
        keep: instead, how many heads to keep, whatever it costs.
        finetune: steps of training after every removal; default none.
        control: also train the same small architecture from scratch, in output/control.
        rows: at most so many validation examples.
        overwrite: replace an earlier result in the folder.
        say: hears of every step.

    Returns:
        The folder, the names of the removed heads, and the rows of results/pruning.json.

    >>> import headcount
    >>> tiny = ["training.steps=2", "model.num_hidden_layers=1", "model.num_attention_heads=2", "model.hidden_size=16"]
    >>> run = headcount.train("reverse", "runs/tiny", settings=tiny)
    >>> found = headcount.prune(run, "runs/smaller", keep=5, rows=50)
    >>> len(found.removed), len(headcount.load_run("runs/smaller").model.list_heads())
    (1, 5)
    """
    folder = Path(output)
    if max_drop is not None and keep is not None:
        raise ValueError("max_drop and keep exclude each other; expected one of them.")
    run = run if isinstance(run, TrainedRun) else load_run(run)
    if folder.resolve() == run.folder.resolve():
        raise ValueError(f"{folder} is the run itself; expected another folder.")
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not overwrite)):
        raise ValueError(f"{folder} is not empty; expected another folder, or --overwrite.")
    max_drop = 0.01 if max_drop is None and keep is None else max_drop
    check_budget(run.model, max_drop, keep)
    finetuner = None if finetune is None else make_finetuner(run.recipe, run.corpus, finetune)
    with alone_in(folder):
        validation, test = load_examples(run, "validation", rows), load_examples(run, "test", MOST_TESTED)
        start, cpu_start = time.perf_counter(), time.process_time()
        say("removing heads, without fine-tuning")
        farther = None if max_drop is None else max(max_drop, CURVE_DOWN_TO)
        found = prune_greedily(run.model, validation, farther, keep, progress=lambda step: say(step_text(step)))
        results = found.rows
        if finetuner is not None:
            say(f"removing heads, {finetune} steps of fine-tuning after each")
            found = prune_greedily(
                run.model, validation, max_drop, keep, finetuner, progress=lambda step: say(step_text(step))
            )
            results = results + [{**row, "finetune_steps": finetune} for row in found.rows]
        elif max_drop is not None:
            found = choose_prefix(run.model, found, max_drop)
        smaller = {"pruned": found.model}
        if control:
            say("training the same small architecture from scratch")
            smaller["control"] = train_control(run.recipe, found.model, folder / "control", overwrite)
        save_pruned_run(folder, run.recipe, run.corpus, found.model, time.perf_counter() - start, cpu_start)
        results = results + compare(run.model, smaller, test, len(found.removed))
        write_rows(folder, "pruning", results)
    return PrunedRun(folder, found.removed, results)


def step_text(step: Row) -> str:
    return f"{step['removed']:3} heads removed, last {step['head']}: {100 * step['value']:.2f} % on validation data"
