"""Training batches: `batches(step)` gives the global batch of a step as tensors, a function of seed and step alone.

That is what makes a resumed run the same as one that was never stopped: no position in a data loader, no random state.
"""

from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from ..data_builders.corpus import Corpus
from ..data_builders.examples import tensors
from ..data_builders.tasks import ARCHITECTURES
from ..data_builders.vocabulary import IGNORED, PAD
from .recipe import Recipe


Batch = dict[str, Tensor]
SORT_WINDOW = 50  # batches among which rows are sorted by length


class Batches(Protocol):
    """The batch of every step, and how many steps the training takes."""

    steps: int

    def __call__(self, step: int) -> Batch: ...


class FixedRows:
    """Epochs over rows held in memory, in a new random order each time, with rows of like length together."""

    def __init__(self, rows: Batch, recipe: Recipe):
        training = recipe.training
        self.rows, self.batch_size, self.seed = rows, training.batch_size, training.seed
        count = len(rows["labels"])
        if self.batch_size > count:
            raise ValueError(f"training.batch_size={self.batch_size} is not allowed with {count} training rows.")
        self.steps_per_epoch = count // self.batch_size
        self.steps = training.steps or max(1, round((training.epochs or 0) * self.steps_per_epoch))
        self.lengths = (rows["input_ids"] != PAD).sum(-1)
        self.equal_lengths = bool((self.lengths == self.lengths[0]).all())
        self._epoch, self._plan = -1, torch.empty(0)

    def __call__(self, step: int) -> Batch:
        epoch, number = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            self._epoch, self._plan = epoch, self._draw_plan(epoch)
        index = self._plan[number]
        batch = {name: values[index] for name, values in self.rows.items()}
        return batch if self.equal_lengths else trim(batch)

    def _draw_plan(self, epoch: int) -> Tensor:
        """(steps, batch): which rows make which batch."""
        generator = torch.Generator().manual_seed(int(np.random.SeedSequence([self.seed, epoch]).generate_state(1)[0]))
        order = torch.randperm(len(self.lengths), generator=generator)[: self.steps_per_epoch * self.batch_size]
        if not self.equal_lengths:
            windows = order.split(SORT_WINDOW * self.batch_size)
            order = torch.cat([window[self.lengths[window].argsort(stable=True)] for window in windows])
            shuffle = torch.randperm(self.steps_per_epoch, generator=generator)
            return order.view(-1, self.batch_size)[shuffle]
        return order.view(-1, self.batch_size)


def trim(batch: Batch) -> Batch:
    """Cuts columns that are padding in every row; without any padding left, the attention mask goes too."""
    width = int((batch["input_ids"] != PAD).sum(-1).max())
    trimmed: Batch = {name: batch[name][:, :width] for name in ("input_ids", "attention_mask") if name in batch}
    trimmed["labels"] = batch["labels"]
    if batch["labels"].ndim > 1:
        answer = int((batch["labels"] != IGNORED).int().cumsum(-1).argmax(-1).max()) + 1
        trimmed["labels"] = batch["labels"][:, :answer]
    if "attention_mask" in trimmed and bool(trimmed["attention_mask"].all()):
        del trimmed["attention_mask"]
    return trimmed


class FreshRows:
    """Problems that the task makes anew for every step; those that the corpus holds out are left out."""

    def __init__(self, recipe: Recipe, corpus: Corpus):
        self.recipe, self.corpus = recipe, corpus
        self.steps: int = recipe.training.steps or 1  # fresh data need a number of steps: see TrainingOptions

    def __call__(self, step: int) -> Batch:
        recipe, training = self.recipe, self.recipe.training
        rng = np.random.default_rng([training.seed, step])
        task = recipe.the_task
        problems = task.fresh_problems(rng, training.batch_size, self.corpus, recipe.stream, step, self.steps)
        return tensors(task.encode(problems, style_of(recipe), self.corpus.options))


def style_of(recipe: Recipe) -> str:
    """The architecture that reads the task's examples."""
    return recipe.model.get("architecture", ARCHITECTURES[recipe.the_task.kind][0])


def make_corpus(recipe: Recipe) -> Corpus:
    """The recipe's corpus; its seed is that of the data section, so that all training seeds share one test set."""
    return recipe.the_task.splits(recipe.options)


def make_batches(recipe: Recipe, corpus: Corpus) -> Batches:
    if recipe.training.fresh_data:
        return FreshRows(recipe, corpus)
    rows = recipe.the_task.encode(corpus.problems("train"), style_of(recipe), corpus.options)
    return FixedRows(tensors(rows), recipe)
