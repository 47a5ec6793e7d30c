"""Strings of letters, in which letters may come again: what copy and reverse share.

Letters that come again are the known hard case: a model that finds its place by the letters just written, as induction
heads do, is lost as soon as they stand in several places.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .card_figures import draw_counts
from .strings import StringCorpus, Strings, StringTask
from .tasks import DataCard, Relation, Texts
from .vocabulary import Vocabulary


LETTERS = "abcdefghijklmnopqrstuvwxyz"
FEW = 3  # letters of a `repeated` string, and of the pattern of a `periodic` one
VOCABULARY = Vocabulary(tuple(LETTERS + "="), answer_mark="=")
CLASSES = {
    "random": "letters drawn from all 26",
    "repeated": f"letters drawn from {FEW} only, so that nearly all come again",
    "periodic": f"{FEW} letters again and again, so that what was just written never tells the place",
}


class LetterCorpus(StringCorpus):
    repetitive = ("length", "repeats")


class LetterTask(StringTask):
    vocabulary = VOCABULARY
    alphabet = tuple(LETTERS)
    symbol = "letter"
    classes = CLASSES
    hardest = ("repeated", "periodic", "random")
    relations = {"source": Relation("the letter that is to be written", ("letter",), 0, reads="its source")}
    last_written = "last letter"
    role_letters = {"letter": "x", "answer": "y"}

    def draw(self, options: Any, rng: np.random.Generator, n: int, width: int, kind: str | None) -> NDArray[np.int64]:
        letters = rng.integers(0, len(LETTERS), (n, width))
        if kind not in ("repeated", "periodic"):
            return letters
        chosen = rng.permuted(np.tile(np.arange(len(LETTERS)), (n, 1)), axis=1)[:, :FEW]
        order = letters % FEW if kind == "repeated" else np.broadcast_to(np.arange(width) % FEW, (n, width))
        return np.take_along_axis(chosen, order, axis=1)

    def facts(self, problems: Strings) -> dict[str, NDArray]:
        ordered = np.sort(np.where(problems.real, problems.symbols, -1 - np.arange(problems.symbols.shape[1])), axis=1)
        again = (ordered[:, 1:] == ordered[:, :-1]).any(-1)
        return {"length": problems.length, "repeats": np.where(again, "with", "without")}

    def splits(self, options: Any) -> LetterCorpus:
        return LetterCorpus(self, options)


def letter_texts(title: str, short_title: str, description: str, does: str, answer: str) -> Texts:
    """`does`: what a model does with strings of some lengths, "writes {} backwards"; `answer`: what it writes."""
    return Texts(
        title=title,
        short_title=short_title,
        description=description,
        summary=lambda options: f"A small transformer that {does.format(f'strings of {_trained(options)}')}.",
        reads=lambda options: (
            f"It was trained on strings of {_trained(options)} from a to z. Anything else it cannot read."
        ),
        length="letters",
        problems="strings",
        kinds="strings",
        kind_noun="strings",
        place="letter of the answer",
        facts={"length": "length", "repeats": "letters that come again"},
        kinds_text="; ".join(f"`{name}`: {says}" for name, says in CLASSES.items()) + ".",
        data=DataCard(
            summary=f"Strings of letters, and {answer.replace('the string', 'the same strings')}.",
            method="Letters are drawn uniformly and may come again. No string of `train` is in `validation` or "
            "`test`, and none is in both of these; the classes at longer lengths are drawn by themselves.",
            limits="Strings of one length are as many as 26 to the power of that length: short ones are soon used up.",
            columns={
                "": {
                    "input": "the string",
                    "target": answer,
                    "length": "how many letters",
                    "repeats": "`with` or `without` a letter that comes again",
                }
            },
            purpose=partial(split_purpose, CLASSES),
            balance="repeats",
            balance_text="Rows with and without a letter that comes again:",
            draw=partial(draw_counts, facts={"length": "letters"}),
            figure="lengths.png",
            figure_text="Share of rows by length",
        ),
    )


def split_purpose(classes: Mapping[str, str], config: str, split: str) -> str:
    """What a split of a task of strings is for."""
    if config in classes:
        return f"testing at length {split.removeprefix('test_')}; `{config}`: {classes[config]}"
    return {"train": "training", "validation": "choosing", "test": "testing"}[split]


def _trained(options: Mapping) -> str:
    return f"{options['min_length']} to {options['max_length']} letters"
