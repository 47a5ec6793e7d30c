"""The training loop, on accelerate: one process or many, resumable to the bit.

Everything random in step t is a function of the seed and t: the batch, dropout, jitter, position offsets. So a
checkpoint holds weights and optimizer state only, and a run that was killed and resumed ends with the same weights.
"""

import importlib.util
import itertools
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from accelerate.utils import DistributedType
from torch import Tensor, nn

from ..data_builders.corpus import Corpus
from ..data_builders.folder import open_folder
from ..data_builders.registry import origin_note
from ..data_builders.tasks import plain_options
from ..data_builders.vocabulary import IGNORED
from ..records.files import write_json, write_text
from ..records.intervals import rate
from ..records.locks import alone_in
from ..records.progress import new_bar
from ..records.provenance import model_hashes, provenance
from ..records.rows import Row, read_rows, results_path, row, write_rows
from ..records.run_folder import METRICS, PROVENANCE
from . import checkpoints
from .evaluation import evaluate_model, validate
from .model_building import make_model, save_model
from .new_run import prepare_folder
from .optimizers import OPTIMIZERS, schedule
from .recipe import Recipe
from .training_data import make_batches, make_corpus


# One process, or several with a copy of the model each: there accelerate's wrapper of optimizers and its clipping do
# nothing that torch does not, except for looking for packages on disk at every step.
PLAIN = (DistributedType.NO, DistributedType.MULTI_CPU, DistributedType.MULTI_GPU)


class TrainingStopped(Exception):
    """Training ended before it was done; the message says why and how to go on."""

    exit_code = 1


class Diverged(TrainingStopped):
    """The loss is not a number any more."""


class Interrupted(TrainingStopped):
    """Ctrl-C; a checkpoint was written."""

    exit_code = 130


@dataclass
class RunOptions:
    output: Path
    data: Path | None = None  # a folder of `headcount data` with the recipe's own data, to train and test on
    resume: bool = False
    overwrite: bool = False
    keep: int = 2
    report_to: str = "none"
    processes: int | None = None  # how many were asked for; fewer is an error
    evaluate: bool = True


def step_seed(seed: int, step: int, rank: int) -> int:
    return int(np.random.SeedSequence([seed, step, rank]).generate_state(1)[0])


def seed_step(seed: int) -> None:
    """torch.manual_seed for every step: without a GPU that one formats a traceback and keeps it for ever."""
    if torch.cuda.is_available():
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)


def make_accelerator(recipe: Recipe, options: RunOptions) -> Accelerator:
    """Refuses to run with fewer processes than were asked for, which accelerate would do in silence."""
    if options.report_to != "none" and importlib.util.find_spec(options.report_to) is None:
        raise ValueError(
            f"--report-to {options.report_to} needs the package {options.report_to}, which is not installed; expected "
            f"'pip install {options.report_to}' first."
        )
    precision = "bf16" if recipe.training.precision == "bfloat16" else "no"
    trackers = None if options.report_to == "none" else options.report_to
    AcceleratorState._reset_state()  # a process may train twice, with another precision the second time
    accelerator = Accelerator(
        cpu=not torch.cuda.is_available(),
        mixed_precision=precision,
        log_with=trackers,
        project_dir=str(options.output),
    )
    if accelerator.distributed_type not in PLAIN:
        raise ValueError(
            f"accelerate was set up for {accelerator.distributed_type.value}, which divides the model; expected one "
            "process, or several with a whole copy each (--multi_gpu)."
        )
    asked = options.processes or launched_processes()
    if accelerator.num_processes != asked:
        raise ValueError(
            f"{asked} processes were asked for, but {accelerator.num_processes} started; on a CPU expected "
            f"'accelerate launch --multi_gpu --num_processes {asked} scripts/train.py ...' (--cpu starts only one)."
        )
    if recipe.training.batch_size % (accelerator.num_processes * recipe.training.gradient_accumulation):
        raise ValueError(
            f"training.batch_size={recipe.training.batch_size} is not allowed; expected a multiple of processes x "
            f"gradient_accumulation = {accelerator.num_processes} x {recipe.training.gradient_accumulation}."
        )
    return accelerator


