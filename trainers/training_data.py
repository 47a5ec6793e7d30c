"""Training batches: `batches(step)` gives the global batch of a step as tensors, a function of seed and step alone.

That is what makes a resumed run the same as one that was never stopped: no position in a data loader, no random state.
"""

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from ..data_builders.addition import AdditionCorpus
from ..data_builders.addition_options import AdditionOptions
from ..data_builders.carry_groups import sample_addition, shorten_one_operand
from ..data_builders.columns import Problems
from ..data_builders.sortedness import balanced_kinds, describe, put_out_of_order
from ..data_builders.sortedness_corpus import SortednessCorpus, SortednessOptions, draw_untaken
from ..data_builders.tokenization import FIRST_TOKEN, IGNORED, PAD, encode_addition, encode_sortedness
from .recipe import Recipe


Batch = dict[str, Tensor]
SORT_WINDOW = 50  # batches among which rows are sorted by length
MOST_DRAWS = 200  # for one batch, if they bring less than one problem each


class FixedRows:
    """Epochs over rows held in memory, in a new random order each time, with rows of like length together."""

    def __init__(self, rows: Batch, batch_size: int, seed: int):
        self.rows, self.batch_size, self.seed = rows, batch_size, seed
        count = len(rows["labels"])
        if batch_size > count:
            raise ValueError(f"training.batch_size={batch_size} is not allowed with {count} training rows.")
        self.steps_per_epoch = count // batch_size
        self.lengths = (rows["input_ids"] != PAD).sum(-1)
        self.equal_lengths = bool((self.lengths == self.lengths[0]).all())
        self._epoch, self._plan = -1, None

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
    trimmed = {name: batch[name][:, :width] for name in ("input_ids", "attention_mask") if name in batch}
    answer = int((batch["labels"] != IGNORED).int().cumsum(-1).argmax(-1).max()) + 1
    trimmed["labels"] = batch["labels"][:, :answer] if len(batch["labels"]) else batch["labels"]
    if "attention_mask" in trimmed and bool(trimmed["attention_mask"].all()):
        del trimmed["attention_mask"]
    return trimmed


def addition_style(recipe: Recipe) -> str:
    return "decoder" if recipe.model.get("architecture") == "decoder" else "encoder-decoder"


def encode_problems(problems: Problems, recipe: Recipe) -> Batch:
    options = AdditionOptions(**recipe.data)
    encoded = encode_addition(problems, addition_style(recipe), options.answer_order, options.zero_pad)
    return {name: torch.from_numpy(values) for name, values in encoded.items()}


class FreshAddition:
    """Problems made anew for every step, an equal part each with the shares of nine-sums in `training.nine_shares`.

    With `min_digits`, a batch has one width, drawn from `min_digits`..`digits`, so that nothing is padded; in half of
    its problems one operand is shorter, of any length. Rows that the corpus holds out for evaluation are left out.
    """

    def __init__(self, recipe: Recipe, corpus: AdditionCorpus):
        self.recipe, self.corpus = recipe, corpus
        self.options, self.batch_size = corpus.options, recipe.training.batch_size

    def __call__(self, step: int) -> Batch:
        rng = np.random.default_rng([self.recipe.training.seed, step])
        width = int(rng.choice(self.options.widths))
        shares = self.recipe.training.nine_shares
        found, have = [], 0
        while have < self.batch_size:
            if len(found) >= MOST_DRAWS and have < len(found):
                raise ValueError(
                    f"nearly all problems of {width} digits are held out; expected a larger data.min_digits, or fewer "
                    "rows in data.test, data.validation and data.hard."
                )
            part = math.ceil(self.batch_size / len(shares)) + 4
            problems = Problems.concatenate([sample_addition(rng, part, width, nine_share=share) for share in shares])
            problems = problems[rng.permutation(len(problems))]
            if self.options.min_digits is not None:
                shorten_one_operand(rng, problems)
            problems = problems[~self.corpus.is_held_out(problems)]
            found.append(problems)
            have += len(problems)
        return encode_problems(Problems.concatenate(found)[: self.batch_size], self.recipe)


