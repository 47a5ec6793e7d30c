"""A task as a user would write it: copy a string of the letters a, b and c. Nothing of headcount knows it."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from headcount.data_builders.card_figures import draw_counts
from headcount.data_builders.corpus import Corpus
from headcount.data_builders.tasks import DataCard, LengthStudy, Problems, Study, Task, Texts
from headcount.data_builders.vocabulary import Vocabulary


@dataclass(frozen=True)
class CopyingOptions:
    seed: int = 0
    min_length: int = 6
    max_length: int = 8
    train: int = 300
    validation: int = 20
    test: int = 40
    test_lengths: tuple[int, ...] = (10,)
    long_test: int = 10


@dataclass(frozen=True)
class Strings(Problems):
    letters: np.ndarray
    length: np.ndarray


class CopyingCorpus(Corpus):
    def read_table(self, table):
        texts = table["input"].to_pylist()
        letters = [["abc".index(letter) for letter in text.ljust(self.options.max_length, "a")] for text in texts]
        return Strings(np.array(letters), np.array([len(text) for text in texts]))


class Copying(Task):
    name = "copying"
    kind = "sequence"
    options = CopyingOptions
    vocabulary = Vocabulary(("a", "b", "c", "="), answer_mark="=")
    classes = {"random": "letters drawn at random"}
    hardest = ("random",)
    length_study = LengthStudy(__file__, lengths=(10, 12), quick_lengths=(10,), quick_variants=("learned",))
    study = Study(recipes=(__file__,), quick_recipe=__file__, quick_keep=3)
    texts = Texts(
        title="Copy a string",
        short_title="Copying",
        description="write a string once more: abc -> abc",
        summary=lambda options: "A small transformer that copies strings.",
        reads=lambda options: "It reads the letters a, b and c.",
        length="letters",
        facts={"length": "length"},
        data=DataCard(
            summary="Strings.",
            method="Letters are drawn at random.",
            limits="There are few short strings.",
            columns={"": {"input": "the string", "target": "the string again", "length": "how many letters"}},
            purpose=lambda config, split: split,
            balance="length",
            balance_text="Rows by length:",
            draw=partial(draw_counts, facts={"length": "letters"}),
            figure="lengths.png",
            figure_text="Share of rows by length",
        ),
    )

    def problems(self, options, rng, n, length=None, kind=None):
        width = options.max_length if length is None else length
        lengths = rng.integers(options.min_length, width + 1, n) if length is None else np.full(n, length)
        return Strings(rng.integers(0, 3, (n, width)), lengths)

    def solve(self, problems):
        return problems.letters

    def facts(self, problems):
        return {"length": problems.length}

    def splits(self, options):
        return CopyingCorpus(self, options)

    def write(self, problems, options):
        written = (problems.letters + self.vocabulary.first, problems.length)
        return written, written


TASK = Copying()

RECIPE = {
    "description": "copies strings of three letters",
    "model": {
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "hidden_size": 16,
        "intermediate_size": 16,
        "position_embedding_type": "learned",
        "max_position_embeddings": 32,
    },
    "training": {"steps": 6, "batch_size": 16, "evaluate_every": 6, "checkpoint_every": 6},
}