def launched_processes() -> int:
    """How many processes the launcher was asked for.

    `accelerate launch --cpu --num_processes 2` starts one and tells it nothing; its own command line still says two.
    """
    if "WORLD_SIZE" in os.environ:
        return int(os.environ["WORLD_SIZE"])
    parent = psutil.Process().parent() if "ACCELERATE_MIXED_PRECISION" in os.environ else None
    arguments = parent.cmdline() if parent is not None else []
    for flag, value in itertools.pairwise([*arguments, ""]):
        name, _, attached = flag.partition("=")
        if name.replace("-", "_") == "__num_processes" and (attached or value).isdigit():
            return int(attached or value)
    return 1


class Stopper:
    """Remembers Ctrl-C until the step is done; a second one stops at once."""

    def __enter__(self) -> "Stopper":
        self.wanted = False
        self.previous = None
        if hasattr(signal, "SIGINT") and signal.getsignal(signal.SIGINT) is not None:
            try:
                self.previous = signal.signal(signal.SIGINT, self._note)
            except ValueError:  # not in the main thread, where signals cannot be caught
                self.previous = None
        return self

    def _note(self, number: int, frame: Any) -> None:
        if self.wanted:
            raise KeyboardInterrupt
        self.wanted = True

    def __exit__(self, *error: object) -> None:
        if self.previous is not None:
            signal.signal(signal.SIGINT, self.previous)


def train_recipe(recipe: Recipe, options: RunOptions, say: Callable[[str], None] | None = None) -> Row:
    """Runs the recipe and leaves a run folder; returns what the run ended with. Finished runs are not run again."""
    accelerator = make_accelerator(recipe, options)
    say = say or (lambda text: print(text, file=sys.stderr, flush=True))
    try:
        with alone_in(options.output) if accelerator.is_main_process else nullcontext():
            return run(recipe, options, accelerator, say)
    except TrainingStopped as stopped:
        traceback.clear_frames(stopped.__traceback__)  # they hold the model
        raise
    finally:
        accelerator.free_memory()  # collects what lies in cycles
        accelerator.end_training()


