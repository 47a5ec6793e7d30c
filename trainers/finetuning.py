"""A little more training of a model that has lost heads, with the data and the optimizer of its recipe."""

from collections.abc import Callable
from dataclasses import replace

import torch
from accelerate import Accelerator

from ..data_builders.corpus import Corpus
from ..modeling.modeling_headcount import HeadcountPreTrainedModel
from .loop import training_step
from .optimizers import OPTIMIZERS
from .recipe import Recipe
from .training_data import make_batches


SCALE = 0.5  # of the recipe's learning rates: the model knows its task and has to mend, not to start anew


def make_finetuner(recipe: Recipe, corpus: Corpus, steps: int) -> Callable[[HeadcountPreTrainedModel], None]:
    """`finetune(model)`: `steps` steps with learning rates that rise and go down to zero each time.

    Every call goes on in the stream of training batches where the last one stopped.
    """
    if steps < 1:
        raise ValueError(f"--finetune {steps} is not allowed; expected a whole number of steps >= 1.")
    training = recipe.training
    training = replace(
        training,
        learning_rate=SCALE * training.learning_rate,
        muon_learning_rate=SCALE * training.muon_learning_rate,
        warmup=0.1,
        decay="linear",
        gradient_accumulation=1,
    )
    recipe = replace(recipe, training=training)
    batches, accelerator, calls = make_batches(recipe, corpus), Accelerator(cpu=not torch.cuda.is_available()), 0

    def finetune(model: HeadcountPreTrainedModel) -> None:
        nonlocal calls
        optimizers = OPTIMIZERS[training.optimizer](model, training)
        model.train()
        for step in range(steps):
            training_step(model, optimizers, batches(calls * steps + step), step, steps, recipe, accelerator)
        model.eval()
        calls += 1

    return finetune
