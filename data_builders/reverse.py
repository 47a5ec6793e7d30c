"""Reverse a string of letters, in which letters may come again: `banana` -> `ananab`."""

import numpy as np
from numpy.typing import NDArray

from .expectations import C_RASP, RASP_L, Expectation, Prediction
from .letters import LetterTask, letter_texts
from .strings import Strings
from .tasks import LengthStudy, Study


EXPECTATION = Expectation(
    predictions=(
        Prediction(
            RASP_L,
            None,
            "copying with repeated tokens, its twin, has no RASP-L program: a letter does not say where it stood",
        ),
        Prediction(
            C_RASP,
            None,
            "copying with repeated tokens, its twin, has no program: a whole string is too much to be carried across",
        ),
    ),
)


class Reverse(LetterTask):
    name = "reverse"
    coupled_order = "reversed"
    texts = letter_texts(
        title="Reverse a string",
        short_title="Reversal",
        description="write a string of letters from its end to its start: banana -> ananab",
        does="writes {} backwards, letter by letter",
        answer="the string backwards",
    )
    length_study = LengthStudy(
        recipe="reverse-long",
        lengths=(20, 32, 64, 128, 256),
        quick_lengths=(20, 32),
        quick_settings=("training.steps=300",),
        quick_variants=("whole", "no-coupling"),
    )
    expectation = EXPECTATION
    study = Study(
        recipes=("reverse",),
        quick_recipe="reverse",
        quick_settings=("training.epochs=1",),
        length_options=("--variants", "whole,no-coupling,no-jitter", "--seeds", "0"),
    )

    def solve(self, problems: Strings) -> NDArray[np.int64]:
        """The letters of every string from its end to its start; what stands after them is no part of it."""
        source = problems.length[:, None] - 1 - np.arange(problems.symbols.shape[1])
        return np.take_along_axis(problems.symbols, np.maximum(source, 0), axis=1)


TASK = Reverse()