def run(recipe: Recipe, options: RunOptions, accelerator: Accelerator, say: Callable[[str], None]) -> Row:
    """`train_recipe` without its end: all that holds the wrapped model has to be gone before the processes part.

    The wrapper would otherwise be the last to hold the process group, and torch 2.13 then waits, with the
    interpreter's lock, for threads that wait for that lock.
    """
    cpu_start, main = time.process_time(), accelerator.is_main_process
    training, folder = recipe.training, options.output

    torch.manual_seed(training.seed)
    model = make_model(recipe)
    corpus = make_corpus(recipe) if options.data is None else corpus_of(recipe, options.data)
    size = sum(p.numel() * p.element_size() for p in model.parameters())
    if main:
        prepare_folder(folder, recipe, options.resume, options.overwrite, bytes_needed=4 * size * (options.keep + 2))
    accelerator.wait_for_everyone()
    if options.resume and (folder / PROVENANCE).exists():
        if main:
            say(f"{folder} is finished already; nothing to do.")
        return read_rows(results_path(folder, "training"))[0]

    batches = make_batches(recipe, corpus)
    steps = batches.steps
    prepared = accelerator.prepare(model)
    optimizers = OPTIMIZERS[training.optimizer](model, training)  # after the model has gone to its device
    start = 0
    if options.resume:
        found = checkpoints.newest_whole_checkpoint(folder / "checkpoints")
        if found is not None:
            path, state = found
            checkpoints.load_checkpoint(path, state, model, optimizers)
            start = state["step"]
        if main:
            say(f"resuming {folder} at step {start} of {steps}")
    if training.compile:
        prepared = torch.compile(prepared)
    if options.report_to != "none":
        accelerator.init_trackers("headcount", config={"recipe": recipe.name, "seed": training.seed})

    log = MetricsLog(folder, start) if main else None
    bar = new_bar(steps, "step", shown=main, initial=start)
    prepared.train()
    clock, done = time.perf_counter(), start
    with Stopper() as stopper, bar:
        for step in range(start, steps):
            result = training_step(prepared, optimizers, batches(step), step, steps, recipe, accelerator)
            done = step + 1
            last = done == steps
            if done % training.log_every == 0 or last:
                check_finite(result.loss, done, folder)
                speed = (done - start) * training.batch_size / (time.perf_counter() - clock)
                values = {"loss": result.loss.item(), "accuracy": result.accuracy.item(), "examples_per_second": speed}
                values["learning_rate"] = optimizers[-1].param_groups[0]["lr"]
                bar.set_postfix(loss=f"{values['loss']:.4f}", acc=f"{values['accuracy']:.3f}", ex_s=round(speed))
                accelerator.log(values, step=done)
                if log is not None:
                    log.add({"step": done, **values})
            if (done % training.evaluate_every == 0 and not last) or (last and training.target is not None):
                validation = gather_validation(prepared, recipe, corpus, accelerator)
                accelerator.log({"validation": validation["value"]}, step=done)
                if log is not None:
                    log.add({"step": done, "validation": validation["value"], "n": validation["n"]})
                if main and bar.disable:
                    say(f"step {done}/{steps}  loss {result.loss.item():.4f}  validation {validation['value']:.4f}")
                last = last or (training.target is not None and validation["value"] >= training.target)
            stop = agree(stopper.wanted, accelerator) and not last
            if log is not None and (stop or (done % training.checkpoint_every == 0 and not last)):
                check_finite(result.loss, done, folder)
                checkpoints.save_checkpoint(folder / "checkpoints", done, model, optimizers, options.keep)
                log.flush()
            bar.update()
            if stop:
                raise Interrupted(
                    f"interrupted at step {done} of {steps}; everything so far is in {folder}: go on with the same "
                    "command and --resume."
                )
            if last:
                break
    seconds = time.perf_counter() - clock
    summary = row(
        "training",
        "loss",
        {"value": result.loss.item(), "n": training.batch_size},
        recipe=recipe.name,
        seed=training.seed,
        steps=done,
        resumed_at=start,  # seconds and speed are those of the part since then
        seconds=round(seconds, 2),
        examples_per_second=round((done - start) * training.batch_size / seconds, 1),
    )
    accelerator.wait_for_everyone()
    if log is not None:
        finish(model, recipe, corpus, folder, summary, log, options, accelerator.num_processes, say, cpu_start)
    accelerator.wait_for_everyone()
    return summary


def corpus_of(recipe: Recipe, folder: Path) -> Corpus:
    """The data of a folder; those of other options than the recipe's are refused."""
    corpus = open_folder(folder)
    if corpus.task.name != recipe.task:
        raise ValueError(f"{folder} holds {corpus.task.name} data; expected data of {recipe.task}.")
    own, other = plain_options(recipe.options), plain_options(corpus.options)
    changed = next((name for name in own if own[name] != other[name]), None)
    if changed is not None:
        raise ValueError(
            f"{folder} was written with {changed}={other[changed]!r}, but the recipe {recipe.name} has "
            f"{own[changed]!r}; expected the data of the recipe: headcount data {recipe.task} --recipe {recipe.name}."
        )
    return corpus


@dataclass
class StepResult:
    loss: Tensor  # of the global batch
    accuracy: Tensor  # share of its labels that were predicted right, before the update


