"""What is known of a task before anything is measured: what theory predicts, and the strongest published figure.

A task fills in its `Task.expectation`; the board (docs/board.md) puts what was measured beside it. Where no paper
makes a statement about a task, none is made here either: `expressible=None` reads as "not stated", and
`published=None` as "none known to us".
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Paper:
    """`Zhou et al. 2023`, and where it can be read."""

    name: str
    address: str


@dataclass(frozen=True)
class Formalism:
    """A language of programs that transformers are thought to learn at all lengths if there is one for the task.

    `grants`: what of `built_in.BUILT_IN` its programs have as well, so that a model with it is no exception.
    """

    name: str
    paper: Paper
    grants: tuple[str, ...] = ("causal mask",)


RASP_L = Formalism("RASP-L", Paper("Zhou et al. 2023", "https://arxiv.org/abs/2310.16028"))
C_RASP = Formalism("C-RASP", Paper("Huang et al. 2024", "https://arxiv.org/abs/2410.02140"))
# Where C-RASP comes from: https://arxiv.org/abs/2404.04393
YANG_AND_CHIANG = Paper("Yang and Chiang 2024", "https://arxiv.org/abs/2404.04393")


@dataclass(frozen=True)
class Prediction:
    """Whether one program of a formalism solves the task at every length, in the words of one sentence.

    `expressible`: what the paper of the formalism (or `paper`, where another one says so) states; None: nothing.
    """

    formalism: Formalism
    expressible: bool | None
    reason: str
    paper: Paper | None = None

    @property
    def source(self) -> Paper:
        return self.paper or self.formalism.paper


@dataclass(frozen=True)
class Published:
    """The strongest figure that we know of: trained up to one length, right at another in so many of 100 cases."""

    trained: int
    reached: int
    accuracy: str  # as the paper gives it: "more than 95 %"
    how: str  # what it was reached with
    paper: Paper


@dataclass(frozen=True)
class Expectation:
    """All of it, for one task."""

    predictions: tuple[Prediction, ...]
    published: Published | None = None

    @property
    def predicted(self) -> bool | None:
        """Whether papers predict that the task generalises; None where none says so, or where they disagree."""
        stated = {prediction.expressible for prediction in self.predictions} - {None}
        return stated.pop() if len(stated) == 1 else None

    @property
    def grants(self) -> frozenset[str]:
        """What may be built into a model without taking it out of the prediction."""
        return frozenset(name for prediction in self.predictions for name in prediction.formalism.grants)
