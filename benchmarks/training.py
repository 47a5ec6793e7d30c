"""One training step of addition, batch 64 and 512: the loop of `headcount train` against raw loops and a trainer.

AdamW, clipping and batches are the same everywhere, and every way has a process of its own. Ours is the whole step as
a run does it, with seeding, schedule and accuracy; the recipe's own optimizer, Muon, does more work per step and is
shown by itself.
"""

import tempfile
import time
from dataclasses import replace
from pathlib import Path

import torch
from adders import ADDERS, PACKAGES, Bart, make_optimizer, step
from timing import Apart, absent, compare, take_turns, version

from headcount.records.memory import keep_freed_memory
from headcount.trainers.loop import RunOptions, make_accelerator, training_step
from headcount.trainers.model_building import make_model
from headcount.trainers.optimizers import OPTIMIZERS
from headcount.trainers.recipe import Recipe, load_recipe
from headcount.trainers.training_data import make_batches, make_corpus


STEPS = {64: 12, 512: 2}  # in one turn
OURS, TRAINER = "headcount train, AdamW", "Seq2SeqTrainer, BART"


def adamw(recipe: Recipe) -> Recipe:
    """The recipe with what the raw loops have: their optimizer, and clipping."""
    options = {"optimizer": "adamw", "learning_rate": 1e-3, "gradient_clip": 1.0}
    return replace(recipe, training=replace(recipe.training, **options))


def our_steps(recipe: Recipe, batches, count: int):
    accelerator = make_accelerator(recipe, RunOptions(Path(tempfile.gettempdir())))
    torch.manual_seed(0)
    model = accelerator.prepare(make_model(recipe)).train()
    optimizers = OPTIMIZERS[recipe.training.optimizer](model, recipe.training)
    done = 0

    def work() -> None:
        nonlocal done
        for number in range(done, done + count):
            training_step(model, optimizers, batches(number), number, 10**6, recipe, accelerator)
        done += count

    return work


def raw_steps(make, batches, count: int):
    torch.manual_seed(0)
    model = make().train()
    optimizer, done = make_optimizer(model), 0

    def work() -> None:
        nonlocal done
        for number in range(done, done + count):
            step(model, optimizer, batches(number))
        done += count

    return work


def trainer_steps(rows: dict, batch_size: int, count: int):
    """Seconds of `count` steps inside of Seq2SeqTrainer; its preparations are not counted."""
    from transformers import PrinterCallback, Seq2SeqTrainer, Seq2SeqTrainingArguments, TrainerCallback

    class Clock(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            if state.global_step == 1:
                self.start = time.perf_counter()
            elif state.global_step == count + 1:
                self.seconds = time.perf_counter() - self.start

    torch.manual_seed(0)
    model = Bart().model
    data = [{name: values[i] for name, values in rows.items()} for i in range(len(rows["labels"]))]

    def work() -> float:
        clock = Clock()
        with tempfile.TemporaryDirectory() as folder:
            options = Seq2SeqTrainingArguments(
                folder,
                per_device_train_batch_size=batch_size,
                max_steps=count + 1,
                use_cpu=True,
                report_to=[],
                save_strategy="no",
                logging_strategy="no",
                disable_tqdm=True,
                learning_rate=1e-3,
                adam_beta2=0.98,
            )
            trainer = Seq2SeqTrainer(model=model, args=options, train_dataset=data, callbacks=[clock])
            trainer.remove_callback(PrinterCallback)
            trainer.train()
        return clock.seconds

    return work


def ours(batch_size: int, optimizer: str):
    keep_freed_memory()  # as the command `headcount train` does
    recipe, batches = batches_of(batch_size)
    return our_steps(adamw(recipe) if optimizer == "AdamW" else recipe, batches, STEPS[batch_size])


def raw_loop(batch_size: int, name: str):
    return raw_steps(ADDERS[name], batches_of(batch_size)[1], STEPS[batch_size])


def trainer(batch_size: int):
    return trainer_steps(batches_of(batch_size)[1].rows, batch_size, STEPS[batch_size])


def batches_of(batch_size: int):
    recipe = load_recipe("addition", [f"training.batch_size={batch_size}"])
    return recipe, make_batches(recipe, make_corpus(recipe))


def measure(seconds: float) -> list[dict]:
    found = []
    for batch_size, count in STEPS.items():
        work = f"training step, addition, batch {batch_size}"
        apart = {
            OURS: Apart(ours, batch_size, "AdamW"),
            "headcount train, Muon": Apart(ours, batch_size, "Muon"),
            TRAINER: Apart(trainer, batch_size),
        }
        for name in ADDERS:
            if name in PACKAGES and version(PACKAGES[name]) is None:
                found.append(absent(work, name, "not installed"))
            else:
                apart[f"raw loop, {name}"] = Apart(raw_loop, batch_size, name)
        inside: list[float] = []
        ways = {**apart, TRAINER: lambda call=apart[TRAINER], into=inside: into.append(call())}
        times = take_turns(ways, seconds / len(STEPS))
        times[TRAINER] = inside[1:]  # what it took inside; the first is the warm-up
        found += compare(work, times, OURS, per=count, batch=batch_size)
        for way in apart.values():
            way.close()
    return found
