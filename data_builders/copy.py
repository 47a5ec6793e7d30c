"""Copy a string of letters, in which letters may come again: `banana` -> `banana`."""

import numpy as np
from numpy.typing import NDArray

from .expectations import C_RASP, RASP_L, Expectation, Paper, Prediction, Published
from .letters import LetterTask, letter_texts
from .strings import Strings
from .tasks import LengthStudy, Study


EXPECTATION = Expectation(
    predictions=(
        Prediction(
            RASP_L,
            False,
            "where letters come again, the letter just written does not say which of its places is meant, and RASP-L "
            "has no arithmetic on indices to find it; without repeated letters there is a program",
        ),
        Prediction(
            C_RASP,
            False,
            "a string with repeated letters is more than can pass to its copy in a number of bits that grows with the "
            "logarithm of the length; without repeated letters there is a program",
        ),
    ),
    published=Published(
        50,
        1000,
        "almost perfect",
        "Hard-ALiBi: some heads see a few places back only, the others have no positions",
        Paper("Jelassi et al. 2024", "https://arxiv.org/abs/2402.01032"),
    ),
)


class Copy(LetterTask):
    name = "copy"
    texts = letter_texts(
        title="Copy a string",
        short_title="Copying",
        description="write a string of letters once more: banana -> banana",
        does="writes {} once more, letter by letter",
        answer="the string once more",
    )
    expectation = EXPECTATION
    length_study = LengthStudy(
        recipe="copy-long",
        lengths=(20, 32, 64, 128, 256),
        quick_lengths=(20, 32),
        quick_settings=("training.steps=300",),
        quick_variants=("whole", "no-coupling"),
    )
    study = Study(
        recipes=("copy",),
        quick_recipe="copy",
        quick_settings=("training.epochs=1",),
        length_options=("--variants", "whole,no-coupling,no-jitter", "--seeds", "0"),
    )

    def solve(self, problems: Strings) -> NDArray[np.int64]:
        """The strings themselves; what stands after their length is no part of them."""
        return problems.symbols


TASK = Copy()