def training_step(
    model: Any,
    optimizers: list[torch.optim.Optimizer],
    batch: dict[str, Tensor],
    step: int,
    steps: int,
    recipe: Recipe,
    accelerator: Accelerator,
) -> StepResult:
    """One update of the weights, by the part of the global batch that belongs to this process.

    The model is in training mode; setting it at every step would walk through all of its modules.
    """
    training = recipe.training
    rank, world = accelerator.process_index, accelerator.num_processes
    seed_step(step_seed(training.seed, step, rank))
    factor = schedule(step, steps, training.warmup, training.decay)
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = group.setdefault("peak_lr", group["lr"]) * factor
    mine = {name: values[rank::world].to(accelerator.device) for name, values in batch.items()}
    asked_in_all = int((batch["labels"] != IGNORED).sum())
    total = torch.zeros(3, device=accelerator.device)
    count = training.gradient_accumulation
    parts = [{name: values[number::count] for name, values in mine.items()} for number in range(count)]
    for number, part in enumerate(parts):
        asked = int((part["labels"] != IGNORED).sum())
        with accelerator.autocast():
            output = model(**part)
        # Every label counts the same, however the batch is divided; DDP averages over the processes.
        loss = output.loss * (asked * world / asked_in_all)
        if number + 1 < len(parts):
            with accelerator.no_sync(model):
                accelerator.backward(loss)
        else:
            accelerator.backward(loss)
        hits = count_hits(output.logits.detach(), part["labels"], recipe)
        total += torch.stack((loss.detach() / world, hits, torch.tensor(float(asked), device=total.device)))
    if training.gradient_clip is not None:
        # From the optimizers: to collect them from the modules takes ten times as long.
        trained = [p for optimizer in optimizers for group in optimizer.param_groups for p in group["params"]]
        nn.utils.clip_grad_norm_(trained, training.gradient_clip)
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    if world > 1:
        total = accelerator.reduce(total, reduction="sum")
    return StepResult(loss=total[0], accuracy=total[1] / total[2])


def count_hits(logits: Tensor, labels: Tensor, recipe: Recipe) -> Tensor:
    if recipe.model.get("architecture") == "decoder":
        logits, labels = logits[:, :-1], labels[:, 1:]
    return (logits.argmax(-1) == labels).sum().float()


def gather_validation(model: Any, recipe: Recipe, corpus: Corpus, accelerator: Accelerator) -> dict:
    """Process 0 evaluates all validation rows once, and tells the others; nothing is padded, nothing counted twice.

    The model is in training mode again afterwards.
    """
    counts = torch.zeros(2, device=accelerator.device)
    if accelerator.is_main_process:
        found = validate(accelerator.unwrap_model(model, keep_torch_compile=False), recipe, corpus)
        counts += torch.tensor([round(found["value"] * found["n"]), found["n"]], device=counts.device)
        model.train()
    if accelerator.num_processes > 1:
        counts = accelerator.reduce(counts, reduction="sum")
    return rate(int(counts[0]), int(counts[1]))


def agree(flag: bool, accelerator: Accelerator) -> bool:
    """True on all processes if it is on any."""
    if accelerator.num_processes == 1:
        return flag
    return bool(accelerator.reduce(torch.tensor(float(flag), device=accelerator.device), reduction="sum") > 0)


def check_finite(loss: Tensor, step: int, folder: Path) -> None:
    if torch.isfinite(loss):
        return
    found = checkpoints.list_checkpoints(folder / "checkpoints")
    good = f"the last good checkpoint is {found[0]}" if found else "there is no checkpoint before it"
    raise Diverged(f"the loss is not finite at step {step}; {good}. Expected a smaller learning rate or float32.")


def finish(
    model: Any,
    recipe: Recipe,
    corpus: Corpus,
    folder: Path,
    summary: Row,
    log: "MetricsLog",
    options: RunOptions,
    processes: int,
    say: Callable[[str], None],
    cpu_start: float,
) -> None:
    log.flush()
    save_model(folder / "model", model, recipe)
    write_rows(folder, "training", [summary])
    if options.evaluate:
        say("evaluating on the test splits")
        write_rows(folder, "evaluation", evaluate_model(model, recipe, corpus))
    found = provenance(recipe.name, recipe.training.seed, summary["seconds"], cpu_start, processes)
    found |= origin_note(recipe.the_task)
    write_json(folder / PROVENANCE, {**found, "model": model_hashes(folder / "model")})
    say(f"done: {folder}")


class MetricsLog:
    """metrics.jsonl: one line per logged step; lines after the step that a run resumes from are dropped first."""

    def __init__(self, folder: Path, start: int):
        self.path = folder / METRICS
        kept = []
        if self.path.exists():
            for line in self.path.read_text().splitlines():
                try:
                    if json.loads(line)["step"] <= start:
                        kept.append(line)
                except (ValueError, KeyError):
                    continue  # the line that was being written when the process died
        write_text(self.path, "".join(f"{line}\n" for line in kept))

    def add(self, values: dict) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps(values) + "\n")

    def flush(self) -> None:
        with self.path.open("rb") as file:
            os.fsync(file.fileno())
