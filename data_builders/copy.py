"""Copy a string of letters, in which letters may come again: `banana` -> `banana`."""

import numpy as np
from numpy.typing import NDArray

from .letters import LetterTask, letter_texts
from .strings import Strings
from .tasks import LengthStudy, Study


class Copy(LetterTask):
    name = "copy"
    texts = letter_texts(
        title="Copy a string",
        short_title="Copying",
        description="write a string of letters once more: banana -> banana",
        does="writes {} once more, letter by letter",
        answer="the string once more",
    )
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
