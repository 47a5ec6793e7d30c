"""running_total: a task to start from. It runs as it is; change it step by step, and run its test after each.

A problem is a row of digits. The answer is the total after each of them, without its tens: 394 -> 326.

    headcount train running_total.py --output runs/running_total
    python -m pytest test_running_total.py
"""

from dataclasses import dataclass

import numpy as np

from headcount.data_builders.corpus import Corpus
from headcount.data_builders.counterfactuals import ANY_PAIRS
from headcount.data_builders.plain import PlainOptions, plain_texts
from headcount.data_builders.tasks import NOT_A_PLACE, LengthStudy, Problems, Study, Task, Variable
from headcount.data_builders.vocabulary import Vocabulary


# Classes of problems that are tested by themselves, at every length: name -> what is in it.
CLASSES = {"random": "digits drawn from all ten", "large": "digits from 5 to 9, so that most totals pass ten"}


# 1. Options: everything that can be chosen about the data. What you add here is an option of `headcount data`, too.
@dataclass(frozen=True)
class OwnOptions(PlainOptions):
    min_length: int = 2
    max_length: int = 6


# 2. Problems: many at once, as arrays with a row for each. Short rows are filled up; `length` says where they end.
@dataclass(frozen=True)
class OwnProblems(Problems):
    digits: np.ndarray  # (N, L): N problems, L digits of the longest
    length: np.ndarray  # (N,)


# 3. Problems that are read back from the texts of a data folder, for `headcount train --data`.
class OwnCorpus(Corpus):
    def read_table(self, table):
        texts = table["input"].to_pylist()
        length = np.array([len(text) for text in texts])
        digits = [[int(sign) for sign in text.ljust(length.max(), "0")] for text in texts]
        return OwnProblems(np.array(digits), length)


# 4. The task itself.
class OwnTask(Task):
    name = "running_total"
    kind = "sequence"  # an answer of several tokens; "label" would be one class for the whole problem
    options = OwnOptions
    vocabulary = Vocabulary(tuple("0123456789="), answer_mark="=")  # every token that there is
    classes = CLASSES
    hardest = ("large", "random")  # the one that is hardest to get right by accident comes first
    texts = plain_texts(
        title="Running totals",
        description="write the total after each digit, without its tens: 394 -> 326",
        problem="a row of digits",
        answer="the total after each of them, without its tens",
        classes=CLASSES,
        length="digits",
    )
    # What `headcount extrapolate` and `headcount study` do with it, by the recipe __file__, which is the RECIPE below.
    length_study = LengthStudy(
        recipe=__file__,
        lengths=(7, 8, 12, 24),
        quick_lengths=(8,),
        quick_settings=("training.epochs=1",),
        quick_variants=("learned",),
    )
    study = Study(
        recipes=(__file__,),
        quick_recipe=__file__,
        quick_settings=("training.epochs=1",),
        length_options=("--encodings", "learned,rotary,t5_bias", "--seeds", "0"),
    )

    def problems(self, options, rng, n, length=None, kind=None):
        """`n` problems: of one length if it is given, else of all lengths in training; of a class if it is given."""
        width = options.max_length if length is None else length
        lengths = rng.integers(options.min_length, width + 1, n) if length is None else np.full(n, length)
        return OwnProblems(rng.integers(5 if kind == "large" else 0, 10, (n, width)), lengths)

    def solve(self, problems):
        """The exact answers, (N, L)."""
        return np.cumsum(problems.digits, axis=1) % 10

    def facts(self, problems):
        """By what results are broken down."""
        return {"length": problems.length}

    def write(self, problems, options):
        """Questions and answers as tokens: the ids, and how many of each row count."""
        questions = (problems.digits + self.vocabulary.first, problems.length)
        return questions, self.write_answers(problems, self.solve(problems), options)

    def tokens_at(self, length, style):
        """Tokens of the longest sequence that is read at once: the question, or with the answer behind it."""
        return 2 * length + 3 if style == "decoder" else length + 1

    def splits(self, options):
        """Training, validation and test rows, of which none is in two of them."""
        return OwnCorpus(self, options)

    # 5. For `headcount patch` and `headcount explain`: what the algorithm has to know on its way. Without it, leave
    # `variables` and all below it out.
    variables = {
        "total": Variable(
            says="the total up to a place",
            place="place",
            near={"next": 1},
            pair_kinds=ANY_PAIRS,
            values=lambda problems: OwnTask.totals(problems),
            answers=lambda problems, place, values: OwnTask.with_total(problems, place, values),
        )
    }

    @staticmethod
    def totals(problems):
        """(N, L): the value of the variable at every place; NOT_A_PLACE behind the end."""
        inside = np.arange(problems.digits.shape[1]) < problems.length[:, None]
        return np.where(inside, np.cumsum(problems.digits, axis=1) % 10, NOT_A_PLACE)

    @staticmethod
    def with_total(problems, place, values):
        """The answers if the total at `place` (N,) were `values` (N,): all that follow shift with it."""
        right = np.cumsum(problems.digits, axis=1) % 10
        shift = values - np.take_along_axis(right, place[:, None], axis=1)[:, 0]
        follows = np.arange(right.shape[1]) >= place[:, None]
        return np.where(follows, (right + shift[:, None]) % 10, right)

    def write_answers(self, problems, answers, options):
        """Answers as tokens; also those that are right only if a variable had another value."""
        return answers + self.vocabulary.first, problems.length


TASK = OwnTask()

# How to train it; `headcount train FILE.py --set training.epochs=10` changes a value for one run.
RECIPE = {
    "description": "running totals of 2 to 6 digits; encoder-decoder, 1+1 layers",
    "data": {"test_lengths": [8]},
    "model": {
        "architecture": "encoder-decoder",
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "hidden_size": 64,
        "intermediate_size": 128,
        "position_embedding_type": "learned",
        "max_position_embeddings": 32,
    },
    "training": {
        "optimizer": "muon",
        "learning_rate": 0.004,
        "muon_learning_rate": 0.02,
        "muon_momentum": 0.8,
        "gradient_clip": None,
        "epochs": 3,
        "batch_size": 64,
    },
}
