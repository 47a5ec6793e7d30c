"""A little more training of a model that has lost heads, with the data and the optimizer of its recipe."""

from collections.abc import Callable
from dataclasses import replace

import torch

from .loop import step_seed
from .optimizers import OPTIMIZERS, schedule
from .recipe import Recipe
from .training_data import Batch, make_batches


def make_finetuner(recipe: Recipe, corpus, steps: int, scale: float = 0.5, seed: int = 0) -> Callable:
    """`finetune(model)`: `steps` steps at `scale` times the recipe's learning rates, down to zero each time.

    Every call goes on in the stream of training batches where the last one stopped.
    """
    if steps < 1:
        raise ValueError(f"finetune steps={steps} is not allowed; expected a whole number >= 1.")
    recipe = replace(recipe, training=replace(recipe.training, seed=recipe.training.seed + 1_000_003 * (1 + seed)))
    batches: Callable[[int], Batch] = make_batches(recipe, corpus)
    calls = 0

    def finetune(model) -> None:
        nonlocal calls
        optimizers = OPTIMIZERS[recipe.training.optimizer](model, recipe.training)
        full = [[group["lr"] for group in optimizer.param_groups] for optimizer in optimizers]
        model.train()
        for step in range(steps):
            factor = scale * schedule(step, steps, 0.1, "linear")
            for optimizer, rates in zip(optimizers, full, strict=True):
                for group, rate in zip(optimizer.param_groups, rates, strict=True):
                    group["lr"] = rate * factor
            number = calls * steps + step
            torch.manual_seed(step_seed(recipe.training.seed, number, 0))
            model(**batches(number)).loss.backward()
            if recipe.training.gradient_clip is not None:
                torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.training.gradient_clip)
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()
        model.eval()
        calls += 1

    return finetune
