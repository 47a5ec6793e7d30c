"""`headcount.prune`: from a trained run to a smaller one, with the rows that tell what it cost."""

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ...data_builders.tasks import plain_options
from ...records.claims import Claim
from ...records.files import new_folder, read_json
from ...records.litter import is_empty
from ...records.locks import alone_in
from ...records.rows import Row, Rows, read_rows, results_path, select, write_rows
from ...records.run_folder import PROVENANCE, RECIPE
from ...trainers.finetuning import make_finetuner
from ...trainers.model_building import MODEL_CLASSES
from ...trainers.pruned_run import save_pruned_run, train_control
from ...trainers.trained_run import TrainedRun, load_run
from ..interventions.finished_batches import weights_hash
from .pruning import Pruned, check_budget, choose_prefix, compare, prune_greedily, random_heads, without
from .run_data import load_examples


CURVE_DOWN_TO = 0.5  # the curve without fine-tuning is followed until so much accuracy is lost
MOST_TESTED = 1_000_000
RESULTS = ("pruning", "evaluation")
CLAIM, PARTS = "prune", "unfinished"  # prune.json says what was asked for; the folder of parts goes at the end


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

    What was stopped goes on with the same call: a curve that is done, a fine-tuned model and the steps of a control
    are kept in the folder until all is done.

    Args:
        run: a run folder, a model folder, a Hub id, or what `load_run` gives.
        output: folder for the smaller model and its results.
        max_drop: largest joint drop in accuracy on validation data; default 0.01.
        keep: instead, how many heads to keep, whatever it costs.
        finetune: steps of training after every removal; default none.
        control: also train the same small architecture from scratch, in output/control, and one with as many heads at
            random places, in output/control-random.
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
    if folder.exists() and folder.samefile(run.folder):
        raise ValueError(f"{folder} is the run itself; expected another folder.")
    max_drop = 0.01 if max_drop is None and keep is None else max_drop
    check_budget(run.model, max_drop, keep)
    finetuner = None if finetune is None else make_finetuner(run.recipe, run.corpus, finetune)
    check_folder(folder)
    asked = {"max_drop": max_drop, "keep": keep, "finetune": finetune, "control": control, "rows": rows}
    subject = {"weights": weights_hash(run.model), "data": plain_options(run.corpus.options)}
    with alone_in(folder):
        if overwrite:
            remove_results(folder)
        finished = Claim(folder, CLAIM, {**asked, **subject}, RESULTS, parts=(PARTS,)).finished("pruning")
        if finished is not None:
            say(f"{folder} is finished already; nothing to do.")
            return PrunedRun(folder, removed_heads(finished, finetune), finished)
        validation, test = load_examples(run, "validation", rows), load_examples(run, "test", MOST_TESTED)
        start, cpu_start = time.perf_counter(), time.process_time()

        def without_finetuning() -> Pruned:
            say("removing heads, without fine-tuning")
            farther = None if max_drop is None else max(max_drop, CURVE_DOWN_TO)
            return prune_greedily(run.model, validation, farther, keep, progress=lambda step: say(step_text(step)))

        def with_finetuning() -> Pruned:
            say(f"removing heads, {finetune} steps of fine-tuning after each")
            return prune_greedily(
                run.model, validation, max_drop, keep, finetuner, progress=lambda step: say(step_text(step))
            )

        found = part_of(folder / PARTS, "curve", without_finetuning)
        results = found.rows
        if finetuner is not None:
            found = part_of(folder / PARTS, "finetuned", with_finetuning)
            results = results + [{**row, "finetune_steps": finetune} for row in found.rows]
        elif max_drop is not None:
            found = choose_prefix(run.model, found, max_drop)
        smaller = {"pruned": found.model}
        if control:
            say("training the same small architecture from scratch")
            smaller["control"] = train_control(run.recipe, found.model, folder / "control")
            say("training as many random heads from scratch")
            random = without(run.model, random_heads(run.model, len(found.removed)))
            smaller["control, random heads"] = train_control(run.recipe, random, folder / "control-random")
        save_pruned_run(folder, run.recipe, run.corpus, found.model, time.perf_counter() - start, cpu_start)
        results = results + compare(run.model, smaller, test, found.removed)
        write_rows(folder, "pruning", results)
        shutil.rmtree(folder / PARTS)
    return PrunedRun(folder, found.removed, results)


def part_of(folder: Path, name: str, compute: Callable[[], Pruned]) -> Pruned:
    """A part of the work, as rows and a model: computed and kept, or read if it is there."""
    path, model = results_path(folder, name), folder / name
    if path.exists():
        rows = read_rows(path)
        architecture = read_json(model / "config.json")["architecture"]
        found = MODEL_CLASSES[architecture].from_pretrained(model)
        return Pruned(found, select(rows, kept=True)[-1]["heads"], rows)
    pruned = compute()
    with new_folder(model) as partial:
        pruned.model.save_pretrained(partial)
    write_rows(folder, name, pruned.rows)  # last: they say that the part is done
    return pruned


def check_folder(folder: Path) -> None:
    """Raises unless the folder is new, empty, or holds the work of headcount prune."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; expected a folder for the smaller model.")
    known = (folder / f"{CLAIM}.json").exists() or results_path(folder, "pruning").exists()
    if not known and not is_empty(folder):
        raise ValueError(f"{folder} is not empty and holds no result of headcount prune; expected a new folder.")


def remove_results(folder: Path) -> None:
    """What an earlier call left; not what says whose the folder is, which is replaced as a whole."""
    for name in RESULTS:
        results_path(folder, name).unlink(missing_ok=True)
    for name in (PARTS, "control", "control-random", "model", "figures"):
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in (PROVENANCE, RECIPE):
        (folder / name).unlink(missing_ok=True)


def removed_heads(rows: Rows, finetune: int | None) -> list[str]:
    """Those that the tested model has lost."""
    steps = select(rows, split="validation", kept=True, fine_tuned=finetune is not None)
    count = select(rows, split="test", model="pruned")[0]["removed"]
    return next(step["heads"] for step in steps if step["removed"] == count)


def step_text(step: Row) -> str:
    return f"{step['removed']:3} heads removed, last {step['head']}: {100 * step['value']:.2f} % on validation data"