class FreshSortedness:
    """Sequences made anew for every step, one length per batch, half of them sorted; held-out values are left out.

    With `curriculum` the unsorted ones start as shuffles and blend into the mixture between 1/8 and 1/3 of the steps:
    one swapped pair among sixteen is too faint a signal for a model that knows nothing yet.
    """

    BLEND = (1 / 8, 1 / 3)

    def __init__(self, recipe: Recipe, corpus: SortednessCorpus):
        self.training, self.options = recipe.training, corpus.options
        self.corpus = corpus
        if self.training.batch_size % 2:
            raise ValueError(
                f"training.batch_size={self.training.batch_size} is not allowed; expected an even number."
            )

    def __call__(self, step: int) -> Batch:
        rng = np.random.default_rng([self.training.seed, step])
        length = int(rng.integers(self.options.min_length, self.options.max_length + 1))
        count, share = self.training.batch_size, self.options.narrow_share
        kind = balanced_kinds(rng, count, self._kinds(step))
        values = draw_untaken(rng, count, length, share, self.corpus.held_out_keys)
        put_out_of_order(rng, values, kind)
        return {
            "input_ids": torch.from_numpy(encode_sortedness(values)),
            "labels": torch.from_numpy(describe(values, kind)["label"]),
        }

    def _kinds(self, step: int) -> dict[str, float]:
        if not self.training.curriculum:
            return self.options.kinds
        start, end = (share * self.training.steps for share in self.BLEND)
        blend = min(1.0, max(0.0, (step - start) / (end - start)))
        kinds = {kind: blend * share for kind, share in self.options.kinds.items()}
        return kinds | {"shuffle": kinds.get("shuffle", 0.0) + 1.0 - blend}


def sortedness_rows(corpus: SortednessCorpus, config: str, split: str) -> list[dict[str, np.ndarray]]:
    """The rows of a split, grouped by length: each group is one array without padding."""
    groups: dict[int, list[dict]] = {}
    for rows in corpus.batches(config, split):
        for length in np.unique(rows["length"]):
            own = rows["length"] == length
            part = {name: values[own] for name, values in rows.items()}
            part["values"] = part["values"][:, :length]
            groups.setdefault(int(length), []).append(part)
    return [
        {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        for _, parts in sorted(groups.items())
    ]


def make_corpus(recipe: Recipe):
    """The recipe's corpus; its seed is that of the data section, so that all training seeds share one test set."""
    if recipe.task == "addition":
        return AdditionCorpus(AdditionOptions(**recipe.data))
    return SortednessCorpus(SortednessOptions(**recipe.data))


def make_batches(recipe: Recipe, corpus) -> Callable[[int], Batch]:
    training = recipe.training
    if training.fresh_data:
        return {"addition": FreshAddition, "sortedness": FreshSortedness}[recipe.task](recipe, corpus)
    if recipe.task == "addition":
        rows = encode_problems(corpus.problems("train"), recipe)
    else:
        parts = list(corpus.batches("default", "train"))
        values, lengths = (np.concatenate([part[name] for part in parts]) for name in ("values", "length"))
        real = np.arange(values.shape[1]) < lengths[:, None]
        rows = {
            "input_ids": torch.from_numpy(np.where(real, values.astype(np.int64) + FIRST_TOKEN, PAD)),
            "attention_mask": torch.from_numpy(real.astype(np.int64)),
            "labels": torch.from_numpy(np.concatenate([part["label"] for part in parts])),
        }
    return FixedRows(rows, training.batch_size, training.seed)


def number_of_steps(recipe: Recipe, batches: Callable[[int], Batch]) -> int:
    training = recipe.training
    return training.steps or max(1, round(training.epochs * batches.steps_per_epoch))
